/* SPDX-License-Identifier: Apache-2.0 */
/* The time that a loop waits awake; see busy_wait.h. */
#include "Loop/busy_wait.h"

#include "CRLRunLoop.h"
#include "Loop/instant.h"

/*
 * After so many short waits in a row the next one is likely to be short, too. Each time that this was wrong, or the processor was wanted by
 * others, it takes twice as many, up to the most; once it was right, the least again. So what is spent in vain is seldom, and gets rarer.
 */
enum { short_waits_least = 4, short_waits_most = 128 };

/* What takes less than this has not waited, and says nothing. */
static const int64_t least_wait_ns = 2000;

/* A look takes a microsecond or two. One that took longer has given the processor to somebody. */
static const int64_t longest_look_ns = 20000;

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

    if (adapts(loop)) {
        bool is_held_up = loop->last_look_ns == 0 || now_ns - loop->last_look_ns > longest_look_ns;

        loop->last_look_ns = is_held_up ? 0 : now_ns;
        return !is_held_up && now_ns < until_ns;
    }
    return now_ns < until_ns;
}

/* What ended by the clock was not waited for by anybody, and the kernel can be relied on for that. */
static bool was_by_the_clock(enum wake_cause cause)
{
    return cause == cause_timers || cause == cause_none;
}

/* What a wait says about the next one. */
static void learn(CFRunLoopRef loop, bool was_awake, bool was_short, int64_t length_ns)
{
    if (loop->short_waits_wanted == 0) {
        loop->short_waits_wanted = short_waits_least;
    }
    if (!was_short) {
        loop->short_waits = 0;
        if (was_awake && loop->short_waits_wanted < short_waits_most) {
            loop->short_waits_wanted *= 2;
        }
    } else if (was_awake) {
        loop->short_waits_wanted = loop->short_waits = short_waits_least;
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
    bool is_wanted;

    learn(loop, was_awake, !was_by_the_clock(cause) && length_ns <= longest_ns && loop->last_look_ns != 0, length_ns);
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
