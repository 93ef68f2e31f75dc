/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a loop call a remote port's invalidation callback when the port's owner ends. A port without a callback has no watch.
 *
 * The watch has one descriptor, and a source on it. Usually that is the end of a watch channel, whose other end the owner closes when the
 * port or the process ends. While the owner keeps no such channel, it is an alarm, and each time it is due the owner is probed.
 *
 * The source is in the common modes of two loops: of the thread that set the callback, and of the main thread. The main loop leaves the
 * call to the first one as long as that runs in one of these modes.
 */
#ifndef CRL_PORT_OBJECT_OWNER_WATCH_H
#define CRL_PORT_OBJECT_OWNER_WATCH_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

/* An owner that closed a watch channel is offered another after this time, counted from the last offer. Only tests change it. */
extern int64_t owner_watch_offer_every_ns;

/* Makes a watch for the calling thread's loop. Returns NULL if the port is invalid, or without the means: then nobody watches. */
struct owner_watch *owner_watch_create(CFMessagePortRef port);
/* Invalidates the watch, and releases it. A callback that it still had to call is not called. NULL: nothing. */
void owner_watch_destroy(struct owner_watch *watch);

/* Gives the port another watch, or none (NULL). Returns the old one, to be destroyed without the lock. */
REQUIRES(the_port_lock) struct owner_watch *owner_watch_exchange(struct remote_port *remote, struct owner_watch *watch);
/* Takes the watch of a port that closes, unless a callback is left to it; to be destroyed without the lock. */
REQUIRES(the_port_lock) struct owner_watch *owner_watch_of_closed(struct remote_port *remote);

/* See struct port_side. */
REQUIRES(the_port_lock) bool owner_watch_leave_callback(CFMessagePortRef port);
void owner_watch_remind(CFMessagePortRef port);
/* For the child of a fork: closes the inherited descriptor. */
void owner_watch_abandon(struct remote_port *remote);

#endif
