/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race of a connection's attempts (RFC 8305), and the wait set that its streams watch until it is open.
 *
 * The families of the addresses take turns. An attempt begins 250 ms after the one before it, or at once when an attempt has failed. The
 * first socket that is connected wins, and the others are closed. At most `race_most_attempts` are under way: a further one takes the place
 * of the oldest.
 *
 * Until the connection is open its streams watch a wait set, which is ready whenever there is something to go on with: the descriptor of a
 * query, the sockets of the attempts, an alarm for the next attempt and for the limit. The socket then takes over the number of the set, on
 * which loops, queues and threads wait. A connection that is made at once has no set, nor does one with a single address and no limit: its
 * streams watch the socket that connects.
 *
 * The lock of the connection guards all of it. No call here waits.
 */
#ifndef CRL_STREAM_CONNECTION_RACE_H
#define CRL_STREAM_CONNECTION_RACE_H

#include "Stream/link_names.h"

#include "Stream/Connection/stream_connection.h"

/* Goes on with the attempts at the connection's addresses. Afterwards it has a socket, still connects, or has failed. */
REQUIRES(the_item_lock) void race_advance(struct stream_connection *c);
/* Closes all sockets that did not win, and the alarm. */
REQUIRES(the_item_lock) void race_end(struct stream_connection *c);

/* Has the streams watch what the connection waits for in its state, or its socket. The connection fails if that cannot be done. */
REQUIRES(the_item_lock) void race_settle(struct stream_connection *c);
/* The time for opening, or for a handshake, begins. */
REQUIRES(the_item_lock) void race_set_limit(struct stream_connection *c);
/* The same for a handshake on an open connection, whose streams then watch a wait set again, if there is a limit. */
REQUIRES(the_item_lock) void race_limit_handshake(struct stream_connection *c);
/* Puts a descriptor into the wait set, or changes what it is watched for. Returns 0 or a negative errno. */
REQUIRES(the_item_lock) int race_watch(struct stream_connection *c, int descriptor, uint32_t interest);

#endif
