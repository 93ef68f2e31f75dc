/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who uses a stream's kind, and when the kind is told to close: once the stream is closed, and neither a claim nor a withdrawal is left.
 *
 * A withdrawal lasts from the moment a carrier is taken out of the stream until no loop and no queue watches for it any more. Any number of
 * threads withdraw at a time, and none waits: whoever ends the last claim or withdrawal of a closed stream closes its kind.
 */
#ifndef CRL_STREAM_STREAM_CLAIM_H
#define CRL_STREAM_STREAM_CLAIM_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/*
 * Claims the stream for a call of its kind. Returns false if it is claimed already. A thread that has claimed a stream need not fear that
 * its descriptor is closed meanwhile.
 */
EXCLUDES(the_item_lock) bool stream_claim(struct stream *s);
/* Ends a claim. Tells the kind to close if the stream was closed meanwhile. */
EXCLUDES(the_item_lock) void stream_unclaim(struct stream *s);
/* Ends a claim as well. Drops the lock. Returns true if the stream was closed meanwhile. */
RELEASES(the_item_lock) bool stream_unclaim_and_unlock(struct stream *s);

REQUIRES(the_item_lock) void stream_begin_withdrawal(struct stream *s);
/* Ends a withdrawal. Tells the kind to close if the stream was closed meanwhile. */
EXCLUDES(the_item_lock) void stream_end_withdrawal(struct stream *s);

#endif
