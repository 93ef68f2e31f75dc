/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a loop waits awake; see busy_wait.h. */
#include "Loop/busy_wait.h"

#include "CRLRunLoop.h"
#include "Loop/instant.h"

/*
 * After so many short waits in a row the next one is likely to be short, too. While that is right it earns something: for one wait that was
 * too long, four that were not. Without that, or where the processor is wanted by others, it takes twice as many short waits to begin
 * again, up to the most, and the least after one that was right. So what is spent in vain is little, and gets rarer.
 */
enum { short_waits_least = 4, short_waits_most = 128, earned_most = 16 };

/* What takes less than this has not waited, and says nothing. */
static const int64_t least_wait_ns = 2000;

/* A look takes a microsecond or two. One that took longer has given the processor to somebody. */
static const int64_t longest_look_ns = 20000;

/* In the place of the last look. */
enum { was_held_up = 0, has_looked_on = -1 };

int64_t busy_wait_begin_measured(CFRunLoopRef loop)
{
    int64_t now_ns = kernel.monotonic_ns();

    loop->last_look_ns = now_ns;
    return busy_wait_is_wanted(loop) ? instant_after(now_ns, atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed)) : -now_ns;
}

static bool adapts(CFRunLoopRef loop)
{
    return atomic_load_explicit(&loop->busy_wait, memory_order_relaxed) & busy_wait_adapts;
}

bool busy_wait_looks_on(CFRunLoopRef loop, int64_t until_ns)
{
    int64_t now_ns = kernel.monotonic_ns();
    bool goes_on = now_ns < until_ns;

    if (!adapts(loop)) {
        return goes_on;
    }
    if (loop->last_look_ns <= 0) {
        return false; /* it has slept since */
    }
    if (now_ns - loop->last_look_ns > longest_look_ns) {
        loop->last_look_ns = was_held_up;
        return false;
    }
    loop->last_look_ns = goes_on ? now_ns : has_looked_on;
    return goes_on;
}

/* What ended by the clock was not waited for by anybody, and the kernel can be relied on for that. */
static bool was_by_the_clock(enum wake_cause cause)
{
    return cause == cause_timers || cause == cause_none;
}

/* A wait that was awake has ended in time. */
static void learn_success(CFRunLoopRef loop)
{
    loop->short_waits = loop->short_waits_wanted = short_waits_least;
    if (loop->short_waits_earned < earned_most) {
        loop->short_waits_earned++;
    }
}

/* One was awake in vain. */
static void learn_failure(CFRunLoopRef loop, bool may_use_up)
{
    if (may_use_up && loop->short_waits_earned >= short_waits_least) {
        loop->short_waits_earned -= short_waits_least;
        return;
    }
    loop->short_waits = loop->short_waits_earned = 0;
    if (loop->short_waits_wanted < short_waits_most) {
        loop->short_waits_wanted *= 2;
    }
}

/* What a wait that has slept at once says about the next one. */
static void learn_from_sleep(CFRunLoopRef loop, bool was_short, int64_t length_ns)
{
    if (!was_short) {
        loop->short_waits = 0;
    } else if (length_ns >= least_wait_ns && loop->short_waits < loop->short_waits_wanted) {
        loop->short_waits++;
    }
}

/* A wait that was to stay awake `until_ns`, or has begun at its negative, has ended. */
static void adapt(CFRunLoopRef loop, uint8_t state, int64_t until_ns, enum wake_cause cause)
{
    bool was_awake = until_ns > 0;
    int64_t longest_ns = instant_after(0, atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed));
    int64_t length_ns = kernel.monotonic_ns() - (was_awake ? until_ns - longest_ns : -until_ns);
    bool was_left_alone = !was_by_the_clock(cause) && loop->last_look_ns != was_held_up;
    bool was_short = was_left_alone && length_ns <= longest_ns;
    bool is_wanted;

    if (loop->short_waits_wanted == 0) {
        loop->short_waits_wanted = short_waits_least;
    }
    if (!was_awake) {
        learn_from_sleep(loop, was_short, length_ns);
    } else if (was_short) {
        learn_success(loop);
    } else {
        learn_failure(loop, was_left_alone);
    }
    is_wanted = loop->short_waits == loop->short_waits_wanted;
    /* Unless somebody has set something else meanwhile. */
    (void)atomic_compare_exchange_strong_explicit(&loop->busy_wait, &state, busy_wait_adapts | (is_wanted ? busy_wait_now : 0),
                                                  memory_order_relaxed, memory_order_relaxed);
}

void busy_wait_end_measured(CFRunLoopRef loop, int64_t until_ns, enum wake_cause cause)
{
    uint8_t state = atomic_load_explicit(&loop->busy_wait, memory_order_relaxed);

    atomic_store_explicit(&loop->waits_awake, false, memory_order_release);
    if (state & busy_wait_adapts) {
        adapt(loop, state, until_ns, cause);
    }
}

void busy_wait_pause(CFRunLoopRef loop)
{
    atomic_store_explicit(&loop->waits_awake, true, memory_order_release);
    loop_unlock(loop);
    kernel.yield();
    loop_lock(loop);
}

static void set(CFRunLoopRef loop, CFTimeInterval seconds, enum busy_wait state)
{
    if (!(seconds > 0)) {
        seconds = 0; /* NaN, too */
        state = busy_wait_never;
    } else if (seconds > INSTANT_LONGEST_SECONDS) {
        seconds = INSTANT_LONGEST_SECONDS;
    }
    atomic_store_explicit(&loop->busy_wait_s, seconds, memory_order_relaxed);
    atomic_store_explicit(&loop->busy_wait, (uint8_t)state, memory_order_relaxed);
}

/* What was set, if it was set for this. */
static CFTimeInterval get(CFRunLoopRef loop, bool adapts)
{
    uint8_t state = atomic_load_explicit(&loop->busy_wait, memory_order_relaxed);

    return adapts == ((state & busy_wait_adapts) != 0) ? atomic_load_explicit(&loop->busy_wait_s, memory_order_relaxed) : 0;
}

void CRLRunLoopSetBusyWait(CFRunLoopRef loop, CFTimeInterval seconds)
{
    object_check(loop, &run_loop_class, "CRLRunLoopSetBusyWait", "loop");
    set(loop, seconds, busy_wait_now);
}

CFTimeInterval CRLRunLoopGetBusyWait(CFRunLoopRef loop)
{
    object_check(loop, &run_loop_class, "CRLRunLoopGetBusyWait", "loop");
    return get(loop, false);
}

void CRLRunLoopSetAdaptiveBusyWait(CFRunLoopRef loop, CFTimeInterval seconds)
{
    object_check(loop, &run_loop_class, "CRLRunLoopSetAdaptiveBusyWait", "loop");
    set(loop, seconds, busy_wait_adapts);
}

CFTimeInterval CRLRunLoopGetAdaptiveBusyWait(CFRunLoopRef loop)
{
    object_check(loop, &run_loop_class, "CRLRunLoopGetAdaptiveBusyWait", "loop");
    return get(loop, true);
}
