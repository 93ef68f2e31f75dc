/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the state of a run is. Not on the stack of the thread that runs it: a callback may end its thread, or throw through the run, and
 * then others still look at the state from their threads, the thread's own destructors run the loop once more, and the child of a fork
 * inherits it.
 *
 * A run that was left so is abandoned. It stays the loop's current run until a run around it goes on, or the thread has ended.
 */
#ifndef CRL_LOOP_ACTIVATION_H
#define CRL_LOOP_ACTIVATION_H

#include "Support/link_names.h"

#include "Loop/loop.h"

/* The place of a run within another, or after an abandoned one. Without memory it is `without_memory`, which is the caller's. */
struct activation *activation_create(struct activation *without_memory);

/* The state of a run that begins: `initial`, in its place. L. */
static inline __attribute__((always_inline)) struct activation *activation_begin(CFRunLoopRef loop, struct activation initial,
                                                                                 struct activation *without_memory)
{
    struct activation *run = &loop->first_activation;

    if (__builtin_expect(loop->activation != NULL, 0)) {
        run = activation_create(without_memory);
        initial.is_allocated = run != without_memory;
    }
    *run = initial;
    return run;
}

/* Gives the place of a run back that has left the loop. */
void activation_discard(struct activation *run);

/* Those that a thread has abandoned by its end. What they hold is still held. L. */
void activations_forget(CFRunLoopRef loop);

#endif
