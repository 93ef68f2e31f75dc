/* SPDX-License-Identifier: Apache-2.0 */
/* The delivery of a stream's events to its client. */
#ifndef CRL_STREAM_STREAM_DELIVERY_H
#define CRL_STREAM_STREAM_DELIVERY_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Tells the client the events that are due: the `deliver` of each stream, which says the rest. */
EXCLUDES(the_item_lock) void stream_deliver(struct stream *s, uint32_t ready);

#endif
