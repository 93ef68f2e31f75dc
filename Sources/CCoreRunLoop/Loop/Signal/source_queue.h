/* SPDX-License-Identifier: Apache-2.0 */
/* Brings signalled sources to the pass: through the waker's queue of bindings into the pending lists of modes. See source_queue.c. */
#ifndef CRL_LOOP_SOURCE_QUEUE_H
#define CRL_LOOP_SOURCE_QUEUE_H

#include "Loop/link_names.h"

#include "Loop/Signal/source.h"

/* Unbound bindings, chained by queue_next. bindings_release drops their references once no lock is held. */
struct binding_release_list {
    struct binding *first;
};
void bindings_release(struct binding_release_list *released);

/* Unbinds a binding without members. Returns false while the queued bit is set: a thread is pushing the binding, or it is in the queue. */
REQUIRES(the_loop_lock) bool binding_unbind(CFRunLoopRef loop, struct binding *binding, struct binding_release_list *released);

/* Puts every member of the binding into its mode's pending list. Returns false if the binding has no members. */
REQUIRES(the_loop_lock) bool binding_link_members(struct binding *binding);

/* Moves the members of the bindings in the waker's queue into the pending lists. */
REQUIRES(the_loop_lock) void source_queue_drain(CFRunLoopRef loop, struct binding_release_list *released);

/* Returns the first pending source of a mode in order, or NULL. */
REQUIRES(the_loop_lock) struct source_member *source_first_pending(struct mode *mode);

/* Puts the source into the pending lists of all its modes in this loop, or takes it out of them. */
REQUIRES(the_loop_lock) void source_link_pending(CFRunLoopRef loop, CFRunLoopSourceRef source);
REQUIRES(the_loop_lock) void source_unlink_pending(CFRunLoopRef loop, CFRunLoopSourceRef source);

/* In the child of a fork: finishes, from the marks, the signals of threads of the parent that do not exist here. */
REQUIRES(the_loop_lock) void sources_requeue(CFRunLoopRef loop);

/* Sorts the pending list if it is unsorted. */
REQUIRES(the_loop_lock) void source_sort_pending(struct mode *mode);

#endif
