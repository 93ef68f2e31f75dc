/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop hosted by another: the same scenarios are run by CFRunLoopRunInMode, by bare epoll hosts of three kinds and with a companion, and
 * the traces compared; then what each call of CRLRunLoop.h promises by itself.
 *
 * A scenario sets up a fresh loop on a thread of its own, and ends its run by stopping it or by emptying its mode.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "Kernel/kernel.h"
#include "Loop/fake_companion.h"
#include "Loop/loop_trace.h"
#include "Loop/Watch/watch.h"
#include "older_glibc.h"

static const CFStringRef other_mode = CFSTR("other");

/* ---- hosts ---- */

enum host {
    host_none, /* CFRunLoopRunInMode */
    host_of_descriptor, /* waits for the descriptor alone */
    host_of_both, /* for the descriptor or the timeout */
    host_is_companion, /* CFRunLoopRunInMode, whose sleeps a companion does */
    host_that_polls, /* looks all the time, never sleeps: many dispatches find nothing */
    host_count
};

/* Waits as the host would. */
static void host_waits(enum host host, int set, CFRunLoopRef loop)
{
    struct epoll_event event;
    int64_t left_ns = CRLRunLoopGetTimeout(loop);
    int left_ms = left_ns < 0 ? -1 : (int)((left_ns + 999999) / 1000000);
    int longest_ms = (int)(test_patience_s() * 1000);

    EXPECT(left_ns >= -1);
    if (host != host_of_both || left_ms < 0) {
        left_ms = longest_ms;
    }
    if (host == host_that_polls) {
        left_ms = 0;
    }
    EXPECT(epoll_wait(set, &event, 1, left_ms) >= 0 || errno == EINTR);
}

static CFRunLoopRunResult run_hosted(enum host host, CFStringRef mode)
{
    CFRunLoopRef loop = LOOP;
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};

    REQUIRE(epoll_ctl(set, EPOLL_CTL_ADD, CRLRunLoopGetDescriptor(loop), &event) == 0);
    while (!result && CRLRunLoopPrepare(loop, mode)) {
        host_waits(host, set, loop);
        result = CRLRunLoopDispatch(loop);
    }
    if (!result) {
        CFStringRef current = CFRunLoopCopyCurrentMode(loop);

        result = current ? kCFRunLoopRunStopped : kCFRunLoopRunFinished; /* stopped by Entry, or never begun */
        if (current) {
            CFRelease(current);
        }
    }
    CRLRunLoopLeave(loop);
    close(set);
    return result;
}

struct scenario {
    const char *name;
    void (*set_up)(void);
    bool has_more_passes; /* if the host looks all the time */
};

struct performance {
    const struct scenario *scenario;
    enum host host;
};

static struct probe_thread helper;
static bool has_helper;

static void perform(void *context)
{
    const struct performance *performance = context;
    CFRunLoopRunResult result;

    has_helper = false;
    performance->scenario->set_up();
    if (performance->host == host_is_companion) {
        fake_companion_begin(true);
        result = CFRunLoopRunInMode(MODE, 1e10, false);
        fake_companion_end();
    } else {
        result = performance->host == host_none ? CFRunLoopRunInMode(MODE, 1e10, false) : run_hosted(performance->host, MODE);
    }
    probe_note("=%s", probe_result_name(result));
    if (has_helper) {
        probe_thread_join(&helper);
    }
    EXPECT(CFRunLoopCopyCurrentMode(LOOP) == NULL);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
}

/* Runs the function on another thread once this loop sleeps. */
static void help(void (*function)(void *context))
{
    has_helper = true;
    probe_thread_when_waiting(&helper, LOOP, function, LOOP);
}

/* ---- scenarios ---- */

static struct probe a;
static struct probe b;
static struct probe c;
static struct probe observer;
static int event_descriptor = -1;

/* Everything starts anew, with an observer of all activities and a source that keeps the mode. */
static void begin(void)
{
    static struct probe idle;

    a = (struct probe)PROBE("a", NULL);
    b = (struct probe)PROBE("b", NULL);
    c = (struct probe)PROBE("c", NULL);
    observer = (struct probe)PROBE("o", NULL);
    idle = (struct probe){.name = "idle", .logging = probe_is_silent};
    probe_activities_add(LOOP, MODE);
    probe_source_add(&idle, 0, LOOP, MODE);
}

static void stops_at_the_third(struct probe *probe)
{
    if (probe->calls == 3) {
        CFRunLoopStop(LOOP);
    }
}

static void empty_mode(void)
{
    probe_activities_add(LOOP, MODE);
}

static void one_timer(void)
{
    a = (struct probe)PROBE("a", NULL);
    probe_activities_add(LOOP, MODE);
    probe_timer_add(&a, 0.002, 0, LOOP, MODE);
}

static void repeating_timer(void)
{
    begin();
    a.action = stops_at_the_third;
    probe_timer_add(&a, 0.001, 0.001, LOOP, MODE);
}

static void overdue_timers(void)
{
    begin();
    b.action = probe_stops_loop;
    probe_timer_add(&b, -1, 0, LOOP, MODE);
    probe_timer_add(&a, -2, 0, LOOP, MODE);
}

static void tolerant_timer(void)
{
    begin();
    a.action = probe_stops_loop;
    CFRunLoopTimerSetTolerance(probe_timer_add(&a, 0.002, 0.1, LOOP, MODE), 0.01);
}

static void signalled_sources(void)
{
    begin();
    a.action = probe_stops_loop;
    CFRunLoopSourceSignal(probe_source_add(&a, 2, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&b, 1, LOOP, MODE));
}

static void self_signalling_source(void)
{
    begin();
    a.action = probe_signals_itself_once;
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    b.action = probe_stops_loop;
    probe_timer_add(&b, 0.002, 0, LOOP, MODE);
}

static void signals_and_wakes(void *loop)
{
    CFRunLoopSourceSignal(probe_source_of(&a));
    CFRunLoopWakeUp(loop);
}

static void source_from_another_thread(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_source_add(&a, 0, LOOP, MODE);
    help(signals_and_wakes);
}

static void wakes(void *loop)
{
    CFRunLoopWakeUp(loop);
}

static void stops_at_the_second_sleep(struct probe *probe)
{
    if (probe->calls == 2) {
        CFRunLoopStop(LOOP);
    }
}

static void woken_by_another_thread(void)
{
    begin();
    observer.action = stops_at_the_second_sleep;
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    help(wakes);
}

static void stops(void *loop)
{
    CFRunLoopStop(loop);
}

static void stopped_by_another_thread(void)
{
    begin();
    help(stops);
}

static void stops_in(CFOptionFlags activity)
{
    begin();
    observer.action = probe_stops_loop;
    probe_observer_add(&observer, activity, 0, LOOP, MODE);
    a.action = probe_stops_loop;
    probe_timer_add(&a, 0.003, 0, LOOP, MODE);
}

static void stopped_in_entry(void)
{
    stops_in(kCFRunLoopEntry);
}

static void stopped_in_before_timers(void)
{
    stops_in(kCFRunLoopBeforeTimers);
}

static void stopped_in_before_sources(void)
{
    stops_in(kCFRunLoopBeforeSources);
}

static void stopped_in_before_waiting(void)
{
    stops_in(kCFRunLoopBeforeWaiting);
}

static void stopped_in_after_waiting(void)
{
    stops_in(kCFRunLoopAfterWaiting);
}

static void stopped_in_exit(void)
{
    stops_in(kCFRunLoopExit);
}

static void wakes_once(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopWakeUp(LOOP);
    }
    if (probe->calls == 3) {
        CFRunLoopStop(LOOP);
    }
}

static void wakes_in(CFOptionFlags activity)
{
    begin();
    observer.action = wakes_once;
    probe_observer_add(&observer, activity, 0, LOOP, MODE);
    probe_timer_add(&a, 0.002, 0.002, LOOP, MODE);
}

static void wake_up_in_before_timers(void)
{
    wakes_in(kCFRunLoopBeforeTimers);
}

static void wake_up_in_before_waiting(void)
{
    wakes_in(kCFRunLoopBeforeWaiting);
}

static void wake_up_in_after_waiting(void)
{
    wakes_in(kCFRunLoopAfterWaiting);
}

static void wake_up_in_a_timer(void)
{
    begin();
    a.action = wakes_once;
    probe_timer_add(&a, 0.002, 0.002, LOOP, MODE);
}

/*
 * In the scenarios of nested runs the timer that ends them repeats: on a slow machine it may fire in the nested run and
 * stop only that one.
 */
static void nested_run_in_a_timer(void)
{
    begin();
    a.action = probe_runs_nested;
    b.action = probe_stops_loop;
    probe_timer_add(&a, 0.001, 0, LOOP, MODE);
    probe_timer_add(&b, 0.004, 0.004, LOOP, MODE);
}

static void nested_run_in_a_source(void)
{
    begin();
    a.action = probe_runs_nested;
    b.action = probe_stops_loop;
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_add(&c, 1, LOOP, MODE));
    probe_timer_add(&b, 0.004, 0.004, LOOP, MODE);
}

static void runs_nested_once(struct probe *probe)
{
    if (probe->calls == 1) {
        CFRunLoopSourceSignal(probe_source_of(&a));
        CFRunLoopWakeUp(LOOP);
        probe_log("{");
        probe_run(MODE, 0, true);
        probe_log("}");
    }
    if (probe->calls == 3) {
        CFRunLoopStop(LOOP);
    }
}

static void nested_run_before_waiting(void)
{
    begin();
    observer.action = runs_nested_once;
    probe_observer_add(&observer, kCFRunLoopBeforeWaiting, 0, LOOP, MODE);
    probe_source_add(&a, 0, LOOP, MODE);
    probe_timer_add(&b, 0.003, 0.003, LOOP, MODE);
}

static void stops_a_nested_run(struct probe *probe)
{
    (void)probe;
    probe_log("{");
    CFRunLoopSourceSignal(probe_source_of(&b));
    probe_run(MODE, 10, false);
    probe_log("}");
}

static void nested_run_that_is_stopped(void)
{
    begin();
    a.action = stops_a_nested_run;
    b.action = probe_stops_loop;
    c.action = probe_stops_loop;
    probe_source_add(&b, 0, LOOP, MODE);
    probe_timer_add(&a, 0.001, 0, LOOP, MODE);
    probe_timer_add(&c, 0.004, 0.004, LOOP, MODE);
}

static void logs_call(void *name)
{
    probe_log(name);
}

static void logs_and_queues(void *name)
{
    probe_log(name);
    CRLRunLoopPerformFunction(LOOP, MODE, logs_call, "f2", NULL);
}

static void queued_functions(void)
{
    begin();
    CRLRunLoopPerformFunction(LOOP, MODE, logs_and_queues, "f1", NULL);
    a.action = probe_stops_loop;
    probe_timer_add(&a, 0.002, 0, LOOP, MODE);
}

static void stops_loop_of(void *loop)
{
    probe_log("f");
    CFRunLoopStop(loop);
}

static void queues_and_wakes(void *loop)
{
    CRLRunLoopPerformFunction(loop, MODE, stops_loop_of, loop, NULL);
    CFRunLoopWakeUp(loop);
}

static void function_from_another_thread(void)
{
    begin();
    help(queues_and_wakes);
}

static void only_a_function(void)
{
    probe_activities_add(LOOP, MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, logs_call, "f", NULL);
    a = (struct probe)PROBE("a", probe_stops_loop);
    help(stops);
}

static void ready_port(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_port_source_add(&a, 0, event_descriptor, LOOP, MODE);
    probe_event_post(event_descriptor);
}

static void posts_event(void *loop)
{
    (void)loop;
    probe_event_post(event_descriptor);
}

static void port_from_another_thread(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_port_source_add(&a, 0, event_descriptor, LOOP, MODE);
    help(posts_event);
}

static void adds_port(void *loop)
{
    probe_event_post(event_descriptor);
    probe_port_source_add(&a, 0, event_descriptor, loop, MODE);
}

static void port_added_while_asleep(void)
{
    begin();
    a.action = probe_stops_loop;
    help(adds_port);
}

static void port_and_timer(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_port_source_add(&a, 0, event_descriptor, LOOP, MODE);
    probe_timer_add(&b, -1, 0, LOOP, MODE);
    probe_event_post(event_descriptor);
}

static void callback_of_file(CFFileDescriptorRef file, CFOptionFlags kinds, void *info)
{
    probe_log("file");
    CFFileDescriptorEnableCallBacks(file, kinds);
    if (++*(int *)info == 3) {
        CFRunLoopStop(LOOP);
    }
}

static void file_that_is_always_ready(void)
{
    static int calls;
    CFFileDescriptorContext context = {.info = &calls};
    CFFileDescriptorRef file = CFFileDescriptorCreate(NULL, open("/dev/null", O_RDONLY | O_CLOEXEC), true, callback_of_file, &context);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, file, 0);

    calls = 0;
    begin();
    CFRunLoopAddSource(LOOP, source, MODE);
    CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack);
    CFRelease(source);
    CFRelease(file);
}

static void adds_timer(void *loop)
{
    probe_timer_add(&a, 0.001, 0, loop, MODE);
}

static void timer_added_while_asleep(void)
{
    begin();
    a.action = probe_stops_loop;
    help(adds_timer);
}

static void moves_timer_earlier(void *loop)
{
    (void)loop;
    CFRunLoopTimerSetNextFireDate(probe_timer_of(&a), CFAbsoluteTimeGetCurrent());
}

static void timer_moved_while_asleep(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_timer_add(&a, 1000, 0, LOOP, MODE);
    help(moves_timer_earlier);
}

static void empties_the_mode(void *loop)
{
    probe_remove(&a, loop, MODE);
    CFRunLoopWakeUp(loop);
}

static void mode_emptied_while_asleep(void)
{
    a = (struct probe)PROBE("a", NULL);
    probe_activities_add(LOOP, MODE);
    probe_source_add(&a, 0, LOOP, MODE);
    help(empties_the_mode);
}

static void source_that_removes_itself(void)
{
    a = (struct probe)PROBE("a", probe_removes_itself);
    probe_activities_add(LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&a, 0, LOOP, MODE));
}

static void one_shot_observers(void)
{
    CFRunLoopObserverRef once;

    begin();
    once = probe_observer(&observer, kCFRunLoopAllActivities, false, 0);
    CFRunLoopAddObserver(LOOP, once, MODE);
    CFRelease(once);
    a.action = stops_at_the_third;
    probe_timer_add(&a, 0.001, 0.001, LOOP, MODE);
}

static void another_thread_enables(void *context)
{
    (void)context;
    CFFileDescriptorEnableCallBacks((CFFileDescriptorRef)b.context, kCFFileDescriptorReadCallBack);
}

static void callback_that_stops(CFFileDescriptorRef file, CFOptionFlags kinds, void *info)
{
    (void)kinds, (void)info;
    probe_log("f");
    CFFileDescriptorInvalidate(file);
    CFRelease(file);
    CFRunLoopStop(LOOP);
}

static void descriptor_enabled_while_asleep(void)
{
    CFFileDescriptorRef file = CFFileDescriptorCreate(NULL, event_descriptor, false, callback_that_stops, NULL);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, file, 0);

    begin();
    b.context = file;
    probe_event_post(event_descriptor);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
    help(another_thread_enables);
}

static void signals_the_source_in_the_sleep(void *loop)
{
    for (int i = 0; i < 5; i++) {
        CFRunLoopSourceSignal(probe_source_of(&a));
        CFRunLoopWakeUp(loop);
    }
}

static void many_signals_while_asleep(void)
{
    begin();
    a.action = probe_stops_loop;
    probe_source_add(&a, 0, LOOP, MODE);
    help(signals_the_source_in_the_sleep);
}

static const struct scenario scenarios[] = {
    {"empty mode", empty_mode, false},
    {"one timer", one_timer, true},
    {"repeating timer", repeating_timer, true},
    {"overdue timers", overdue_timers, false},
    {"tolerant timer", tolerant_timer, true},
    {"signalled sources", signalled_sources, false},
    {"self-signalling source", self_signalling_source, true},
    {"source from another thread", source_from_another_thread, true},
    {"woken by another thread", woken_by_another_thread, true},
    {"stopped by another thread", stopped_by_another_thread, true},
    {"stopped in Entry", stopped_in_entry, false},
    {"stopped in BeforeTimers", stopped_in_before_timers, false},
    {"stopped in BeforeSources", stopped_in_before_sources, false},
    {"stopped in BeforeWaiting", stopped_in_before_waiting, false},
    {"stopped in AfterWaiting", stopped_in_after_waiting, true},
    {"stopped in Exit", stopped_in_exit, true},
    {"wake-up in BeforeTimers", wake_up_in_before_timers, true},
    {"wake-up in BeforeWaiting", wake_up_in_before_waiting, true},
    {"wake-up in AfterWaiting", wake_up_in_after_waiting, true},
    {"wake-up in a timer", wake_up_in_a_timer, true},
    {"nested run in a timer", nested_run_in_a_timer, true},
    {"nested run in a source", nested_run_in_a_source, true},
    {"nested run in BeforeWaiting", nested_run_before_waiting, true},
    {"nested run that is stopped", nested_run_that_is_stopped, true},
    {"queued functions", queued_functions, true},
    {"function from another thread", function_from_another_thread, true},
    {"only a function", only_a_function, true},
    {"ready port", ready_port, false},
    {"port from another thread", port_from_another_thread, true},
    {"port added while asleep", port_added_while_asleep, true},
    {"port and timer", port_and_timer, false},
    {"file that is always ready", file_that_is_always_ready, false},
    {"timer added while asleep", timer_added_while_asleep, true},
    {"timer moved while asleep", timer_moved_while_asleep, true},
    {"mode emptied while asleep", mode_emptied_while_asleep, true},
    {"source that removes itself", source_that_removes_itself, false},
    {"one-shot observers", one_shot_observers, true},
    {"descriptor enabled while asleep", descriptor_enabled_while_asleep, true},
    {"many signals while asleep", many_signals_while_asleep, true},
};

static void trace_of(const struct scenario *scenario, enum host host, char *ret_text)
{
    struct performance performance = {scenario, host};

    trace_clear(&probe_trace);
    event_descriptor = probe_event();
    probe_on_thread(perform, &performance);
    close(event_descriptor);
    memcpy(ret_text, probe_trace.text, sizeof probe_trace.text);
    trace_clear(&probe_trace);
}

/* Timers of a few milliseconds meet in one pass when the machine is busy, and the trace is another one: then both runs are made again. */
static void compare(const struct scenario *scenario, enum host host)
{
    enum { tries = 20 };
    static char plain[sizeof probe_trace.text];
    static char hosted[sizeof probe_trace.text];

    for (int i = 0; i < tries; i++) {
        trace_of(scenario, host_none, plain);
        trace_of(scenario, host, hosted);
        if (strcmp(plain, hosted) == 0) {
            return;
        }
    }
    test_failed(__FILE__, __LINE__, "%s, host %d:\n#     plain  %s\n#     hosted %s", scenario->name, (int)host, plain, hosted);
}

TEST_LIMIT(a_hosted_run_has_the_trace_of_a_plain_one, "8 9 28 30 31 45 57 63 64 68 69 70 162", 120)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        for (enum host host = host_of_descriptor; host < host_count; host++) {
            if (host != host_that_polls || !scenarios[i].has_more_passes) {
                compare(&scenarios[i], host);
            }
        }
    }
}

/* ---- what the calls promise ---- */

static bool is_readable(int descriptor)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN};

    return poll(&one, 1, 0) == 1;
}

static void keep_mode(CFStringRef mode)
{
    static struct probe idle[2] = {{.name = "idle", .logging = probe_is_silent}, {.name = "idle", .logging = probe_is_silent}};

    probe_source_add(&idle[CFEqual(mode, MODE)], 0, LOOP, mode);
}

TEST(the_hosts_descriptor_is_readable_when_there_is_something_to_do, "61")
{
    static struct probe source = PROBE("S0", NULL);
    int descriptor = CRLRunLoopGetDescriptor(LOOP);

    EXPECT(descriptor >= 0);
    EXPECT_EQ(CRLRunLoopGetDescriptor(LOOP), descriptor);
    EXPECT(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    probe_source_add(&source, 0, LOOP, MODE);
    EXPECT(!is_readable(descriptor));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT(!is_readable(descriptor));
    EXPECT(CFRunLoopIsWaiting(LOOP));
    CFRunLoopSourceSignal(probe_source_of(&source));
    EXPECT(!is_readable(descriptor)); /* a signal does not wake (77) */
    CFRunLoopWakeUp(LOOP);
    EXPECT(is_readable(descriptor));
    EXPECT(is_readable(descriptor)); /* level-triggered */
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
    EXPECT(!is_readable(descriptor));
    EXPECT_LOG("");
    EXPECT(CRLRunLoopPrepare(LOOP, MODE)); /* a source was handled: the pass does not sleep */
    EXPECT_LOG("S0");
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 0);
    EXPECT(is_readable(descriptor));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CFRunLoopWakeUp(LOOP);
    CRLRunLoopLeave(LOOP);
    EXPECT(!is_readable(descriptor));
    EXPECT_EQ(CRLRunLoopGetDescriptor(LOOP), descriptor);
}

TEST(the_descriptor_tells_of_timers_too, "")
{
    static struct probe timer = PROBE("T", NULL);
    struct pollfd one = {.events = POLLIN};

    one.fd = CRLRunLoopGetDescriptor(LOOP);
    probe_timer_add(&timer, 0.005, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(poll(&one, 1, (int)(test_patience_s() * 1000)), 1);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunFinished);
    EXPECT_LOG("T");
    CRLRunLoopLeave(LOOP);
    EXPECT(!is_readable(one.fd));
}

static int event_to_post;

static int set_and_post(int alarm, int64_t deadline_ns)
{
    probe_event_post(event_to_post);
    return kernel_linux.alarm_set(alarm, deadline_ns);
}

/* A plain run leaves an alarm behind that it has set, and not needed. The test makes it go off. */
TEST(an_alarm_of_a_plain_run_does_not_wake_the_host, "41 44")
{
    static struct probe port = PROBE("S1", probe_invalidates_itself);
    static struct probe source = PROBE("S0", NULL);
    struct pollfd host = {.fd = CRLRunLoopGetDescriptor(LOOP), .events = POLLIN};
    struct pollfd alarm = {.events = POLLIN};

    event_to_post = probe_event();
    probe_port_source_add(&port, 0, event_to_post, LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    kernel.alarm_set = set_and_post;
    LOOP->slack_ns = INT64_C(10000000000); /* so that this wait's limit is near enough for an alarm */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    kernel.alarm_set = kernel_linux.alarm_set;
    alarm.fd = mode_find(LOOP, MODE)->watches->alarm;
    REQUIRE(kernel.alarm_set(alarm.fd, 1) == 0 && poll(&alarm, 1, -1) == 1);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(poll(&host, 1, 0), 0);
    CRLRunLoopLeave(LOOP);
    close(event_to_post);
}

TEST(the_descriptor_may_be_asked_for_in_the_middle_of_a_run, "")
{
    static struct probe timer = PROBE("T", NULL);
    struct pollfd one = {.events = POLLIN};

    probe_timer_add(&timer, 0.005, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    one.fd = CRLRunLoopGetDescriptor(LOOP);
    EXPECT_EQ(poll(&one, 1, (int)(test_patience_s() * 1000)), 1);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunFinished);
    CRLRunLoopLeave(LOOP);
}

TEST(the_timeout_is_that_of_the_next_timer, "")
{
    static struct probe timer = PROBE("T", NULL);
    int64_t left_ns;

    keep_mode(MODE);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), -1); /* nothing is prepared */
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), -1); /* nothing to wait for but the descriptor */
    probe_timer_add(&timer, 1000, 1000, LOOP, MODE); /* added in between: the timeout knows */
    left_ns = CRLRunLoopGetTimeout(LOOP);
    EXPECT(left_ns > INT64_C(900000000000) && left_ns <= INT64_C(1000000000000));
    CFRunLoopTimerSetNextFireDate(probe_timer_of(&timer), CFAbsoluteTimeGetCurrent() - 1);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), 0);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT_LOG("T");
    CRLRunLoopLeave(LOOP);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), -1);
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
}

TEST(preparing_twice_is_preparing_once, "")
{
    keep_mode(MODE);
    probe_activities_add(LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_LOG("E BT BS BW");
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0); /* before anything is ready: handles nothing */
    EXPECT_LOG("AW");
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0); /* nothing is prepared */
    EXPECT_LOG("");
    CRLRunLoopLeave(LOOP);
    CRLRunLoopLeave(LOOP); /* nothing runs */
    EXPECT_LOG("X");
}

TEST(a_host_may_leave_a_prepared_pass, "31")
{
    CFStringRef mode;

    keep_mode(MODE);
    probe_activities_add(LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    mode = CFRunLoopCopyCurrentMode(LOOP);
    EXPECT(mode && CFEqual(mode, MODE));
    CFRelease(mode);
    CRLRunLoopLeave(LOOP);
    EXPECT_LOG("E BT BS BW X");
    EXPECT(CFRunLoopCopyCurrentMode(LOOP) == NULL);
    EXPECT(!CFRunLoopIsWaiting(LOOP));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE)); /* and begin another run */
    EXPECT_LOG("E BT BS BW");
    CRLRunLoopLeave(LOOP);
}

TEST(a_hosted_run_keeps_to_its_mode, "24 27")
{
    keep_mode(MODE);
    keep_mode(other_mode);
    EXPECT(!CRLRunLoopPrepare(LOOP, NULL));
    EXPECT(!CRLRunLoopPrepare(LOOP, CFSTR("nobody's")));
    EXPECT(!CRLRunLoopPrepare(LOOP, kCFRunLoopCommonModes));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT(!CRLRunLoopPrepare(LOOP, other_mode));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE)); /* the refusal has changed nothing */
    CRLRunLoopLeave(LOOP);
    EXPECT(CRLRunLoopPrepare(LOOP, other_mode));
    CRLRunLoopLeave(LOOP);
}

static void wrong_type_as_mode(void)
{
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberIntType, &(int){1});

    EXPECT(!CRLRunLoopPrepare(LOOP, (CFStringRef)(const void *)number));
    CFRelease(number);
}

TEST(a_mode_that_is_no_string_cannot_be_hosted, "24")
{
    keep_mode(MODE);
    wrong_type_as_mode();
}

TEST(a_stop_ends_a_hosted_run_and_does_not_last, "55 56")
{
    keep_mode(MODE);
    CFRunLoopStop(LOOP); /* before the run: forgotten */
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CFRunLoopStop(LOOP);
    EXPECT(is_readable(CRLRunLoopGetDescriptor(LOOP)));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunStopped);
    EXPECT(!CRLRunLoopPrepare(LOOP, MODE)); /* it is over until Leave */
    CRLRunLoopLeave(LOOP);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CRLRunLoopLeave(LOOP);
}

static CFRunLoopRef hosted_loop;

static void calls_for_a_foreign_loop(void *context)
{
    (void)context;
    EXPECT_EQ(CRLRunLoopGetDescriptor(hosted_loop), -1);
    EXPECT(!CRLRunLoopPrepare(hosted_loop, MODE));
    EXPECT_EQ(CRLRunLoopGetTimeout(hosted_loop), -1);
    EXPECT_EQ(CRLRunLoopDispatch(hosted_loop), 0);
    CRLRunLoopLeave(hosted_loop);
}

TEST(only_the_loops_own_thread_can_host_it, "5")
{
    hosted_loop = LOOP;
    keep_mode(MODE);
    probe_activities_add(LOOP, MODE);
    probe_on_thread(calls_for_a_foreign_loop, NULL);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    probe_on_thread(calls_for_a_foreign_loop, NULL);
    EXPECT_LOG("E BT BS BW");
    CRLRunLoopLeave(LOOP);
}

static void asks_for_the_main_loop(void *context)
{
    (void)context;
    hosted_loop = CFRunLoopGetMain();
}

/* The harness calls a test on the first thread of a process, which has asked for nothing yet. */
TEST(the_main_thread_may_host_its_loop_before_it_has_asked_for_it, "3 5")
{
    probe_on_thread(asks_for_the_main_loop, NULL);
    EXPECT(CRLRunLoopGetDescriptor(hosted_loop) >= 0);
    EXPECT(LOOP == hosted_loop);
}

static void calls_the_hosts_functions(struct probe *probe)
{
    (void)probe;
    EXPECT(!CRLRunLoopPrepare(LOOP, MODE));
    EXPECT(!CRLRunLoopPrepare(LOOP, other_mode));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT_EQ(CRLRunLoopGetTimeout(LOOP), -1);
    CRLRunLoopLeave(LOOP);
}

TEST(callbacks_of_a_hosted_run_cannot_drive_it, "")
{
    static struct probe watching = {.name = "o", .action = calls_the_hosts_functions, .logging = probe_is_silent};
    static struct probe source = {.name = "S0", .action = calls_the_hosts_functions, .logging = probe_is_silent};

    keep_mode(other_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_observer_add(&watching, kCFRunLoopAllActivities, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    EXPECT(watching.calls >= 8);
    EXPECT_EQ(source.calls, 1);
}

static void runs_another_run(struct probe *probe)
{
    CFRunLoopSourceSignal(probe_source_of(probe->context));
    EXPECT_EQ(CFRunLoopRunInMode(other_mode, 0, true), kCFRunLoopRunHandledSource);
}

TEST(callbacks_of_a_run_nested_in_a_hosted_one_cannot_drive_it, "45")
{
    static struct probe inner = {.name = "S1", .action = calls_the_hosts_functions, .logging = probe_is_silent};
    static struct probe source = {.name = "S0", .action = runs_another_run, .context = &inner, .logging = probe_is_silent};

    probe_source_add(&inner, 0, LOOP, other_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE)); /* in the pass itself */
    EXPECT_EQ(inner.calls, 1);
    runs_another_run(&source); /* between its halves */
    EXPECT_EQ(inner.calls, 2);
    probe_note_current_mode("mode", LOOP);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    runs_another_run(&source); /* between two passes */
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CRLRunLoopLeave(LOOP);
    probe_note_current_mode("mode", LOOP);
    EXPECT_LOG("mode=test mode=NULL");
}

static _Atomic int pooled_releases;

static void count_release_from_the_pool(const void *info)
{
    (void)info;
    pooled_releases++;
}

static void autoreleases(struct probe *probe)
{
    CFRunLoopSourceContext context = {.release = count_release_from_the_pool};

    (void)probe;
    CFAutorelease(CFRunLoopSourceCreate(NULL, 0, &context));
}

TEST(what_a_hosted_pass_autoreleases_goes_at_its_end, "")
{
    static struct probe source = {.name = "S0", .action = autoreleases, .logging = probe_is_silent};
    static struct probe leaving = {.name = "O", .action = autoreleases, .logging = probe_is_silent};

    pooled_releases = 0;
    probe_observer_add(&leaving, kCFRunLoopExit, 0, LOOP, MODE);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(pooled_releases, 0);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    EXPECT_EQ(pooled_releases, 1);
    CRLRunLoopLeave(LOOP);
    EXPECT_EQ(pooled_releases, 2);
}

static void is_hosted_in_its_callback(struct probe *probe)
{
    (void)probe;
    probe_log("{");
    probe_note("=%s", probe_result_name(run_hosted(host_of_both, other_mode)));
    probe_log("}");
    CFRunLoopStop(LOOP);
}

TEST(a_hosted_run_may_be_nested_in_a_plain_one, "45")
{
    static struct probe source = PROBE("S0", is_hosted_in_its_callback);
    static struct probe timer = PROBE("T", NULL);

    probe_activities_add(LOOP, MODE);
    probe_activities_add(LOOP, other_mode);
    probe_timer_add(&timer, 0.001, 0, LOOP, other_mode);
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 10, false);
    EXPECT_LOG("E BT BS S0 { E BT BS BW AW T X =F } X S");
}

TEST(a_host_may_run_the_loop_itself_while_it_hosts_it, "45 64")
{
    static struct probe source = PROBE("S0", NULL);

    probe_activities_add(LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopWakeUp(LOOP);
    probe_run(MODE, 0, true);
    EXPECT(is_readable(CRLRunLoopGetDescriptor(LOOP))); /* the wake-up is not the nested run's to keep */
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    EXPECT_LOG("E BT BS BW E BT BS S0 X HS AW X");
}

static void signals_elsewhere(void *context)
{
    (void)context;
    CFRunLoopSourceSignal(probe_source_of(&a));
    CFRunLoopWakeUp(hosted_loop);
}

TEST(wake_ups_of_a_hosted_loop_are_not_lost, "65 L2")
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    int rounds = test_is_instrumented() ? 50 : 300;

    hosted_loop = LOOP;
    a = (struct probe){.name = "a", .logging = probe_is_silent};
    probe_source_add(&a, 0, LOOP, MODE);
    epoll_ctl(set, EPOLL_CTL_ADD, CRLRunLoopGetDescriptor(LOOP), &event);
    for (int i = 0; i < rounds; i++) {
        struct probe_thread thread;

        probe_thread_start(&thread, signals_elsewhere, NULL);
        while (a.calls <= i) {
            REQUIRE(CRLRunLoopPrepare(LOOP, MODE));
            if (a.calls <= i) {
                REQUIRE(epoll_wait(set, &event, 1, (int)(test_patience_s() * 1000)) == 1);
            }
            EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
        }
        probe_thread_join(&thread);
    }
    EXPECT_EQ(a.calls, rounds);
    CRLRunLoopLeave(LOOP);
    close(set);
}

static void ends_while_it_is_hosted(void *context)
{
    (void)context;
    keep_mode(MODE);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
}

TEST(a_thread_may_end_in_the_middle_of_a_hosted_run, "170 172")
{
    probe_on_thread(ends_while_it_is_hosted, NULL);
    probe_on_thread(ends_while_it_is_hosted, NULL);
}

TEST(hosting_opens_few_descriptors, "14")
{
    int before = fcntl(0, F_DUPFD_CLOEXEC, 0);
    int after;

    close(before);
    if (test_is_instrumented()) {
        SKIP("an instrument opens descriptors of its own");
    }
    keep_mode(MODE);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    after = fcntl(0, F_DUPFD_CLOEXEC, 0);
    close(after);
    EXPECT(after - before <= 3); /* the eventfd, the alarm and the set of both */
}

static int in_child(void)
{
    int descriptor = CRLRunLoopGetDescriptor(LOOP);
    static struct probe timer = {.name = "T", .logging = probe_is_silent};

    if (descriptor < 0 || is_readable(descriptor)) {
        return 1;
    }
    if (!CRLRunLoopPrepare(LOOP, MODE)) {
        return 2;
    }
    CFRunLoopWakeUp(LOOP);
    if (!is_readable(descriptor)) {
        return 3;
    }
    if (CRLRunLoopDispatch(LOOP) != 0) {
        return 4;
    }
    probe_timer_add(&timer, 0.001, 0, LOOP, MODE);
    while (timer.calls == 0) {
        struct pollfd one = {.fd = descriptor, .events = POLLIN};

        if (!CRLRunLoopPrepare(LOOP, MODE) || poll(&one, 1, (int)(test_patience_s() * 1000)) != 1) {
            return 5;
        }
        (void)CRLRunLoopDispatch(LOOP);
    }
    CRLRunLoopLeave(LOOP);
    return 0;
}

TEST(a_forked_child_hosts_with_descriptors_of_its_own, "176 P1")
{
    int descriptor = CRLRunLoopGetDescriptor(LOOP);
    int status = 0;
    pid_t child;

    keep_mode(MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    child = fork();
    if (child == 0) {
        _exit(in_child());
    }
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT(!is_readable(descriptor)); /* the child's doings are not ours */
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    CFRunLoopWakeUp(LOOP);
    EXPECT(is_readable(descriptor));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
}

/* Without a dispatch, so that what it was woken by stays there. */
static int wakes_itself_in_child(void)
{
    int descriptor = CRLRunLoopGetDescriptor(LOOP);

    if (is_readable(descriptor) || !CRLRunLoopPrepare(LOOP, MODE)) {
        return 1;
    }
    CFRunLoopWakeUp(LOOP);
    return is_readable(descriptor) ? 0 : 2;
}

TEST(a_child_made_without_handlers_hosts_with_descriptors_of_its_own, "176 P1")
{
    int descriptor = CRLRunLoopGetDescriptor(LOOP);
    int status = -1;
    pid_t child;

    keep_mode(MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    child = fork_without_handlers();
    if (child == 0) {
        _exit(wakes_itself_in_child());
    }
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT(!is_readable(descriptor));
    CRLRunLoopLeave(LOOP);
}

TEST(a_loop_may_be_forked_in_the_middle_of_a_hosted_pass, "176 P1")
{
    int status = 0;
    pid_t child;

    (void)CRLRunLoopGetDescriptor(LOOP);
    keep_mode(MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    child = fork();
    if (child == 0) {
        _exit(in_child());
    }
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    CRLRunLoopLeave(LOOP);
}

static int dispatches_what_was_ready_before(const struct probe *port)
{
    int descriptor = CRLRunLoopGetDescriptor(LOOP);

    if (descriptor < 0 || !is_readable(descriptor)) {
        return 1;
    }
    return CRLRunLoopDispatch(LOOP) == 0 && port->calls == 1 ? 0 : 2;
}

static int dispatches_a_wake_up_from_before(const struct probe *port)
{
    CFRunLoopWakeUp(LOOP); /* while there is no descriptor */
    return is_readable(CRLRunLoopGetDescriptor(LOOP)) && CRLRunLoopDispatch(LOOP) == 0 && port->calls == 0 ? 0 : 1;
}

static int status_of_child(int (*function)(const struct probe *port), const struct probe *port)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(function(port));
    }
    waitpid(child, &status, 0);
    return status;
}

TEST(a_child_forked_in_the_middle_of_a_hosted_pass_is_told_of_what_is_there, "65 176 P1")
{
    static struct probe port = {.name = "S1", .logging = probe_is_silent};
    int event = probe_event();

    (void)CRLRunLoopGetDescriptor(LOOP);
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(status_of_child(dispatches_a_wake_up_from_before, &port), 0);
    probe_event_post(event);
    EXPECT_EQ(status_of_child(dispatches_what_was_ready_before, &port), 0);
    CRLRunLoopLeave(LOOP);
    CFRunLoopSourceInvalidate(probe_source_of(&port));
    close(event);
}

TEST(misuse_of_hosting_stops_with_a_sentence, "")
{
    EXPECT_STOPS("CRLRunLoopGetDescriptor: the loop is NULL", { (void)CRLRunLoopGetDescriptor(NULL); });
    EXPECT_STOPS("CRLRunLoopPrepare: ", { (void)CRLRunLoopPrepare(NULL, MODE); });
    EXPECT_STOPS("CRLRunLoopGetTimeout: ", { (void)CRLRunLoopGetTimeout((CFRunLoopRef)(uintptr_t)CFSTR("x")); });
    EXPECT_STOPS("CRLRunLoopDispatch: ", { (void)CRLRunLoopDispatch(NULL); });
    EXPECT_STOPS("CRLRunLoopLeave: ", { CRLRunLoopLeave(NULL); });
}
