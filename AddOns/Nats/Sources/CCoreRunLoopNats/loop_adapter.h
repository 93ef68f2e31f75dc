/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches a connection of cnats to a run loop: the adapter that natsOptions_SetEventLoop asks for.
 *
 * cnats calls it on any thread, with its lock held. The loop's thread reads and writes. What cnats wants to write is written once a pass,
 * before the loop sleeps, and when there is room again.
 */
#ifndef CRL_NATS_LOOP_ADAPTER_H
#define CRL_NATS_LOOP_ADAPTER_H

#include "nats_link_names.h"

#include <nats/nats.h>
#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

struct loop_adapter;

/* `has_moved` is called on the loop's thread after bytes were read or written. NULL if there is no memory. */
struct loop_adapter *loop_adapter_create(CFRunLoopRef loop, void (*has_moved)(void *info), void *info);
/* On the loop's thread: nothing comes any more. cnats may still attach and detach, so the memory goes with loop_adapter_release only. */
void loop_adapter_end(struct loop_adapter *adapter);
/* Any thread, when cnats neither connects nor will. */
void loop_adapter_release(struct loop_adapter *adapter);

natsStatus loop_adapter_set(struct loop_adapter *adapter, natsOptions *options);

/*
 * The loop begins to serve a connection, which lives until loop_adapter_leave. Both on the loop's thread. Returns false if there is no
 * memory, and serves none then.
 */
bool loop_adapter_enter(struct loop_adapter *adapter, natsConnection *nats);
void loop_adapter_leave(struct loop_adapter *adapter);
/* Writes what there is to write. On the loop's thread. */
void loop_adapter_flush(struct loop_adapter *adapter);

#endif
