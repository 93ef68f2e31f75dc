/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries a stream's events to a thread that tells them: the source in its loops, or its place on a dispatch queue.
 *
 * stream_schedule puts the carriers into the stream. stream_events tells them what to watch for, and when something is
 * due: it takes references under the stream's lock, and tells once that is dropped.
 */
#ifndef CRL_STREAM_STREAM_CARRIERS_H
#define CRL_STREAM_STREAM_CARRIERS_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Whether the carriers report that the stream's descriptor is ready. */
REQUIRES(the_item_lock) bool stream_carriers_watch(const struct stream *s);
/* Returns the stream's carriers with references, for stream_carriers_tell. */
REQUIRES(the_item_lock) struct stream_carriers stream_carriers_retain(const struct stream *s);
/*
 * Has the carriers watch their descriptor for what the stream's interest is now, and drops the references. `signals`: something may be due
 * that no report of the descriptor tells, so that a loop or the queue has to ask.
 */
EXCLUDES(the_item_lock) void stream_carriers_tell(struct stream *s, struct stream_carriers carriers, bool signals);

#endif
