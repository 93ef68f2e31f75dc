/* SPDX-License-Identifier: Apache-2.0 */
/* Qt's core event loop as a peer (qt.cpp); see peer.h. Its timers are in whole milliseconds, and in a sorted array. */
#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 10000
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 0

#include "peers/foreign.h"
