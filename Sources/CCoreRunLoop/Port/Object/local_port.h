/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving side of message ports: making one, and what drives it: a run loop source or a dispatch queue. */
#ifndef CRL_PORT_OBJECT_LOCAL_PORT_H
#define CRL_PORT_OBJECT_LOCAL_PORT_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

CFMessagePortRef local_port_create(CFAllocatorRef allocator, const struct port_name *name, CFMessagePortCallBack callout,
                                   const CFMessagePortContext *context, bool *ret_is_new);
CFRunLoopSourceRef local_port_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order);
void local_port_set_dispatch_queue(CFMessagePortRef port, void *queue);

#endif
