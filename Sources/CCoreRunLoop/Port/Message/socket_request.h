/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages by the owner's socket. All functions run on the calling thread, which holds no lock and has a reference to the port.
 * They return a kCFMessagePort code. After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError the caller has to invalidate the
 * port.
 */
#ifndef CRL_PORT_MESSAGE_SOCKET_REQUEST_H
#define CRL_PORT_MESSAGE_SOCKET_REQUEST_H

#include "Port/link_names.h"

#include "Port/Message/client_channel.h"
#include "Port/Message/request.h"

SInt32 socket_one_way_send(CFMessagePortRef port, const struct request *request);
SInt32 socket_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

/* As socket_one_way_send, until the deadline and not for the request's time limit. */
SInt32 socket_one_way_put(CFMessagePortRef port, const struct request *request, int64_t deadline_ns);

/* ---- parts of a request, for those that are not waited for (async_dispatch.c) ---- */

/*
 * A dying receiver's descriptors close one after another, so a channel may hang up while the receiver's socket still looks alive. For the
 * first time the socket is probed at the intervals of the second; only after that the receiver counts as alive.
 */
static const int64_t socket_request_dying_ns = 50000000;
static const int64_t socket_request_asking_ns = 2000000;

static inline struct pending_reply pending_reply_to(CFMessagePortRef port, const struct request *request)
{
    return (struct pending_reply){.state = pending_open,
                                  .message_id = request->message_id,
                                  .port = port,
                                  .wants_status = request->ret_status && (port->side.remote.features & wire_takes_status)};
}

/*
 * Sends the request on a channel that was taken for it, with `end` if that is a new one. If it was not sent, the channel is given back.
 * `frame` gets what was sent.
 */
SInt32 socket_request_put(CFMessagePortRef port, struct client_channel *channel, int end, const struct request *request,
                          struct wire_frame *frame, int64_t deadline_ns);
/* Gives the channel of a request that was sent back, or closes it if it cannot be used again. */
void socket_request_end_channel(CFMessagePortRef port, struct client_channel *channel);
/*
 * Finds the result for a channel that was hung up without a last frame. Returns kCFMessagePortSuccess if the receiver looks alive: then the
 * caller looks again, and for the last time once the receiver has had the time to die.
 */
SInt32 socket_request_judge_hang_up(CFMessagePortRef port, const struct client_channel *channel, bool is_last_look);

#endif
