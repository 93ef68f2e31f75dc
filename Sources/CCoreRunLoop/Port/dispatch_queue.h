/* SPDX-License-Identifier: Apache-2.0 */
/* Ports on libdispatch's queues, where the process has libdispatch: it is not linked, only found. */
#ifndef CRL_PORT_DISPATCH_QUEUE_H
#define CRL_PORT_DISPATCH_QUEUE_H

#include "Support/link_names.h"

#include "CoreFoundation/CFMessagePort.h"

/* Calls local_port_receive on `queue` when `socket` is readable, and keeps a reference on the port. NULL: it cannot be done. */
void *dispatch_queue_attach(CFMessagePortRef port, int socket, void *queue);
void dispatch_queue_detach(void *source);

#endif
