/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that come in at a local port's local queue, from threads of this process. */
#ifndef CRL_PORT_MESSAGE_LOCAL_RECEIVE_H
#define CRL_PORT_MESSAGE_LOCAL_RECEIVE_H

#include "Port/link_names.h"

#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"

/* Takes one local message from the local queue. */
void local_port_receive_local(CFMessagePortRef port, CFRunLoopSourceRef source);

#endif
