/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One CFMessagePortSendRequest: its arguments, its time limits as points of the monotonic clock, and its two ways. request.c chooses
 * between the owner's socket (socket_request.c) and the local queue (local_request.c). All of it runs on the calling thread, which holds no
 * lock and has a reference to the port.
 */
#ifndef CRL_PORT_MESSAGE_REQUEST_H
#define CRL_PORT_MESSAGE_REQUEST_H

#include "Port/link_names.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFString.h"
#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Port/Core/message_port.h"

/* One request or one-way message, as the program gave it. */
struct request {
    SInt32 message_id;
    CFDataRef data; /* may be NULL */
    CFTimeInterval send_timeout;
    CFTimeInterval receive_timeout;
    CFStringRef reply_mode; /* NULL: no reply is wanted */
    int64_t deadline_ns; /* not 0: the end of the whole call, in the place of both time limits */
    uint32_t *ret_status; /* gets why there is no answer, of enum wire_status, or 0. NULL: the caller does not want to know */
};

/* The longest wait between two looks where nothing wakes the waiting thread. */
static const int64_t request_slice_ns = 10000000;

static inline uint64_t request_length(const struct request *request)
{
    return request->data ? (uint64_t)CFDataGetLength(request->data) : 0;
}

/* Returns true for a time limit that means none (rule 225). */
static inline bool request_is_for_ever(CFTimeInterval seconds)
{
    return isnan(seconds) || seconds >= 864000;
}

/* Returns the deadline of a time limit that begins now: below 1 ms it tries once, and kernel_never means no limit (rule 225). */
static inline int64_t request_deadline_after(CFTimeInterval seconds)
{
    if (request_is_for_ever(seconds)) {
        return kernel_never;
    }
    return seconds < 0.001 ? 0 : instant_after(kernel.monotonic_ns(), seconds);
}

/* Returns the deadline for sending, of a send that begins now. */
static inline int64_t request_send_deadline(const struct request *request)
{
    return request->deadline_ns != 0 ? request->deadline_ns : request_deadline_after(request->send_timeout);
}

/* Returns the deadline for the reply to a message that was sent at `now_ns`. */
static inline int64_t request_reply_deadline(const struct request *request, int64_t now_ns)
{
    if (request->deadline_ns != 0) {
        return request->deadline_ns;
    }
    if (request_is_for_ever(request->receive_timeout)) {
        return kernel_never;
    }
    return request->receive_timeout <= 0 ? 0 : instant_after(now_ns, request->receive_timeout);
}

/* After kCFMessagePortIsInvalid or kCFMessagePortBecameInvalidError the caller has to invalidate the port, which tells other waiters. */
SInt32 request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

/* The same for a valid port, which it invalidates when it has to. */
SInt32 request_send_and_end(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply);

#endif
