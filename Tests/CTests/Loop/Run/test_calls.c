/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations cost in system calls. Two proofs: the kernel table's entries are counted, and a filter in a child process lets the
 * kernel refuse every call, so that one that escapes the table would be found too.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

/* ---- counting ---- */

static int futex_wakes;
static int posts;
static int waits;
static int objects; /* eventfds, timerfds, sets */

static int count_futex_wake(_Atomic uint32_t *word)
{
    futex_wakes++;
    return kernel_linux.futex_wake(word);
}

static int count_post(int event)
{
    posts++;
    return kernel_linux.event_post(event);
}

static int count_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    waits++;
    return kernel_linux.futex_wait(word, expected, deadline_ns);
}

static int count_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    waits++;
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

static int count_event(void)
{
    objects++;
    return kernel_linux.event_create();
}

static int count_alarm(void)
{
    objects++;
    return kernel_linux.alarm_create();
}

static int count_set(void)
{
    objects++;
    return kernel_linux.set_create();
}

static void count(void)
{
    futex_wakes = posts = waits = objects = 0;
    kernel.futex_wake = count_futex_wake;
    kernel.event_post = count_post;
    kernel.futex_wait = count_futex_wait;
    kernel.set_wait = count_set_wait;
    kernel.event_create = count_event;
    kernel.alarm_create = count_alarm;
    kernel.set_create = count_set;
}

static int entries_of(const char *folder)
{
    DIR *stream = opendir(folder);
    int entries = 0;

    while (stream && readdir(stream)) {
        entries++;
    }
    if (stream) {
        closedir(stream);
    }
    return entries;
}

TEST(signals_and_wake_ups_of_an_awake_loop_make_no_call, "46 61 77")
{
    static struct probe source = PROBE("S0", NULL);

    count();
    probe_source_add(&source, 0, LOOP, MODE);
    for (int i = 0; i < 100; i++) {
        CFRunLoopSourceSignal(probe_source_of(&source));
        CFRunLoopWakeUp(LOOP);
    }
    probe_run(MODE, 0, false);
    EXPECT_EQ(futex_wakes + posts + waits + objects, 0);
    EXPECT_LOG("S0 TO");
}

static void signals_and_wakes_many_times(struct probe *probe)
{
    for (int i = 0; i < 100; i++) {
        CFRunLoopSourceSignal(probe_source_of(probe->context));
        CFRunLoopWakeUp(LOOP);
    }
}

TEST(a_callbacks_wake_ups_make_no_call, "46 64")
{
    static struct probe other = PROBE("S0", NULL);
    static struct probe source = PROBE("A", signals_and_wakes_many_times);

    count();
    probe_source_add(&other, 0, LOOP, MODE);
    source.context = &other;
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    probe_run(MODE, 1000, true);
    probe_run(MODE, 1000, true);
    EXPECT_EQ(futex_wakes + posts + waits + objects, 0);
    EXPECT_LOG("A HS S0 HS");
}

static void signals_and_wakes_the_sleeper(void *loop)
{
    struct probe *source = ((struct probe **)loop)[1];

    for (int i = 0; i < 100; i++) {
        CFRunLoopSourceSignal(probe_source_of(source));
        CFRunLoopWakeUp(((CFRunLoopRef *)loop)[0]);
    }
}

TEST(a_sleeping_loop_is_woken_by_one_call, "61 77")
{
    static struct probe source = {.name = "S0", .action = probe_stops_loop, .logging = probe_is_silent};
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};
    void *both[2] = {LOOP, &source};
    struct probe_thread thread;

    probe_source_add(&source, 0, LOOP, MODE);
    probe_source_add(&idle, 0, LOOP, MODE);
    count();
    probe_thread_when_waiting(&thread, LOOP, signals_and_wakes_the_sleeper, both);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    /* More than one only if the loop had been woken and was asleep again before the hundred were done. */
    EXPECT(futex_wakes >= 1 && futex_wakes <= waits);
    EXPECT_EQ(posts + objects, 0);
}

TEST(a_run_with_a_time_limit_makes_nothing, "14 41 43")
{
    static struct probe source = PROBE("S0", NULL);
    int threads = entries_of("/proc/self/task");
    int descriptors = entries_of("/proc/self/fd");

    count();
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1000, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(waits, 0);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, false), kCFRunLoopRunTimedOut);
    EXPECT(waits >= 1 && waits <= 3);
    EXPECT_EQ(objects + posts + futex_wakes, 0);
    EXPECT_EQ(entries_of("/proc/self/task"), threads);
    EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
}

static int (*fake_set_wait)(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

static int count_fake_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    waits++;
    return fake_set_wait(set, events, capacity, deadline_ns);
}

TEST(a_wait_asks_about_descriptors_before_due_timers_if_it_has_not_asked_yet, "34 35")
{
    static struct probe port = PROBE("P", NULL);
    static struct probe due = PROBE("due", NULL);
    static struct probe later = PROBE("T", probe_stops_loop);
    int event = probe_event();

    clock_start();
    fake_set_wait = kernel.set_wait;
    kernel.set_wait = count_fake_set_wait;
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    waits = 0;
    probe_timer_add(&later, 0.1, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    EXPECT_EQ(waits, 1); /* it has asked when the date has come */
    waits = 0;
    probe_timer_add(&due, -1, 0, LOOP, MODE);
    probe_timer_add(&later, 0.1, 0, LOOP, MODE);
    probe_run(MODE, 10, false);
    EXPECT_EQ(waits, 2);
    EXPECT_LOG("T S due T S");
    probe_invalidate(&port);
    close(event);
}

TEST(a_thread_that_may_be_woken_late_sleeps, "41 44 T9")
{
    static struct probe port = PROBE("S1", NULL);
    int event = probe_event();

    prctl(PR_SET_TIMERSLACK, 150000000ul); /* longer than the run */
    count();
    probe_port_source_add(&port, 0, event, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.1, false), kCFRunLoopRunTimedOut);
    EXPECT(waits >= 1 && waits <= 3);
    close(event);
}

static int waits_of_a_poll(int sources, int timers)
{
    static struct probe many[10000];
    static int used;

    for (int i = 0; i < sources; i++) {
        many[used] = (struct probe){.name = "S0", .logging = probe_is_silent | probe_has_no_context_calls};
        probe_source_add(&many[used++], 0, LOOP, MODE);
    }
    for (int i = 0; i < timers; i++) {
        many[used] = (struct probe){.name = "T", .logging = probe_is_silent | probe_has_no_context_calls};
        probe_timer_add(&many[used++], 1000 + i, 0, LOOP, MODE);
    }
    waits = 0;
    (void)CFRunLoopRunInMode(MODE, 0, false);
    return waits;
}

TEST(a_poll_without_descriptors_makes_no_call_however_many_items_there_are, "14 36")
{
    count();
    EXPECT_EQ(waits_of_a_poll(1, 0), 0);
    EXPECT_EQ(waits_of_a_poll(100, 100), 0);
    EXPECT_EQ(waits_of_a_poll(4000, 4000), 0);
    EXPECT_EQ(futex_wakes + posts + objects, 0);
}

TEST(a_poll_with_descriptors_makes_one_call_however_many_there_are, "102")
{
    enum { most = 100 };
    static struct probe ports[most];

    count();
    for (int i = 0; i < most; i++) {
        ports[i] = (struct probe){.name = "S1", .logging = probe_is_silent, .descriptor = -1};
        probe_port_source_add(&ports[i], 0, probe_event(), LOOP, MODE);
    }
    (void)CFRunLoopRunInMode(MODE, 0, false);
    EXPECT_EQ(objects, 2); /* the set, and the eventfd that wakes it */
    waits = 0;
    for (int i = 0; i < 10; i++) {
        (void)CFRunLoopRunInMode(MODE, 0, false);
    }
    EXPECT_EQ(waits, 10);
    EXPECT_EQ(objects, 2);
    for (int i = 0; i < most; i++) {
        close(ports[i].descriptor);
        probe_invalidate(&ports[i]);
    }
}

TEST(a_firing_timer_costs_one_wait, "118 143")
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    uint64_t calls;

    clock_start();
    probe_timer_add(&timer, 0.001, 0.001, LOOP, MODE);
    calls = fake_kernel_calls();
    (void)CFRunLoopRunInMode(MODE, 0.1005, false);
    EXPECT_EQ(timer.calls, 100);
    EXPECT_EQ(fake_kernel_calls() - calls, 101);
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
}

/* ---- the kernel refuses everything ---- */

/* From here on a system call other than the child's end kills it. */
static bool forbid_everything(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void expect_no_calls(void (*function)(void))
{
    int status = 0;
    pid_t child;

    if (test_is_instrumented()) {
        SKIP("the tool makes calls of its own");
    }
    child = fork();
    if (child == 0) {
        if (!forbid_everything()) {
            _exit(77);
        }
        function();
        syscall(SYS_exit_group, 0);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP("system calls cannot be filtered here");
    }
    EXPECT_EQ(status, 0);
}

static struct probe silent_source = {.name = "S0", .logging = probe_is_silent};
static struct probe silent_timer = {.name = "T", .logging = probe_is_silent};

static void signals_wakes_and_polls(void)
{
    for (int i = 0; i < 1000; i++) {
        CFRunLoopSourceSignal(probe_source_of(&silent_source));
        CFRunLoopSourceSignal(probe_source_of(&silent_source));
        CFRunLoopWakeUp(LOOP);
        CFRunLoopStop(LOOP);
        if (CFRunLoopRunInMode(MODE, i % 2 ? 0 : 1000, true) != kCFRunLoopRunHandledSource) {
            syscall(SYS_exit_group, 1);
        }
    }
}

TEST(no_call_escapes_signals_wake_ups_and_runs_that_find_work, "41 46 61 77")
{
    probe_source_add(&silent_source, 0, LOOP, MODE);
    probe_timer_add(&silent_timer, 1000, 0, LOOP, MODE);
    (void)CFRunLoopRunInMode(MODE, 0, true); /* what is made at the first need */
    expect_no_calls(signals_wakes_and_polls);
    CFRunLoopTimerInvalidate(probe_timer_of(&silent_timer));
}

static void moves_timers(void)
{
    for (int i = 0; i < 1000; i++) {
        CFRunLoopTimerSetNextFireDate(probe_timer_of(&silent_timer), CFAbsoluteTimeGetCurrent() + 1000 + i);
        CFRunLoopTimerSetTolerance(probe_timer_of(&silent_timer), i);
        CFRunLoopRemoveTimer(LOOP, probe_timer_of(&silent_timer), MODE);
        CFRunLoopAddTimer(LOOP, probe_timer_of(&silent_timer), MODE);
    }
}

TEST(timers_are_moved_without_the_kernel, "128 143 T15")
{
    CFRunLoopTimerRef timer = probe_timer(&silent_timer, 1000, 10000);

    CFRunLoopAddTimer(LOOP, timer, MODE);
    expect_no_calls(moves_timers);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
}
