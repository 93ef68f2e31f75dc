/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are only a wait: what they wait for, and what makes a whole run necessary instead. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/brief_run.h"
#include "Loop/descriptor_source.h"
#include "Loop/loop_trace.h"
#include "Loop/main_queue.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Loop/watch.h"
#include "fake_kernel.h"
#include "harness.h"

static const int64_t second_ns = 1000000000;

/* A source on a pipe that rests in the default mode, where the kernel has been told of it. */
struct resting {
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

static void rest(struct resting *resting, bool rests)
{
    EXPECT(descriptor_source_set_resting(resting->source, resting->loop, kCFRunLoopDefaultMode, rests));
}

static void begin(struct resting *resting)
{
    struct descriptor_source_context context = {.release = keep_info, .perform = note_performed};

    fake_kernel_install();
    REQUIRE(pipe(resting->ends) == 0);
    resting->loop = CFRunLoopGetCurrent();
    resting->source = descriptor_source_create(NULL, 0, resting->ends[0], &context);
    descriptor_source_make_lingering(resting->source);
    descriptor_source_set_interest(resting->source, kernel_readable);
    CFRunLoopAddSource(resting->loop, resting->source, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    rest(resting, true);
}

static void end(struct resting *resting)
{
    CFRunLoopSourceInvalidate(resting->source);
    descriptor_source_end_lingering(resting->source, resting->loop, kCFRunLoopDefaultMode);
    CFRelease(resting->source);
    (void)close(resting->ends[0]);
    (void)close(resting->ends[1]);
}

static void make_ready(const struct resting *resting)
{
    REQUIRE(write(resting->ends[1], "x", 1) == 1);
}

static bool run_for(const struct resting *resting, int64_t limit_ns)
{
    int64_t now_ns = kernel.monotonic_ns();
    const struct brief_run brief = {.source = resting->source, .deadline_ns = now_ns + limit_ns, .now_ns = now_ns};

    return run_briefly(resting->loop, kCFRunLoopDefaultMode, &brief);
}

TEST(a_brief_run_finds_its_source_ready_and_leaves_it_to_the_caller, "214")
{
    struct resting resting;
    char byte;

    begin(&resting);
    EXPECT(!run_for(&resting, second_ns)); /* the time is up */
    EXPECT_EQ(clock_ms(), 1000);
    make_ready(&resting);
    EXPECT(run_for(&resting, second_ns));
    EXPECT(run_for(&resting, second_ns)); /* as long as it stays ready */
    REQUIRE(read(resting.ends[0], &byte, 1) == 1);
    EXPECT(!run_for(&resting, second_ns));
    make_ready(&resting);
    /* To a run that is not for it, it is not there. */
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&probe_trace, "");
    rest(&resting, false);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "performed");
    end(&resting);
}

TEST(a_brief_run_needs_a_source_that_rests_in_the_mode, "214")
{
    struct resting resting;

    begin(&resting);
    make_ready(&resting);
    rest(&resting, false);
    EXPECT(!run_for(&resting, second_ns));
    rest(&resting, true);
    EXPECT(run_for(&resting, second_ns));
    CFRunLoopRemoveSource(resting.loop, resting.source, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&resting, second_ns));
    end(&resting);
}

static void note_block(void *info)
{
    (void)info;
    trace_add(&probe_trace, "block");
}

/* Each of these would be seen or performed in a whole run; a brief one calls nothing and does not wait. */
TEST(a_brief_run_gives_way_to_whatever_a_pass_would_do, "29 49 67 110 163 214")
{
    struct resting resting;
    static struct probe observer = PROBE("observer", NULL);
    static struct probe source = PROBE("source", NULL);
    static struct probe due = PROBE("due", NULL);
    static struct probe later = PROBE("later", NULL);
    CFRunLoopSourceRef added;

    begin(&resting);
    make_ready(&resting);
    (void)probe_observer_add(&observer, kCFRunLoopAfterWaiting, 0, resting.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&resting, second_ns));
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)observer.item);
    EXPECT(run_for(&resting, second_ns));

    added = probe_source_add(&source, 0, resting.loop, kCFRunLoopDefaultMode);
    EXPECT(run_for(&resting, second_ns)); /* it is not signalled */
    CFRunLoopSourceSignal(added);
    EXPECT(!run_for(&resting, second_ns)); /* its signal is still in the queue */
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "source");

    CRLRunLoopPerformFunction(resting.loop, kCFRunLoopDefaultMode, note_block, NULL, NULL);
    EXPECT(!run_for(&resting, second_ns));
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    EXPECT_TRACE(&probe_trace, "source block");
    trace_clear(&probe_trace);

    (void)probe_timer_add(&later, 0.5, 0, resting.loop, kCFRunLoopDefaultMode);
    EXPECT(run_for(&resting, second_ns)); /* it is not due */
    (void)probe_timer_add(&due, 0, 0, resting.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&resting, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    EXPECT_TRACE(&probe_trace, "due");
    EXPECT(run_for(&resting, second_ns));
    CFRunLoopSourceInvalidate(added);
    end(&resting);
}

TEST(a_brief_run_waits_no_longer_than_the_next_timer, "110 118 214")
{
    struct resting resting;
    static struct probe timer = PROBE("timer", NULL);

    begin(&resting);
    (void)probe_timer_add(&timer, 2, 0, resting.loop, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&resting, 10 * second_ns));
    EXPECT_EQ(clock_ms(), 2000);
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&probe_trace, "timer");
    end(&resting);
}

/* Another descriptor of the mode that is ready has its turn in a whole run, and nothing of either report is lost. */
TEST(a_brief_run_leaves_other_reports_to_a_whole_run, "35 214")
{
    struct resting resting;
    int ends[2];
    struct descriptor_source_context context = {.info = ends, .release = keep_info, .perform = note_performed};
    CFRunLoopSourceRef other;

    begin(&resting);
    REQUIRE(pipe(ends) == 0);
    other = descriptor_source_create(NULL, 0, ends[0], &context);
    descriptor_source_set_interest(other, kernel_readable);
    CFRunLoopAddSource(resting.loop, other, kCFRunLoopDefaultMode);
    EXPECT(!run_for(&resting, second_ns)); /* the kernel has not been told of the other one yet */
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    rest(&resting, false);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    rest(&resting, true);
    make_ready(&resting);
    EXPECT(run_for(&resting, second_ns));
    REQUIRE(write(ends[1], "x", 1) == 1);
    EXPECT(!run_for(&resting, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "performed");
    CFRunLoopSourceInvalidate(other);
    CFRelease(other);
    (void)close(ends[0]);
    (void)close(ends[1]);
    end(&resting);
}

/* Inside a run that has not waited yet, a wake-up that a brief run takes is not lost for that one (64). */
static void run_inside(struct probe *probe)
{
    if (probe->activity == kCFRunLoopBeforeWaiting && probe->calls == 1) {
        CFRunLoopWakeUp(CFRunLoopGetCurrent());
        EXPECT(!run_for(probe->context, second_ns));
    }
}

TEST(a_brief_run_inside_another_gives_its_wake_up_back, "64")
{
    struct resting resting;
    static struct probe observer = PROBE("W", run_inside);
    static struct probe idle = PROBE("idle", NULL);
    CFStringRef mode = CFSTR("outer mode");
    CFRunLoopSourceRef source;

    begin(&resting);
    observer.context = &resting;
    source = probe_source_add(&idle, 0, resting.loop, mode);
    (void)probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, resting.loop, mode);
    EXPECT_EQ(CFRunLoopRunInMode(mode, 60, true), kCFRunLoopRunTimedOut);
    EXPECT_TRACE(&probe_trace, "W W"); /* the first wait ended at once */
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)observer.item);
    CFRunLoopSourceInvalidate(source);
    end(&resting);
}

TEST(a_brief_run_for_a_word_ends_when_it_is_not_zero, "214")
{
    _Atomic uint32_t word = 0;
    struct brief_run brief = {.awaited = &word};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    static struct probe idle = PROBE("idle", NULL);
    CFRunLoopSourceRef source = probe_source_add(&idle, 0, loop, kCFRunLoopDefaultMode);

    fake_kernel_install();
    brief.now_ns = kernel.monotonic_ns();
    brief.deadline_ns = brief.now_ns + second_ns;
    EXPECT(!run_briefly(loop, CFSTR("a mode that nobody has made"), &brief));
    EXPECT_EQ(fake_kernel_sleeps(), 0);
    EXPECT(!run_briefly(loop, kCFRunLoopDefaultMode, &brief));
    EXPECT_EQ(fake_kernel_sleeps(), 1);
    word = 1;
    EXPECT(run_briefly(loop, kCFRunLoopDefaultMode, &brief));
    EXPECT_EQ(fake_kernel_sleeps(), 1);
    CFRunLoopSourceInvalidate(source);
}

/* ---- the main dispatch queue ---- */

/* libdispatch's, where it is in the process. */
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern char _dispatch_main_q[] __attribute__((weak));

TEST(a_brief_run_leaves_the_main_queue_to_a_whole_run, "178 181 214")
{
    static struct resting resting;

    if (!dispatch_async_f) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor */
    begin(&resting);
    make_ready(&resting);
    EXPECT(run_for(&resting, second_ns)); /* the queue has no work */
    dispatch_async_f(_dispatch_main_q, NULL, note_block);
    EXPECT(!run_for(&resting, second_ns));
    EXPECT_TRACE(&probe_trace, "");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&probe_trace, "block");
    end(&resting);
}

/* ---- limits that are seldom reached ---- */

static int64_t waited_until_ns; /* what the latest wait was told */
static int64_t alarm_at_ns;
static int alarms_made;
static int alarms_set;
static int (*wait_in_fake)(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

static int note_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    waited_until_ns = deadline_ns;
    return wait_in_fake(set, events, capacity, deadline_ns);
}

/* A counter stands for the alarm: the test makes it go off. */
static int make_alarm(void)
{
    alarms_made++;
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static int make_no_alarm(void)
{
    alarms_made++;
    return -EMFILE;
}

static int note_alarm(int alarm, int64_t deadline_ns)
{
    (void)alarm;
    alarms_set++;
    alarm_at_ns = deadline_ns;
    return 0;
}

static void begin_with_alarm(struct resting *resting, int (*make)(void))
{
    begin(resting);
    wait_in_fake = kernel.set_wait;
    kernel.set_wait = note_wait;
    kernel.alarm_create = make;
    kernel.alarm_set = note_alarm;
    make_ready(resting);
}

static void run_often(const struct resting *resting, int times, int64_t limit_ns)
{
    for (int i = 0; i < times; i++) {
        EXPECT(run_for(resting, limit_ns));
        EXPECT(waited_until_ns != kernel_never);
    }
}

TEST(a_limit_that_is_never_reached_is_told_once, "214 228")
{
    struct resting resting;
    int64_t first_ns;
    char byte;

    begin_with_alarm(&resting, make_alarm);
    first_ns = kernel.monotonic_ns();
    run_often(&resting, watch_alarm_after, 10 * second_ns);
    EXPECT_EQ(alarms_set, 1);
    EXPECT_EQ(alarm_at_ns, first_ns + 10 * second_ns);
    fake_kernel_advance(second_ns);
    for (int i = 0; i < 2 * watch_alarm_after; i++) {
        EXPECT(run_for(&resting, 10 * second_ns));
        EXPECT_EQ(waited_until_ns, kernel_never);
    }
    EXPECT_EQ(alarms_set, 1);
    run_often(&resting, 3, 8 * second_ns); /* an earlier limit is told */
    /* The alarm goes off before the limit: the run is left to others, who are told the limit again. */
    REQUIRE(read(resting.ends[0], &byte, 1) == 1);
    EXPECT_EQ(eventfd_write(resting.loop->default_mode->watches->alarm, 1), 0);
    EXPECT(!run_for(&resting, 10 * second_ns));
    EXPECT_EQ(waited_until_ns, kernel_never);
    EXPECT(!run_for(&resting, 10 * second_ns));
    EXPECT(waited_until_ns != kernel_never);
    EXPECT_EQ(clock_ms(), 11000);
    make_ready(&resting);
    run_often(&resting, watch_alarm_after, 10 * second_ns);
    EXPECT_EQ(alarms_made, 1);
    EXPECT_EQ(alarms_set, 2);
    EXPECT(run_for(&resting, 10 * second_ns));
    EXPECT_EQ(waited_until_ns, kernel_never);
    end(&resting);
}

TEST(limits_that_are_near_or_cannot_have_an_alarm_are_told_each_time, "214 228")
{
    struct resting resting;

    begin_with_alarm(&resting, make_no_alarm);
    run_often(&resting, 2 * watch_alarm_after, second_ns / 2);
    EXPECT_EQ(alarms_made, 0);
    run_often(&resting, 3 * watch_alarm_after, 10 * second_ns);
    EXPECT_EQ(alarms_made, 3);
    EXPECT_EQ(alarms_set, 0);
    end(&resting);
}
