/* SPDX-License-Identifier: Apache-2.0 */
/* Adds sources to modes and removes them, and invalidates them. A source can be in many modes of many loops. */
#ifndef CRL_LOOP_SOURCE_MEMBERSHIP_H
#define CRL_LOOP_SOURCE_MEMBERSHIP_H

#include "Loop/link_names.h"

#include "Loop/Signal/source.h"

/* These functions take the loop's lock. They call schedule and cancel with no lock held. */
void source_add(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
void source_remove(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
bool source_is_in(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode_name);
void source_add_to_mode(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode);
/* Adds every common source to a mode that has just become common (rule 19). */
void sources_join_common_mode(CFRunLoopRef loop, struct mode *mode);
void source_invalidate(CFRunLoopSourceRef source);
/* Takes every source out of every mode of a loop whose thread ends, and calls cancel for each. */
void sources_remove_all(CFRunLoopRef loop);

#endif
