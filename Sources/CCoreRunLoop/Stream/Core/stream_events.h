/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of a stream, and how events come to it.
 *
 * An event that comes once is owed from the moment it happens until it is told. A lasting event, bytes or room, is told when the stream's
 * source is performed and it holds; then not again until the program reads or writes. A stream without a descriptor signals its source
 * when something is due; one with a descriptor leaves bytes and room to the loop's wait, and posts the rest.
 */
#ifndef CRL_STREAM_STREAM_EVENTS_H
#define CRL_STREAM_STREAM_EVENTS_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* The functions of one kind of stream; the other is unused. */
union stream_callback {
    CFReadStreamClientCallBack reader;
    CFWriteStreamClientCallBack writer;
};

/* ---- the client ---- */

/* Replaces the client; `events` of 0 removes it. Returns false if there is no memory. */
EXCLUDES(the_item_lock)
bool stream_client_set(struct stream *s, CFOptionFlags events, union stream_callback callback, const CFStreamClientContext *context);
/* For a stream that is being freed. */
void stream_client_remove(struct stream *s);
/* The client for the description of the stream: what the program says of its info, the events, the callout. NULL: none, or no memory. */
EXCLUDES(the_item_lock) CFStringRef stream_client_describe(struct stream *s);

/* ---- events ---- */

/* Notes an event that comes once, if the client wants it. */
REQUIRES(the_item_lock) void stream_owe(struct stream *s, uint8_t event);
/* Takes the descriptor out of the loops' interest for a transfer. Returns true if they have to be told: stream_events_publish. */
REQUIRES(the_item_lock) bool stream_events_rest(struct stream *s);
EXCLUDES(the_item_lock) void stream_events_publish(struct stream *s);
/* Something has changed by which an event may be due: has the loops look. */
EXCLUDES(the_item_lock) void stream_events_changed(struct stream *s);
/* As stream_events_changed, but a loop performs the source even if nothing is due: a stream that is opening then goes on. */
EXCLUDES(the_item_lock) void stream_events_nudge(struct stream *s);
/*
 * Tells the client the events that are due, and drops a reference. `ready` has bits of enum kernel_readiness. On the loop's thread, or on
 * one of the dispatch queue's.
 */
EXCLUDES(the_item_lock) void stream_events_deliver(struct stream *s, uint32_t ready);

#endif
