/* SPDX-License-Identifier: Apache-2.0 */
/* Asio without Boost as a peer (asio.cpp); see peer.h. */
#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 0
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0

#include "peers/foreign.h"
