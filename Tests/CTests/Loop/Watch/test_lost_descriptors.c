/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that close descriptors they have not opened, as daemons do that close all numbers from 3 on. They close the loop's wait set and
 * eventfd, too, and the next files that are opened get those numbers. Also programs that run without standard streams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/Run/hosting.h"
#include "Loop/Core/loop.h"
#include "Loop/loop_trace.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Watch/watch.h"
#include "fake_kernel.h"

/* Most tests have one source on a descriptor, and some a second one. */
static struct probe port = {.name = "P", .logging = probe_is_silent};
static struct probe other = {.name = "Q", .logging = probe_is_silent};
static int event = -1;
static int other_event = -1;

/* The loop's own. */
static int wait_set(void)
{
    const struct mode *mode = mode_find(LOOP, MODE);

    return mode && mode->watches ? mode->watches->set : -1;
}

static int wake_event(void)
{
    return atomic_load(&LOOP->waker->event);
}

/* Called before the loop has descriptors, so that files made after it has lost them get their numbers. */
static void make_events(void)
{
    event = probe_event();
    other_event = probe_event();
}

static void add_port(void)
{
    if (event < 0) {
        make_events();
    }
    (void)probe_port_source_add(&port, 0, event, LOOP, MODE);
}

static void add_other(CFStringRef mode)
{
    (void)probe_port_source_add(&other, 0, other_event, LOOP, mode);
}

/* Runs the loop once, so that it has its descriptors. */
static void begin(void)
{
    add_port();
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

static void finish(void)
{
    probe_invalidate(&port);
    close(event);
    if (probe_source_of(&other)) {
        probe_invalidate(&other);
    }
    close(other_event);
    event = other_event = -1;
}

static void expect_service_of(struct probe *served, int served_event, CFStringRef mode)
{
    uint64_t calls = fake_kernel_calls();

    served->calls = 0;
    EXPECT_EQ(CFRunLoopRunInMode(mode, 1, false), kCFRunLoopRunTimedOut);
    EXPECT(fake_kernel_calls() - calls < 20); /* it sleeps */
    probe_event_post(served_event);
    EXPECT_EQ(CFRunLoopRunInMode(mode, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(served->calls, 1);
}

static void expect_service(void)
{
    expect_service_of(&port, event, MODE);
}

TEST(a_wait_set_that_the_program_closes_is_made_anew, "F16")
{
    clock_start();
    begin();
    EXPECT_EQ(close(wait_set()), 0);
    expect_service();
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    expect_service();
    finish();
}

TEST(a_descriptor_added_to_a_set_that_is_closed_is_watched, "F16")
{
    clock_start();
    begin();
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    add_other(MODE);
    expect_service();
    expect_service_of(&other, other_event, MODE);
    finish();
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
    int taken[2];
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    begin();
    taken[0] = wait_set();
    taken[1] = wake_event();
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(dup2(null_device, taken[i]), taken[i]);
    }
    expect_service();
    for (int i = 0; i < 2; i++) {
        EXPECT(is_null_device(taken[i]));
        EXPECT(taken[i] != wait_set() && taken[i] != wake_event());
        close(taken[i]);
    }
    finish();
    close(null_device);
}

static void signal_and_wake(void *stopper)
{
    CFRunLoopSourceSignal(probe_source_of(stopper));
    CFRunLoopWakeUp(CFRunLoopGetMain());
}

TEST(a_loop_whose_descriptors_were_closed_can_be_woken, "F16")
{
    static struct probe stopper = {.name = "S", .logging = probe_is_silent, .action = probe_stops_loop};
    struct probe_thread thread;

    (void)probe_source_add(&stopper, 0, LOOP, MODE);
    begin();
    close_all();
    probe_thread_when_waiting(&thread, LOOP, signal_and_wake, &stopper);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 60, false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    finish();
}

TEST(a_descriptor_added_to_a_set_whose_number_is_taken_is_watched, "F16")
{
    clock_start();
    int taken;
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    begin();
    taken = wait_set();
    EXPECT_EQ(dup2(null_device, taken), taken);
    add_other(MODE);
    expect_service_of(&other, other_event, MODE);
    expect_service();
    EXPECT(is_null_device(taken) && taken != wait_set());
    finish();
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
    int set;
    begin();
    set = wait_set();
    kernel.set_add = refuse_to_add;
    add_other(MODE);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.01, false), kCFRunLoopRunTimedOut);
    }
    EXPECT_EQ(wait_set(), set);
    kernel.set_add = kernel_linux.set_add;
    expect_service_of(&other, other_event, MODE);
    EXPECT_EQ(wait_set(), set);
    finish();
}

/* The first files that the program opens then are likely to get the numbers. */
static void expect_service_by_number(int (*number_of)(void))
{
    int number;

    clock_start();
    begin();
    number = number_of();
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    EXPECT_EQ(dup2(other_event, number), number);
    close(other_event);
    other_event = number;
    add_other(MODE);
    expect_service_of(&other, other_event, MODE);
    expect_service();
    EXPECT(wait_set() != number && wake_event() != number);
    finish();
}

TEST(a_descriptor_with_the_number_of_a_lost_set_is_watched, "F16")
{
    expect_service_by_number(wait_set);
}

TEST(a_counter_with_the_number_of_a_lost_eventfd_is_watched, "F16")
{
    expect_service_by_number(wake_event);
}

/* ---- an alarm that its set has left behind ---- */

/* With a timer slack, which the loop is made with, the end of a wait is ended by an alarm. */
static void start_with_slack(void)
{
    clock_start();
    fake_kernel_set_slack(50000);
}

static void wait_out(void)
{
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.00001, false), kCFRunLoopRunTimedOut);
    REQUIRE(mode_find(LOOP, MODE)->watches->alarm >= 0);
}

static int (*set_wait_of_fake)(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

/* A wait that fails takes a moment. */
static int failing_takes_time(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count = set_wait_of_fake(set, events, capacity, deadline_ns);

    if (count < 0) {
        fake_kernel_advance(1000);
    }
    return count;
}

TEST(a_set_that_is_closed_before_a_wait_with_an_alarm_is_made_anew, "F16")
{
    start_with_slack();
    begin();
    wait_out();
    set_wait_of_fake = kernel.set_wait;
    kernel.set_wait = failing_takes_time;
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(close(wake_event()), 0);
    wait_out();
    expect_service();
    finish();
}

static int descriptors_open(void)
{
    enum { first_numbers = 256 };
    int count = 0;

    for (int i = 0; i < first_numbers; i++) {
        count += kernel.descriptor_is_open(i) ? 1 : 0;
    }
    return count;
}

TEST(an_alarm_goes_with_its_set, "F16")
{
    start_with_slack();
    int count;
    begin();
    wait_out();
    count = descriptors_open();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(close(wait_set()), 0);
        wait_out();
        expect_service();
        EXPECT_EQ(descriptors_open(), count);
    }
    (void)CRLRunLoopGetDescriptor(LOOP);
    count = descriptors_open();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(close(LOOP->hosting->wait.descriptor), 0);
        EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
        EXPECT_EQ(descriptors_open(), count);
    }
    finish();
}

TEST(a_timer_of_the_programs_with_an_alarms_number_is_left_alone, "F16")
{
    start_with_slack();
    const struct itimerspec in_an_hour = {{0, 0}, {3600, 0}};
    struct itimerspec left;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int taken;
    begin();
    wait_out();
    taken = mode_find(LOOP, MODE)->watches->alarm;
    EXPECT_EQ(timerfd_settime(timer, 0, &in_an_hour, NULL), 0);
    EXPECT_EQ(dup2(timer, taken), taken);
    EXPECT_EQ(close(wait_set()), 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, false), kCFRunLoopRunTimedOut);
    wait_out();
    expect_service();
    EXPECT(kernel.descriptor_is_open(taken) && taken != mode_find(LOOP, MODE)->watches->alarm);
    EXPECT(timerfd_gettime(timer, &left) == 0 && left.it_value.tv_sec > 3000);
    finish();
    close(taken);
    close(timer);
}

/* ---- ends of threads ---- */

static void runs_and_loses_its_descriptors(void *info)
{
    int *taken = info;
    static struct probe idle = {.name = "I", .logging = probe_is_silent};

    (void)probe_port_source_add(&idle, 0, event, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.01, false), kCFRunLoopRunTimedOut);
    taken[0] = wait_set();
    taken[1] = wake_event();
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(dup2(taken[2], taken[i]), taken[i]);
    }
}

TEST(a_thread_closes_no_number_that_is_the_programs, "172 F16")
{
    int taken[3] = {-1, -1, open("/dev/null", O_RDWR | O_CLOEXEC)};
    make_events();
    probe_on_thread(runs_and_loses_its_descriptors, taken);
    for (int i = 0; i < 3; i++) {
        EXPECT(is_null_device(taken[i]));
        close(taken[i]);
    }
    close(event);
    close(other_event);
}

/* ---- several sets ---- */

/* The first number that a new set gets is that of a set which went with it, and is not looked at yet. */
TEST(modes_whose_sets_were_closed_share_no_new_one, "F16")
{
    clock_start();
    begin();
    add_other(CFSTR("other"));
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("other"), 0.01, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(close(mode_find(LOOP, CFSTR("other"))->watches->set), 0);
    close_all();
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("other"), 0.01, false), kCFRunLoopRunTimedOut);
    expect_service();
    expect_service_of(&other, other_event, CFSTR("other"));
    finish();
}

/* ---- the main dispatch queue ---- */

/* libdispatch's, where it is in the process. */
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern char _dispatch_main_q[] __attribute__((weak));

static void stop_loop(void *loop)
{
    CFRunLoopStop(loop);
}

static void post_to_the_main_queue(void *loop)
{
    dispatch_async_f(_dispatch_main_q, loop, stop_loop);
}

TEST(a_set_that_is_made_anew_in_a_wait_has_the_main_queue, "178 F16")
{
    struct probe_thread thread;
    CFStringRef mode = kCFRunLoopDefaultMode;
    if (!dispatch_async_f) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor */
    make_events();
    (void)probe_port_source_add(&port, 0, event, LOOP, mode);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(mode, 0.01, false), kCFRunLoopRunTimedOut);
        EXPECT(mode_find(LOOP, mode)->watches->has_main_queue);
        EXPECT_EQ(close(mode_find(LOOP, mode)->watches->set), 0);
        probe_thread_when_waiting(&thread, LOOP, post_to_the_main_queue, LOOP);
        EXPECT_EQ(CFRunLoopRunInMode(mode, test_patience_s(), false), kCFRunLoopRunStopped);
        probe_thread_join(&thread);
    }
    finish();
}

/* ---- a host's ---- */

enum { own_max = 5 };

/* The loop's descriptors; those of the host come first. */
static int own_descriptors(int *ret_own)
{
    const struct watch_set *watches = mode_find(LOOP, MODE)->watches;
    int count = 0;

    ret_own[count++] = LOOP->hosting->wait.descriptor;
    ret_own[count++] = LOOP->hosting->wait.alarm;
    ret_own[count++] = wake_event();
    if (watches && watches->set >= 0) {
        ret_own[count++] = watches->set;
    }
    if (watches && watches->alarm >= 0) {
        ret_own[count++] = watches->alarm;
    }
    return count;
}

static void close_own(void)
{
    int own[own_max];
    int count = own_descriptors(own);

    for (int i = 0; i < count; i++) {
        EXPECT_EQ(close(own[i]), 0);
    }
}

static bool is_readable(int descriptor)
{
    return (kernel.descriptor_ready(descriptor, kernel_readable) & (kernel_readable | kernel_failed)) == kernel_readable;
}

/* A host that asks for the descriptor each time. How often it was woken before nothing was left to do. */
static int passes_until_quiet(void)
{
    enum { many = 20 };
    int passes = 0;

    while (passes < many) {
        EXPECT(CRLRunLoopPrepare(LOOP, MODE));
        if (!is_readable(CRLRunLoopGetDescriptor(LOOP))) {
            break;
        }
        passes++;
        EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    }
    EXPECT(passes < many);
    return passes;
}

/* All that ends a wait ends this one; asleep before, and afterwards. */
static void expect_hosted_service(void)
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    int calls = port.calls;

    (void)passes_until_quiet();
    probe_event_post(event);
    EXPECT_EQ(passes_until_quiet(), 1);
    EXPECT_EQ(port.calls, calls + 1);
    CFRunLoopWakeUp(LOOP);
    EXPECT_EQ(passes_until_quiet(), 1);
    timer.calls = 0;
    probe_timer_add(&timer, 1, 0, LOOP, MODE);
    (void)passes_until_quiet();
    EXPECT_EQ(timer.calls, 0);
    fake_kernel_advance(2000000000);
    EXPECT_EQ(passes_until_quiet(), 1);
    EXPECT_EQ(timer.calls, 1);
}

static void begin_hosting(void)
{
    add_port();
    REQUIRE(CRLRunLoopGetDescriptor(LOOP) >= 0);
    expect_hosted_service();
}

static void end_hosting(void)
{
    CRLRunLoopLeave(LOOP);
    finish();
}

TEST(a_host_whose_descriptor_was_closed_gets_another_for_the_asking, "F16")
{
    clock_start();
    begin_hosting();
    close_own(); /* in the middle of a pass, where the host would wait */
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT(is_readable(CRLRunLoopGetDescriptor(LOOP))); /* the report that got lost may have been for the host, so the host is woken */
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 0);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    expect_hosted_service();
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    close_own(); /* between two passes */
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    expect_hosted_service();
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    close_own(); /* the pass finds out first */
    expect_hosted_service();
    close_own();
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0); /* the other half of the pass */
    expect_hosted_service();
    CRLRunLoopLeave(LOOP);
    close_own(); /* outside of a run */
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    expect_hosted_service();
    end_hosting();
}

TEST(a_wake_up_is_not_lost_with_the_descriptors_of_a_host, "65 F16")
{
    clock_start();
    static struct probe signalled = {.name = "S", .logging = probe_is_silent};
    (void)probe_source_add(&signalled, 0, LOOP, MODE);
    begin_hosting();
    close_own();
    probe_event_post(event);
    CFRunLoopSourceSignal(probe_source_of(&signalled));
    CFRunLoopWakeUp(LOOP);
    port.calls = 0;
    EXPECT(is_readable(CRLRunLoopGetDescriptor(LOOP)));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    (void)passes_until_quiet();
    EXPECT_EQ(port.calls, 1);
    EXPECT_EQ(signalled.calls, 1);
    end_hosting();
}

TEST(a_host_of_a_mode_without_descriptors_gets_its_own_anew, "F16")
{
    clock_start();
    static struct probe signalled = {.name = "S", .logging = probe_is_silent};
    (void)probe_source_add(&signalled, 0, LOOP, MODE);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT_EQ(passes_until_quiet(), 0);
    for (int i = 0; i < 2; i++) {
        close_own();
        if (i == 1) {
            EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
        }
        (void)passes_until_quiet();
        CFRunLoopWakeUp(LOOP);
        EXPECT_EQ(passes_until_quiet(), 1);
    }
    CRLRunLoopLeave(LOOP);
}

/* A pipe's end with something to read, and its other end, under numbers that were the loop's. */
static void expect_untouched(const int *taken, int count)
{
    for (int i = 0; i < count; i++) {
        EXPECT(is_readable(taken[i]));
    }
}

enum { piped_bytes = 64 };

TEST(numbers_of_a_host_that_the_program_has_taken_over_are_left_alone, "F16")
{
    clock_start();
    char bytes[2 * piped_bytes] = "";
    for (int turn = 0; turn < 3; turn++) {
        int own[own_max];
        int ends[2];
        int count;
        begin_hosting();
        if (turn == 2) {
            EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
        }
        count = own_descriptors(own);
        REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
        EXPECT_EQ(write(ends[1], bytes, piped_bytes), piped_bytes);
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(dup2(ends[0], own[i]), own[i]);
        }
        if (turn == 0) {
            EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
        }
        CFRunLoopWakeUp(LOOP);
        EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
        expect_hosted_service();
        end_hosting();
        expect_untouched(own, count);
        EXPECT_EQ(read(ends[0], bytes, sizeof bytes), piped_bytes);
        for (int i = 0; i < count; i++) {
            EXPECT_EQ(close(own[i]), 0);
        }
        close(ends[0]);
        close(ends[1]);
    }
}

static void hosts_and_loses_its_descriptors(void *taken)
{
    int own[own_max];
    int count;
    static struct probe signalled = {.name = "S", .logging = probe_is_silent};

    (void)probe_source_add(&signalled, 0, LOOP, MODE);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    count = own_descriptors(own);
    EXPECT_EQ(count, 3);
    for (int i = 0; i < 2; i++) { /* the host's set and its alarm */
        ((int *)taken)[i] = own[i];
        EXPECT(dup2(((int *)taken)[2], own[i]) == own[i]);
    }
}

TEST(a_thread_of_a_host_closes_no_number_that_is_the_programs, "172 F16")
{
    int taken[3] = {-1, -1, open("/dev/null", O_RDWR | O_CLOEXEC)};
    probe_on_thread(hosts_and_loses_its_descriptors, taken);
    for (int i = 0; i < 3; i++) {
        EXPECT(is_null_device(taken[i]));
        close(taken[i]);
    }
}

enum { stream_count = 3 };

TEST(the_librarys_descriptors_stay_off_the_standard_streams, "F17")
{
    clock_start();
    int streams[stream_count];
    int alarm;
    make_events();
    for (int i = 0; i < stream_count; i++) {
        streams[i] = fcntl(i, F_DUPFD_CLOEXEC, stream_count);
        close(i);
    }
    begin();
    expect_service();
    alarm = kernel.alarm_create();
    EXPECT(alarm >= stream_count);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= stream_count);
    for (int i = 0; i < stream_count; i++) {
        EXPECT(!kernel.descriptor_is_open(i));
        dup2(streams[i], i);
        close(streams[i]);
    }
    close(alarm);
    finish();
}
