/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source in one mode is a member there, of the binding that joins the source to the mode's loop. These functions make members and end
 * them, with the loop's lock held, and call nothing of the program's.
 */
#ifndef CRL_LOOP_SOURCE_MEMBER_H
#define CRL_LOOP_SOURCE_MEMBER_H

#include "Loop/link_names.h"

#include "Loop/Signal/source.h"
#include "Loop/Signal/source_queue.h"
#include "Loop/Signal/source_set.h"

/* Refused: the source is no longer valid. */
enum source_attach_result { source_attached, source_attach_refused, source_attach_no_memory };

/* Makes the source a member of `mode`; a NULL mode stands for the common items. Binds the source to the loop if it is not bound yet. */
REQUIRES(the_loop_lock)
enum source_attach_result source_member_attach(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source,
                                               CFHashCode hash);
/* Undoes source_member_attach. The binding goes to `released` if this was its last member. */
REQUIRES(the_loop_lock)
void source_member_detach(CFRunLoopRef loop, struct source_set *set, struct source_member *member, struct binding_release_list *released);

/* Returns the set that a membership of `mode` is in; a NULL mode stands for the common items. */
REQUIRES(the_loop_lock) static inline struct source_set *source_set_of_mode(CFRunLoopRef loop, struct mode *mode)
{
    return mode ? &mode->sources : &loop->common_sources;
}

/* Makes a source pending that was signalled before it joined: a source keeps its mark while it is in no loop (rules 79 and 80). */
REQUIRES(the_loop_lock) void source_member_notice_mark(CFRunLoopRef loop, CFRunLoopSourceRef source, struct mode *mode);

/* Returns true if some loop holds the source. The item lock is held. */
bool source_is_bound(CFRunLoopSourceRef source);

#endif
