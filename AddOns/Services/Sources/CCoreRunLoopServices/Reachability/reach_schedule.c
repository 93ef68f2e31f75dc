/* SPDX-License-Identifier: Apache-2.0 */
/* Targets on loops and queues: see reach_target.h. Any thread. */
#include <errno.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "Reachability/reach_target.h"
#include "Support/invariant.h"
#include "service_object.h"

bool reach_is_ours(reach_target_ref target)
{
    return getpid() == target->process;
}

/* ---- the wait set ---- */

static void close_and_forget(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)notify_kernel.close(*descriptor);
    }
    *descriptor = -1;
}

/* Returns 0 or a negative errno. */
REQUIRES(the_service_lock) static int open_set(reach_target_ref target)
{
    int result = target->changes = route_kernel.changes_open();

    if (result >= 0) {
        result = target->alarm = notify_kernel.alarm_create();
    }
    if (result >= 0) {
        result = target->set = notify_kernel.set_create();
    }
    if (result >= 0) {
        result = notify_kernel.set_add(target->set, target->changes);
    }
    if (result >= 0) {
        result = notify_kernel.set_add(target->set, target->alarm);
    }
    if (result < 0) {
        close_and_forget(&target->changes);
        close_and_forget(&target->alarm);
        close_and_forget(&target->set);
    }
    return result;
}

/* Opens the set for a target that is on nothing, and takes the flags as the program can have them from now on. Returns a kSCStatus. */
REQUIRES(the_service_lock) static int begin(reach_target_ref target)
{
    int result = target->set < 0 ? open_set(target) : 0;

    if (result < 0) {
        return result == -EPERM || result == -EACCES || result == -EAFNOSUPPORT || result == -EPROTONOSUPPORT ? kSCStatusAccessError
                                                                                                              : kSCStatusFailed;
    }
    (void)reach_drain(target);
    target->look_ns = target->ask_ns = target->asked_ns = 0;
    target->is_known = !target->name && reach_look(target, &target->flags) == 0;
    if (target->name) {
        reach_ask_later(target, 0);
    } else if (!target->is_known) {
        reach_look_later(target, 0);
    }
    return kSCStatusOK;
}

/* ---- loops ---- */

static __CFPort source_descriptor(void *info)
{
    return ((reach_target_ref)info)->set;
}

/* The child of a fork has the same wait set, whose events are the parent's: there the source is at its end, as no lock can be taken. */
static void perform_source(void *info)
{
    reach_target_ref target = info;

    if (reach_is_ours(target)) {
        reach_serve(target);
    } else {
        CFRunLoopSourceInvalidate(atomic_load_explicit(&target->performed, memory_order_relaxed));
    }
}

static const void *retain(const void *info)
{
    return CFRetain(info);
}

static void release(const void *info)
{
    CFRelease(info);
}

/* Makes the source, and the host of a name. Each holds the target until that is in no mode any more. */
REQUIRES(the_service_lock) static int begin_on_loops(reach_target_ref target)
{
    CFRunLoopSourceContext1 context = {
        .version = 1, .info = target, .retain = retain, .release = release, .getPort = source_descriptor, .perform = perform_source};
    CFHostRef host = target->name ? reach_host_create(target) : NULL;
    int status = target->name && !host ? kSCStatusFailed : begin(target);

    if (status == kSCStatusOK) {
        target->source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
        atomic_store_explicit(&target->performed, target->source, memory_order_relaxed);
        status = target->source ? kSCStatusOK : kSCStatusFailed;
    }
    if (status != kSCStatusOK) {
        if (host) {
            reach_host_end(host);
        }
        return status;
    }
    target->host = host;
    return kSCStatusOK;
}

/* What a target had of a loop, or of a queue. */
struct reach_place {
    CFRunLoopSourceRef source;
    CFHostRef host;
    void *queue_source;
};

REQUIRES(the_service_lock) static struct reach_place take_place(reach_target_ref target)
{
    struct reach_place place = {target->source, target->host, target->queue_source};

    target->source = NULL;
    target->host = NULL;
    target->queue_source = NULL;
    target->mode_count = 0;
    target->turn++;
    target->is_asking = target->asks_again = target->has_answer = false;
    return place;
}

static void end_place(struct reach_place place)
{
    if (place.source) {
        CFRunLoopSourceInvalidate(place.source);
        CFRelease(place.source);
    }
    if (place.host) {
        reach_host_end(place.host);
    }
    if (place.queue_source) {
        reach_queue_detach(place.queue_source);
    }
}

/* The target has left a mode: if that was the last one, its place is returned to be ended. */
REQUIRES(the_service_lock) static struct reach_place leave_mode(reach_target_ref target)
{
    invariant(target->mode_count > 0);
    target->mode_count--;
    return target->mode_count == 0 ? take_place(target) : (struct reach_place){NULL, NULL, NULL};
}

/*
 * The lock is held over the calls of the loop and the host, which call no code of the program's: so a mode is counted by the thread that
 * has added the source, whoever else adds or removes it.
 */
REQUIRES(the_service_lock) static bool enter_mode(reach_target_ref target, CFRunLoopRef loop, CFStringRef mode)
{
    if (CFRunLoopContainsSource(loop, target->source, mode)) {
        return true;
    }
    CFRunLoopAddSource(loop, target->source, mode);
    if (!CFRunLoopContainsSource(loop, target->source, mode)) {
        return false;
    }
    target->mode_count++;
    if (target->host) {
        CFHostScheduleWithRunLoop(target->host, loop, mode);
    }
    return true;
}

static int schedule(reach_target_ref target, CFRunLoopRef loop, CFStringRef mode)
{
    struct reach_place left = {NULL, NULL, NULL};
    int status = kSCStatusOK;

    service_lock_take(&target->lock);
    if (!target->source) {
        status = target->queue_source ? kSCStatusInvalidArgument : begin_on_loops(target);
    }
    if (status == kSCStatusOK && !enter_mode(target, loop, mode)) {
        status = kSCStatusFailed;
        left = target->mode_count == 0 ? take_place(target) : left;
    }
    service_lock_drop(&target->lock);
    end_place(left);
    return status;
}

static void require(SCNetworkReachabilityRef target, const char *function)
{
    service_require(target, SCNetworkReachabilityGetTypeID(), function, "target");
}

Boolean SCNetworkReachabilityScheduleWithRunLoop(SCNetworkReachabilityRef target, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    require(target, "SCNetworkReachabilityScheduleWithRunLoop");
    if (!runLoop || !runLoopMode || !reach_is_ours(reach_target(target))) {
        return sc_status_leave(kSCStatusInvalidArgument);
    }
    return sc_status_leave(schedule(reach_target(target), runLoop, runLoopMode));
}

/* Returns whether it was in the mode. */
static bool unschedule(reach_target_ref target, CFRunLoopRef loop, CFStringRef mode)
{
    struct reach_place left = {NULL, NULL, NULL};
    bool was_there;

    service_lock_take(&target->lock);
    was_there = target->source && CFRunLoopContainsSource(loop, target->source, mode);
    if (was_there) {
        CFRunLoopRemoveSource(loop, target->source, mode);
        if (target->host) {
            CFHostUnscheduleFromRunLoop(target->host, loop, mode);
        }
        left = leave_mode(target);
    }
    service_lock_drop(&target->lock);
    end_place(left);
    return was_there;
}

Boolean SCNetworkReachabilityUnscheduleFromRunLoop(SCNetworkReachabilityRef target, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    bool was_there;

    require(target, "SCNetworkReachabilityUnscheduleFromRunLoop");
    if (!runLoop || !runLoopMode || !reach_is_ours(reach_target(target))) {
        return sc_status_leave(kSCStatusInvalidArgument);
    }
    (void)CFRetain(target); /* its place may have the last reference */
    was_there = unschedule(reach_target(target), runLoop, runLoopMode);
    CFRelease(target);
    return sc_status_leave(was_there ? kSCStatusOK : kSCStatusInvalidArgument);
}

/* ---- a queue ---- */

static int join_queue(reach_target_ref target, void *queue)
{
    int status = kSCStatusInvalidArgument;

    service_lock_take(&target->lock);
    if (!target->source && !target->queue_source) {
        status = begin(target);
        target->queue_source = status == kSCStatusOK ? reach_queue_attach(target, queue) : NULL;
        status = status == kSCStatusOK && !target->queue_source ? kSCStatusFailed : status;
    }
    service_lock_drop(&target->lock);
    return status;
}

static int leave_queue(reach_target_ref target)
{
    struct reach_place left = {NULL, NULL, NULL};

    service_lock_take(&target->lock);
    if (target->queue_source) {
        left = take_place(target);
    }
    service_lock_drop(&target->lock);
    end_place(left);
    return left.queue_source ? kSCStatusOK : kSCStatusInvalidArgument;
}

Boolean SCNetworkReachabilitySetDispatchQueue(SCNetworkReachabilityRef target, void *queue)
{
    require(target, "SCNetworkReachabilitySetDispatchQueue");
    if (!reach_is_ours(reach_target(target))) {
        return sc_status_leave(kSCStatusInvalidArgument);
    }
    return sc_status_leave(queue ? join_queue(reach_target(target), queue) : leave_queue(reach_target(target)));
}
