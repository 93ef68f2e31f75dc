/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure in waits by clocks that are moved by hand (Overlay/overlay_clock.c). */
#include "Failure/nth_failure.h"
#include "Kernel/kernel.h"
#include "Overlay/overlay.h"

#define MODE CFSTR("a mode")

/* A clock that somebody moves by hand, a minute at each reading. It counts for the thread that has begun it. */
static __thread int64_t hand_ns;

static int64_t hand_monotonic_ns(void)
{
    return hand_ns > 0 ? hand_ns += INT64_C(60000000000) : kernel_linux.monotonic_ns();
}

static int64_t hand_elapsed_ns(void)
{
    return hand_ns > 0 ? hand_ns : kernel_linux.elapsed_ns();
}

static int64_t hand_wall_ns(void)
{
    return hand_ns > 0 ? INT64_C(1767225600000000000) + hand_ns : kernel_linux.wall_ns();
}

static int64_t hand_tick_ns(int64_t *ret_wall_ns)
{
    int64_t tick_ns = kernel_linux.tick_ns(ret_wall_ns);

    *ret_wall_ns = hand_ns > 0 ? hand_wall_ns() : *ret_wall_ns;
    return hand_ns > 0 ? hand_ns : tick_ns;
}

static bool is_by_hand(void)
{
    return hand_ns > 0;
}

static bool skips_no_waits(void)
{
    return false;
}

static void replace_clocks(void)
{
    static const struct overlay_clock hand = {
        .monotonic_ns = hand_monotonic_ns,
        .elapsed_ns = hand_elapsed_ns,
        .wall_ns = hand_wall_ns,
        .tick_ns = hand_tick_ns,
        .is_by_hand = is_by_hand,
        .skips_waits = skips_no_waits,
    };
    static struct overlay_clock of_kernel;
    static bool is_done; /* once in a process */

    if (!is_done) {
        overlay_replace_clock(&hand, &of_kernel);
    }
    is_done = true;
}

static int fired;

static void note_firing(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    fired++;
}

/* Whatever a look fails with, the wait goes on or begins again. */
static bool wait_for_an_hour(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopTimerRef timer = bag_keep(CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3600, 0, 0, 0, note_firing, NULL));

    NEED(timer);
    CFRunLoopAddTimer(loop, timer, MODE);
    NEED(CFRunLoopContainsTimer(loop, timer, MODE));
    MUST(CFRunLoopRunInMode(MODE, 1200, false) == kCFRunLoopRunTimedOut);
    MUST(fired == 0);
    MUST(CFRunLoopRunInMode(MODE, 36000, false) == kCFRunLoopRunFinished);
    MUST(fired == 1);
    return true;
}

NTH_FAILURE(waits_by_a_clock_that_is_moved_by_hand, "1202")
{
    bool is_complete;

    replace_clocks();
    hand_ns = INT64_C(1000000000);
    fired = 0;
    is_complete = wait_for_an_hour();
    hand_ns = 0;
    return is_complete;
}
