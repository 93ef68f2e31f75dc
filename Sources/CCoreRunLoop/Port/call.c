/* SPDX-License-Identifier: Apache-2.0 */
/* One CFMessagePortSendRequest: its time limits, and which way it goes; see call.h. No state of its own. */
#include "Port/call.h"

#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/instant.h"
#include "Port/port_log.h"

static const CFTimeInterval once_below_s = 0.001;
static const CFTimeInterval for_ever_from_s = 864000;

/* ---- time ---- */

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

int64_t call_send_deadline(CFTimeInterval seconds, int64_t *now_ns)
{
    return deadline_after(seconds, once_below_s, now_ns);
}

int64_t call_reply_deadline(CFTimeInterval seconds, int64_t *now_ns)
{
    return deadline_after(seconds, 0, now_ns);
}

/* ---- all ways ---- */

/* Whether the receiver is in this process and is reached without the kernel. If not, call_end_by_socket has to follow. */
static bool is_here(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    bool result;

    if (!remote->inbox || atomic_load_explicit(&remote->uses_inbox, memory_order_relaxed)) {
        return remote->inbox != NULL;
    }
    port_lock(port);
    result = remote_port_uses_inbox(remote);
    remote->sends_by_socket += result ? 0 : 1;
    port_unlock(port);
    return result;
}

void call_end_by_socket(CFMessagePortRef port)
{
    if (port->side.remote.inbox) {
        port_lock(port);
        port->side.remote.sends_by_socket--;
        port_unlock(port);
    }
}

SInt32 message_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout, CFTimeInterval receive_timeout,
                    CFStringRef reply_mode, CFDataRef *ret_reply)
{
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    const UInt8 *bytes = length > 0 ? CFDataGetBytePtr(data) : NULL;
    SInt32 result;

    if (length > wire_payload_max || length > port->side.remote.budget) {
        port_log("CFMessagePortSendRequest", "a message of %llu bytes is more than the receiver takes", (unsigned long long)length);
        return port_is_valid(port) ? kCFMessagePortTransportError : kCFMessagePortIsInvalid;
    }
    if (is_here(port)) {
        return reply_mode ? letter_call_request(port, message_id, data, send_timeout, receive_timeout, reply_mode, ret_reply)
                          : letter_call_send(port, message_id, data, send_timeout);
    }
    result = reply_mode ? line_call_request(port, message_id, bytes, length, send_timeout, receive_timeout, reply_mode, ret_reply)
                        : line_call_send(port, message_id, bytes, length, send_timeout);
    call_end_by_socket(port);
    return result;
}
