/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream on a queue of libdispatch, where the process has libdispatch: it is not linked, only found.
 *
 * A dispatch source watches a wait set, which has the stream's descriptor and an event for what is posted. So there is one delivery at a
 * time, on concurrent queues too. The queue does not keep the stream alive, and libdispatch lets go of the wait set some time after the
 * stream has left the queue.
 */
#ifndef CRL_STREAM_STREAM_QUEUE_H
#define CRL_STREAM_STREAM_QUEUE_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

struct stream_queue;

/* ---- for the public calls ---- */

/*
 * Returns a reference to a place on the queue of libdispatch, or NULL: there is no libdispatch, no memory or no descriptor. It calls the
 * stream's `deliver` with a reference to the stream and what its descriptor is ready for: bits of enum kernel_readiness, or 0.
 */
EXCLUDES(the_item_lock) struct stream_queue *stream_queue_attach(struct stream *s, void *queue);
/* Returns the queue with a reference of libdispatch's, or NULL. */
EXCLUDES(the_item_lock) void *stream_queue_copy(struct stream *s);

/* ---- for stream_schedule and stream_carriers ---- */

/* The number of the stream's descriptor may stand for another file now, which the next stream_queue_watch watches. */
EXCLUDES(the_item_lock) void stream_queue_forget(struct stream *s);
/* Nothing more is told on the queue, but for a callback that is under way. Drops the stream's reference. NULL does nothing. */
void stream_queue_detach(struct stream_queue *place);
void stream_queue_retain(struct stream_queue *place);
void stream_queue_release(struct stream_queue *place);
/* Watches the stream's descriptor, if it has one, for what its interest is now. */
void stream_queue_watch(struct stream_queue *place, struct stream *s);
/* Has the queue tell what is due. */
void stream_queue_post(struct stream_queue *place);

#endif
