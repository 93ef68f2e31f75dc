/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a stream, from the moment they happen until stream_delivery tells them.
 *
 * An event that comes once is owed from the moment it happens until it is told. A lasting event, bytes or room, is told when the stream's
 * source is performed and it holds; then not again until the program reads or writes. A stream without a descriptor signals its source
 * when something is due; one with a descriptor leaves bytes and room to the loop's wait, and posts the rest.
 */
#ifndef CRL_STREAM_STREAM_EVENTS_H
#define CRL_STREAM_STREAM_EVENTS_H

#include "Stream/link_names.h"

#include "Stream/Core/stream_client.h"

/* Replaces the client; `events` of 0 removes it. Returns false if there is no memory. */
EXCLUDES(the_item_lock)
bool stream_events_set_client(struct stream *s, CFOptionFlags events, union stream_callback callback, const CFStreamClientContext *context);

/* Notes an event that comes once, if the client wants it. */
REQUIRES(the_item_lock) void stream_events_owe(struct stream *s, uint8_t event);
/*
 * Takes the descriptor out of the stream's interest for a transfer. Returns what has to be told of it (stream_carriers_tell) once the lock
 * is dropped, which may be nothing.
 */
REQUIRES(the_item_lock) struct stream_carriers stream_events_rest(struct stream *s);
/* Something has changed by which an event may be due: has the loops look. */
EXCLUDES(the_item_lock) void stream_events_changed(struct stream *s);
/* As stream_events_changed, but a loop performs the source even if nothing is due: a stream that is opening then goes on. */
EXCLUDES(the_item_lock) void stream_events_nudge(struct stream *s);

/* ---- for stream_delivery ---- */

/*
 * Whether the next change from "would wait" to "would not" has to be told. The end and errors are found at the same look, so that a client
 * for these alone counts as well.
 */
REQUIRES(the_item_lock) bool stream_events_await_lasting(const struct stream *s);
/*
 * Takes an event to tell, with a reference to the client that wants it. NULL: it is not due any more, or nobody wants it. `lasting` has
 * the lasting event if it holds. `is_reported`: the latest report that the loop has fetched for the stream has led to this event. If not,
 * a report may be left, which is out of date as soon as the callback has read or written.
 */
REQUIRES(the_item_lock)
struct stream_client *stream_events_take(struct stream *s, uint8_t event, uint8_t lasting, bool is_reported);

#endif
