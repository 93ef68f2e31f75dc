/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word that reads as zero in a child: so one that was made by _Fork or clone, which run no handlers, is recognised at the first call, and
 * does then what its handlers would have done. Those set the word anew.
 *
 * Whoever has one marks the process before there is anything that a child must leave alone. The child may have several threads by the time
 * that one of them looks. Only one can change the word from what the kernel has left there; it does all, and the others wait in their call
 * until the word is set. So nobody has a lock meanwhile that is only taken after a look, and such locks may be made free: who held one of
 * them in the parent does not exist here.
 */
#ifndef CRL_KERNEL_FORK_MARK_H
#define CRL_KERNEL_FORK_MARK_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Kernel/kernel.h"

/* Each has its own: a child may have used the one kind of things, and not yet the other. */
enum fork_mark_place { fork_mark_of_loops, fork_mark_of_message_ports, fork_mark_of_mach_ports, fork_mark_places };

_Static_assert((int)fork_mark_places <= (int)fork_mark_words, "the page has a word for each");

enum fork_mark_state {
    fork_mark_wiped = 0, /* by the kernel */
    fork_mark_passed, /* by a thread that cannot do what is to be done; others may */
    fork_mark_taken, /* some thread does it */
    fork_mark_set,
};

/* The table's entry, as Linux fills it. Nobody but kernel.c names it. */
_Atomic uint32_t *kernel_fork_mark(void);

struct fork_mark {
    _Atomic(_Atomic uint32_t *) word; /* written once; until then, and where the kernel cannot tell, `none` */
    _Atomic uint32_t none; /* C */
};

#define FORK_MARK_INIT(_mark) {&(_mark).none, fork_mark_set}

static inline _Atomic uint32_t *fork_mark_word(const struct fork_mark *mark)
{
    return atomic_load_explicit(&mark->word, memory_order_acquire);
}

/* This is a child, and nobody has done yet what its handlers would have. */
static inline bool fork_mark_is_wiped(const struct fork_mark *mark)
{
    return __builtin_expect(atomic_load_explicit(fork_mark_word(mark), memory_order_acquire) != fork_mark_set, 0);
}

/* In the end: all has been done. */
static inline void fork_mark_renew(const struct fork_mark *mark)
{
    _Atomic uint32_t *word = fork_mark_word(mark);

    if (word != &mark->none) {
        atomic_store_explicit(word, fork_mark_set, memory_order_release);
    }
}

/* What the word was, if `state` has come in its place: of the states before it, one at a time; and else the state that it has. */
static inline uint32_t fork_mark_advance(const struct fork_mark *mark, enum fork_mark_state state)
{
    _Atomic uint32_t *word = fork_mark_word(mark);
    uint32_t old = atomic_load_explicit(word, memory_order_acquire);

    while (old < (uint32_t)state && !atomic_compare_exchange_weak_explicit(word, &old, state, memory_order_acq_rel, memory_order_acquire)) {
    }
    return old;
}

static inline void fork_mark_wait(const struct fork_mark *mark)
{
    while (atomic_load_explicit(fork_mark_word(mark), memory_order_acquire) == fork_mark_taken) {
        kernel.yield();
    }
}

/* True: it is for the caller to do all, and to renew the mark then. False: another thread has. */
static inline bool fork_mark_take(const struct fork_mark *mark)
{
    bool is_ours = fork_mark_advance(mark, fork_mark_taken) < fork_mark_taken;

    if (!is_ours) {
        fork_mark_wait(mark);
    }
    return is_ours;
}

static inline void fork_mark_begin(struct fork_mark *mark, enum fork_mark_place place)
{
    _Atomic uint32_t *words = kernel.fork_mark();

    if (words) {
        atomic_store_explicit(&words[place], fork_mark_set, memory_order_relaxed);
        atomic_store_explicit(&mark->word, &words[place], memory_order_release);
    }
}

#endif
