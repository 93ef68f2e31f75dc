/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on timers: checks, and one call inward. */
#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Core/instant.h"
#include "Loop/Timer/timer_membership.h"
#include "Support/fault.h"

static void require_timer(CFRunLoopTimerRef timer, const char *function)
{
    object_check(timer, &timer_class, function, "timer");
}

CFTypeID CFRunLoopTimerGetTypeID(void)
{
    return object_type_run_loop_timer;
}

CFRunLoopTimerRef CFRunLoopTimerCreate(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval, CFOptionFlags flags,
                                       CFIndex order, CFRunLoopTimerCallBack callout, CFRunLoopTimerContext *context)
{
    (void)flags; /* they have no meaning (rule 109) */
    return run_loop_timer_create(allocator, fireDate, interval, order, callout, context);
}

CFAbsoluteTime CFRunLoopTimerGetNextFireDate(CFRunLoopTimerRef timer)
{
    require_timer(timer, "CFRunLoopTimerGetNextFireDate");
    return timer_date(timer);
}

void CFRunLoopTimerSetNextFireDate(CFRunLoopTimerRef timer, CFAbsoluteTime fireDate)
{
    int64_t fire_ns;

    timer_fetch(timer);
    fire_ns = instant_of_date(fireDate);
    require_timer(timer, "CFRunLoopTimerSetNextFireDate");
    timer_set_date(timer, fireDate, fire_ns);
}

CFTimeInterval CFRunLoopTimerGetInterval(CFRunLoopTimerRef timer)
{
    require_timer(timer, "CFRunLoopTimerGetInterval");
    return timer->interval;
}

Boolean CFRunLoopTimerDoesRepeat(CFRunLoopTimerRef timer)
{
    require_timer(timer, "CFRunLoopTimerDoesRepeat");
    return timer->interval > 0;
}

CFIndex CFRunLoopTimerGetOrder(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home;
    CFIndex order;

    require_timer(timer, "CFRunLoopTimerGetOrder");
    home = timer_lock_home(timer);
    order = timer_extra(timer)->order;
    timer_unlock_home(timer, home);
    return order;
}

void CFRunLoopTimerInvalidate(CFRunLoopTimerRef timer)
{
    timer_fetch(timer);
    require_timer(timer, "CFRunLoopTimerInvalidate");
    timer_invalidate(timer);
}

Boolean CFRunLoopTimerIsValid(CFRunLoopTimerRef timer)
{
    CFRunLoopRef home;
    bool is_valid;

    require_timer(timer, "CFRunLoopTimerIsValid");
    home = timer_lock_home(timer);
    is_valid = timer_has(timer, timer_is_valid);
    timer_unlock_home(timer, home);
    return is_valid;
}

void CFRunLoopTimerGetContext(CFRunLoopTimerRef timer, CFRunLoopTimerContext *context)
{
    const struct context *functions;
    CFRunLoopRef home;

    require_timer(timer, "CFRunLoopTimerGetContext");
    if (!context) {
        fault_stop("CFRunLoopTimerGetContext", "the context is NULL");
    }
    home = timer_lock_home(timer);
    functions = timer_extra(timer)->context;
    context->info = *timer_info(timer);
    timer_unlock_home(timer, home);
    context->version = 0;
    context->retain = functions ? functions->retain : NULL;
    context->release = functions ? functions->release : NULL;
    context->copyDescription = functions ? functions->copy_description : NULL;
}

CFTimeInterval CFRunLoopTimerGetTolerance(CFRunLoopTimerRef timer)
{
    CFTimeInterval tolerance;
    CFRunLoopRef home;

    require_timer(timer, "CFRunLoopTimerGetTolerance");
    home = timer_lock_home(timer);
    tolerance = timer_extra(timer)->tolerance;
    timer_unlock_home(timer, home);
    return tolerance;
}

void CFRunLoopTimerSetTolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance)
{
    require_timer(timer, "CFRunLoopTimerSetTolerance");
    timer_set_tolerance(timer, tolerance);
}
