/* SPDX-License-Identifier: Apache-2.0 */
/* What a process counts of its loops, in the page that `runloop top` reads or for itself, on the clock that the test moves. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Trace/kernel_trace.h"
#include "Kernel/kernel.h"
#include "Loop/Trace/statistics.h"
#include "Loop/Trace/statistics_file.h"
#include "Loop/Trace/trace.h"
#include "Loop/loop_trace.h"

static char folder[] = P_tmpdir "/crl-statistics-XXXXXX";
static char directory[sizeof folder + sizeof STATISTICS_DIRECTORY];

static void begin(void)
{
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(directory, sizeof directory, "%s/" STATISTICS_DIRECTORY, folder);
    REQUIRE(setenv("XDG_RUNTIME_DIR", folder, 1) == 0 && setenv("CORERUNLOOP_STATISTICS", "1", 1) == 0);
    test_allow_left(1, 0); /* the file is open as long as the process lives */
}

static void end(void)
{
    char path[sizeof directory + 16];

    (void)snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    (void)unlink(path);
    (void)rmdir(directory);
    (void)rmdir(folder);
}

static struct statistics_page page;

/* Reads the page of a process as the command does. Returns false if there is none. */
static bool read_page(pid_t process)
{
    char path[sizeof directory + 16];
    int file;
    bool is_read;

    (void)snprintf(path, sizeof path, "%s/%d", directory, (int)process);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    is_read = read(file, &page, sizeof page) == (ssize_t)sizeof page;
    /* No close in the process that has the lock: closing any descriptor of the file would drop it. */
    if (process != getpid()) {
        (void)close(file);
    } else {
        test_allow_left(2, 0);
    }
    return is_read && memcmp(page.magic, statistics_magic, sizeof page.magic) == 0;
}

static void takes_ms(struct probe *probe)
{
    clock_spend_ms((long)(intptr_t)probe->context);
}

static void nothing(void *info)
{
    (void)info;
}

TEST(statistics_are_what_a_loop_did, "522")
{
    static struct probe fast = {.name = "F", .action = takes_ms, .context = (void *)10, .logging = probe_is_silent};
    static struct probe slow = {.name = "S", .action = takes_ms, .context = (void *)40, .logging = probe_is_silent};
    const struct loop_statistics *place = &page.places[0];
    char path[sizeof directory + 16];
    struct stat status;

    begin();
    clock_start();
    statistics_start_from_environment();
    EXPECT(trace_is_on());
    probe_timer_add(&fast, 0.1, 0.1, LOOP, MODE);
    probe_timer_add(&slow, 0.1, 0, LOOP, MODE);
    CRLRunLoopPerformFunction(LOOP, MODE, nothing, NULL, NULL);
    CRLRunLoopPerformFunction(LOOP, CFSTR("other"), nothing, NULL, NULL);
    CFRunLoopRunInMode(MODE, 0.35, false);
    REQUIRE(read_page(getpid()));
    EXPECT_EQ(place->thread, kernel_trace.thread_id());
    EXPECT_EQ(place->passes, 4);
    EXPECT_EQ(place->sleeps, 4);
    EXPECT_EQ(place->callouts, 5); /* three of the fast timer, one of the slow one, one block */
    EXPECT_EQ(place->timers, 4);
    EXPECT_EQ(place->queued, 1); /* for the other mode */
    EXPECT_EQ(place->busy_ns, 70000000);
    EXPECT_EQ(place->awake_since_ns, 0);
    EXPECT_EQ(place->longest_ns, 40000000);
    EXPECT(place->longest_function != 0);
    EXPECT_EQ(place->late_ns, 10000000); /* the second of two that are due at once */
    EXPECT_EQ(place->latest_ns, 10000000);
    EXPECT_EQ(page.process, getpid());
    (void)snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    EXPECT(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    EXPECT(stat(directory, &status) == 0 && (status.st_mode & 0777) == 0700);
    end();
}

/* Events as ports and descriptors write them. */
TEST(callouts_are_counted_by_function_and_descriptor_and_requests_while_they_wait, "522")
{
    const struct loop_statistics *place = &page.places[0];
    const char *port = "a.port";
    int item = 0;

    begin();
    clock_start();
    statistics_start_from_environment();
    CFRunLoopRunInMode(CFSTR("empty"), 0, false);
    trace_event(trace_run_begins, 0, &item, 0);
    for (uint64_t i = 0; i < 20; i++) {
        trace_event(trace_callout_begins, trace_descriptor, &item, 100 + i);
        trace_event(trace_descriptor_is_ready, 1, &item, i % 2 == 0 ? 7 : 8);
        clock_spend_ms(1);
        trace_event(trace_callout_ends, trace_descriptor, &item, 0);
    }
    trace_event(trace_port_is_served, 0, &item, (uintptr_t)port);
    trace_event(trace_request_begins, 0, NULL, (uintptr_t)port);
    REQUIRE(read_page(getpid()));
    EXPECT_EQ(place->callouts, 20);
    EXPECT_EQ(place->callout_count, statistics_callouts_most);
    EXPECT_EQ(place->functions[1].function, 100);
    EXPECT_EQ(place->functions[1].descriptor, 7);
    EXPECT_EQ(place->functions[1].count, 1);
    EXPECT_EQ(place->functions[1].total_ns, 1000000);
    EXPECT_EQ(place->functions[statistics_callouts_most - 1].function, 0); /* those that have no place */
    EXPECT(place->functions[statistics_callouts_most - 1].count >= 12);
    EXPECT_STR(place->ports[0], "a.port");
    EXPECT_STR(place->asked, "a.port");
    EXPECT(place->asked_ns > 0);
    trace_event(trace_request_ends, 0, NULL, (uintptr_t)port);
    trace_event(trace_run_ends, 0, &item, 0);
    REQUIRE(read_page(getpid()));
    test_allow_left(3, 0); /* as read_page has left its file open twice */
    EXPECT_EQ(place->asked_ns, 0);
    end();
}

static void run_once(void *unused)
{
    static struct probe timer = {.name = "T", .logging = probe_is_silent};

    (void)unused;
    probe_timer_add(&timer, 0, 0, LOOP, MODE);
    CFRunLoopRunInMode(MODE, 0, false);
}

TEST(the_place_of_a_thread_that_has_ended_is_free, "522")
{
    begin();
    statistics_start_from_environment();
    for (int i = 0; i < statistics_loops_most + 3; i++) {
        probe_on_thread(run_once, NULL);
    }
    REQUIRE(read_page(getpid()));
    for (int i = 0; i < statistics_loops_most; i++) {
        EXPECT_EQ(page.places[i].thread, 0);
    }
    EXPECT_EQ(page.places[0].passes, 1); /* each has had the first place */
    EXPECT_EQ(page.places[1].passes, 0);
    end();
}

TEST(the_child_of_a_fork_has_a_page_of_its_own, "523")
{
    pid_t child;
    int status = 0;

    begin();
    statistics_start_from_environment();
    run_once(NULL);
    child = fork();
    if (child == 0) {
        bool has_none = !read_page(getpid());

        run_once(NULL);
        _exit(has_none && read_page(getpid()) && page.process == getpid() && page.places[0].passes == 1 ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT(read_page(child)); /* the file stays: the child has not ended by itself */
    REQUIRE(read_page(getpid()));
    EXPECT_EQ(page.places[0].passes, 1);
    end();
}

TEST(nothing_is_counted_unless_the_environment_says_1, "523")
{
    begin();
    REQUIRE(unsetenv("CORERUNLOOP_STATISTICS") == 0);
    statistics_start_from_environment();
    REQUIRE(setenv("CORERUNLOOP_STATISTICS", "0", 1) == 0);
    statistics_start_from_environment();
    EXPECT(!trace_is_on());
    run_once(NULL);
    EXPECT(!read_page(getpid()));
    end();
}

static void start_and_run(void)
{
    statistics_start_from_environment();
    run_once(NULL);
    run_once(NULL);
}

TEST(a_directory_that_others_may_use_is_refused_with_one_line, "524")
{
    begin();
    REQUIRE(mkdir(directory, 0755) == 0 && chmod(directory, 0755) == 0);
    EXPECT_EQ(logged_lines("Permission denied; nothing is counted", start_and_run), 1);
    EXPECT(!read_page(getpid()));
    end();
}

TEST(a_link_in_the_place_of_the_directory_is_refused_with_one_line, "524")
{
    char other[sizeof folder + 8];

    begin();
    (void)snprintf(other, sizeof other, "%s/other", folder);
    REQUIRE(mkdir(other, 0700) == 0 && symlink(other, directory) == 0);
    EXPECT_EQ(logged_lines("nothing is counted", start_and_run), 1);
    EXPECT_EQ(rmdir(other), 0); /* nothing was put there */
    (void)unlink(directory);
    end();
}

/* ---- for the program ---- */

static CRLStatistics told;

/* Counting has begun within the callout, which itself is not counted, nor the pass. */
static void start_counting(struct probe *probe)
{
    (void)probe;
    CRLStatisticsStart();
    EXPECT(!CRLRunLoopGetStatistics(LOOP, &told));
}

static void look_meanwhile(struct probe *probe)
{
    (void)probe;
    clock_spend_ms(30);
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
    EXPECT_EQ((int)(told.busy * 1e3 + 0.5), 80);
    EXPECT_EQ((int)(told.longest * 1e3 + 0.5), 50);
}

TEST(a_program_counts_for_itself_also_in_a_run_that_has_begun, "522 527")
{
    static struct probe start = {.name = "1", .action = start_counting, .logging = probe_is_silent};
    static struct probe slow = {.name = "S", .action = takes_ms, .context = (void *)50, .logging = probe_is_silent};
    static struct probe look = {.name = "L", .action = look_meanwhile, .logging = probe_is_silent};

    begin();
    test_allow_left(0, 0);
    REQUIRE(unsetenv("CORERUNLOOP_STATISTICS") == 0);
    clock_start();
    probe_timer_add(&start, 0.1, 0, LOOP, MODE);
    probe_timer_add(&slow, 0.2, 0, LOOP, MODE);
    probe_timer_add(&look, 0.21, 0, LOOP, MODE);
    CRLRunLoopPerformFunction(LOOP, CFSTR("other"), nothing, NULL, NULL);
    CFRunLoopRunInMode(MODE, 0.5, false);
    told = (CRLStatistics){.version = 1};
    EXPECT(!CRLRunLoopGetStatistics(LOOP, &told));
    told.version = 0;
    REQUIRE(CRLRunLoopGetStatistics(LOOP, &told));
    EXPECT_EQ(told.passes, 2);
    EXPECT_EQ(told.callouts, 2);
    EXPECT_EQ(told.timers, 2);
    EXPECT(told.sleeps >= 1);
    EXPECT(told.longestFunction != NULL);
    EXPECT_EQ((int)(told.late * 1e3 + 0.5), 40); /* the second of two in a row */
    EXPECT_EQ((int)(told.latest * 1e3 + 0.5), 40);
    EXPECT_EQ(told.queued, 1);
    EXPECT_EQ((int)(told.busy * 1e3 + 0.5), 80);
    EXPECT(!read_page(getpid()));
    end();
}

static CFRunLoopRef thread_loop_seen;

static void run_and_be_asked(void *unused)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    EXPECT(!CRLRunLoopGetStatistics(loop, &told)); /* it has not run */
    run_once(unused);
    EXPECT(CRLRunLoopGetStatistics(loop, &told));
    EXPECT_EQ(told.passes, 1);
    thread_loop_seen = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
}

TEST(nothing_is_told_of_a_loop_that_has_ended_or_is_not_counted, "527")
{
    CRLStatisticsStart();
    probe_on_thread(run_and_be_asked, NULL);
    EXPECT(!CRLRunLoopGetStatistics(thread_loop_seen, &told));
    CFRelease(thread_loop_seen);
    EXPECT(!CRLRunLoopGetStatistics(LOOP, &told));
    run_once(NULL);
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
}

TEST(the_child_of_a_fork_counts_for_itself_from_0, "527")
{
    pid_t child;
    int status = 0;

    CRLStatisticsStart();
    run_once(NULL);
    child = fork();
    if (child == 0) {
        bool is_new = !CRLRunLoopGetStatistics(LOOP, &told);

        run_once(NULL);
        _exit(is_new && CRLRunLoopGetStatistics(LOOP, &told) && told.passes == 1 ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
    EXPECT_EQ(told.passes, 1);
}

static int64_t (*clock_before)(void);
static double busy_between;

/* Looks where the thread has begun to fall asleep, and has not added the time yet. */
static int64_t look_in_between(void)
{
    kernel.monotonic_ns = clock_before;
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
    busy_between = told.busy;
    return kernel.monotonic_ns();
}

TEST(the_time_that_is_told_never_shrinks, "527")
{
    int run = 0;

    clock_start();
    CRLStatisticsStart();
    (void)LOOP;
    trace_event(trace_run_begins, 0, &run, 0);
    clock_spend_ms(20);
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
    EXPECT_EQ((int)(told.busy * 1e3 + 0.5), 20);
    clock_before = kernel.monotonic_ns;
    kernel.monotonic_ns = look_in_between;
    trace_event(trace_sleep_begins, 0, &run, 0);
    EXPECT_EQ((int)(busy_between * 1e3 + 0.5), 20);
    EXPECT(CRLRunLoopGetStatistics(LOOP, &told));
    EXPECT_EQ((int)(told.busy * 1e3 + 0.5), 20);
    EXPECT_EQ(told.sleeps, 1);
}

/* ---- the page that cannot be made ---- */

static int no_room(int file, int64_t offset, size_t size)
{
    (void)file;
    (void)offset;
    (void)size;
    return -ENOSPC;
}

static int no_lock(int file)
{
    (void)file;
    return -ENOLCK;
}

TEST(a_page_without_room_is_one_line_and_leaves_no_file, "524")
{
    begin();
    test_allow_left(0, 0);
    kernel_trace.file_reserve = no_room;
    EXPECT_EQ(logged_lines("No space left on device; nothing is counted", start_and_run), 1);
    EXPECT(!read_page(getpid()));
    end();
}

TEST(a_page_that_cannot_be_locked_is_one_line_and_leaves_no_file, "524")
{
    begin();
    test_allow_left(0, 0);
    kernel_trace.file_lock = no_lock;
    EXPECT_EQ(logged_lines("No locks available; nothing is counted", start_and_run), 1);
    EXPECT(!read_page(getpid()));
    end();
}
