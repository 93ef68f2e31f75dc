/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of clean-ups by itself: what is popped does not run, and what nobody popped runs from the top. */
#include "CoreFoundation/CoreFoundation.h"
#include "Loop/Core/callout_cleanup.h"
#include "harness.h"

enum { many = 3 * cleanups_at_first };

static int run_count;
static int last_run;
static const int numbers[many];

static void note(const void *object)
{
    run_count++;
    last_run = (int)((const int *)object - numbers);
}

TEST(a_popped_clean_up_does_not_run_and_those_above_it_do, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    uint32_t height = loop->cleanups.count;
    uint32_t mark = cleanup_push(loop, note, &numbers[0]);

    for (int i = 1; i < many; i++) {
        EXPECT(cleanup_push(loop, note, &numbers[i]) > mark);
    }
    cleanup_pop(loop, mark);
    EXPECT_EQ(run_count, many - 1);
    EXPECT_EQ(last_run, 1);
    EXPECT_EQ(loop->cleanups.count, height);
    cleanup_free(loop);
}

TEST(a_pop_with_the_loops_lock_drops_it_for_the_clean_ups_above, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    uint32_t height = loop->cleanups.count;
    uint32_t mark = cleanup_push(loop, note, &numbers[0]);

    (void)cleanup_push(loop, note, &numbers[1]);
    loop_lock(loop);
    cleanup_pop_locked(loop, height, mark);
    invariant_held(&loop->lock);
    loop_unlock(loop);
    EXPECT_EQ(run_count, 1);
    EXPECT_EQ(last_run, 1);
    EXPECT_EQ(loop->cleanups.count, height);
}

static void describe(CFRunLoopTimerRef timer, void *text)
{
    (void)timer;
    *(CFStringRef *)text = CFCopyDescription(CFRunLoopGetCurrent());
}

TEST(a_loop_that_runs_is_described_with_its_mode, "")
{
    CFStringRef text = NULL;
    CFRunLoopTimerContext context = {0, &text, NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, describe, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    REQUIRE(text != NULL);
    EXPECT(CFStringFind(text, CFSTR("current mode = kCFRunLoopDefaultMode"), 0).location != kCFNotFound);
    CFRelease(text);
    CFRelease(timer);
}
