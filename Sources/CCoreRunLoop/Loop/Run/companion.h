/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The companion: another event loop with items on the same threads, whose waits and this library's become one. It is Foundation's loop,
 * once CoreRunLoopFoundation is linked; this library only knows the functions of companion_calls.h.
 *
 * While a thread has a companion, a pass of its loop lets the companion do the sleep. The companion serves its own items in the mode of
 * the same name, and returns when this loop has something to do. The companion's own runs become runs of this loop, so that there is one
 * kind of run. A thread that has no companion pays for one load of a flag in each pass.
 */
#ifndef CRL_LOOP_RUN_COMPANION_H
#define CRL_LOOP_RUN_COMPANION_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"
#include "Loop/Run/companion_calls.h"

/* Sets the process's companion; with NULL there is none any more. Threads that have such a loop already say so by companion_appear. */
void companion_set(const struct companion *companion);

/* The calling thread's companion exists from now on; with `is_main` the main thread's. Its loop, if there is one, lets it wait. */
void companion_appear(bool is_main);

/* The loop was just made; its companion may be older. */
void companion_meet(CFRunLoopRef loop);

/* This is the child of a fork. What the companion waits for there is its parent's. */
void companion_part(CFRunLoopRef loop);

/* Frees what a loop has for its companion. Its descriptors are closed. */
void companion_free(CFRunLoopRef loop);

static inline bool companion_is_there(CFRunLoopRef loop)
{
    return __builtin_expect(atomic_load_explicit(&loop->has_companion, memory_order_relaxed), 0);
}

/* Step 7 of a pass, as wait_for_cause. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) enum wake_cause companion_wait_for_cause(CFRunLoopRef loop, struct run *run);

/* In a pass that does not sleep: gives the companion a turn, unless it had one in this run just before. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) void companion_take_turn(CFRunLoopRef loop, struct run *run);

/* Returns true if the companion has nothing in the mode, or there is none. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) bool companion_is_empty(CFRunLoopRef loop, CFRunLoopMode mode_name);

#endif
