/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The companion: another event loop with items on the same threads, whose waits and this library's become one. It is Foundation's loop,
 * once CoreRunLoopFoundation is linked; this library only knows the functions of companion_calls.h.
 *
 * While a thread has a companion, it is the waiter of its loop (Core/loop.h): the companion does the sleeps. It serves its own items in the
 * mode of the same name, and returns when this loop has something to do. The companion's own runs become runs of this loop, so that there
 * is one kind of run.
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

#endif
