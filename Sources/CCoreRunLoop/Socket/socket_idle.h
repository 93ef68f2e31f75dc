/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle sockets: connection-oriented ones that are neither connected, nor connecting, nor listening.
 *
 * The kernel reports a hang-up of such a socket, without an end. No program wants to hear of it. The socket therefore asks for changes
 * only, until a change is reported or the program does something to it.
 */
#ifndef CRL_SOCKET_SOCKET_IDLE_H
#define CRL_SOCKET_SOCKET_IDLE_H

#include "Socket/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "Socket/socket.h"

/* Asks for changes only from now on. The caller publishes the interest. */
REQUIRES(the_item_lock) void socket_become_idle(CFSocketRef s, bool is_unix);

/* True if the report is nothing but the hang-up of an idle socket, which then has become idle. */
EXCLUDES(the_item_lock) bool socket_turns_out_idle(CFSocketRef s, uint32_t ready);

#endif
