/* SPDX-License-Identifier: Apache-2.0 */
/* The making of timers, and their dates; states and guards are in timer.h. Timers never touch the kernel: the pass asks for the limit and
 * passes it to its wait. */
#include "Loop/timer.h"

#include <math.h>
#include <stdlib.h>

#include "Loop/instant.h"
#include "Loop/timer_firing.h"
#include "Loop/timer_membership.h"
#include "Support/fault.h"

/* ---- the home ---- */

CFRunLoopRef timer_lock_home_again(CFRunLoopTimerRef timer)
{
    item_unlock_home(timer, NULL); /* a loop has just got it */
    return timer_lock_home(timer);
}

/* ---- construction ---- */

struct timer_rare *timer_rare_made(CFRunLoopTimerRef timer)
{
    struct timer_rare *rare;

    if (timer_has(timer, timer_has_rare)) {
        return timer->own.rare;
    }
    rare = calloc(1, sizeof *rare);
    if (rare) {
        rare->context_info = timer->own.context_info;
        timer->own.rare = rare;
        timer_set(timer, timer_has_rare, true);
    }
    return rare;
}

static void finalize(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    struct timer_rare *rare;

    if (!timer_has(timer, timer_has_rare)) {
        return;
    }
    rare = timer->own.rare;
    /* Late it is still where a thread ended in the callout. */
    if (timer_has(timer, timer_is_valid) || timer_has(timer, timer_releases_late)) {
        item_context_release(timer, rare->context, rare->context_info);
    }
    free(rare->context);
    free(rare);
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    CFRunLoopRef home = timer_lock_home(timer);
    const struct timer_rare *rare = timer_rare(timer);
    struct item_context *functions = rare->context;
    const void *info = *timer_info(timer);
    const bool is_valid = timer_has(timer, timer_is_valid);
    const double date = is_valid ? timer->date : 0.0;
    CFStringRef context;
    CFStringRef text;

    timer_unlock_home(timer, home);
    context = item_context_describe(timer, functions, info);
    text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopTimer %p>{valid = %s, interval = %g, next fire date = %f, order = %ld, callout = %p, context = %@}"),
        object, is_valid ? "Yes" : "No", timer->interval, date, (long)rare->order, (void *)(uintptr_t)timer->callout, context);

    if (context) {
        CFRelease(context);
    }
    return text;
}

const struct object_class timer_class = {
    .type_id = object_type_run_loop_timer,
    .name = "CFRunLoopTimer",
    .finalize = finalize,
    .copy_description = describe,
};

static CFTimeInterval checked_interval(CFTimeInterval interval)
{
    static atomic_flag logged_nan = ATOMIC_FLAG_INIT;
    static atomic_flag logged_tiny = ATOMIC_FLAG_INIT;

    if (isnan(interval)) {
        fault_log_once(&logged_nan, "CFRunLoopTimerCreate: the interval is not a number; the timer fires once");
        return 0.0;
    }
    if (interval <= 0.0) {
        return 0.0;
    }
    if (interval < 1e-9) {
        fault_log_once(&logged_tiny, "CFRunLoopTimerCreate: the interval is below a nanosecond; it becomes one nanosecond");
        return 1e-9;
    }
    return interval;
}

static void set_date_fields(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns)
{
    timer->fire_ns = fire_ns;
    timer->date = date > INSTANT_LATEST_DATE ? INSTANT_LATEST_DATE : date;
}

/* Takes over the context and the order of a new timer. False if there is no memory, and then nothing is retained. */
static bool adopt(CFRunLoopTimerRef timer, const CFRunLoopTimerContext *context, CFIndex order)
{
    struct item_context functions = {.retain = NULL};
    struct timer_rare *rare;

    if (context) {
        functions = (struct item_context){
            .retain = context->retain, .release = context->release, .copy_description = context->copyDescription};
    }
    if (order == 0 && !functions.retain && !functions.release && !functions.copy_description) {
        timer->own.context_info = context ? context->info : NULL;
        return true;
    }
    rare = timer_rare_made(timer);
    if (!rare) {
        return false;
    }
    rare->order = order;
    return !context || item_context_adopt(&functions, context->info, &rare->context, &rare->context_info);
}

CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context)
{
    CFRunLoopTimerRef timer = object_create(allocator, &timer_class, sizeof *timer);

    if (!timer) {
        return NULL;
    }
    if (!adopt(timer, context, order)) {
        object_release(timer);
        return NULL;
    }
    heap_node_init(&timer->first_member.node);
    timer_set(timer, timer_is_valid, true);
    timer->callout = callout;
    timer->interval = checked_interval(interval);
    set_date_fields(timer, date, instant_of_date(date));
    return timer;
}

void timer_keep_info(CFRunLoopTimerRef timer)
{
    timer_set(timer, timer_keeps_info, true);
}

/* ---- dates ---- */

void timer_reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    uint64_t sequence = loop->next_sequence++;

    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->node.sequence = sequence;
        if (heap_contains(&member->node)) {
            heap_change_key(&member->mode->timers, &member->node, timer->fire_ns);
        } else {
            heap_push(&member->mode->timers, &member->node, timer->fire_ns);
        }
        timers_notice_earlier(loop, member->mode);
    }
}

/* The timer, in no callout, has another date than `old_ns`. */
static void move(CFRunLoopRef loop, CFRunLoopTimerRef timer, int64_t old_ns)
{
    uint64_t sequence = loop->next_sequence++;

    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->node.sequence = sequence;
        timer_member_move(member, old_ns, timer->fire_ns);
        if (timer->fire_ns < old_ns) {
            timers_notice_earlier(loop, member->mode); /* deferred or not: what the sleeper counts on are dates, not places */
        }
    }
}

void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns)
{
    CFRunLoopRef loop = timer_lock_home(timer);

    if (timer_has(timer, timer_is_valid)) {
        int64_t old_ns = timer->fire_ns;

        set_date_fields(timer, date, fire_ns);
        if (timer_has(timer, timer_is_firing)) {
            timer_set(timer, timer_is_redated, true); /* takes effect when the callout has returned (126) */
        } else if (loop) {
            move(loop, timer, old_ns);
        }
    }
    timer_unlock_home(timer, loop);
}

CFAbsoluteTime timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = timer_lock_home(timer);
    CFAbsoluteTime date = timer_has(timer, timer_is_valid) ? timer->date : 0.0;

    timer_unlock_home(timer, loop);
    return date;
}

/* Counts a timer that is in modes among the tolerant ones, or no longer. H. */
static void count_tolerance(CFRunLoopTimerRef timer, uint32_t change)
{
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->mode->tolerant_count += change;
    }
}

void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance)
{
    CFRunLoopRef loop;
    struct timer_rare *rare;
    double limit = timer->interval > 0 ? timer->interval / 2 : INSTANT_LONGEST_SECONDS;
    double clamped = tolerance > limit ? limit : tolerance > 0 ? tolerance : 0.0; /* not a number is 0 too */

    loop = timer_lock_home(timer);
    rare = clamped == timer_rare(timer)->tolerance ? NULL : timer_rare_made(timer); /* without memory it stays exact */
    if (rare) {
        count_tolerance(timer, (uint32_t)(clamped > 0) - (uint32_t)(rare->tolerance > 0));
        rare->tolerance = clamped;
        for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
            timers_notice_earlier(loop, member->mode);
        }
    }
    timer_unlock_home(timer, loop);
}
