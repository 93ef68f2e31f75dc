/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods: so many signals and wake-ups that most of them change nothing.
 *
 * One that finds its work done already (a source signalled, a loop awake) may return at once if the loop will see what its caller wrote
 * before. A full fence of its own, before it looks, makes sure of that; and it is most of what such a call costs. When there have been
 * many, the next one marks the source or the loop as flooded: from then on nobody needs a fence, because the loop makes all threads of the
 * process pass one (barrier_everywhere) between its taking the mark and its looking. That costs the loop as much as 50 to 250 fences, so a
 * thread pays for 64 before it asks for it; and it stays flooded, period by period, while a period spares its signaller as many.
 *
 * Without the system call nothing is ever flooded. Why a shared fence suffices: docs/threads.md.
 */
#ifndef CRL_LOOP_FLOOD_H
#define CRL_LOOP_FLOOD_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
 * For the loop, after it has taken what was flooded, and before it looks: what any thread wrote before it found the flood can be seen
 * then.
 */
__attribute__((cold)) void flood_fence(void);

#endif
