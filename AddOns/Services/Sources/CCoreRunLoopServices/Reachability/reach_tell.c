/* SPDX-License-Identifier: Apache-2.0 */
/* Looking and telling: see reach_target.h. */
#include <errno.h>
#include <stdlib.h>

#include "File/notify_kernel.h"
#include "Reachability/reach_target.h"
#include "Reachability/route_look.h"

enum { messages_in_a_pass = 256 };

static const int64_t retry_ns = 1000000000;
static const int64_t between_questions_ns = 1000000000; /* at least, however often the routes change */

void reach_listener_release(struct reach_listener *listener)
{
    if (listener && atomic_fetch_sub_explicit(&listener->references, 1, memory_order_acq_rel) == 1) {
        if (listener->context.release) {
            listener->context.release(listener->context.info);
        }
        free(listener);
    }
}

int reach_look(reach_target_ref target, SCNetworkReachabilityFlags *ret_flags)
{
    *ret_flags = 0;
    if (!target->name) {
        return route_look(&target->local, &target->remote, ret_flags);
    }
    return target->has_answer ? route_look_each(target->addresses, ret_flags) : -ENODATA;
}

/* Of a flood some stays for the next pass. An error that lasts is none of the two that this knows, and ends it. */
bool reach_drain(reach_target_ref target)
{
    int result = route_kernel.changes_read(target->changes);
    bool has_changed = result != -EAGAIN;

    for (int i = 1; i < messages_in_a_pass && (result >= 0 || result == -ENOBUFS); i++) {
        result = route_kernel.changes_read(target->changes);
    }
    return has_changed;
}

/* Sets the alarm for what comes first. */
REQUIRES(the_service_lock) static void set_alarm(reach_target_ref target)
{
    bool asks_first = target->look_ns == 0 || (target->ask_ns != 0 && target->ask_ns < target->look_ns);

    (void)notify_kernel.alarm_set(target->alarm, asks_first ? target->ask_ns : target->look_ns);
}

void reach_look_later(reach_target_ref target, int64_t after_ns)
{
    target->look_ns = notify_kernel.now_ns() + after_ns;
    set_alarm(target);
}

void reach_ask_later(reach_target_ref target, int64_t after_ns)
{
    target->ask_ns = notify_kernel.now_ns() + after_ns;
    set_alarm(target);
}

/* Looks, and notes flags that are others. Returns the listener to be told, with a reference, or NULL. */
REQUIRES(the_service_lock) static struct reach_listener *look_for_news(reach_target_ref target, SCNetworkReachabilityFlags *ret_flags)
{
    int result = reach_look(target, ret_flags);

    target->looks_again = false;
    if (result < 0) {
        if (result != -ENODATA) {
            reach_look_later(target, retry_ns);
        }
        return NULL;
    }
    if (target->is_known && *ret_flags == target->flags) {
        return NULL;
    }
    target->is_known = true;
    target->flags = *ret_flags;
    if (target->listener) {
        atomic_fetch_add_explicit(&target->listener->references, 1, memory_order_relaxed);
    }
    return target->listener;
}

/* Drops the lock around the program's code, so clang does not follow it (NOT_CHECKED). */
NOT_CHECKED static void tell(reach_target_ref target)
{
    while (target->looks_again && (target->source || target->queue_source)) {
        SCNetworkReachabilityFlags flags;
        struct reach_listener *listener = look_for_news(target, &flags);

        if (listener) {
            service_lock_drop(&target->lock);
            listener->callout(target, flags, listener->context.info);
            reach_listener_release(listener);
            service_lock_take(&target->lock);
        }
    }
}

void reach_tell(reach_target_ref target)
{
    (void)CFRetain(target); /* the callback may give back the last reference */
    service_lock_take(&target->lock);
    target->looks_again = true;
    if (!target->is_telling) {
        target->is_telling = true;
        tell(target);
        target->is_telling = false;
    }
    service_lock_drop(&target->lock);
    CFRelease(target);
}

/* What is to be done for a name. */
struct reach_duty {
    CFHostRef host; /* a reference, or NULL: it asks still */
    bool asks;
};

REQUIRES(the_service_lock) static struct reach_duty take_duty(reach_target_ref target)
{
    bool has_changed = reach_drain(target);
    int64_t now = notify_kernel.now_ns();
    int64_t next = target->asked_ns + between_questions_ns;
    struct reach_duty duty = {NULL, false};

    if (has_changed && target->name && (target->ask_ns == 0 || next < target->ask_ns)) {
        target->ask_ns = next;
    }
    duty.asks = target->ask_ns != 0 && now >= target->ask_ns;
    if (duty.asks) {
        target->ask_ns = 0;
        target->asked_ns = now;
    }
    target->look_ns = 0;
    set_alarm(target);
    if (target->is_asking && target->host) {
        duty.host = (CFHostRef)(uintptr_t)CFRetain(target->host);
        reach_look_later(target, retry_ns);
    }
    return duty;
}

void reach_serve(reach_target_ref target)
{
    struct reach_duty duty;

    (void)CFRetain(target);
    service_lock_take(&target->lock);
    duty = take_duty(target);
    service_lock_drop(&target->lock);
    if (duty.host) {
        reach_host_go_on(duty.host);
        CFRelease(duty.host);
    }
    if (duty.asks) {
        reach_ask(target);
    }
    reach_tell(target);
    CFRelease(target);
}
