/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and one-way messages that block nobody: one thread's loop sends them all, and takes the replies.
 *
 * Any thread makes a request, hands it over and may cancel it. It sends the request itself if no other one waits and there is room, so that
 * the loop's thread need not wake before the reply. Otherwise the loop's thread sends it as soon as the queue has room. That thread calls
 * `ended` once: with the reply, at the deadline, after a cancellation, or when the port or its owner is gone. A request that ends without a
 * reply closes its channel, so the receiver knows at once that nobody waits. Each request in flight has a channel and its descriptor; those
 * beyond a share of the process's descriptors wait.
 *
 *   NEW      handed over, and not yet taken by the loop
 *   WAITING  for room, in the list of its outlet
 *   SENT     has a channel, whose source is in the loop
 *   JUDGED   the channel was hung up without a word: the receiver is dying, or has refused the request
 *   OVER     `ended` was called
 *
 *   NEW -> WAITING -> SENT -> JUDGED -> OVER, NEW -> SENT, and from each to OVER
 *
 * The lock guards all, and orders the requests to a port. Only the loop's thread moves a request that is WAITING or later. The lock is
 * outside of those of ports, channels and loops. It is not held while `ended` or an invalidation callback is called.
 */
#ifndef CRL_PORT_ASYNC_ASYNC_REQUEST_H
#define CRL_PORT_ASYNC_ASYNC_REQUEST_H

#include "Port/link_names.h"

#include "Port/Message/socket_request.h"

struct async_requests;
struct async_request;

/* A result beside kCFMessagePort's codes, which are not positive. */
enum { async_request_cancelled = 1 };

/*
 * Called on the loop's thread: the result, the status of enum wire_status, and the reply, or NULL. The reply lives until the callee
 * returns. After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError somebody has to invalidate the port, which need not be the
 * callee.
 */
typedef void (*async_request_ended)(void *info, SInt32 result, uint32_t status, CFDataRef reply);

/*
 * Makes a request to a remote port, with one reference for the caller. `data` is not copied: nobody may change it. The deadline is an
 * instant; a request whose deadline has passed is tried once. Returns NULL if there is no memory.
 */
struct async_request *async_request_create(CFMessagePortRef port, SInt32 message_id, CFDataRef data, int64_t deadline_ns,
                                           async_request_ended ended, void *info);
/* Before a request is handed over: it is a one-way message, which is over when it was sent. */
void async_request_set_one_way(struct async_request *request);
/* Before a request is handed over: if the port's owner is found to be gone, the port is invalidated before `ended` is called. */
void async_request_set_ends_port(struct async_request *request);
void async_request_release(struct async_request *request);
/* Before a request is handed over: what `ended` gets, in the place of what async_request_create was given. */
void async_request_set_info(struct async_request *request, void *info);
/* Hands the request over, once. `ended` will be called, perhaps before the return. */
void async_request_send(struct async_requests *requests, struct async_request *request);
/* Ends the request if it is not over. One that is not handed over yet ends when it is. */
void async_request_cancel(struct async_request *request);

#endif
