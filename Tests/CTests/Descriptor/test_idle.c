/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop with many timers and descriptors and nothing to do sleeps until its time limit, however long that is. The tests count the ends of
 * sleeps before the limit, the sleeps that the kernel saw, and the passes.
 *
 * The count leaves out the last thousandth of the time, or the last two hundredth where the thread is niced. The loop asks for the end of a
 * wait that much early, because the kernel may end it that much late. It sleeps the rest in a second wait.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "harness.h"

#define MODE CFSTR("idle")

enum { timer_count = 1000, pair_count = 500, descriptor_count = 2 * pair_count };

static const CFTimeInterval far_s = 3600;

static int64_t end_ns; /* of the time that is counted */
static int wake_ups;
static int passes;

static void note_end(void)
{
    wake_ups += kernel_linux.monotonic_ns() < end_ns ? 1 : 0;
}

static int counted_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count = kernel_linux.set_wait(set, events, capacity, deadline_ns);

    note_end();
    return count;
}

static int counted_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    int result = kernel_linux.futex_wait(word, expected, deadline_ns);

    note_end();
    return result;
}

static void count_pass(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    (void)info;
    passes++;
}

static void never_fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    FAIL("a timer fired an hour early");
}

static void never_ready(CFFileDescriptorRef object, CFOptionFlags reason, void *info)
{
    (void)object;
    (void)reason;
    (void)info;
    FAIL("a descriptor was ready with nothing in it");
}

/* One-shot and repeating, with and without tolerance, at dates that are not the same. */
static void add_timers(CFRunLoopTimerRef timers[timer_count])
{
    CFAbsoluteTime now = CFAbsoluteTimeGetCurrent();

    for (int i = 0; i < timer_count; i++) {
        timers[i] = CFRunLoopTimerCreate(NULL, now + far_s + i % 97, i % 2 ? 0 : 60 + i, 0, 0, never_fire, NULL);
        CFRunLoopTimerSetTolerance(timers[i], i % 3 ? 0 : 5);
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), timers[i], MODE);
    }
}

static void add_descriptors(CFFileDescriptorRef objects[descriptor_count])
{
    for (int i = 0; i < descriptor_count; i += 2) {
        int ends[2];

        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        for (int j = 0; j < 2; j++) {
            CFRunLoopSourceRef source;

            objects[i + j] = CFFileDescriptorCreate(NULL, ends[j], true, never_ready, NULL);
            CFFileDescriptorEnableCallBacks(objects[i + j], kCFFileDescriptorReadCallBack);
            source = CFFileDescriptorCreateRunLoopSource(NULL, objects[i + j], 0);
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
            CFRelease(source);
        }
    }
}

static CFTimeInterval idle_seconds(void)
{
    return test_is_soak() ? 60 : 0.5;
}

static double processor_seconds(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Runs the loop, which has to sleep, and prints the cost. */
static void expect_sleep(const char *what)
{
    CFRunLoopObserverRef observer =
        CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting | kCFRunLoopAfterWaiting, true, 0, count_pass, NULL);
    struct rusage before, after;
    double used;

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut); /* the first run sets up what later runs only use */
    kernel.set_wait = counted_set_wait;
    kernel.futex_wait = counted_futex_wait;
    wake_ups = passes = 0;
    end_ns = kernel_linux.monotonic_ns() + (int64_t)(idle_seconds() * (kernel_linux.is_niced() ? 0.99 : 0.998) * 1e9);
    (void)getrusage(RUSAGE_THREAD, &before);
    used = processor_seconds();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, idle_seconds(), false), kCFRunLoopRunTimedOut);
    used = processor_seconds() - used;
    (void)getrusage(RUSAGE_THREAD, &after);
    kernel.set_wait = kernel_linux.set_wait;
    kernel.futex_wait = kernel_linux.futex_wait;
    EXPECT_EQ(wake_ups, 0);
    EXPECT_EQ(passes, 2);
    EXPECT(!test_is_soak() || CFRunLoopGetCurrent()->resume >= 0); /* a sleep of 60 s notices that the system resumes */
    EXPECT(after.ru_nvcsw - before.ru_nvcsw <= 3 || test_is_instrumented());
    EXPECT(used < 0.01 || test_is_instrumented());
    printf("%s, %g s: %d wake-ups; the kernel saw %ld sleeps; %.3f ms of a processor\n", what, idle_seconds(), wake_ups,
           after.ru_nvcsw - before.ru_nvcsw, used * 1e3);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
}

static void remove_timers(CFRunLoopTimerRef timers[timer_count])
{
    for (int i = 0; i < timer_count; i++) {
        CFRunLoopTimerInvalidate(timers[i]);
        CFRelease(timers[i]);
    }
}

TEST(stress_an_idle_loop_of_a_thousand_timers_and_descriptors_is_not_woken, "1202 F14 T8")
{
    static CFRunLoopTimerRef timers[timer_count];
    static CFFileDescriptorRef objects[descriptor_count];

    test_need_descriptors(descriptor_count + 100);
    add_timers(timers);
    add_descriptors(objects);
    expect_sleep("1000 timers and 1000 descriptors");
    for (int i = 0; i < descriptor_count; i++) {
        CFFileDescriptorInvalidate(objects[i]);
        CFRelease(objects[i]);
    }
    remove_timers(timers);
}

TEST(stress_an_idle_loop_of_a_thousand_timers_is_not_woken, "1202 T8")
{
    static CFRunLoopTimerRef timers[timer_count];

    add_timers(timers);
    expect_sleep("1000 timers");
    remove_timers(timers);
}
