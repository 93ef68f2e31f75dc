/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages by the owner's socket. Both functions run on the calling thread, which holds no lock and has a reference to the port.
 * They return a kCFMessagePort code. After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError the caller has to invalidate the
 * port.
 */
#ifndef CRL_PORT_MESSAGE_SOCKET_REQUEST_H
#define CRL_PORT_MESSAGE_SOCKET_REQUEST_H

#include "Support/link_names.h"

#include "Port/Core/message_port.h"
#include "Port/Message/request_terms.h"

SInt32 socket_one_way_send(CFMessagePortRef port, const struct request *request);
SInt32 socket_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

#endif
