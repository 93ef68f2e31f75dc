/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the way of one CFMessagePortSendRequest; see request.h. No state of its own. */
#include "Port/Message/request.h"

#include "Port/Core/message_trace.h"
#include "Port/Message/local_request.h"
#include "Port/Message/remote_send.h"
#include "Port/Message/socket_request.h"
#include "Port/Wire/port_log.h"

static SInt32 send_on_its_way(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    uint64_t length = request_length(request);
    SInt32 result;

    if (length > wire_payload_max || length > port->side.remote.budget) {
        port_log("CFMessagePortSendRequest", "a message of %llu bytes is more than the receiver takes", (unsigned long long)length);
        return port_is_valid(port) ? kCFMessagePortTransportError : kCFMessagePortIsInvalid;
    }
    if (remote_port_begin_send(port) == send_by_local_queue) {
        return request->reply_mode ? local_request_send(port, request, ret_reply) : local_one_way_send(port, request);
    }
    result = request->reply_mode ? socket_request_send(port, request, ret_reply) : socket_one_way_send(port, request);
    remote_port_end_by_socket(port);
    return result;
}

SInt32 request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    bool is_traced = request->reply_mode && trace_is_on();
    SInt32 result;

    if (is_traced) {
        message_trace_named(trace_request_begins, 0, (uint32_t)request->message_id, port);
    }
    result = send_on_its_way(port, request, ret_reply);
    if (is_traced) {
        message_trace_named(trace_request_ends, (uint32_t)-result, (uint32_t)request->message_id, port);
    }
    return result;
}

SInt32 request_send_and_end(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    SInt32 result;

    object_retain(port); /* a callback in the wait may release the port */
    result = request_send(port, request, ret_reply);
    if (result == kCFMessagePortIsInvalid || result == kCFMessagePortBecameInvalidError) {
        message_port_end_gone(port); /* only now: a callback may jump out, and the request has nothing left to do */
    } else {
        object_release(port);
    }
    return result;
}
