/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection comes to be open: names, addresses, and the handshake of TLS. */
#ifndef CRL_STREAM_CONNECTION_ATTEMPT_H
#define CRL_STREAM_CONNECTION_ATTEMPT_H

#include "Stream/link_names.h"

#include "Stream/Connection/stream_connection.h"

/*
 * Begins, or goes on. Returns 0 if the connection is open, -EINPROGRESS if it may come to be, and another negative errno if it has failed.
 * `*ret_waits` has the readiness of the descriptor that is waited for, 0 for a name. `*ret_has_changed`: the streams have to be told.
 */
EXCLUDES(the_item_lock) int connection_advance(struct stream_connection *c, uint32_t *ret_waits, bool *ret_has_changed);
/* Waits for what connection_advance waits for. */
EXCLUDES(the_item_lock) void connection_wait(struct stream_connection *c, uint32_t waits);
/*
 * Begins TLS on an open connection, which takes over the session. Returns false if it is not open, or has a session. Looks, reads and
 * writes go on with the handshake; the streams are told of bytes and room again after it.
 */
EXCLUDES(the_item_lock) bool connection_begin_handshake(struct stream_connection *c, void *session, CFDictionaryRef settings);
/*
 * After a session could move no bytes: has the handshake go on if the session is in the midst of a message that changes keys, with the rest
 * still to come or no room for the answer. Until that is done no bytes move in either direction. Returns whether that is so.
 */
EXCLUDES(the_item_lock) bool connection_resume_handshake(struct stream_connection *c, void *session);
/* Tells the streams of a connection that it has another state or descriptor; all but one, whose thread knows. */
EXCLUDES(the_item_lock) void connection_tell(struct stream_connection *c, const struct stream *except);

#endif
