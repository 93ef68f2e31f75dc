/* SPDX-License-Identifier: Apache-2.0 */
/* Ports on libdispatch's queues, where the process has libdispatch: it is not linked, only found. */
#ifndef CRL_PORT_DISPATCH_QUEUE_H
#define CRL_PORT_DISPATCH_QUEUE_H

#include "Support/link_names.h"

#include "CoreFoundation/CFMessagePort.h"

struct dispatch_attachment;

/*
 * Calls local_port_receive on `queue` when a socket is readable that it has been told to watch: none at first. Keeps a reference on the
 * port until some time after it was detached. NULL: it cannot be done.
 */
struct dispatch_attachment *dispatch_queue_attach(CFMessagePortRef port, void *queue);
/* Until the socket is closed for good, whatever number it has then. 0 or a negative errno; not once it has been detached. */
int dispatch_queue_watch(const struct dispatch_attachment *attachment, int socket);
void dispatch_queue_detach(struct dispatch_attachment *attachment);

#endif
