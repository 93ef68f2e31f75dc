/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop of the first thread in a host: each case is a process of its own, `program CASE`. It ends with status 0, or with a line that
 * says what was not so.
 */
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "failing_memory.h"
#include "host.h"

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static pthread_t first;
static CFRunLoopRef loop;
static unsigned ticks, beats, calls, entries;

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "cases.c:%d: %s does not hold\n", line, what);
        exit(1);
    }
}

static pthread_t start(void *(*function)(void *))
{
    pthread_t thread;

    EXPECT(pthread_create(&thread, NULL, function, NULL) == 0);
    return thread;
}

static CFRunLoopTimerRef add_timer(double interval, void (*function)(CFRunLoopTimerRef timer, void *info))
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + interval, interval, 0, 0, function, NULL);

    CFRunLoopAddTimer(loop, timer, kCFRunLoopCommonModes);
    return timer;
}

static void observe(CFOptionFlags activities, void (*function)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info))
{
    CFRunLoopAddObserver(loop, CFRunLoopObserverCreate(NULL, activities, true, 0, function, NULL), kCFRunLoopCommonModes);
}

/* ---- both loops' timers ---- */

static void quit_when_both_have_ticked(void)
{
    EXPECT(pthread_equal(pthread_self(), first));
    if (ticks >= 20 && beats >= 20) {
        host_quit();
    }
}

static void tick(void)
{
    ticks++;
    quit_when_both_have_ticked();
}

static void beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    beats++;
    quit_when_both_have_ticked();
}

static void both_loops_timers_fire(void)
{
    EXPECT(host_attach(NULL, NULL));
    host_every(1, tick);
    (void)add_timer(0.001, beat);
    host_run();
}

/* A timer that the host's function adds while the run loop waits. */
static void add_one(void)
{
    static bool is_added;

    if (!is_added) {
        is_added = true;
        (void)add_timer(0.001, beat);
    }
    tick();
}

static void the_hosts_functions_add_timers(void)
{
    EXPECT(host_attach(NULL, NULL));
    host_every(1, add_one);
    host_run();
}

/* ---- other threads ---- */

enum { hops = 10000 };
static sem_t returned;

static void land(void *info)
{
    (void)info;
    EXPECT(pthread_equal(pthread_self(), first));
    calls++;
    (void)sem_post(&returned);
}

static void quit(void *info)
{
    (void)info;
    host_quit();
}

static void *hop(void *info)
{
    for (unsigned i = 0; i < hops; i++) {
        CRLRunLoopPerformFunction(loop, kCFRunLoopCommonModes, land, NULL, NULL);
        CFRunLoopWakeUp(loop);
        (void)sem_wait(&returned);
    }
    CRLRunLoopPerformFunction(loop, kCFRunLoopCommonModes, quit, NULL, NULL);
    CFRunLoopWakeUp(loop);
    return info;
}

static void functions_of_another_thread_wake_the_host(void)
{
    pthread_t thread;

    (void)sem_init(&returned, 0, 0);
    EXPECT(host_attach(NULL, NULL));
    thread = start(hop);
    host_run();
    (void)pthread_join(thread, NULL);
    EXPECT(calls == hops);
}

static CFRunLoopSourceRef signalled;

static void perform(void *info)
{
    land(info);
    if (calls == 100) {
        host_quit();
    }
}

static void *signal_it(void *info)
{
    for (unsigned i = 0; i < 100; i++) {
        CFRunLoopSourceSignal(signalled);
        CFRunLoopWakeUp(loop);
        (void)sem_wait(&returned);
    }
    return info;
}

static void a_source_is_performed_on_the_first_thread(void)
{
    CFRunLoopSourceContext context = {.perform = perform};

    (void)sem_init(&returned, 0, 0);
    signalled = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop, signalled, kCFRunLoopDefaultMode);
    EXPECT(host_attach(NULL, NULL));
    (void)pthread_detach(start(signal_it));
    host_run();
    EXPECT(calls == 100);
}

static CFDataRef answer(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    (void)port, (void)info;
    EXPECT(pthread_equal(pthread_self(), first));
    calls++;
    if (number == 100) {
        CRLRunLoopPerformFunction(loop, kCFRunLoopCommonModes, quit, NULL, NULL);
        CFRunLoopWakeUp(loop);
    }
    return (CFDataRef)CFRetain(data);
}

static char port_name[64];

static void *ask(void *info)
{
    CFStringRef name = CFStringCreateWithCString(NULL, port_name, kCFStringEncodingUTF8);
    CFMessagePortRef port = CFMessagePortCreateRemote(NULL, name);
    CFDataRef request = CFDataCreate(NULL, (const UInt8 *)"hello", 5), reply;

    EXPECT(port != NULL);
    for (SInt32 i = 1; i <= 100; i++) {
        EXPECT(CFMessagePortSendRequest(port, i, request, 600, 600, kCFRunLoopDefaultMode, &reply) == kCFMessagePortSuccess);
        EXPECT(CFEqual(reply, request));
        CFRelease(reply);
    }
    return info;
}

static void a_message_port_answers(void)
{
    CFStringRef name;
    CFMessagePortRef port;
    pthread_t thread;

    (void)snprintf(port_name, sizeof port_name, "org.corerunloop.hosts.%d", getpid());
    name = CFStringCreateWithCString(NULL, port_name, kCFStringEncodingUTF8);
    port = CFMessagePortCreateLocal(NULL, name, answer, NULL, NULL);
    EXPECT(port != NULL);
    CFRunLoopAddSource(loop, CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    EXPECT(host_attach(NULL, NULL));
    thread = start(ask);
    host_run();
    (void)pthread_join(thread, NULL);
    CFMessagePortInvalidate(port);
    EXPECT(calls == 100);
}

/* ---- stops and ends ---- */

static void *stop_it(void *info)
{
    CFRunLoopStop(loop);
    return info;
}

static void count_stop(void *info)
{
    EXPECT(info == &calls && pthread_equal(pthread_self(), first));
    if (++calls == 5) {
        host_quit();
    } else {
        (void)pthread_detach(start(stop_it));
    }
}

static void count_entry(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    entries++;
}

static void each_stop_is_told_and_a_new_run_begins(void)
{
    observe(kCFRunLoopEntry, count_entry);
    EXPECT(host_attach(count_stop, &calls));
    (void)pthread_detach(start(stop_it));
    host_run();
    EXPECT(calls == 5 && entries == 6);
}

static void stop_the_entry(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    if (++entries == 1) {
        CFRunLoopStop(loop);
    }
}

static void a_stop_at_the_entry_stops_one_run(void)
{
    observe(kCFRunLoopEntry, stop_the_entry);
    EXPECT(host_attach(NULL, NULL));
    EXPECT(entries == 2);
    host_every(1, tick);
    (void)add_timer(0.001, beat);
    host_run();
}

/* After the end nothing fires any more; attached again, it does. */
static unsigned beats_at_the_end;

static void attach_again(void)
{
    if (beats_at_the_end && ++calls == 20) {
        EXPECT(beats == beats_at_the_end);
        EXPECT(host_attach(NULL, NULL));
        beats_at_the_end = 0;
    } else if (calls >= 20 && beats >= 10) {
        host_quit();
    }
}

static void end_it(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    if (++beats == 5) {
        host_detach();
        beats_at_the_end = beats;
    }
}

static void a_callback_detaches_and_the_host_attaches_again(void)
{
    EXPECT(host_attach(NULL, NULL));
    (void)add_timer(0.001, end_it);
    host_every(2, attach_again);
    host_run();
}

static void what_is_detached_at_once_leaves_nothing(void)
{
    for (unsigned i = 0; i < 100; i++) {
        EXPECT(host_attach(NULL, NULL));
        host_detach();
        EXPECT(CFRunLoopCopyCurrentMode(loop) == NULL);
        EXPECT(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false) == kCFRunLoopRunFinished);
    }
    both_loops_timers_fire();
}

static void attach_in_callback(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    EXPECT(!host_attach(NULL, NULL));
    calls++;
    CFRunLoopStop(loop);
}

static void a_running_loop_is_refused(void)
{
    CFRunLoopTimerRef timer = add_timer(0.001, attach_in_callback);

    CFRunLoopRun();
    CFRunLoopTimerInvalidate(timer);
    EXPECT(calls > 0);
    EXPECT(host_attach(NULL, NULL));
    EXPECT(!host_attach(NULL, NULL));
    host_every(1, tick);
    (void)add_timer(0.001, beat);
    host_run();
}

static void without_a_descriptor_it_is_refused(void)
{
    struct rlimit none = {0, 0}, before;

    EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none.rlim_max = before.rlim_max;
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    EXPECT(!host_attach(NULL, NULL));
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    both_loops_timers_fire();
}

static void without_memory_it_is_refused(void)
{
    for (unsigned n = 1; n == 1 || failing_memory_has_failed(); n++) {
        bool is_attached;

        failing_memory_begin(n);
        is_attached = host_attach(NULL, NULL);
        failing_memory_end();
        EXPECT(is_attached || failing_memory_has_failed());
        if (is_attached) {
            host_detach();
        }
        EXPECT(CFRunLoopCopyCurrentMode(loop) == NULL);
        calls = n;
    }
    EXPECT(calls > 2);
    both_loops_timers_fire();
}

/* ---- runs within runs ---- */

static void run_loop_in_host(void)
{
    static bool is_inside;

    if (!is_inside) {
        is_inside = true;
        calls++;
        while (beats < 10) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
        }
    }
    tick();
}

static void the_hosts_functions_run_the_loop(void)
{
    EXPECT(host_attach(NULL, NULL));
    (void)add_timer(0.001, beat);
    host_every(1, run_loop_in_host);
    host_run();
    EXPECT(calls == 1);
}

static void run_host_in_loop(CFRunLoopTimerRef timer, void *info)
{
    unsigned before = ticks;

    if (beats == 0) {
        while (host_can_nest && ticks < before + 10) {
            host_run_nested();
        }
        EXPECT(beats == 0);
    }
    beat(timer, info);
}

static void callbacks_run_the_host(void)
{
    EXPECT(host_attach(NULL, NULL));
    (void)add_timer(0.001, run_host_in_loop);
    host_every(1, tick);
    host_run();
}

/* A host that a callback runs sleeps, although timers of the run loop are due. */
static void run_host_for_long(CFRunLoopTimerRef timer, void *info)
{
    unsigned before = ticks, rounds = 0;

    (void)timer, (void)info;
    for (; host_can_nest && ticks < before + 5; rounds++) {
        host_run_nested();
    }
    EXPECT(rounds <= 20);
    host_quit();
}

static void count_tick(void)
{
    ticks++;
}

static void a_host_in_a_callback_sleeps(void)
{
    EXPECT(host_attach(NULL, NULL));
    (void)add_timer(0.001, beat);
    (void)add_timer(0.003, run_host_for_long);
    host_every(20, count_tick);
    host_run();
}

/* The host's loop has ended, and the run loop goes on by itself. */
static void the_loop_runs_after_the_host(void)
{
    both_loops_timers_fire();
    for (unsigned before = beats; beats < before + 5;) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    }
}

/* ---- nothing to do ---- */

static unsigned wakes;
static unsigned long turns_before;

static void count_wake(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    wakes++;
}

/* The first tick comes when both loops have settled. */
static void measure(void)
{
    if (++ticks == 1) {
        wakes = 0;
        turns_before = host_turns();
    } else if (ticks == 4) {
        EXPECT(wakes == 0);
        EXPECT(host_turns() - turns_before <= 12);
        host_quit();
    }
}

static void late(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    EXPECT(false);
}

static void an_idle_loop_does_not_wake_the_host(void)
{
    observe(kCFRunLoopAfterWaiting, count_wake);
    (void)add_timer(100000, late);
    EXPECT(host_attach(NULL, NULL));
    host_every(100, measure);
    host_run();
}

static const struct {
    const char *name;
    void (*function)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(both_loops_timers_fire),
    CASE(the_hosts_functions_add_timers),
    CASE(functions_of_another_thread_wake_the_host),
    CASE(a_source_is_performed_on_the_first_thread),
    CASE(a_message_port_answers),
    CASE(each_stop_is_told_and_a_new_run_begins),
    CASE(a_stop_at_the_entry_stops_one_run),
    CASE(a_callback_detaches_and_the_host_attaches_again),
    CASE(what_is_detached_at_once_leaves_nothing),
    CASE(a_running_loop_is_refused),
    CASE(without_a_descriptor_it_is_refused),
    CASE(without_memory_it_is_refused),
    CASE(the_hosts_functions_run_the_loop),
    CASE(callbacks_run_the_host),
    CASE(a_host_in_a_callback_sleeps),
    CASE(the_loop_runs_after_the_host),
    CASE(an_idle_loop_does_not_wake_the_host),
};

int main(int argc, char *argv[])
{
    first = pthread_self();
    loop = CFRunLoopGetMain();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc < 2) {
            (void)puts(cases[i].name);
        } else if (strcmp(argv[1], cases[i].name) == 0) {
            host_make();
            cases[i].function();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
