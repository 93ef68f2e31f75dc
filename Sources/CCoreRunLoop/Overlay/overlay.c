/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay's calls to loops, timers, objects and ports. Each function takes the lock of its object, and calls no user code under it. */
#include "Overlay/overlay.h"

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/loop.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Run/companion.h"
#include "Loop/Run/emptiness.h"
#include "Loop/Run/pass.h"
#include "Loop/Timer/timer.h"
#include "Loop/Timer/timer_firing.h"
#include "Port/Core/local_info.h"
#include "Port/Async/async_dispatch.h"
#include "Port/Async/deferred_reply.h"
#include "Port/Message/request.h"
#include "Port/Wire/payload.h"
#include "Runtime/Object/object.h"
#include "Runtime/Value/wall_clock.h"
#include "Stream/Core/stream.h"

_Static_assert((int)overlay_unhandled == wire_unhandled && (int)overlay_malformed == wire_malformed && (int)overlay_failed == wire_failed &&
                   (int)overlay_request_cancelled == async_request_cancelled,
               "the overlay has the numbers of the port");
_Static_assert((int64_t)OVERLAY_LATEST_DATE == (int64_t)INSTANT_LATEST_DATE, "the overlay clamps dates where the loop does");

/* ---- loops ---- */

bool overlay_loop_is_current(CFRunLoopRef loop)
{
    return thread_loop_is_current(loop);
}

bool overlay_waits_for_first_run(CFRunLoopRef loop)
{
    bool waits = false;

    loop_lock(loop);
    if (!loop->first_run.mode && !loop->hosting) { /* an outermost run stands in one of the two, and leaves its mode there */
        for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
            waits |= mode_has_items(loop, mode);
        }
    }
    loop_unlock(loop);
    return waits;
}

bool overlay_mode_is_empty(CFRunLoopRef loop, CFStringRef name)
{
    const struct mode *mode;
    bool is_empty;

    loop_lock(loop);
    mode = mode_find(loop, name);
    is_empty = !mode || loop->is_dead || mode_is_empty(loop, mode);
    if (is_empty && !loop->is_dead && thread_loop_is_current(loop)) {
        is_empty = waiter_is_empty(loop, name);
    }
    loop_unlock(loop);
    return is_empty;
}

bool overlay_mode_is_common(CFRunLoopRef loop, CFStringRef name)
{
    const struct mode *mode;
    bool is_common;

    loop_lock(loop);
    mode = mode_find(loop, name);
    is_common = mode && mode->is_common;
    loop_unlock(loop);
    return is_common;
}

CFStringRef overlay_copy_common_mode(CFRunLoopRef loop, CFIndex index)
{
    const struct mode *mode;

    loop_lock(loop);
    mode = loop->common_modes;
    while (mode && index > 0) {
        mode = mode->next_common;
        index--;
    }
    loop_unlock(loop);
    return mode ? CFRetain(mode->name) : NULL; /* modes are never removed, and the caller keeps the loop */
}

CFRunLoopRunResult overlay_run_current_until(CFStringRef mode, int64_t deadline_ns, bool returns_after_source)
{
    CFRunLoopRunResult result = run_in_mode_until(CFRunLoopGetCurrent(), mode, deadline_ns, returns_after_source, NULL);

    if (result == kCFRunLoopRunFinished && mode_name_is_common(mode)) {
        return CFRunLoopRunInMode(mode, 0, false); /* finishes as well, and logs the reason */
    }
    return result;
}

/* ---- the companion ---- */

void overlay_set_companion(const struct companion *companion)
{
    companion_set(companion);
}

void overlay_companion_appears(bool is_main)
{
    companion_appear(is_main);
}

CFRunLoopRef overlay_loop_if_any(void)
{
    CFRunLoopRef main = atomic_load_explicit(&thread_loops.main, memory_order_acquire);

    return thread_loop_is_current(main) ? main : thread_loop_if_any();
}

bool overlay_stop_run(CFRunLoopRef loop)
{
    bool is_running = (waker_word(loop->waker) & wake_run) != 0;

    if (is_running) {
        waker_stop(loop->waker);
    }
    return is_running;
}

/* ---- objects ---- */

void overlay_give_to_owner(void *object, void *owner, const struct object_owner_class *owner_class)
{
    object_give_to_owner(object, owner, owner_class);
}

void overlay_take_from_owner(void *object)
{
    object_take_from_owner(object);
}

/* ---- instants and wall times ---- */

int64_t overlay_monotonic_ns(void)
{
    return kernel.monotonic_ns();
}

int64_t overlay_elapsed_ns(void)
{
    return kernel.elapsed_ns();
}

int64_t overlay_wall_ns(void)
{
    return runtime_wall_clock();
}

int64_t overlay_instant_of_date(CFAbsoluteTime date)
{
    return instant_of_date(date);
}

int64_t overlay_instant_of_wall(int64_t since_1970_ns)
{
    return instant_of_wall(since_1970_ns);
}

CFAbsoluteTime overlay_date_of_instant(int64_t instant_ns)
{
    return date_of_instant(instant_ns);
}

bool overlay_wall_of_instant(int64_t instant_ns, int64_t *ret_since_1970_ns)
{
    return wall_of_instant(instant_ns, ret_since_1970_ns);
}

/* ---- timers ---- */

/* The timer's lock is held. */
static struct overlay_timer_date date_of(const struct __CFRunLoopTimer *timer)
{
    if (!timer || !timer_has(timer, timer_is_valid)) {
        return (struct overlay_timer_date){.exists = false};
    }
    return (struct overlay_timer_date){.exists = true, .date = timer_shown_date(timer), .instant_ns = timer->fire_ns};
}

struct overlay_timer_date overlay_timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = timer_lock_home(timer);
    struct overlay_timer_date date = date_of(timer);

    timer_unlock_home(timer, home);
    return date;
}

struct overlay_timer_date overlay_next_timer_date(CFRunLoopRef loop, CFStringRef name)
{
    struct overlay_timer_date date;
    struct mode *mode;

    loop_lock(loop);
    mode = mode_find(loop, name);
    date = date_of(mode ? timers_next(loop, mode) : NULL);
    loop_unlock(loop);
    return date;
}

int64_t overlay_timer_instant(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home = timer_lock_home(timer);
    int64_t instant_ns = timer->fire_ns;

    timer_unlock_home(timer, home);
    return instant_ns;
}

void overlay_timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t instant_ns)
{
    timer_set_date(timer, date, instant_ns);
}

void overlay_timer_follow_wall(CFRunLoopTimerRef timer)
{
    timer_follow_wall(timer);
}

/* ---- message ports ---- */

CFDataRef overlay_data_to_give(const void *bytes, uint64_t length)
{
    return payload_copy_to_give(bytes, length);
}

bool overlay_port_set_receiver(CFMessagePortRef port, void *receiver)
{
    return local_port_set_receiver(port, receiver);
}

int32_t overlay_port_send(CFMessagePortRef remote, int32_t number, CFDataRef data, int64_t deadline_ns, uint32_t *ret_status,
                          CFDataRef *ret_reply)
{
    /* Nobody adds anything to this mode, so the wait serves nothing but the answer. */
    const struct request request = {.message_id = number,
                                    .data = data,
                                    .reply_mode = ret_status ? CFSTR("CoreRunLoop.reply") : NULL,
                                    .deadline_ns = deadline_ns,
                                    .ret_status = ret_status};

    return port_is_valid(remote) ? request_send_and_end(remote, &request, ret_reply) : kCFMessagePortIsInvalid;
}

void overlay_port_set_invalidation_callback(CFMessagePortRef remote, CFMessagePortInvalidationCallBack callout)
{
    bool is_late;

    port_lock(remote);
    is_late = !port_is_valid(remote);
    remote->invalidated = callout;
    port_unlock(remote);
    if (is_late) {
        callout(remote, NULL);
    }
}

void overlay_port_set_callout(CFMessagePortRef port, overlay_callout callout)
{
    port->side.local.answering = callout;
}

void overlay_message_set_status(struct received_message *message, uint32_t status)
{
    message->status = status;
}

pid_t overlay_message_process(const struct received_message *message)
{
    return message->asker.process;
}

struct deferred_reply *overlay_message_defer(struct received_message *message)
{
    return received_message_defer(message);
}

void overlay_deferred_watch(struct deferred_reply *deferred, void (*asker_left)(void *info), void *info, void (*release)(void *info))
{
    deferred_reply_watch(deferred, asker_left, info, release);
}

int64_t overlay_deferred_deadline(const struct deferred_reply *deferred)
{
    return deferred_reply_deadline(deferred);
}

void overlay_deferred_answer(struct deferred_reply *deferred, uint32_t status, CFDataRef data)
{
    deferred_reply_answer(deferred, status, data);
}

bool overlay_port_listen_for_askers(CFMessagePortRef port, CFRunLoopRef loop)
{
    return deferred_replies_listen(port, loop);
}

struct async_requests *overlay_requests_create(void)
{
    return async_requests_create();
}

void overlay_requests_destroy(struct async_requests *requests)
{
    async_requests_destroy(requests);
}

struct async_request *overlay_request_create(CFMessagePortRef remote, int32_t number, CFDataRef data, int64_t deadline_ns,
                                             void (*ended)(void *info, int32_t result, uint32_t status, CFDataRef reply))
{
    return async_request_create(remote, number, data, deadline_ns, ended, NULL);
}

void overlay_request_send(struct async_requests *requests, struct async_request *request, void *info)
{
    async_request_set_info(request, info);
    async_request_send(requests, request);
}

void overlay_request_cancel(struct async_request *request)
{
    async_request_cancel(request);
}

void overlay_request_release(struct async_request *request)
{
    async_request_release(request);
}

CFIndex overlay_stream_write_now(CFWriteStreamRef stream, const UInt8 *bytes, CFIndex size)
{
    return stream_write_now((struct stream *)stream, bytes, size);
}
