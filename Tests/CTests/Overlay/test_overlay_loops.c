/* SPDX-License-Identifier: Apache-2.0 */
/* What the overlay asks of a loop that the public functions do not tell. */
#include "CRLRunLoop.h"
#include "Loop/loop_trace.h"
#include "Overlay/overlay.h"

static struct probe waiting = {.name = "waiting", .logging = probe_is_silent};

static void *look_from_elsewhere(void *loop)
{
    return overlay_waits_for_first_run(loop) ? loop : NULL;
}

static bool waits_elsewhere(void)
{
    pthread_t thread;
    void *found = NULL;

    REQUIRE(pthread_create(&thread, NULL, look_from_elsewhere, LOOP) == 0 && pthread_join(thread, &found) == 0);
    return found != NULL;
}

TEST(a_loop_waits_for_its_first_run_while_something_is_in_it, "")
{
    CFRunLoopTimerRef timer;

    EXPECT(!overlay_waits_for_first_run(LOOP));
    timer = probe_timer_add(&waiting, 600, 0, LOOP, CFSTR("private"));
    EXPECT(overlay_waits_for_first_run(LOOP));
    EXPECT(waits_elsewhere());
    CFRunLoopTimerInvalidate(timer);
    EXPECT(!waits_elsewhere());
}

TEST(a_loop_that_has_run_waits_for_no_first_run, "")
{
    (void)probe_source_add(&waiting, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("private"), 0, false), kCFRunLoopRunFinished); /* that was none */
    EXPECT(waits_elsewhere());
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    EXPECT(!waits_elsewhere());
}

TEST(a_loop_that_a_host_has_run_waits_for_no_first_run, "")
{
    (void)probe_source_add(&waiting, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CRLRunLoopLeave(LOOP);
    EXPECT(!waits_elsewhere());
}
