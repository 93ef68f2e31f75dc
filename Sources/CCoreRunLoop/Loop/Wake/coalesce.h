/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coalescing: what the library does about a flood of signals and wake-ups, most of which change nothing.
 *
 * A call that finds its work done already (the source is signalled, the loop is awake) may return at once, if the loop will still see what
 * the caller wrote before. A full fence before the look makes sure of that, and it is most of what such a call costs. After many of them a
 * thread marks the source, or the loop's wake word, as coalesced. From then on callers neither look for work nor make a fence. They only
 * store in a word beside the mark (`announced`) that they have called, whether or not something is announced already. A store comes after
 * the earlier stores of its thread. So a loop that takes the announcement sees these, and a loop that does not see it yet sees it in its
 * next pass.
 *
 * A burst is the time in which the mark is set. It ends only when a pass finds nothing announced, and before the loop can sleep: the loop
 * clears the mark, makes all threads of the process pass a fence (barrier_everywhere), and looks once more. A caller that found the mark
 * stored its announcement before that fence. Every other caller finds no mark, and does what there is to do. The fence costs the loop 0.2
 * to 10 microseconds, as much as 50 to some thousands of a caller's fences. So a thread pays for 64 of its own before it sets the mark.
 * After a burst that spared it as many, its next call begins another one at once.
 *
 * Threads that store in one place by turns would take its cache line from one another. So each thread stores its tag. A thread that finds
 * another's tag stores "many" instead, and a thread that finds "many" makes a fence and looks.
 *
 * Without the system call nothing is ever coalesced. docs/threads.md ("Shared fences") argues why all this suffices.
 */
#ifndef CRL_LOOP_WAKE_COALESCE_H
#define CRL_LOOP_WAKE_COALESCE_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Support/barrier.h"

enum {
    coalesce_threshold = 64, /* calls in a row that changed nothing, before a burst begins */
    coalesce_useful_weight = 4 /* up to four redundant signals for each useful one are no flood, however long that goes on */
};

/*
 * Counts of one thread's latest calls. Only this thread and its signal handlers write them. A handler that interrupts an update spoils a
 * count, and so at worst the choice whether to coalesce.
 */
struct coalesce_record {
    uint32_t redundant_signals; /* signals that changed nothing, less coalesce_useful_weight for each useful one; 0 when a burst begins */
    uint32_t redundant_wakes; /* wake-ups that changed nothing, since the thread's last call that changed something */
    uint32_t unfenced_signals; /* signals without a fence, since its last signal that changed something */
    uint32_t unfenced_wakes; /* wake-ups without a fence, since its last wake-up that changed something */
};

extern __thread struct coalesce_record coalesce_record __attribute__((tls_model("initial-exec")));

/* True if the kernel can make all threads pass a fence. Once false, it never becomes true again. */
extern atomic_bool coalesce_is_possible;

/* Counts one redundant call. Returns true if a burst is to begin; then the count begins again at 0. */
static inline bool coalesce_count_redundant(uint32_t *count)
{
    if (++*count < coalesce_threshold) {
        return false;
    }
    *count = 0;
    return atomic_load_explicit(&coalesce_is_possible, memory_order_relaxed);
}

/*
 * A call is useful, so the last burst is over, and the count of calls in it begins again at 0. Returns true if that burst spared the thread
 * enough fences to begin the next one at once.
 */
static inline bool coalesce_end_streak(uint32_t *unfenced)
{
    bool result = *unfenced >= coalesce_threshold && atomic_load_explicit(&coalesce_is_possible, memory_order_relaxed);

    *unfenced = 0;
    return result;
}

/*
 * The values of an announcement word. Any other value is the tag of the only thread that has announced a call since the loop last took the
 * word.
 */
enum { announced_by_nobody = 0, announced_by_many = 1 };

/* The calling thread's tag. Two threads may share a tag; then both store, which costs time but loses nothing. */
static inline uint32_t coalesce_thread_tag(void)
{
    return (uint32_t)(uintptr_t)&coalesce_record | 2; /* never announced_by_nobody or announced_by_many */
}

/*
 * Takes the announcement. Returns true if there was one. After this the loop sees what all callers wrote before they announced, or before
 * they found the word already announced after a fence.
 */
static inline bool coalesce_take_announced(_Atomic uint32_t *announced)
{
    bool result = atomic_exchange_explicit(announced, announced_by_nobody, memory_order_seq_cst) != announced_by_nobody;

    barrier_after_update();
    return result;
}

static inline bool coalesce_is_announced(const _Atomic uint32_t *announced)
{
    return atomic_load_explicit(announced, memory_order_acquire) != announced_by_nobody;
}

enum coalesce_answer {
    coalesce_is_announced_in_time, /* the burst goes on: the call is done */
    coalesce_has_others, /* another thread or many have announced; this thread has stored nothing yet */
    coalesce_is_over, /* this thread has announced its call, but found no mark any more */
};

/*
 * Announces a call after its caller has found the mark `coalesced` in `word`. The store comes before the second look at the mark: whoever
 * still finds the mark has stored before the fence that ends the burst.
 */
static inline enum coalesce_answer coalesce_announce(_Atomic uint32_t *announced, const _Atomic uint32_t *word, uint32_t coalesced)
{
    uint32_t tag = coalesce_thread_tag();
    uint32_t found = atomic_load_explicit(announced, memory_order_relaxed);

    if (found != tag && found != announced_by_nobody) {
        return coalesce_has_others;
    }
    atomic_store_explicit(announced, tag, memory_order_release);
    /* The processor may still swap the store and the load. Then the loop's shared fence stands between them. */
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(word, memory_order_relaxed) & coalesced ? coalesce_is_announced_in_time : coalesce_is_over;
}

/*
 * Completes an announcement that coalesce_announce has not completed. Returns false if the burst ended before the loop took the
 * announcement: the caller has taken it back and has to make its call anew, without coalescing.
 */
bool coalesce_finish_announcing(enum coalesce_answer answer, _Atomic uint32_t *announced, const _Atomic uint32_t *word, uint32_t coalesced);

/* Notes a signal that finds its source not signalled. Returns true if the source is to be coalesced from the start. */
static inline bool coalesce_note_signal(void)
{
    uint32_t count = coalesce_record.redundant_signals;

    coalesce_record.redundant_signals = count > coalesce_useful_weight ? count - coalesce_useful_weight : 0;
    coalesce_record.redundant_wakes = 0;
    return coalesce_end_streak(&coalesce_record.unfenced_signals);
}

/* Notes a wake-up that changes something. Returns true if the wake word is to be coalesced from the start. */
static inline bool coalesce_note_wake(void)
{
    coalesce_record.redundant_wakes = 0;
    return coalesce_end_streak(&coalesce_record.unfenced_wakes);
}

/*
 * The loop calls this before it takes an announcement, with the time when it last took one. Waits awake until that is a microsecond ago:
 * looks that follow one another too closely cost both sides more than all the rest. Returns the time.
 */
int64_t coalesce_await_look(int64_t last_ns);

/* The loop calls this before it ends a burst of wake-ups in which nothing is announced now. Waits two microseconds for another one. */
void coalesce_await_more(void);

/* The loop calls this after it has cleared a mark. After it the loop sees the announcements of all callers that had found the mark. */
__attribute__((cold)) void coalesce_fence_threads(void);

#endif
