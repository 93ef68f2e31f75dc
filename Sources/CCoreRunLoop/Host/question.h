/* SPDX-License-Identifier: Apache-2.0 */
/* A question of a host: its life, and its query in the host's loops. host_ask.h asks and answers. */
#ifndef CRL_HOST_QUESTION_H
#define CRL_HOST_QUESTION_H

#include "Host/link_names.h"

#include "Host/host.h"

/* Returns a question with a reference for the host and one for the caller, or NULL if there is no memory. */
struct question *question_create(CFHostRef host, CFHostInfoType info, CFHostInfoType asked);
void question_release(struct question *question);
/* Returns the host's question with a reference, or NULL. */
EXCLUDES(the_item_lock) struct question *question_retain_current(CFHostRef host);
/* The host does not wait for the answer any more, and gives its reference back. */
void question_abandon(struct question *question);

/* The host has joined, or left, a mode. */
EXCLUDES(the_item_lock) void question_schedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);
EXCLUDES(the_item_lock) void question_unschedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);

#endif
