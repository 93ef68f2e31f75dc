/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods: so many signals and wake-ups that most of them change nothing.
 *
 * One that finds its work done already (a source signalled, a loop awake) may return at once if the loop will see what its caller wrote
 * before. A full fence of its own, before it looks, makes sure of that; and it is most of what such a call costs. When there have been
 * many, the next one marks the source or the loop as flooded. From then on callers neither look whether there is something to do nor make
 * a fence, but store (`told`) that they have called, whether or not that is there already. A store comes after the earlier ones of its
 * thread, so the loop that takes it sees them; one that the loop does not see yet it sees in its next pass.
 *
 * Only when a pass finds nothing told the flood ends, before the loop can sleep: it takes the mark of the flood away, makes all threads of
 * the process pass a fence (barrier_everywhere), and looks once more. A caller that found the flood has stored before that fence; all
 * others find it over, and do what there is to do. The fence costs the loop 0.2 to 10 microseconds, as much as 50 to some thousands of a
 * caller, so a thread pays for 64 before it asks for it; and after a flood that spared it as many, it begins the next one at once.
 *
 * Several threads that store in one place would take its line of the cache from one another. So each stores its name; who finds another's
 * stores that there are many, and who finds that makes a fence and looks.
 *
 * Without the system call nothing is ever flooded. Why all this suffices: docs/threads.md.
 */
#ifndef CRL_LOOP_FLOOD_H
#define CRL_LOOP_FLOOD_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Support/barrier.h"

enum {
    flood_from = 64, /* signals, or wake-ups, that changed nothing */
    flood_none_to = 4 /* so many of them for one that did are no flood, however long it goes on like this */
};

/* What a thread's calls have been lately; of its own, and of its signal handlers, which at worst spoil a choice. */
struct flood_record {
    uint32_t fenced_signals; /* of those that changed nothing, less flood_none_to for each that did; from 0 at each flood */
    uint32_t fenced_wakes; /* likewise, since its last call that changed something */
    uint32_t spared_signals; /* of those without a fence, since its last signal that changed something */
    uint32_t spared_wakes; /* of these, since its last wake-up that did */
};

extern __thread struct flood_record flood_record __attribute__((tls_model("initial-exec")));

/* Whether fences can be shared; never true again once it is false. */
extern atomic_bool flood_is_possible;

static inline bool flood_is_reached(uint32_t *count)
{
    if (++*count < flood_from) {
        return false;
    }
    *count = 0;
    return atomic_load_explicit(&flood_is_possible, memory_order_relaxed);
}

static inline bool flood_goes_on(uint32_t *spared)
{
    bool result = *spared >= flood_from && atomic_load_explicit(&flood_is_possible, memory_order_relaxed);

    *spared = 0;
    return result;
}

/* What `told` holds, besides the name of the only thread that has told since the loop took it last. */
enum { flood_untold = 0, flood_told_by_many = 1 };

/* Of the calling thread. Two threads may have one name: both store then. */
static inline uint32_t flood_name(void)
{
    return (uint32_t)(uintptr_t)&flood_record | 2; /* neither of the two above */
}

/* The loop takes what was told: true if anything was. All that those who told it, or found it told, wrote before is seen after this. */
static inline bool flood_hear(_Atomic uint32_t *told)
{
    bool result = atomic_exchange_explicit(told, flood_untold, memory_order_seq_cst) != flood_untold;

    barrier_after_update();
    return result;
}

static inline bool flood_is_told(const _Atomic uint32_t *told)
{
    return atomic_load_explicit(told, memory_order_acquire) != flood_untold;
}

enum flood_answer {
    flood_is_heard, /* nothing else is to do */
    flood_has_others, /* another thread has told, or many have, and this one has not yet */
    flood_is_over, /* it was over, and this one has told */
};

/* Tells the loop of a call, where `word` has been found with its bit `flooded`. */
static inline enum flood_answer flood_tell(_Atomic uint32_t *told, const _Atomic uint32_t *word, uint32_t flooded)
{
    uint32_t name = flood_name();
    uint32_t found = atomic_load_explicit(told, memory_order_relaxed);

    if (found != name && found != flood_untold) {
        return flood_has_others;
    }
    atomic_store_explicit(told, name, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* in the processor they may change places: the loop's shared fence is between them then */
    return atomic_load_explicit(word, memory_order_relaxed) & flooded ? flood_is_heard : flood_is_over;
}

/* The rest of it. False if the flood was over before the loop has heard of the call: nothing is told then, and it has to begin again. */
bool flood_finish_telling(enum flood_answer answer, _Atomic uint32_t *told, const _Atomic uint32_t *word, uint32_t flooded);

/* The thread signals a source that nobody has signalled since it was taken: whether that is to be flooded from the beginning. */
static inline bool flood_note_signal(void)
{
    uint32_t count = flood_record.fenced_signals;

    flood_record.fenced_signals = count > flood_none_to ? count - flood_none_to : 0;
    flood_record.fenced_wakes = 0;
    return flood_goes_on(&flood_record.spared_signals);
}

/* Likewise a wake-up that changes something. */
static inline bool flood_note_wake(void)
{
    flood_record.fenced_wakes = 0;
    return flood_goes_on(&flood_record.spared_wakes);
}

/*
 * For the loop, before it hears what was told, when it has last done so at `last_ns`: looks that follow one another too closely cost both
 * sides more than all the rest. Returns the time.
 */
int64_t flood_await_look(int64_t last_ns);

/* For the loop, before it ends a flood of wake-ups because nothing was told: something may be in a moment. */
void flood_await_more(void);

/* For the loop, when it has taken the mark of a flood away: all that was told by who found that mark can be heard after this. */
__attribute__((cold)) void flood_fence(void);

#endif
