/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CFMessagePortSendRequest. request.c chooses its way: by the owner's socket (socket_request.c), or within the process
 * (local_request.c). It runs on the calling thread, which holds no lock and has a reference to the port.
 */
#ifndef CRL_PORT_MESSAGE_REQUEST_H
#define CRL_PORT_MESSAGE_REQUEST_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"
#include "Port/Message/request_terms.h"

/* After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError the caller has to invalidate the port, which tells other waiters. */
SInt32 request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

/* The same for a valid port, which it invalidates when it has to. */
SInt32 request_send_and_end(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

#endif
