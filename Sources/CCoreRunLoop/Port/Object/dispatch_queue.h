/* SPDX-License-Identifier: Apache-2.0 */
/* Ports on libdispatch's queues, where the process has libdispatch: it is not linked, only found. */
#ifndef CRL_PORT_OBJECT_DISPATCH_QUEUE_H
#define CRL_PORT_OBJECT_DISPATCH_QUEUE_H

#include "Port/link_names.h"

#include "CoreFoundation/CFMessagePort.h"

struct dispatch_attachment;

/*
 * Calls local_port_receive on `queue` when the watched socket is readable; at first it watches none. Keeps a reference to the port until
 * some time after it was detached. Returns NULL if it cannot be done.
 */
struct dispatch_attachment *dispatch_queue_attach(CFMessagePortRef port, void *queue);
/* Watches the socket until it is closed for good, even under another number. Returns 0 or a negative errno. Not after the detachment. */
int dispatch_queue_watch(const struct dispatch_attachment *attachment, int socket);
void dispatch_queue_detach(struct dispatch_attachment *attachment);

#endif
