/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loops write into a trace, on the clock that the test moves, and what becomes of the file when threads end, processes fork or are
 * killed, and the disk is full.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLTrace.h"
#include "Kernel/kernel.h"
#include "Kernel/Trace/kernel_trace.h"
#include "Loop/Trace/trace.h"
#include "Loop/Trace/trace_session.h"
#include "Loop/Trace/trace_reader.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"

static struct trace words;

static void expect_words(const struct trace_reading *reading, uint32_t ring, const char *expected)
{
    const struct trace_ring *own = trace_ring_at(reading, ring);

    REQUIRE(own != NULL);
    trace_words(reading, own, &words);
    EXPECT_TRACE(&words, expected);
}

static void takes_ten_ms(struct probe *probe)
{
    (void)probe;
    clock_spend_ms(10);
}

TEST(a_trace_has_runs_passes_sleeps_and_callouts_with_their_times, "500 501 502")
{
    static struct probe timer = {.name = "T", .action = takes_ten_ms, .logging = probe_is_silent};
    static struct probe source = {.name = "S", .action = takes_ten_ms, .logging = probe_is_silent};
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    const struct trace_event *event;
    uint64_t at = 0;

    clock_start();
    probe_timer_add(&timer, 0.1, 0.1, LOOP, MODE);
    probe_source_add(&source, 0, LOOP, MODE);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    CFRunLoopSourceSignal(probe_source_of(&source));
    CFRunLoopRunInMode(MODE, 0.25, false);
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    expect_words(&reading, 0,
                 "signal@0 run@0 pass source( ) pass sleep@10 timer@100 due@100 timer( ) pass sleep@110 timer@200 due@200 timer( ) pass "
                 "sleep@210 limit@250 end@250");
    event = trace_find(&reading, trace_ring_at(&reading, 0), trace_callout_begins, &at);
    REQUIRE(event != NULL);
    EXPECT_EQ(event->object, (uintptr_t)probe_source_of(&source));
    EXPECT(event->value != 0);
    EXPECT_EQ(reading.header->process, getpid());
    EXPECT_EQ(reading.header->state, trace_was_stopped);
    EXPECT_EQ(trace_ring_at(&reading, 0)->loop, (uintptr_t)LOOP);
    EXPECT_EQ(reading.header->lost, 0);
    trace_close(&reading);
    trace_directory_end();
}

TEST(a_run_names_its_mode, "501")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    const struct trace_event *event;
    uint64_t at = 0;

    clock_start();
    probe_stage(kCFRunLoopDefaultMode);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    for (uint64_t i = 0; i < 3; i++, at++) {
        event = trace_find(&reading, trace_ring_at(&reading, 0), trace_name, &at);
        REQUIRE(event != NULL);
        EXPECT_EQ(event->detail, 8 * i);
        EXPECT(memcmp(&event->value, &"kCFRunLoopDefaultMode\0\0"[8 * i], 8) == 0);
    }
    EXPECT(!trace_find(&reading, trace_ring_at(&reading, 0), trace_name, &at));
    trace_close(&reading);
    trace_directory_end();
}

static void nothing(void *info)
{
    (void)info;
}

TEST(an_observer_and_a_block_are_callouts, "501 503")
{
    static struct probe observer = {.name = "O", .logging = probe_is_silent};
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    const struct trace_event *posted;
    const struct trace_event *begun;
    uint64_t at = 0;

    clock_start();
    probe_observer_add(&observer, kCFRunLoopExit, 0, LOOP, MODE);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    CRLRunLoopPerformFunction(LOOP, MODE, nothing, NULL, NULL);
    CFRunLoopRunInMode(MODE, 0, false);
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    expect_words(&reading, 0, "post@0 run@0 pass block( ) observer( ) end@0");
    posted = trace_find(&reading, trace_ring_at(&reading, 0), trace_post, &at);
    begun = trace_find(&reading, trace_ring_at(&reading, 0), trace_callout_begins, &at);
    REQUIRE(posted && begun);
    EXPECT_EQ(posted->object, (uintptr_t)LOOP);
    EXPECT_EQ(posted->value, begun->object);
    EXPECT_EQ(begun->value, (uintptr_t)nothing);
    at++;
    begun = trace_find(&reading, trace_ring_at(&reading, 0), trace_callout_begins, &at);
    REQUIRE(begun != NULL);
    EXPECT_EQ(begun->detail, trace_observer | kCFRunLoopExit << 8);
    trace_close(&reading);
    trace_directory_end();
}

TEST(the_sleep_of_a_hosted_run_is_a_sleep, "501")
{
    static struct probe timer = {.name = "T", .action = takes_ten_ms, .logging = probe_is_silent};
    const char *path = trace_directory_begin();
    struct trace_reading reading;

    clock_start();
    probe_timer_add(&timer, 0.1, 0, LOOP, MODE);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    clock_spend_ms(100);
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), kCFRunLoopRunFinished);
    CRLRunLoopLeave(LOOP);
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    expect_words(&reading, 0, "run@0 pass sleep@0 timer@100 due@100 timer( ) end@110");
    trace_close(&reading);
    trace_directory_end();
}

TEST(a_full_ring_keeps_the_latest_events_and_counts_the_others, "505")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    const struct trace_ring *ring;

    clock_start();
    probe_stage(MODE);
    EXPECT_EQ(CRLTraceStart(path, 1), 0);
    for (int i = 0; i < 100; i++) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    ring = trace_ring_at(&reading, 0);
    REQUIRE(ring != NULL);
    EXPECT_EQ(reading.header->ring_capacity, 64);
    EXPECT(trace_ring_lost(&reading, ring) > 0);
    EXPECT_EQ(trace_ring_lost(&reading, ring), ring->next - 64);
    EXPECT(!trace_event_at(&reading, ring, ring->next - 65));
    EXPECT(trace_event_at(&reading, ring, ring->next - 64) != NULL);
    EXPECT_EQ(trace_event_at(&reading, ring, ring->next - 1)->kind, trace_run_ends);
    trace_close(&reading);
    trace_directory_end();
}

/* ---- threads ---- */

enum { thread_count = 64, signals_each = 20 };

static CFRunLoopSourceRef shared;

static void signals_and_runs(void *context)
{
    (void)context;
    for (int i = 0; i < signals_each; i++) {
        CFRunLoopSourceSignal(shared);
        CRLRunLoopPerformFunction(LOOP, MODE, nothing, NULL, NULL);
        CFRunLoopRunInMode(MODE, 0, false);
    }
}

TEST(each_of_64_threads_writes_into_its_own_ring, "506 507")
{
    static struct probe probe = {.name = "S", .logging = probe_is_silent};
    static struct probe_thread threads[thread_count];
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    bool loops_differ = true;

    shared = probe_source_add(&probe, 0, LOOP, MODE);
    EXPECT_EQ(CRLTraceStart(path, 16384), 0);
    for (int i = 0; i < thread_count; i++) {
        probe_thread_start(&threads[i], signals_and_runs, NULL);
    }
    for (int i = 0; i < thread_count; i++) {
        probe_thread_join(&threads[i]);
    }
    CFRunLoopRunInMode(MODE, 0, false);
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(reading.header->rings, thread_count + 1);
    for (uint32_t i = 0; i < thread_count + 1; i++) {
        const struct trace_ring *ring = trace_ring_at(&reading, i);
        uint64_t blocks = 0;

        REQUIRE(ring != NULL);
        EXPECT_EQ(trace_ring_lost(&reading, ring), 0);
        for (uint64_t at = 0; at < ring->next; at++) {
            const struct trace_event *event = trace_event_at(&reading, ring, at);

            REQUIRE(event != NULL);
            blocks += event->kind == trace_callout_begins && event->detail == trace_block;
        }
        EXPECT_EQ(blocks, ring->thread == getpid() ? 0 : signals_each);
        loops_differ &= i == 0 || ring->thread != trace_ring_at(&reading, i - 1)->thread;
    }
    EXPECT(loops_differ);
    EXPECT_EQ(trace_count(&reading, trace_post), thread_count * signals_each);
    EXPECT(trace_count(&reading, trace_signal) >= 1);
    trace_close(&reading);
    trace_directory_end();
}

/* ---- what the thread had of the processor ---- */

static int64_t tell_usage(uint64_t *ret_waits)
{
    *ret_waits = 7;
    return 1234;
}

TEST(the_usage_of_the_processor_is_noted_a_tenth_of_a_millisecond_apart, "515")
{
    const char *path = trace_directory_begin();
    const struct trace_event *event;
    struct trace_reading reading;
    uint64_t from = 0;

    clock_start();
    kernel_trace.thread_usage = tell_usage;
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            trace_event(trace_wake, 0, &words, 0);
        }
        clock_spend_ms(1);
    }
    CRLTraceStop();
    kernel_trace = kernel_trace_linux;
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(trace_count(&reading, trace_wake), 12);
    EXPECT_EQ(trace_count(&reading, trace_usage), 3);
    event = trace_find(&reading, trace_ring_at(&reading, 0), trace_usage, &from);
    EXPECT(event && event->object == 7 && event->value == 1234);
    trace_close(&reading);
    trace_directory_end();
}

/* ---- callouts that do not return ---- */

static void jumps(struct probe *probe)
{
    (void)probe;
    longjmp(probe_way_out, 1);
}

TEST(a_callout_that_does_not_return_ends_with_its_run, "508")
{
    static struct probe source = {.name = "S", .action = jumps, .logging = probe_is_silent};
    const char *path = trace_directory_begin();
    struct trace_reading reading;

    clock_start();
    probe_source_add(&source, 0, LOOP, CFSTR("inner"));
    CFRunLoopSourceSignal(probe_source_of(&source));
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    EXPECT(probe_run_is_left(CFSTR("inner")));
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    trace_words(&reading, trace_ring_at(&reading, 0), &words);
    EXPECT_TRACE(&words, "signal@0 run@0 pass source( run@0 pass source( ) left@0 end@0");
    trace_close(&reading);
    trace_directory_end();
}

/* ---- processes ---- */

static void run_once(void)
{
    CRLRunLoopPerformFunction(LOOP, MODE, nothing, NULL, NULL);
    CFRunLoopRunInMode(MODE, 0, false);
}

static void wait_for(pid_t child)
{
    int status = 0;

    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(the_child_of_a_fork_has_a_file_of_its_own_once_it_runs_a_loop, "509")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    char childs[160];
    uint64_t before;
    pid_t child;

    EXPECT_EQ(CRLTraceStart(path, 4096), 0);
    run_once();
    REQUIRE(trace_open(path, &reading));
    before = trace_ring_at(&reading, 0)->next;
    trace_close(&reading);
    child = fork();
    if (child == 0) {
        CFRunLoopWakeUp(LOOP);
        _exit(trace_directory_count() == 1 ? 0 : 1);
    }
    wait_for(child);
    child = fork();
    if (child == 0) {
        run_once();
        _exit(0);
    }
    wait_for(child);
    CRLTraceStop();
    EXPECT_EQ(trace_directory_count(), 2);
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(trace_ring_at(&reading, 0)->next, before);
    trace_close(&reading);
    (void)snprintf(childs, sizeof childs, "%s.%d", path, (int)child);
    REQUIRE(trace_open(childs, &reading));
    EXPECT_EQ(reading.header->process, child);
    EXPECT_EQ(reading.header->parent, getpid());
    EXPECT_EQ(reading.header->state, trace_is_running);
    trace_words(&reading, trace_ring_at(&reading, 0), &words);
    EXPECT(strstr(words.text, "pass block( ) end") != NULL);
    EXPECT(((const struct trace_objects *)(const void *)(reading.bytes + trace_file_step))->size > 0);
    trace_close(&reading);
    trace_directory_end();
}

TEST(a_process_that_is_killed_leaves_a_trace_that_can_be_read, "513")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        EXPECT_EQ(CRLTraceStart(path, 0), 0);
        run_once();
        (void)kill(getpid(), SIGKILL);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status));
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(reading.header->state, trace_is_running);
    EXPECT_EQ(reading.header->ended_ns, 0);
    EXPECT_EQ(trace_count(&reading, trace_run_ends), 1);
    EXPECT(((const struct trace_objects *)(const void *)(reading.bytes + (1 + reading.header->objects) * trace_file_step))->size > 0);
    trace_close(&reading);
    trace_directory_end();
}

/* ---- the file ---- */

TEST(a_trace_that_cannot_begin_says_why_and_leaves_no_file, "500 510")
{
    const char *path = trace_directory_begin();
    char other[160];
    FILE *file;

    EXPECT_EQ(CRLTraceStart(NULL, 0), EINVAL);
    EXPECT_EQ(CRLTraceStart("", 0), EINVAL);
    (void)snprintf(other, sizeof other, "%s.d/x", path);
    EXPECT_EQ(CRLTraceStart(other, 0), ENOENT);
    file = fopen(path, "w");
    REQUIRE(file != NULL);
    (void)fclose(file);
    EXPECT_EQ(CRLTraceStart(path, 0), EEXIST);
    (void)snprintf(other, sizeof other, "%s.2", path);
    EXPECT_EQ(CRLTraceStart(other, 0), 0);
    EXPECT_EQ(CRLTraceStart(path, 0), EBUSY);
    CRLTraceStop();
    CRLTraceStop();
    EXPECT_EQ(trace_directory_count(), 2);
    trace_directory_end();
}

static int full_disk(int file, int64_t offset, size_t size)
{
    (void)file, (void)offset, (void)size;
    return -ENOSPC;
}

static int full_behind_the_header(int file, int64_t offset, size_t size)
{
    return offset > 0 ? -ENOSPC : kernel_trace_linux.file_reserve(file, offset, size);
}

TEST(a_full_disk_loses_events_and_nothing_else, "512")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;

    kernel_trace.file_reserve = full_disk;
    EXPECT_EQ(CRLTraceStart(path, 0), ENOSPC);
    EXPECT_EQ(trace_directory_count(), 0);
    kernel_trace.file_reserve = full_behind_the_header;
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    EXPECT_EQ(logged_lines("no room for a thread's events", run_once), 1);
    EXPECT_EQ(logged_lines("CoreRunLoop", run_once), 0);
    CRLTraceStop();
    kernel_trace = kernel_trace_linux;
    REQUIRE(trace_open(path, &reading));
    EXPECT(!trace_ring_at(&reading, 0));
    EXPECT(reading.header->lost >= 8);
    trace_close(&reading);
    trace_directory_end();
}

static int no_map(int file, int64_t offset, size_t size, void **ret_memory)
{
    (void)file, (void)offset, (void)size, (void)ret_memory;
    return -ENOMEM;
}

static int no_map_behind_the_header(int file, int64_t offset, size_t size, void **ret_memory)
{
    return offset > 0 ? -ENOMEM : kernel_trace_linux.file_map(file, offset, size, ret_memory);
}

TEST(a_process_without_room_for_a_mapping_loses_events_and_nothing_else, "500 512")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;

    kernel_trace.file_map = no_map;
    EXPECT_EQ(CRLTraceStart(path, 0), ENOMEM);
    EXPECT_EQ(trace_directory_count(), 0);
    kernel_trace.file_map = no_map_behind_the_header;
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    EXPECT_EQ(logged_lines("no room for a thread's events", run_once), 1);
    CRLTraceStop();
    kernel_trace = kernel_trace_linux;
    REQUIRE(trace_open(path, &reading));
    EXPECT(!trace_ring_at(&reading, 0));
    trace_close(&reading);
    trace_directory_end();
}

TEST(the_limit_on_files_loses_events_and_sends_no_signal, "512")
{
    const struct rlimit small = {trace_file_rings_at + 1000, trace_file_rings_at + 1000};
    const char *path = trace_directory_begin();
    pid_t child = fork();

    if (child == 0) {
        bool began = setrlimit(RLIMIT_FSIZE, &small) == 0 && CRLTraceStart(path, 0) == 0;

        run_once();
        CRLTraceStop();
        _exit(began ? 0 : 1);
    }
    wait_for(child);
    trace_directory_end();
}

TEST(a_program_that_closes_the_traces_descriptor_keeps_its_own_files, "512")
{
    const char *path = trace_directory_begin();
    char other[160];
    int file;

    (void)snprintf(other, sizeof other, "%s.own", path);
    file = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the next number is the trace's */
    (void)close(file);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    (void)close(file);
    EXPECT_EQ(open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600), file);
    EXPECT_EQ(logged_lines("no room for a thread's events", run_once), 1);
    CRLTraceStop();
    EXPECT_EQ(lseek(file, 0, SEEK_END), 0);
    EXPECT_EQ(close(file), 0);
    trace_directory_end();
}

TEST(a_second_trace_has_rings_of_its_own, "500")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    char other[160];

    (void)snprintf(other, sizeof other, "%s.2", path);
    EXPECT_EQ(CRLTraceStart(path, 0), 0);
    run_once();
    CRLTraceStop();
    run_once();
    EXPECT_EQ(CRLTraceStart(other, 0), 0);
    run_once();
    run_once();
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(trace_count(&reading, trace_run_begins), 1);
    trace_close(&reading);
    REQUIRE(trace_open(other, &reading));
    EXPECT_EQ(trace_count(&reading, trace_run_begins), 2);
    trace_close(&reading);
    trace_directory_end();
}

/* ---- the environment ---- */

static void start_from_environment(void)
{
    trace_start_from_environment();
}

TEST(the_environment_begins_a_trace, "510")
{
    const char *path = trace_directory_begin();
    struct trace_reading reading;
    char other[160];

    REQUIRE(setenv("CORERUNLOOP_TRACE", path, 1) == 0 && setenv("CORERUNLOOP_TRACE_BUFFER", "8192", 1) == 0);
    EXPECT_EQ(logged_lines("CoreRunLoop", start_from_environment), 0);
    EXPECT(trace_is_on());
    CRLTraceStop();
    REQUIRE(trace_open(path, &reading));
    EXPECT_EQ(reading.header->ring_capacity, 256);
    trace_close(&reading);
    EXPECT_EQ(logged_lines("exists; the trace goes to that name", start_from_environment), 1);
    CRLTraceStop();
    (void)snprintf(other, sizeof other, "%s.%d", path, (int)getpid());
    REQUIRE(trace_open(other, &reading));
    trace_close(&reading);
    trace_start_from_environment();
    CRLTraceStop();
    (void)snprintf(other, sizeof other, "%s.%d.2", path, (int)getpid());
    REQUIRE(trace_open(other, &reading));
    trace_close(&reading);
    trace_directory_end();
}

TEST(a_file_that_cannot_be_made_is_one_line_and_the_program_goes_on, "511")
{
    REQUIRE(setenv("CORERUNLOOP_TRACE", "/nonexistent/trace", 1) == 0);
    EXPECT_EQ(logged_lines("/nonexistent/trace: No such file or directory; nothing is traced", start_from_environment), 1);
    EXPECT(!trace_is_on());
    run_once();
}
