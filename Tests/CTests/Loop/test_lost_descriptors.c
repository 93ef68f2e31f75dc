/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that close what they have not opened, as daemons do that close all numbers from 3 on: the loop's wait set and eventfd go with
 * the rest, and their numbers to the next file that is opened. And programs that run without standard streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/loop.h"
#include "Loop/loop_trace.h"
#include "Loop/watch.h"
#include "fake_kernel.h"

/* The loop's own. */
static int wait_set(void)
{
    const struct mode *mode = mode_find(LOOP, MODE);

    return mode && mode->watches ? mode->watches->set : -1;
}

static int wake_event(void)
{
    return atomic_load(&LOOP->mailbox->event);
}

/* A run has been through, so that the loop has its descriptors. */
static void begin(struct probe *port, int event)
{
    (void)probe_port_source_add(port, 0, event, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.01, false), kCFRunLoopRunTimedOut);
    REQUIRE(wait_set() >= 0 && wake_event() >= 0);
}

/* The alarm is there only if a wait has ended early, which depends on the machine. */
static void close_all(void)
{
    int alarm = mode_find(LOOP, MODE)->watches->alarm;

    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    if (alarm >= 0) {
        EXPECT_EQ(close(alarm), 0);
    }
}

static void expect_service(struct probe *port, int event)
{
    uint64_t calls = fake_kernel_calls();

    port->calls = 0;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunTimedOut);
    EXPECT(fake_kernel_calls() - calls < 20); /* it sleeps */
    probe_event_post(event);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(port->calls, 1);
}

TEST(a_wait_set_that_the_program_closes_is_made_anew, "F16")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    int event = probe_event();
    begin(&port, event);
    EXPECT_EQ(close(wait_set()), 0);
    expect_service(&port, event);
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    expect_service(&port, event);
    probe_invalidate(&port);
    close(event);
}

TEST(a_descriptor_added_to_a_set_that_is_closed_is_watched, "F16")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    static struct probe other = {.name = "Q", .logging = probe_is_silent};
    int event = probe_event();
    int other_event = probe_event();
    begin(&port, event);
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    (void)probe_port_source_add(&other, 0, other_event, LOOP, MODE);
    expect_service(&port, event);
    expect_service(&other, other_event);
    probe_invalidate(&port);
    probe_invalidate(&other);
    close(event);
    close(other_event);
}

static bool is_null_device(int descriptor)
{
    struct stat null_device;
    struct stat status;

    return stat("/dev/null", &null_device) == 0 && fstat(descriptor, &status) == 0 && status.st_rdev == null_device.st_rdev;
}

TEST(numbers_that_the_program_has_taken_over_are_left_alone, "F16")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    int event = probe_event();
    int taken[2];
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    begin(&port, event);
    taken[0] = wait_set();
    taken[1] = wake_event();
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(dup2(null_device, taken[i]), taken[i]);
    }
    expect_service(&port, event);
    for (int i = 0; i < 2; i++) {
        EXPECT(is_null_device(taken[i]));
        EXPECT(taken[i] != wait_set() && taken[i] != wake_event());
        close(taken[i]);
    }
    probe_invalidate(&port);
    close(event);
    close(null_device);
}

static void signal_and_wake(void *stopper)
{
    CFRunLoopSourceSignal(probe_source_of(stopper));
    CFRunLoopWakeUp(CFRunLoopGetMain());
}

TEST(a_loop_whose_descriptors_were_closed_can_be_woken, "F16")
{
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    static struct probe stopper = {.name = "S", .logging = probe_is_silent, .action = probe_stops_loop};
    struct probe_thread thread;
    int event = probe_event();

    (void)probe_source_add(&stopper, 0, LOOP, MODE);
    begin(&port, event);
    close_all();
    probe_thread_when_waiting(&thread, LOOP, signal_and_wake, &stopper);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 60, false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    probe_invalidate(&port);
    close(event);
}

TEST(a_descriptor_added_to_a_set_whose_number_is_taken_is_watched, "F16")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    static struct probe other = {.name = "Q", .logging = probe_is_silent};
    int event = probe_event();
    int other_event = probe_event();
    int taken;
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    begin(&port, event);
    taken = wait_set();
    EXPECT_EQ(dup2(null_device, taken), taken);
    (void)probe_port_source_add(&other, 0, other_event, LOOP, MODE);
    expect_service(&other, other_event);
    expect_service(&port, event);
    EXPECT(is_null_device(taken) && taken != wait_set());
    probe_invalidate(&port);
    probe_invalidate(&other);
    close(event);
    close(other_event);
    close(taken);
    close(null_device);
}

static int refuse_to_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    (void)set, (void)descriptor, (void)interest, (void)token;
    return -EINVAL;
}

TEST(a_refusal_with_the_error_of_a_lost_set_makes_no_new_one, "F13 F16")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    static struct probe other = {.name = "Q", .logging = probe_is_silent};
    int event = probe_event();
    int other_event = probe_event();
    int set;
    begin(&port, event);
    set = wait_set();
    kernel.set_add = refuse_to_add;
    (void)probe_port_source_add(&other, 0, other_event, LOOP, MODE);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.01, false), kCFRunLoopRunTimedOut);
    }
    EXPECT_EQ(wait_set(), set);
    kernel.set_add = kernel_linux.set_add;
    expect_service(&other, other_event);
    EXPECT_EQ(wait_set(), set);
    probe_invalidate(&port);
    probe_invalidate(&other);
    close(event);
    close(other_event);
}

enum { stream_count = 3 };

TEST(the_librarys_descriptors_stay_off_the_standard_streams, "F17")
{
    clock_start();
    static struct probe port = {.name = "P", .logging = probe_is_silent};
    int event = probe_event();
    int streams[stream_count];
    int alarm;
    for (int i = 0; i < stream_count; i++) {
        streams[i] = fcntl(i, F_DUPFD_CLOEXEC, stream_count);
        close(i);
    }
    begin(&port, event);
    expect_service(&port, event);
    alarm = kernel.alarm_create();
    EXPECT(alarm >= stream_count);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= stream_count);
    for (int i = 0; i < stream_count; i++) {
        EXPECT(!kernel.descriptor_is_open(i));
        dup2(streams[i], i);
        close(streams[i]);
    }
    close(alarm);
    probe_invalidate(&port);
    close(event);
}
