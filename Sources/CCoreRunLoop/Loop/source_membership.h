/* SPDX-License-Identifier: Apache-2.0 */
/* Which modes of which loops a source is in. */
#ifndef CRL_LOOP_SOURCE_MEMBERSHIP_H
#define CRL_LOOP_SOURCE_MEMBERSHIP_H

#include "Support/link_names.h"

#include "Loop/source.h"

/* Membership. These take the lock, call schedule and cancel without it. */
void source_add(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
void source_remove(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
bool source_is_in(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
void source_add_to_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode);
/* Adds every common source to a mode that has just become common (19). */
void sources_join_common_mode(CFRunLoopRef loop, struct mode *mode);
void source_invalidate(CFRunLoopSourceRef source);
/* Takes every source out of every mode of a loop whose thread ends, with cancel. */
void sources_remove_all(CFRunLoopRef loop);

/* The membership of exactly this source in `mode` of `loop`; NULL mode: of the common items. L. */
struct source_member *source_member_in(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode);

/* The same as a question, quick where there is no other membership. */
static inline bool source_has_joined(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode)
{
    const struct slot *slot = &source->first_slot;

    if (slot_is_bound_to(slot, loop) && slot->members && slot->members->mode == mode) {
        return true;
    }
    return source_member_in(loop, source, mode) != NULL;
}

#endif
