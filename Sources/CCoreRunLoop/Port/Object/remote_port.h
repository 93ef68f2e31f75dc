/* SPDX-License-Identifier: Apache-2.0 */
/* The sending side of message ports: making one, and finding out whether its owner lives. */
#ifndef CRL_PORT_OBJECT_REMOTE_PORT_H
#define CRL_PORT_OBJECT_REMOTE_PORT_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

CFMessagePortRef remote_port_create(CFAllocatorRef allocator, const struct port_name *name);
/* Returns true if the owner is still there. If not, the caller has to invalidate the port. */
bool remote_port_is_alive(CFMessagePortRef port);

#endif
