/* SPDX-License-Identifier: Apache-2.0 */
/* What a host asks for, from the question to its answer. */
#ifndef CRL_HOST_QUESTION_H
#define CRL_HOST_QUESTION_H

#include "Host/link_names.h"

#include "Host/host.h"

/* Begins to ask. Returns false, with the error, if it cannot. */
EXCLUDES(the_item_lock) bool host_ask(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error);
/* As host_ask, and waits for the answer. */
EXCLUDES(the_item_lock) bool host_ask_and_wait(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error);
EXCLUDES(the_item_lock) void host_cancel(CFHostRef host, CFHostInfoType info);

/* The host has joined, or left, a mode. */
EXCLUDES(the_item_lock) void question_schedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);
EXCLUDES(the_item_lock) void question_unschedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode);

/* The host does not wait for the answer any more, and gives its reference back. */
void question_abandon(struct question *question);

#endif
