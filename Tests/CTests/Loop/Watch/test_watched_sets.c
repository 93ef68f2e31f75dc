/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources on a wait set of their owner. In the set are a line, which stays ready until it is read, and a bell, which stays ready for ever
 * once it has been rung. Each is reported once, except for the line's end. Nothing spins, whatever the kernel refuses.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Run/quiet_wait.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/loop_trace.h"
#include "fake_kernel.h"
#include "harness.h"
#include "older_kernel.h"

static const int64_t second_ns = 1000000000;

struct standing {
    int line; /* the source stood on it before */
    int other_end;
    int bell;
    int set;
    CFRunLoopSourceRef source;
    int performed;
};

static struct standing standing;

static void count_performed(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct standing *performing = info;

    (void)source, (void)ready;
    performing->performed++;
}

static void keep_info(const void *info)
{
    (void)info;
}

static void begin(void)
{
    struct descriptor_source_context context = {.info = &standing, .release = keep_info, .perform = count_performed};
    int ends[2];

    need_quiet_nested_sets();
    fake_kernel_install();
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    standing = (struct standing){.line = ends[0], .other_end = ends[1], .bell = eventfd(0, EFD_CLOEXEC), .set = kernel.set_create()};
    REQUIRE(standing.bell >= 0 && standing.set >= 0);
    REQUIRE(kernel.set_add(standing.set, standing.line, kernel_readable, 0) == 0);
    REQUIRE(kernel.set_add_edge(standing.set, standing.bell, 0) == 0);
    standing.source = descriptor_source_create(NULL, 0, standing.line, &context);
    descriptor_source_keep_in_epoll(standing.source);
    descriptor_source_set_interest(standing.source, kernel_readable);
    descriptor_source_stand_on_set(standing.source, standing.set);
}

static void add(void)
{
    CFRunLoopAddSource(LOOP, standing.source, MODE);
}

/* Takes the source out of the mode and out of epoll. */
static void take_out(void)
{
    CFRunLoopRemoveSource(LOOP, standing.source, MODE);
    descriptor_source_remove_from_epoll(standing.source, LOOP, MODE);
}

static void close_one(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)close(*descriptor);
    }
    *descriptor = -1;
}

static void end(void)
{
    CFRunLoopSourceInvalidate(standing.source);
    descriptor_source_remove_from_epoll(standing.source, LOOP, MODE);
    CFRelease(standing.source);
    close_one(&standing.set);
    close_one(&standing.bell);
    close_one(&standing.line);
    close_one(&standing.other_end);
}

static void ring(void)
{
    REQUIRE(kernel.event_post(standing.bell) == 0);
}

static void send_one(void)
{
    REQUIRE(send(standing.other_end, "x", 1, MSG_NOSIGNAL) == 1);
}

/* Returns how often the source is performed in a second that nothing else ends. */
static int performed_in_a_second(void)
{
    standing.performed = 0;
    (void)CFRunLoopRunInMode(MODE, 1, false);
    return standing.performed;
}

/* Counts the wait sets that the descriptor is in. */
static int count_sets_with(int descriptor)
{
    DIR *stream = opendir("/proc/self/fdinfo");
    int count = 0;

    REQUIRE(stream != NULL);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char path[300];
        char line[256];
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%s", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            count += strncmp(line, "tfd:", 4) == 0 && atoi(line + 4) == descriptor ? 1 : 0;
        }
        if (file) {
            (void)fclose(file);
        }
    }
    (void)closedir(stream);
    return count;
}

/* The kernel watches the set and the end of the line for the loop, beside the line for the set. */
static bool is_watched(void)
{
    int of_set = count_sets_with(standing.set);

    EXPECT_EQ(count_sets_with(standing.line), 1 + of_set);
    return of_set == 1;
}

TEST(a_source_on_a_set_is_performed_once_for_each_ring, "213")
{
    begin();
    add();
    EXPECT_EQ(performed_in_a_second(), 0);
    EXPECT(is_watched());
    for (int i = 0; i < 3; i++) {
        ring();
        EXPECT_EQ(performed_in_a_second(), 1); /* although the bell stays ready */
        EXPECT_EQ(performed_in_a_second(), 0);
    }
    ring();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunTimedOut);
    end();
}

TEST(a_source_on_a_set_is_performed_for_what_comes_on_its_line, "213")
{
    begin();
    add();
    send_one();
    EXPECT_EQ(performed_in_a_second(), 1);
    EXPECT_EQ(performed_in_a_second(), 0); /* it was reported already, though nobody has read it */
    send_one();
    EXPECT_EQ(performed_in_a_second(), 1);
    ring();
    send_one();
    EXPECT(performed_in_a_second() >= 1);
    EXPECT_EQ(performed_in_a_second(), 0);
    end();
}

static void count_and_stop(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity;
    if (++*(int *)info == 5) {
        CFRunLoopStop(LOOP);
    }
}

TEST(the_end_of_the_line_is_told_as_long_as_it_is_open, "232")
{
    CFRunLoopObserverContext context = {0, NULL, NULL, NULL, NULL};
    CFRunLoopObserverRef observer;
    int passes = 0;

    begin();
    add();
    EXPECT_EQ(performed_in_a_second(), 0);
    ring();
    close_one(&standing.other_end); /* one report stands for both */
    context.info = &passes;
    observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAfterWaiting, true, 0, count_and_stop, &context);
    CFRunLoopAddObserver(LOOP, observer, MODE);
    EXPECT(performed_in_a_second() >= 5);
    EXPECT_EQ(clock_ms(), 1000); /* the second before */
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    take_out();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, false), kCFRunLoopRunFinished);
    end();
}

TEST(a_set_that_comes_back_is_told_of_anew, "213")
{
    begin();
    add();
    ring();
    EXPECT_EQ(performed_in_a_second(), 1);
    EXPECT(is_watched());
    take_out();
    EXPECT(!is_watched());
    add();
    EXPECT_EQ(performed_in_a_second(), 1); /* the bell that was rung before: the price of a new registration */
    EXPECT_EQ(performed_in_a_second(), 0);
    descriptor_source_file_replaced(standing.source);
    CFRunLoopRemoveSource(LOOP, standing.source, MODE); /* nothing is kept in epoll that a wait would have to take out */
    EXPECT(!is_watched());
    ring();
    send_one();
    add();
    EXPECT(performed_in_a_second() >= 1); /* an event that came meanwhile is not lost */
    EXPECT_EQ(performed_in_a_second(), 0);
    end();
}

TEST(a_set_that_is_kept_in_epoll_reports_what_comes_meanwhile, "213")
{
    static struct probe neighbour = {.name = "neighbour", .logging = probe_is_silent};
    int event = probe_event();

    begin();
    (void)probe_port_source_add(&neighbour, 0, event, LOOP, MODE); /* its wait tells the kernel all changes */
    add();
    ring();
    EXPECT_EQ(performed_in_a_second(), 1);
    for (int waits_between = 0; waits_between < 2; waits_between++) {
        CFRunLoopRemoveSource(LOOP, standing.source, MODE);
        if (waits_between) {
            EXPECT_EQ(performed_in_a_second(), 0); /* it is suspended */
            EXPECT(!is_watched());
        }
        ring();
        add();
        EXPECT_EQ(performed_in_a_second(), 1);
        EXPECT_EQ(performed_in_a_second(), 0);
    }
    probe_invalidate(&neighbour);
    (void)close(event);
    end();
}

/* ---- what the kernel refuses ---- */

static int refused, refusal, refusals_left; /* a descriptor, the error, and how often */

static int add_edge_unless_refused(int set, int descriptor, uint64_t token)
{
    if (descriptor == refused && refusals_left > 0) {
        refusals_left--;
        return refusal;
    }
    return kernel_linux.set_add_edge(set, descriptor, token);
}

static int add_unless_refused(int set, int descriptor, uint32_t interest, uint64_t token)
{
    if (descriptor == refused && refusals_left > 0) {
        refusals_left--;
        return refusal;
    }
    return kernel_linux.set_add(set, descriptor, interest, token);
}

static void refuse(int descriptor, int error, int times)
{
    kernel.set_add_edge = add_edge_unless_refused;
    kernel.set_add = add_unless_refused;
    refused = descriptor;
    refusal = error;
    refusals_left = times;
}

static void expect_polled(bool refuses_line)
{
    uint64_t sleeps;

    begin();
    refuse(refuses_line ? standing.line : standing.set, -ENOSPC, 1000);
    add();
    ring();
    EXPECT_EQ(performed_in_a_second(), 1);
    EXPECT(!is_watched());
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(performed_in_a_second(), 0); /* the bell is still ready, and does not count again */
    EXPECT(fake_kernel_sleeps() - sleeps <= 60); /* it is looked at every 20 ms */
    send_one();
    EXPECT(performed_in_a_second() >= 1);
    EXPECT(recv(standing.line, &(char){0}, 1, 0) == 1);
    EXPECT_EQ(performed_in_a_second(), 0);
    refusals_left = 0;
    EXPECT(performed_in_a_second() <= 1); /* the kernel may report it once more */
    EXPECT(is_watched());
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(performed_in_a_second(), 0);
    EXPECT(fake_kernel_sleeps() - sleeps <= 2);
    ring();
    EXPECT_EQ(performed_in_a_second(), 1);
    end();
}

TEST(a_set_that_the_kernel_has_no_room_for_is_polled, "F7 F13")
{
    expect_polled(false);
    expect_polled(true);
}

TEST(a_set_that_is_watched_already_is_watched_once, "F4")
{
    begin();
    for (int is_line = 0; is_line < 2; is_line++) {
        refuse(is_line ? standing.line : standing.set, -EEXIST, 1);
        add();
        (void)CFRunLoopRunInMode(MODE, 0, true);
        EXPECT_EQ(refusals_left, 0);
        EXPECT(is_watched());
        ring();
        EXPECT_EQ(performed_in_a_second(), 1);
        EXPECT_EQ(performed_in_a_second(), 0);
        ring();
        EXPECT_EQ(performed_in_a_second(), 1);
        take_out();
    }
    end();
}

TEST(a_set_whose_number_is_asked_about_anew_is_watched_on, "F4")
{
    begin();
    add();
    ring();
    EXPECT_EQ(performed_in_a_second(), 1);
    for (int i = 0; i < 3; i++) {
        descriptor_source_file_replaced(standing.source);
        EXPECT_EQ(performed_in_a_second(), 1); /* reported again after the new registration */
        EXPECT_EQ(performed_in_a_second(), 0);
        ring();
        EXPECT_EQ(performed_in_a_second(), 1);
    }
    end();
}

TEST(a_set_whose_number_is_closed_is_told_of_once, "F4")
{
    uint64_t sleeps;

    begin();
    close_one(&standing.set);
    add();
    EXPECT_EQ(performed_in_a_second(), 1); /* as failed */
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(performed_in_a_second(), 0);
    EXPECT(fake_kernel_sleeps() - sleeps <= 2);
    end();
}

/* ---- quiet waits ---- */

static bool run_for_a_second(void)
{
    int64_t now_ns = kernel.monotonic_ns();
    const struct quiet_wait request = {.source = standing.source, .deadline_ns = now_ns + second_ns, .now_ns = now_ns};

    return quiet_wait_run(LOOP, MODE, &request);
}

static void rest(void)
{
    add();
    (void)CFRunLoopRunInMode(MODE, 0, true);
    REQUIRE(descriptor_source_set_suspended(standing.source, LOOP, MODE, true));
}

TEST(a_quiet_wait_ends_once_for_each_ring, "214")
{
    begin();
    rest();
    EXPECT(!run_for_a_second());
    for (int i = 0; i < 3; i++) {
        ring();
        EXPECT(run_for_a_second());
        EXPECT(!run_for_a_second());
    }
    send_one();
    EXPECT(run_for_a_second());
    EXPECT(!run_for_a_second());
    EXPECT_EQ(standing.performed, 0);
    end();
}

TEST(a_quiet_wait_ends_for_a_line_that_is_hung_up_whatever_came_before, "214 232")
{
    begin();
    rest();
    ring();
    close_one(&standing.other_end);
    for (int i = 0; i < 3; i++) {
        bool has_ended = run_for_a_second();

        if (!has_ended) { /* both were reported: a whole run sees to that */
            REQUIRE(descriptor_source_set_suspended(standing.source, LOOP, MODE, false));
            EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
            REQUIRE(descriptor_source_set_suspended(standing.source, LOOP, MODE, true));
        }
    }
    EXPECT_EQ(clock_ms(), 0);
    end();
}

/* A run in between is not disturbed by it. That run takes it out of epoll, so the next one gets a new report. */
TEST(a_run_between_quiet_waits_loses_no_ring, "214")
{
    static struct probe neighbour = {.name = "neighbour", .logging = probe_is_silent};
    int event = probe_event();

    begin();
    (void)probe_port_source_add(&neighbour, 0, event, LOOP, MODE); /* its wait tells the kernel all changes */
    rest();
    ring();
    EXPECT(run_for_a_second());
    ring();
    EXPECT_EQ(performed_in_a_second(), 0);
    EXPECT(!is_watched());
    EXPECT(!run_for_a_second()); /* a whole run is needed */
    REQUIRE(descriptor_source_set_suspended(standing.source, LOOP, MODE, false));
    EXPECT_EQ(performed_in_a_second(), 1);
    REQUIRE(descriptor_source_set_suspended(standing.source, LOOP, MODE, true));
    EXPECT(!run_for_a_second());
    ring();
    EXPECT(run_for_a_second());
    probe_invalidate(&neighbour);
    (void)close(event);
    end();
}
