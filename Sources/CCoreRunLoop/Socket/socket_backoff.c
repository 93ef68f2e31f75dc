/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer that ends the backing off; see socket_backoff.h.
 *
 * Always true: the field `retry` is set only while `backs_off` is. The timer holds a reference on the socket, and drops it when it ends for
 * whatever reason. The timer's release function is therefore the one place that starts reading again.
 */
#include "Socket/socket_backoff.h"

#include "Loop/Source/descriptor_source.h"
#include "Support/fault.h"

static const CFTimeInterval back_off_s = 0.125;

/* Releases the timer's info, when the timer has fired, was invalidated, or its loop has gone: the socket reads again. */
static void read_again(const void *info)
{
    CFSocketRef s = (CFSocketRef)(uintptr_t)info;
    CFRunLoopTimerRef retry;

    socket_lock(s);
    retry = s->retry;
    s->retry = NULL;
    s->backs_off = false;
    socket_update_interest(s);
    socket_unlock(s);
    socket_publish_interest(s);
    object_release_if_any(retry);
    CFRelease(s);
}

static void ignore_timer(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

void socket_back_off(struct delivery *delivery)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    CFSocketRef s = delivery->s;
    CFRunLoopTimerContext context = {0, s, CFRetain, read_again, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + back_off_s, 0, 0, 0, ignore_timer, &context);
    bool backs_off;

    fault_log_once(&logged, "CFSocket: no descriptor or memory is left for what comes in; it waits until there is");
    if (!timer) {
        return; /* no memory for that either: goes on trying at once */
    }
    socket_lock(s);
    socket_check_invariants(s);
    backs_off = s->is_valid && !s->backs_off;
    if (backs_off) {
        invariant(!s->retry);
        s->backs_off = true;
        s->retry = timer;
        CFRetain(timer);
        socket_update_interest(s);
    }
    socket_unlock(s);
    if (!backs_off || !descriptor_source_add_timer(delivery->source, timer)) {
        CFRunLoopTimerInvalidate(timer); /* reads again at once: better than never */
    }
    CFRelease(timer);
}
