/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the time limits of a request into deadlines; see request_terms.h. No state. */
#include "Port/Message/request_terms.h"

#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"

/* A send limit below 1 ms means one try; a limit of 10 days or more means none (rule 225). */
static const CFTimeInterval once_below_s = 0.001;
static const CFTimeInterval for_ever_from_s = 864000;

static bool is_for_ever(CFTimeInterval seconds)
{
    return isnan(seconds) || seconds >= for_ever_from_s;
}

int64_t request_deadline_after(CFTimeInterval seconds)
{
    if (is_for_ever(seconds)) {
        return kernel_never;
    }
    return seconds < once_below_s ? 0 : instant_after(kernel.monotonic_ns(), seconds);
}

int64_t request_send_deadline(const struct request *request)
{
    return request->deadline_ns != 0 ? request->deadline_ns : request_deadline_after(request->send_timeout);
}

int64_t request_reply_deadline(const struct request *request, int64_t now_ns)
{
    if (request->deadline_ns != 0) {
        return request->deadline_ns;
    }
    if (is_for_ever(request->receive_timeout)) {
        return kernel_never;
    }
    return request->receive_timeout <= 0 ? 0 : instant_after(now_ns, request->receive_timeout);
}
