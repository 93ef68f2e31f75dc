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

static int64_t deadline_after(CFTimeInterval seconds, CFTimeInterval once_below, int64_t *now_ns)
{
    if (is_for_ever(seconds)) {
        return kernel_never;
    }
    if (seconds <= 0 || seconds < once_below) {
        return 0;
    }
    if (*now_ns == 0) {
        *now_ns = kernel.monotonic_ns();
    }
    return instant_after(*now_ns, seconds);
}

int64_t request_send_deadline(const struct request *request, int64_t *now_ns)
{
    return request->deadline_ns != 0 ? request->deadline_ns : deadline_after(request->send_timeout, once_below_s, now_ns);
}

int64_t request_reply_deadline(const struct request *request, int64_t *now_ns)
{
    return request->deadline_ns != 0 ? request->deadline_ns : deadline_after(request->receive_timeout, 0, now_ns);
}

int64_t request_deadline_after(CFTimeInterval seconds)
{
    int64_t now_ns = 0;

    return deadline_after(seconds, once_below_s, &now_ns);
}
