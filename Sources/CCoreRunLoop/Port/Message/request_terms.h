/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one CFMessagePortSendRequest, and its time limits as points of the monotonic clock. */
#ifndef CRL_PORT_MESSAGE_REQUEST_TERMS_H
#define CRL_PORT_MESSAGE_REQUEST_TERMS_H

#include "Port/link_names.h"

#include <stdint.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFString.h"

/* One request or one-way message, as the program gave it. Used by the calling thread only. */
struct request {
    SInt32 message_id;
    CFDataRef data; /* may be NULL */
    CFTimeInterval send_timeout;
    CFTimeInterval receive_timeout;
    CFStringRef reply_mode; /* NULL: no reply is wanted */
    int64_t deadline_ns; /* not 0: the end of the whole call, in the place of both time limits */
    uint32_t *ret_status; /* gets why there is no answer, of enum wire_status, or 0. NULL: the caller does not want to know */
};

static inline uint64_t request_length(const struct request *request)
{
    return request->data ? (uint64_t)CFDataGetLength(request->data) : 0;
}

/* The longest wait between two looks where nothing wakes the waiting thread. */
static const int64_t request_slice_ns = 10000000;

/* Returns the deadline for sending, of a send that begins now. */
int64_t request_send_deadline(const struct request *request);
/* Returns the deadline for the reply to a message that was sent at `now_ns`. */
int64_t request_reply_deadline(const struct request *request, int64_t now_ns);

/* Returns the deadline of a time limit for a whole request that begins now: below 1 ms it tries once, and kernel_never means no limit. */
int64_t request_deadline_after(CFTimeInterval seconds);

#endif
