/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for the reply to one request, in the calling thread's loop. It is the same wait whether the reply comes by a channel or from
 * another thread of this process. Used by the calling thread only, which holds no lock and has a reference to the port.
 */
#ifndef CRL_PORT_MESSAGE_REPLY_WAIT_H
#define CRL_PORT_MESSAGE_REPLY_WAIT_H

#include "Port/link_names.h"

#include "Port/Message/client_channel.h"

struct reply_wait {
    CFMessagePortRef port; /* the remote one; its end ends the wait */
    CFRunLoopRef loop; /* the calling thread's */
    CFStringRef mode; /* as the program gave it */
    int64_t deadline_ns; /* 0: only looks; kernel_never: no limit */
    int64_t now_ns; /* a recent reading of the clock, or 0 */
    _Atomic uint32_t *is_over; /* ends the wait once it is not 0 */
    struct client_channel *channel; /* brings the reply. NULL: another thread brings it, sets `is_over` and wakes the loop */
};

/*
 * Runs the loop until the reply, the deadline, or the end of the port. Each run ends after it has served one source. A source that is not
 * the reply does not end the wait: another run follows with the time that is left (rule 214).
 */
void reply_wait_run(const struct reply_wait *wait);

#endif
