/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of streams of which one reads what was written to the other, through a ring of bytes. */
#ifndef CRL_STREAM_BOUND_PAIR_H
#define CRL_STREAM_BOUND_PAIR_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Returns both streams, or neither if there is no memory. A NULL pointer makes no stream; the pair is then without that end. */
bool bound_pair_create(CFAllocatorRef allocator, CFIndex capacity, struct stream **ret_reader, struct stream **ret_writer);

#endif
