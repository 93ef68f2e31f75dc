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
/* Tells the streams of a connection that it has another state or descriptor; all but one, whose thread knows. */
EXCLUDES(the_item_lock) void connection_tell(struct stream_connection *c, const struct stream *except);

#endif
