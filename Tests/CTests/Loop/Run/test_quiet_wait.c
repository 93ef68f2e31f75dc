/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are only a wait: what they wait for, and what makes a whole run necessary instead. */
#include <errno.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/Run/quiet_wait.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/loop_trace.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Run/pass.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Watch/watch.h"
#include "fake_kernel.h"
#include "harness.h"

static const int64_t second_ns = 1000000000;

/* A suspended source on a pipe in the default mode, where the kernel has been told of it. */
struct suspended {
    int ends[2];
    CFRunLoopRef loop;
    CFRunLoopSourceRef source;
};

static void note_performed(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    (void)info, (void)source, (void)ready;
    trace_add(&probe_trace, "performed");
}

static void keep_info(const void *info)
{
    (void)info;
}

static void suspend(struct suspended *suspended, bool is_suspended)
{
    EXPECT(descriptor_source_set_suspended(suspended->source, suspended->loop, kCFRunLoopDefaultMode, is_suspended));
}

static void begin(struct suspended *suspended)
{
    struct descriptor_source_context context = {.release = keep_info, .perform = note_performed};

    fake_kernel_install();
    REQUIRE(pipe(suspended->ends) == 0);
    suspended->loop = CFRunLoopGetCurrent();
    suspended->source = descriptor_source_create(NULL, 0, suspended->ends[0], &context);
    descriptor_source_keep_in_epoll(suspended->source);
    descriptor_source_set_interest(suspended->source, kernel_readable);
    CFRunLoopAddSource(suspended->loop, suspended->source, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    suspend(suspended, true);
}

static void end(struct suspended *suspended)
{
    CFRunLoopSourceInvalidate(suspended->source);
    descriptor_source_remove_from_epoll(suspended->source, suspended->loop, kCFRunLoopDefaultMode);
    CFRelease(suspended->source);
    (void)close(suspended->ends[0]);
    (void)close(suspended->ends[1]);
}

static void make_ready(const struct suspended *suspended)
{
    REQUIRE(write(suspended->ends[1], "x", 1) == 1);
}

static bool run_for(const struct suspended *suspended, int64_t limit_ns)
{
    int64_t now_ns = kernel.monotonic_ns();
    const struct quiet_wait request = {.source = suspended->source, .deadline_ns = now_ns + limit_ns, .now_ns = now_ns};

    return quiet_wait_run(suspended->loop, kCFRunLoopDefaultMode, &request);
}

TEST(a_quiet_wait_finds_its_source_ready_and_leaves_it_to_the_caller, "214")
{
    struct suspended suspended;
    char byte;

    begin(&suspended);
    EXPECT(!run_for(&suspended, second_ns)); /* the time is up */
    EXPECT_EQ(clock_ms(), 1000);
    make_ready(&suspended);
    EXPECT(run_for(&suspended, second_ns));
    EXPECT(run_for(&suspended, second_ns)); /* as long as it stays ready */
    REQUIRE(read(suspended.ends[0], &byte, 1) == 1);
    EXPECT(!run_for(&suspended, second_ns));
    make_ready(&suspended);
    /* To a run that is not for it, it is not there. */
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&probe_trace, "");
    suspend(&suspended, false);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "performed");
    end(&suspended);
}

TEST(a_quiet_wait_needs_a_source_that_is_suspended_in_the_mode, "214")
{
    struct suspended suspended;

    begin(&suspended);
    make_ready(&suspended);
    suspend(&suspended, false);
    EXPECT(!run_for(&suspended, second_ns));
    suspend(&suspended, true);
    EXPECT(run_for(&suspended, second_ns));
    CFRunLoopRemoveSource(suspended.loop, suspended.source, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&suspended, second_ns));
    end(&suspended);
}

static void note_block(void *info)
{
    (void)info;
    trace_add(&probe_trace, "block");
}

/* Each of these would be seen or performed in a whole run; a quiet wait calls nothing and does not wait. */
TEST(a_quiet_wait_gives_way_to_whatever_a_pass_would_do, "29 49 67 110 163 214")
{
    struct suspended suspended;
    static struct probe observer = PROBE("observer", NULL);
    static struct probe source = PROBE("source", NULL);
    static struct probe due = PROBE("due", NULL);
    static struct probe later = PROBE("later", NULL);
    CFRunLoopSourceRef added;

    begin(&suspended);
    make_ready(&suspended);
    (void)probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, suspended.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&suspended, second_ns));
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)observer.item);
    EXPECT(run_for(&suspended, second_ns));

    added = probe_source_add(&source, 0, suspended.loop, kCFRunLoopDefaultMode);
    EXPECT(run_for(&suspended, second_ns)); /* it is not signalled */
    CFRunLoopSourceSignal(added);
    EXPECT(!run_for(&suspended, second_ns)); /* its signal is still in the queue */
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "source");

    CRLRunLoopPerformFunction(suspended.loop, kCFRunLoopDefaultMode, note_block, NULL, NULL);
    EXPECT(!run_for(&suspended, second_ns));
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    EXPECT_TRACE(&probe_trace, "source block");
    trace_clear(&probe_trace);

    (void)probe_timer_add(&later, 0.5, 0, suspended.loop, kCFRunLoopDefaultMode);
    EXPECT(run_for(&suspended, second_ns)); /* it is not due */
    (void)probe_timer_add(&due, 0, 0, suspended.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&suspended, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    EXPECT_TRACE(&probe_trace, "due");
    EXPECT(run_for(&suspended, second_ns));
    CFRunLoopSourceInvalidate(added);
    end(&suspended);
}

TEST(a_quiet_wait_waits_no_longer_than_the_next_timer, "110 118 214")
{
    struct suspended suspended;
    static struct probe timer = PROBE("timer", NULL);

    begin(&suspended);
    (void)probe_timer_add(&timer, 2, 0, suspended.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&suspended, 10 * second_ns));
    EXPECT_EQ(clock_ms(), 2000);
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&probe_trace, "timer");
    end(&suspended);
}

/* Another descriptor of the mode that is ready has its turn in a whole run, and nothing of either report is lost. */
TEST(a_quiet_wait_leaves_other_reports_to_a_whole_run, "35 214")
{
    struct suspended suspended;
    int ends[2];
    struct descriptor_source_context context = {.info = ends, .release = keep_info, .perform = note_performed};
    CFRunLoopSourceRef other;

    begin(&suspended);
    REQUIRE(pipe(ends) == 0);
    other = descriptor_source_create(NULL, 0, ends[0], &context);
    descriptor_source_set_interest(other, kernel_readable);
    CFRunLoopAddSource(suspended.loop, other, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&suspended, second_ns)); /* the kernel has not been told of the other one yet */
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    suspend(&suspended, false);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    suspend(&suspended, true);
    make_ready(&suspended);
    EXPECT(run_for(&suspended, second_ns));
    REQUIRE(write(ends[1], "x", 1) == 1);
    EXPECT(!run_for(&suspended, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "performed");
    CFRunLoopSourceInvalidate(other);
    CFRelease(other);
    (void)close(ends[0]);
    (void)close(ends[1]);
    end(&suspended);
}

/* Inside a run that has not waited yet, a wake-up that a quiet wait takes is not lost for that one (64). */
static void run_inside(struct probe *probe)
{
    if (probe->activity == kCFRunLoopBeforeWaiting && probe->calls == 1) {
        CFRunLoopWakeUp(CFRunLoopGetCurrent());
        EXPECT(!run_for(probe->context, second_ns));
    }
}

TEST(a_quiet_wait_inside_another_gives_its_wake_up_back, "64")
{
    struct suspended suspended;
    static struct probe observer = PROBE("W", run_inside);
    static struct probe idle = PROBE("idle", NULL);
    CFStringRef mode = CFSTR("outer mode");
    CFRunLoopSourceRef source;

    begin(&suspended);
    observer.context = &suspended;
    source = probe_source_add(&idle, 0, suspended.loop, mode);
    (void)probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, suspended.loop, mode);
    EXPECT_EQ(CFRunLoopRunInMode(mode, 60, true), kCFRunLoopRunTimedOut);
    EXPECT_TRACE(&probe_trace, "W W"); /* the first wait ended at once */
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)observer.item);
    CFRunLoopSourceInvalidate(source);
    end(&suspended);
}

TEST(a_quiet_wait_for_a_word_ends_when_it_is_not_zero, "214")
{
    _Atomic uint32_t word = 0;
    struct quiet_wait request = {.awaited = &word};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    static struct probe idle = PROBE("idle", NULL);
    CFRunLoopSourceRef source = probe_source_add(&idle, 0, loop, kCFRunLoopDefaultMode);

    fake_kernel_install();
    request.now_ns = kernel.monotonic_ns();
    request.deadline_ns = request.now_ns + second_ns;
    EXPECT(!quiet_wait_run(loop, CFSTR("a mode that nobody has made"), &request));
    EXPECT_EQ(fake_kernel_sleeps(), 0);
    EXPECT(!quiet_wait_run(loop, kCFRunLoopDefaultMode, &request));
    EXPECT_EQ(fake_kernel_sleeps(), 1);
    word = 1;
    EXPECT(quiet_wait_run(loop, kCFRunLoopDefaultMode, &request));
    EXPECT_EQ(fake_kernel_sleeps(), 1);
    CFRunLoopSourceInvalidate(source);
}

/* ---- the main dispatch queue ---- */

/* libdispatch's, where it is in the process. */
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern char _dispatch_main_q[] __attribute__((weak));

TEST(a_quiet_wait_leaves_the_main_queue_to_a_whole_run, "178 181 214")
{
    static struct suspended suspended;

    if (!dispatch_async_f) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor */
    begin(&suspended);
    make_ready(&suspended);
    EXPECT(run_for(&suspended, second_ns)); /* the queue has no work */
    dispatch_async_f(_dispatch_main_q, NULL, note_block);
    EXPECT(!run_for(&suspended, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "block");
    end(&suspended);
}
