/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading, writing and looking, for the streams of an open connection. The calling thread has claimed the stream. Reading and writing wait;
 * a look does not.
 */
#ifndef CRL_STREAM_CONNECTION_TRANSFER_H
#define CRL_STREAM_CONNECTION_TRANSFER_H

#include "Stream/link_names.h"

#include "Stream/Connection/stream_connection.h"

/* Entries of the kind's table; struct stream_kind says what each does. */
CFIndex connection_read(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end);
CFIndex connection_write(struct stream *s, const UInt8 *bytes, CFIndex size);
CFIndex connection_write_now(struct stream *s, const UInt8 *bytes, CFIndex size);
int connection_look(struct stream *s, uint32_t ready);

#endif
