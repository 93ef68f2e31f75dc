/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stream is: in modes of loops, with the source that stands for it there, or on a dispatch queue.
 *
 * The source does not keep the stream alive: it owns a link, which knows the stream until that is freed or closed. A stream gets its
 * descriptor only when it is opened, or when a name has been resolved. Its source is then replaced in all modes by one that watches the
 * descriptor.
 */
#ifndef CRL_STREAM_STREAM_SCHEDULE_H
#define CRL_STREAM_STREAM_SCHEDULE_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

EXCLUDES(the_item_lock) void stream_schedule_add(struct stream *s, CFRunLoopRef loop, CFStringRef mode);
EXCLUDES(the_item_lock) void stream_schedule_remove(struct stream *s, CFRunLoopRef loop, CFStringRef mode);
/* Makes the source of a scheduled stream watch the stream's descriptor. To be called after the descriptor has changed. */
EXCLUDES(the_item_lock) void stream_schedule_renew(struct stream *s);
/* The stream has a descriptor now, or its number stands for another file than before. */
EXCLUDES(the_item_lock) void stream_schedule_descriptor_changed(struct stream *s, int descriptor);
/* Puts the stream on the queue, and out of all loops, unless it is closed. Takes over the reference to the place. */
EXCLUDES(the_item_lock) void stream_schedule_put_on_queue(struct stream *s, struct stream_queue *place);
/* Takes the stream off its queue, if it is on one. */
EXCLUDES(the_item_lock) void stream_schedule_leave_queue(struct stream *s);
/* Takes a stream out of all loops, and off its queue. Drops the lock, because the loops are woken. Closes the kind of a closed stream. */
RELEASES(the_item_lock) void stream_schedule_take_and_unlock(struct stream *s);
/* The same for a stream that is being freed. Nobody else refers to it, so there is no lock. */
void stream_schedule_end(struct stream *s);

#endif
