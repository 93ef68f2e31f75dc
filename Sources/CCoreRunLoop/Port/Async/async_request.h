/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and one-way messages that block nobody: one thread's loop sends them all, and takes the replies.
 *
 * Any thread makes a request, hands it over and may cancel it. The loop's thread sends it by the owner's socket, as soon as the queue has
 * room, and calls `ended` once: with the reply, at the deadline, after a cancellation, or when the port or its owner is gone. A request
 * that ends without a reply closes its channel, so the receiver knows at once that nobody waits. Each request in flight has a channel and
 * its descriptor; those beyond a share of the process's descriptors wait.
 *
 *   NEW      handed over, and not yet taken by the loop
 *   WAITING  for room, in the list of its outlet
 *   SENT     has a channel, whose source is in the loop
 *   JUDGED   the channel was hung up without a word: the receiver is dying, or has refused the request
 *   OVER     `ended` was called
 *
 *   NEW -> WAITING -> SENT -> JUDGED -> OVER, and from each to OVER
 *
 * The lock guards the inbox and the cancellations. All else is used by the loop's thread only. No lock is held while `ended` is called.
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
/* Hands the request over, once. `ended` will be called, perhaps before the return. */
void async_request_send(struct async_requests *requests, struct async_request *request);
/* Ends the request if it is not over. It must have been handed over. */
void async_request_cancel(struct async_request *request);

#endif
