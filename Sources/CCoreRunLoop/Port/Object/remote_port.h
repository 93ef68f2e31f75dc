/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the sending side of a message port. */
#ifndef CRL_PORT_OBJECT_REMOTE_PORT_H
#define CRL_PORT_OBJECT_REMOTE_PORT_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

CFMessagePortRef remote_port_create(CFAllocatorRef allocator, const struct port_name *name);

#endif
