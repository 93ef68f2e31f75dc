/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault cases of processes that no other test covers: deep nesting, the end of the process in a callback, and no descriptor left. Forking
 * is in test_fork.c, ending threads in test_thread_exit.c; two run loops in one thread are tried through Swift, with Foundation's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Loop/loop_trace.h"

static int depth;

static void nests_deeply(struct probe *probe)
{
    if (++depth < 1000) {
        CFRunLoopSourceSignal(probe_source_of(probe));
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
        probe_note_current_mode("mode", LOOP);
    }
}

TEST(a_thousand_nested_runs, "45 P10")
{
    clock_start();
    static struct probe source = {.name = "S0", .action = nests_deeply, .logging = probe_is_silent};
    CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(source.calls, 1000);
    EXPECT(CFRunLoopCopyCurrentMode(LOOP) == NULL);
}

enum ending { ends_by_exit, ends_by_quick_exit, ends_by_abort, ends_by_kill, endings };
static enum ending chosen_ending;

static void ends_the_process(struct probe *probe)
{
    (void)probe;
    switch (chosen_ending) {
    case ends_by_exit:
        exit(7);
    case ends_by_quick_exit:
        quick_exit(7);
    case ends_by_abort:
        signal(SIGABRT, SIG_DFL);
        abort();
    default:
        raise(SIGKILL);
    }
}

static void sleeps_in_its_loop(void *context)
{
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};
    probe_source_add(&idle, 0, LOOP, MODE);
    *(_Atomic(CFRunLoopRef) *)context = LOOP;
    CFRunLoopRunInMode(MODE, 1e10, false);
}

TEST(the_process_ends_in_a_callback, "P8")
{
    for (chosen_ending = 0; chosen_ending < endings; chosen_ending++) {
        pid_t child = fork();
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            static _Atomic(CFRunLoopRef) other;
            static struct probe source = {.name = "S0", .action = ends_the_process, .logging = probe_is_silent};
            struct probe_thread thread;
            probe_thread_start(&thread, sleeps_in_its_loop, (void *)&other); /* another loop is asleep meanwhile */
            while (!other) {
            }
            probe_await_sleep(other);
            CFRunLoopSourceSignal(probe_source_add(&source, 0, LOOP, MODE));
            CFRunLoopRunInMode(MODE, 0, true);
            _exit(1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        bool is_exit = chosen_ending == ends_by_exit || chosen_ending == ends_by_quick_exit;
        EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), is_exit                          ? 7
                                                                               : chosen_ending == ends_by_abort ? -SIGABRT
                                                                                                                : -SIGKILL);
    }
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int event_of_the_poor;
static struct rlimit rich;

static void runs_without_descriptors(void *context)
{
    (void)context;
    static struct probe source = {.name = "S0", .logging = probe_is_silent};
    static struct probe timer = {.name = "T", .logging = probe_is_silent};
    static struct probe port = {.name = "S1", .logging = probe_is_silent};
    REQUIRE(LOOP != NULL);
    CFRunLoopSourceRef a = probe_source_add(&source, 0, LOOP, MODE);
    probe_timer_add(&timer, 0.001, 0.001, LOOP, MODE);
    CFRunLoopSourceSignal(a);
    while (timer.calls < 3) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.02, false), kCFRunLoopRunTimedOut);
    }
    EXPECT_EQ(source.calls, 1);
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    probe_port_source_add(&port, 0, event_of_the_poor, LOOP, MODE);
    CFRunLoopSourceSignal(a);
    double start = probe_seconds();
    double start_of_work = processor_seconds();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.2, false), kCFRunLoopRunTimedOut);
    EXPECT(probe_seconds() - start >= 0.2);
    EXPECT(processor_seconds() - start_of_work < 0.15); /* it does not spin */
    EXPECT_EQ(source.calls, 2);
    setrlimit(RLIMIT_NOFILE, &rich);
    probe_event_post(event_of_the_poor);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 100, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(port.calls, 1);
    CFRunLoopSourceInvalidate(probe_source_of(&port));
}

TEST(a_process_without_descriptors_keeps_running, "14 F7")
{
    event_of_the_poor = probe_event();
    getrlimit(RLIMIT_NOFILE, &rich);
    int lowest_free = fcntl(0, F_DUPFD_CLOEXEC, 0);
    close(lowest_free);
    struct rlimit poor = {.rlim_cur = (rlim_t)lowest_free, .rlim_max = rich.rlim_max};
    setrlimit(RLIMIT_NOFILE, &poor);
    probe_on_thread(runs_without_descriptors, NULL);
    setrlimit(RLIMIT_NOFILE, &rich);
    close(event_of_the_poor);
}
