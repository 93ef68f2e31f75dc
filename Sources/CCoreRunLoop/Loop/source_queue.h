/* SPDX-License-Identifier: Apache-2.0 */
/* Signalled sources on their way to the pass. */
#ifndef CRL_LOOP_SOURCE_QUEUE_H
#define CRL_LOOP_SOURCE_QUEUE_H

#include "Support/link_names.h"

#include "Loop/source.h"

/* Slots to let go of once the lock is dropped; chained by queue_next. */
struct slot_reap {
    struct slot *first;
};
void slots_release(struct slot_reap *reap);

/* Lets go of a slot without members. False while a push onto it is under way. L. */
bool slot_unbind(CFRunLoopRef loop, struct slot *slot, struct slot_reap *reap);

/* Puts every member of the slot into its mode's pending list; false if there is none. L. */
bool slot_link_members(struct slot *slot);

/* Moves what the mailbox holds into the pending lists. L. */
void source_queue_drain(CFRunLoopRef loop, struct slot_reap *reap);

/* The first pending source of a mode in order, or NULL. L. */
struct source_member *source_first_pending(struct mode *mode);

/* Puts the source into the pending lists of all its modes in this loop, or takes it out of them. L. */
void source_link_pending(CFRunLoopRef loop, CFRunLoopSourceRef source);
void source_unlink_pending(CFRunLoopRef loop, CFRunLoopSourceRef source);

/* In the child of a fork: what a signaller that does not exist here has left half done is finished by the marks. L. */
void sources_requeue(CFRunLoopRef loop);

/* Puts the pending list in order if it is not. L. */
void source_sort_pending(struct mode *mode);

#endif
