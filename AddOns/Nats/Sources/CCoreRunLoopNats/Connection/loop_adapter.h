/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaches a connection of cnats to a run loop: the adapter that natsOptions_SetEventLoop asks for.
 *
 * cnats calls the adapter on any thread, with cnats's own lock held. Only the loop's thread reads and writes the socket. Bytes that cnats
 * wants to write are written once a pass, before the loop sleeps, and when the socket has room again.
 */
#ifndef CRL_NATS_LOOP_ADAPTER_H
#define CRL_NATS_LOOP_ADAPTER_H

#include "nats_link_names.h"

#include <nats/nats.h>
#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

struct loop_adapter;

/* `on_progress` is called on the loop's thread after bytes were read or written. NULL if there is no memory. */
struct loop_adapter *loop_adapter_create(CFRunLoopRef loop, void (*on_progress)(void *info), void *info);
/*
 * The loop's thread. No callback comes from now on. cnats may still attach and detach, so that loop_adapter_release frees the memory.
 */
void loop_adapter_end(struct loop_adapter *adapter);
/* Any thread, once cnats does not connect any more. */
void loop_adapter_release(struct loop_adapter *adapter);

/* Before cnats connects with the options. */
natsStatus loop_adapter_set(struct loop_adapter *adapter, natsOptions *options);

/*
 * The loop's thread. The loop serves a connection, which must live until loop_adapter_leave. Returns false, and serves none, if there is no
 * memory.
 */
bool loop_adapter_enter(struct loop_adapter *adapter, natsConnection *nats);
void loop_adapter_leave(struct loop_adapter *adapter);
/* The loop's thread. Writes what cnats wants to write. */
void loop_adapter_flush(struct loop_adapter *adapter);

#endif
