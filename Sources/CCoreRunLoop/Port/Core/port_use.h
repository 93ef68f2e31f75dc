/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of a port's descriptors. A closed descriptor's number may belong to another file at once, so a port that ends closes its own only
 * when no thread uses them: the last user does.
 */
#ifndef CRL_PORT_CORE_PORT_USE_H
#define CRL_PORT_CORE_PORT_USE_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

/* ---- local ports ---- */

/* Called before and after a read from the socket. The first returns false if the port has ended. The second needs the port's lock. */
bool local_port_begin_read(CFMessagePortRef port);
REQUIRES(the_port_lock) void local_port_end_read(CFMessagePortRef port);

/* ---- remote ports ---- */

/* Keeps the descriptors open until the use ends. Returns false if they are closed already. */
REQUIRES(the_port_lock) bool remote_port_use(CFMessagePortRef port);
REQUIRES(the_port_lock) void remote_port_unuse(CFMessagePortRef port);
/* Asks the kernel whether the owner is still there, without a lock held. If not, the caller has to invalidate the port. */
bool remote_port_is_alive(CFMessagePortRef port);
/* Closes the descriptors of an invalid port that nobody uses. */
REQUIRES(the_port_lock) void remote_port_close_descriptors(struct remote_port *remote);

#endif
