/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages to a port of this process. Both functions run on the calling thread, which holds no lock and has a reference to the port.
 * They return a kCFMessagePort code. After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError the caller has to invalidate the
 * port.
 */
#ifndef CRL_PORT_MESSAGE_LOCAL_REQUEST_H
#define CRL_PORT_MESSAGE_LOCAL_REQUEST_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"
#include "Port/Message/request.h"

SInt32 local_one_way_send(CFMessagePortRef port, const struct request *request);
SInt32 local_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

#endif
