/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates timers and sets their dates; states and guards are in timer.h. Timers make no system calls: a pass asks for the earliest limit
 * and gives it to its wait as the deadline. The home lock is held wherever a timer that others know is read or written.
 */
#include "Loop/Timer/timer.h"

#include <math.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/shown.h"
#include "Loop/Timer/timer_heap.h"
#include "Support/fault.h"

/* ---- the home ---- */

CFRunLoopRef timer_lock_home_again(CFRunLoopTimerRef timer)
{
    home_lock_drop(timer, NULL); /* a loop has just claimed the timer: its lock is the home lock now */
    return timer_lock_home(timer);
}

/* ---- construction ---- */

struct timer_extra *timer_make_extra(CFRunLoopTimerRef timer)
{
    struct timer_extra *extra;

    if (timer_has(timer, timer_has_extra)) {
        return timer->own.extra;
    }
    extra = calloc(1, sizeof *extra);
    if (extra) {
        extra->context_info = timer->own.context_info;
        timer->own.extra = extra;
        timer_set(timer, timer_has_extra, true);
    }
    return extra;
}

static void finalize(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    struct timer_extra *extra;

    if (!timer_has(timer, timer_has_extra)) {
        return;
    }
    extra = timer->own.extra;
    /* timer_releases_late is still set if a thread ended in the callout and nobody ended the callout for it. */
    if (timer_has(timer, timer_is_valid) || timer_has(timer, timer_releases_late)) {
        context_release(timer, extra->context, extra->context_info);
    }
    free(extra->context);
    free(extra);
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    CFRunLoopRef home = timer_lock_home(timer);
    const struct timer_extra *extra = timer_extra(timer);
    struct context *functions = extra->context;
    const void *info = *timer_info(timer);
    const bool is_valid = timer_has(timer, timer_is_valid);
    const bool is_firing = timer_has(timer, timer_is_firing);
    const double tolerance = extra->tolerance;
    const double date = is_valid ? timer_shown_date(timer) : 0.0;
    const int64_t fire_ns = timer->fire_ns;
    const int64_t now_ns = kernel.elapsed_ns();
    struct shown callout;
    struct shown instant;
    CFStringRef context;
    CFStringRef text;

    timer_unlock_home(timer, home);
    context = context_describe(timer, functions, info);
    text = CFStringCreateWithFormat(
        NULL, NULL,
        CFSTR("<CFRunLoopTimer %p>{valid = %s%s, next fire date = %f%s%s%s, interval = %g, tolerance = %g, order = %ld, callout = %s, "
              "context = %@}"),
        object, shown_bool(is_valid), is_firing ? ", firing = Yes" : "", date, is_valid ? " (" : "",
        is_valid ? shown_instant(&instant, fire_ns, now_ns) : "", is_valid ? ")" : "", timer->interval, tolerance, (long)extra->order,
        shown_callout(&callout, (void (*)(void))timer->callout), context);

    object_release_if_any(context);
    return text;
}

const struct object_class timer_class = {
    .type_id = object_type_run_loop_timer,
    .name = "CFRunLoopTimer",
    .finalize = finalize,
    .copy_description = describe,
};

/* Clamps an interval to what a repeating timer can have; 0 stands for a timer that fires once. */
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

/* Stores the context and the order of a new timer. Returns false if there is no memory; then nothing was retained. */
static bool timer_adopt_context(CFRunLoopTimerRef timer, const CFRunLoopTimerContext *context, CFIndex order)
{
    struct context functions = {.retain = NULL};
    struct timer_extra *extra;

    if (context) {
        functions = (struct context){.retain = context->retain, .release = context->release, .copy_description = context->copyDescription};
    }
    if (order == 0 && !functions.retain && !functions.release && !functions.copy_description) {
        timer->own.context_info = context ? context->info : NULL;
        return true;
    }
    extra = timer_make_extra(timer);
    if (!extra) {
        return false;
    }
    extra->order = order;
    return !context || context_adopt(&functions, context->info, &extra->context, &extra->context_info);
}

CFRunLoopTimerRef run_loop_timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                                        CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context)
{
    CFRunLoopTimerRef timer = object_create(allocator, &timer_class, sizeof *timer);

    if (!timer) {
        return NULL;
    }
    if (!timer_adopt_context(timer, context, order)) {
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

    invariant_held(&loop->lock);
    invariant(timer_has(timer, timer_is_valid) && !timer_has(timer, timer_is_firing));
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->node.sequence = sequence;
        /* A mode that the timer joined during its callout has it in the heap, with the latest key. */
        if (heap_contains(&member->node)) {
            heap_change_key(&member->mode->timers, &member->node, timer->fire_ns);
        } else {
            heap_push(&member->mode->timers, &member->node, timer->fire_ns);
        }
        timers_notice_earlier(loop, member->mode);
    }
}

/*
 * Brings the heaps of a scheduled timer in line with a new date; `old_ns` is the date before. The new sequence number makes the entry of a
 * snapshot that was taken before stale.
 */
REQUIRES(the_loop_lock) static void timer_move_in_heaps(CFRunLoopRef loop, CFRunLoopTimerRef timer, int64_t old_ns)
{
    uint64_t sequence = loop->next_sequence++;

    invariant_held(&loop->lock);
    invariant(timer_loop(timer) == loop && !timer_has(timer, timer_is_firing));
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->node.sequence = sequence;
        timer_member_redate(member, old_ns, timer->fire_ns);
        if (timer->fire_ns < old_ns) {
            timers_notice_earlier(loop, member->mode); /* even if the timer did not move: the sleeper's deadline comes from dates */
        }
    }
}

/* Not checked for guards: clang cannot know that the home lock is the loop's lock where there is a loop. */
NOT_CHECKED void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t fire_ns)
{
    CFRunLoopRef loop = timer_lock_home(timer);

    if (timer_has(timer, timer_is_valid)) {
        int64_t old_ns = timer->fire_ns;

        set_date_fields(timer, date, fire_ns);
        if (timer_has(timer, timer_is_firing)) {
            timer_set(timer, timer_is_redated, true); /* takes effect when the callout has returned (rule 126) */
        } else if (loop) {
            timer_move_in_heaps(loop, timer, old_ns);
            timer_keep_to_wall(loop, timer);
        }
    }
    timer_unlock_home(timer, loop);
}

void timer_follow_wall(CFRunLoopTimerRef timer)
{
    timer_set(timer, timer_follows_wall, true);
}

/* Returns the instant of the date as the wall clock is set now. What is due stays so, and rounding moves nothing. */
static int64_t instant_on_wall(const struct __CFRunLoopTimer *timer)
{
    const int64_t rounding_ns = 1000; /* more than a date loses as a double, and less than anybody sets a clock by */
    int64_t fire_ns = instant_of_date(timer->date);
    int64_t moved_ns = fire_ns - timer->fire_ns;
    int64_t now_ns = kernel.elapsed_ns();
    bool stays = (moved_ns <= rounding_ns && moved_ns >= -rounding_ns) || (timer->fire_ns <= now_ns && fire_ns <= now_ns);

    return stays ? timer->fire_ns : fire_ns;
}

bool timer_take_wall_instant(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    int64_t old_ns = timer->fire_ns;
    bool follows = timer_has(timer, timer_follows_wall) && !timer_has(timer, timer_is_firing);

    timer->fire_ns = follows ? instant_on_wall(timer) : old_ns;
    if (timer->fire_ns != old_ns) {
        timer_move_in_heaps(loop, timer, old_ns);
    }
    return timer->fire_ns != old_ns;
}

/*
 * Gives each timer of the mode that follows the wall clock its instant, and returns true if some instant has changed. The caller goes round
 * until none has: a changed instant may lead to a look at the top of the heap, which moves other timers, and this walk may miss one then.
 */
REQUIRES(the_loop_lock) static bool move_wall_timers(CFRunLoopRef loop, const struct mode *mode)
{
    bool has_moved = false;

    for (uint64_t i = 0; i < mode->timers.count; i++) {
        has_moved |= timer_take_wall_instant(loop, timer_of_node(mode->timers.block->entries[i].node));
    }
    return has_moved;
}

void timers_follow_wall(CFRunLoopRef loop)
{
    int64_t distance_ns = instant_distance_ns();

    if (distance_ns == loop->wall_distance_ns) {
        return;
    }
    loop->wall_distance_ns = distance_ns;
    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        while (move_wall_timers(loop, mode) && instant_distance_ns() == distance_ns) { /* otherwise the next look does all of it again */
        }
    }
}

CFAbsoluteTime timer_shown_date(const struct __CFRunLoopTimer *timer)
{
    const double step_s = 0.001; /* more than conversions lose, and less than anybody sets a clock by */
    CFAbsoluteTime date = date_of_instant(timer->fire_ns);

    return date - timer->date > step_s && timer->fire_ns > kernel.elapsed_ns() ? date : timer->date;
}

CFAbsoluteTime timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = timer_lock_home(timer);
    CFAbsoluteTime date = timer_has(timer, timer_is_valid) ? timer_shown_date(timer) : 0.0;

    timer_unlock_home(timer, loop);
    return date;
}

/* Adds `change`, which is 1, 0 or -1, to the count of tolerant timers in each mode of the timer. The home lock is held. */
REQUIRES(the_loop_lock) static void count_tolerance(CFRunLoopTimerRef timer, uint32_t change)
{
    for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
        member->mode->tolerant_count += change;
        invariant(member->mode->tolerant_count <= member->mode->timer_count);
    }
}

/* Not checked for guards: a timer with members is in a loop, whose lock is then the home lock. */
NOT_CHECKED void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance)
{
    CFRunLoopRef loop;
    struct timer_extra *extra;
    double limit = timer->interval > 0 ? timer->interval / 2 : INSTANT_LONGEST_SECONDS;
    double clamped = tolerance > limit ? limit : tolerance > 0 ? tolerance : 0.0; /* NaN becomes 0 */

    loop = timer_lock_home(timer);
    extra = clamped == timer_extra(timer)->tolerance ? NULL : timer_make_extra(timer); /* without memory the timer keeps no tolerance */
    if (extra) {
        count_tolerance(timer, (uint32_t)(clamped > 0) - (uint32_t)(extra->tolerance > 0));
        extra->tolerance = clamped;
        for (struct timer_member *member = timer_next_member(timer, NULL); member; member = timer_next_member(timer, member)) {
            timers_notice_earlier(loop, member->mode);
        }
    }
    timer_unlock_home(timer, loop);
}
