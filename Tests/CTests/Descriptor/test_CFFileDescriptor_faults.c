/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults around descriptors: programs that close a watched descriptor, numbers that are reused, hang-ups that nobody asked about, and a
 * kernel that has no room (fault cases F1 to F5, F7, F9, F13, F14). The kernel's refusals are put into its table.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Descriptor/watcher.h"
#include "Kernel/kernel.h"
#include "Loop/Run/hosting.h"
#include "Loop/Core/loop.h"
#include "Loop/Watch/watch.h"
#include "fake_kernel.h"

static CFRunLoopRunResult look(void)
{
    return CFRunLoopRunInMode(MODE, 0, false);
}

static struct watch_set *watches_of_mode(void)
{
    return mode_find(LOOP, MODE)->watches;
}

/* ---- closed and reused numbers ---- */

TEST(a_number_closed_while_a_duplicate_lives_harms_nobody, "106 F1")
{
    int ends[2];
    int duplicate;
    struct watcher watcher = WATCHER("f", watcher_rearms);
    struct watcher other = WATCHER("g", NULL);
    int others[2];

    pipe_open(ends);
    pipe_open(others);
    watcher_add(&watcher, ends[0], false, reads);
    watcher_add(&other, others[0], false, reads);
    look();
    duplicate = fcntl(ends[0], F_DUPFD_CLOEXEC, 100);
    close(ends[0]); /* wrong, but it happens: the kernel goes on reporting the file under the old number */
    pipe_fill(ends, "x");
    watcher_count_calls();
    for (int i = 0; i < 50; i++) {
        look();
    }
    /* The file is still the one that was asked for, so that its callback is right. But the library must not use the number again. */
    EXPECT(call_counts.sets <= 1);
    EXPECT(call_counts.changes + call_counts.adds <= 10);
    pipe_fill(others, "y");
    trace_clear(&probe_trace);
    look();
    look();
    look();
    EXPECT_EQ(other.calls, 1);
    watcher_free(&watcher);
    watcher_free(&other);
    close(duplicate);
    ends[0] = -1;
    pipe_close(ends);
    pipe_close(others);
}

TEST(a_stale_registration_is_cleared_by_a_new_set, "106 F1")
{
    int ends[2];
    int others[2];
    int duplicate;
    int number;
    struct watcher watcher = WATCHER("f", NULL);
    struct watcher heir = WATCHER("h", NULL);

    pipe_open(ends);
    pipe_open(others);
    number = ends[0];
    watcher_add(&watcher, number, false, reads);
    look();
    duplicate = fcntl(number, F_DUPFD_CLOEXEC, 100);
    close(number);
    watcher_free(&watcher); /* too late: the number cannot be taken out of the set any more */
    pipe_fill(ends, "x"); /* the kernel reports it from now on, for ever */
    REQUIRE(dup3(others[0], number, O_CLOEXEC) == number);
    watcher_add(&heir, number, false, reads);
    watcher_count_calls();
    for (int i = 0; i < 100; i++) {
        look();
    }
    EXPECT_EQ(heir.calls, 0); /* the file that is ready is not the one it watches */
    EXPECT_EQ(call_counts.sets, 1); /* rebuilt once, and clean */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    EXPECT(call_counts.waits < 120); /* no spin */
    pipe_fill(others, "x");
    look();
    EXPECT_LOG("h:R");
    watcher_free(&heir);
    close(number);
    close(duplicate);
    ends[0] = -1;
    pipe_close(ends);
    pipe_close(others);
}

/* Moves a descriptor to a number that nobody takes by chance. */
static void move_up(int *descriptor, int number)
{
    int high;

    test_need_descriptors(number + 1);
    high = fcntl(*descriptor, F_DUPFD_CLOEXEC, number);

    REQUIRE(high >= 0);
    close(*descriptor);
    *descriptor = high;
}

struct handover {
    struct watcher *victim;
    struct watcher *heir;
};

static void gives_the_number_to_another(struct watcher *watcher)
{
    struct handover *handover = watcher->context;
    int *silent = handover->heir->context;
    int number = CFFileDescriptorGetNativeDescriptor(handover->victim->object);

    CFFileDescriptorInvalidate(handover->victim->object); /* closes it */
    pipe_open(silent);
    REQUIRE(dup3(silent[0], number, O_CLOEXEC) == number);
    close(silent[0]);
    silent[0] = number;
    watcher_add(handover->heir, number, true, reads);
}

TEST(a_report_for_a_closed_number_does_not_reach_its_new_owner, "106 F2")
{
    int one[2];
    int two[2];
    int silent[2];
    struct watcher first = WATCHER("f", gives_the_number_to_another);
    struct watcher second = WATCHER("g", gives_the_number_to_another);
    struct watcher heir = {.name = "h", .context = silent};

    first.context = &(struct handover){&second, &heir};
    second.context = &(struct handover){&first, &heir};
    pipe_open(one);
    pipe_open(two);
    move_up(&one[0], 300);
    move_up(&two[0], 400);
    pipe_fill(one, "x");
    pipe_fill(two, "x");
    watcher_add(&first, one[0], true, reads);
    watcher_add(&second, two[0], true, reads);
    for (int i = 0; i < 5; i++) {
        look(); /* both reports come at once; the first callback takes the other's number away */
    }
    EXPECT_EQ(first.calls + second.calls, 1);
    EXPECT_EQ(heir.calls, 0);
    pipe_fill(silent, "x");
    look();
    EXPECT_EQ(heir.calls, 1);
    watcher_free(&heir);
    watcher_free(&first);
    watcher_free(&second);
    close(silent[1]);
    close(one[1]);
    close(two[1]);
}

TEST(a_number_that_stands_for_another_file_is_watched_anew, "106 F1")
{
    int ends[2];
    int others[2];
    struct watcher watcher = WATCHER("f", NULL);

    pipe_open(ends);
    pipe_open(others);
    watcher_add(&watcher, ends[0], false, reads);
    look();
    REQUIRE(dup3(others[0], ends[0], O_CLOEXEC) == ends[0]); /* closes one file and opens another, in one step */
    CFFileDescriptorDisableCallBacks(watcher.object, reads);
    look();
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    pipe_fill(others, "x");
    look();
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    pipe_close(ends);
    pipe_close(others);
}

static CFRunLoopRunResult looked;

static void looks_twice(void)
{
    looked = look();
    looked = look();
}

TEST(a_closed_number_is_told_of_once_when_it_is_armed, "106 284 F1")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);

    pipe_open(ends);
    move_up(&ends[0], 300);
    watcher_add(&watcher, ends[0], false, 0);
    look();
    close(ends[0]);
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    EXPECT_EQ(logged_lines("a descriptor was closed while a source stood on it", looks_twice), 1);
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    close(ends[1]);
}

/* ---- hang-ups ---- */

TEST(a_hang_up_that_nobody_asked_about_does_not_spin, "284 F5")
{
    struct watcher watcher = WATCHER("f", NULL);
    static struct probe timer = PROBE("T", NULL);

    clock_start();
    watcher_add_on_pipe(&watcher, "", reads);
    look();
    close(watcher.ends[1]); /* from now on the kernel reports EPOLLHUP whatever the mask */
    look();
    EXPECT_LOG("f:R");
    probe_timer_add(&timer, 1, 1, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 2.5, false), kCFRunLoopRunTimedOut);
    EXPECT_LOG("T T");
    EXPECT(fake_kernel_sleeps() <= 20);
    EXPECT(fake_kernel_calls() <= 30);
    watcher_free(&watcher);
    close(watcher.ends[0]);
}

TEST(a_hang_up_of_a_disabled_descriptor_waits_for_its_enabling, "284 F5 F9")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    watcher_add(&watcher, ends[0], false, 0);
    pipe_fill(ends, "x");
    close(ends[1]);
    watcher_count_calls();
    for (int i = 0; i < 5; i++) {
        look();
    }
    EXPECT_LOG("");
    EXPECT_EQ(call_counts.adds, 0); /* not even registered */
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    look();
    EXPECT_LOG("f:R");
    watcher_reads_a_byte(&watcher);
    CFFileDescriptorEnableCallBacks(watcher.object, reads); /* the bytes first, then the end */
    look();
    look();
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    close(ends[0]);
}

static void takes_the_byte_of_both(struct watcher *watcher)
{
    watcher_reads_a_byte(watcher);
}

TEST(readiness_that_another_took_away_is_a_report_all_the_same, "F14")
{
    struct watcher one = WATCHER("f", takes_the_byte_of_both);
    struct watcher two = WATCHER("f", NULL);

    watcher_add_on_pipe(&one, "x", reads);
    look();
    EXPECT_LOG("f:R");
    watcher_add(&two, one.ends[0], false, reads);
    look(); /* nothing is left: the library asks the kernel again, and does not rely on an old report */
    EXPECT_LOG("");
    watcher_free(&one);
    watcher_free(&two);
    pipe_close(one.ends);
}

/* ---- a kernel without room ---- */

enum place { place_event, place_set, place_add, place_edge, place_alarm, place_signal, place_process, place_count };

static int error_now;
static enum place place_now;
static int refusals;

static int refuse(enum place place)
{
    if (place_now != place || error_now == 0) {
        return 0;
    }
    refusals++;
    return -error_now;
}

static int poor_event_create(void)
{
    int error = refuse(place_event);

    return error ? error : kernel_linux.event_create();
}

static int poor_set_create(void)
{
    int error = refuse(place_set);

    return error ? error : kernel_linux.set_create();
}

static int poor_set_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    int error = refuse(place_add);

    return error ? error : kernel_linux.set_add(set, descriptor, interest, token);
}

static int poor_set_add_edge(int set, int descriptor, uint64_t token)
{
    int error = refuse(place_edge);

    return error ? error : kernel_linux.set_add_edge(set, descriptor, token);
}

static int poor_alarm_create(void)
{
    int error = refuse(place_alarm);

    return error ? error : kernel_linux.alarm_create();
}

static void make_poor(enum place place, int error)
{
    kernel.event_create = poor_event_create;
    kernel.set_create = poor_set_create;
    kernel.set_add = poor_set_add;
    kernel.set_add_edge = poor_set_add_edge;
    kernel.alarm_create = poor_alarm_create;
    place_now = place;
    error_now = error;
    refusals = 0;
}

struct poverty {
    enum place place;
    int error;
};

/* A loop that cannot get a kernel object still waits. It looks at the descriptor at intervals, and recovers when there is room again. */
static void run_poor(void *context)
{
    const struct poverty *poverty = context;
    struct watcher watcher = {.name = "f", .action = watcher_rearms, .is_silent = true};
    struct probe timer = {.name = "T", .logging = probe_is_silent};
    uint64_t calls;

    fake_kernel_install();
    make_poor(poverty->place, poverty->error);
    watcher_add_on_pipe(&watcher, "", reads);
    probe_timer_add(&timer, 0.25, 0, LOOP, MODE);
    calls = fake_kernel_calls();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.5, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(timer.calls, 1);
    EXPECT(refusals > 0);
    EXPECT(fake_kernel_calls() - calls < 200); /* 25 tries in half a second, no spin */
    EXPECT_EQ(watcher.calls, 0);
    pipe_fill(watcher.ends, "x");
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(watcher.calls, 1);
    error_now = 0; /* room again */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(watcher.calls, 2);
    EXPECT(list_is_empty(&watches_of_mode()->refused));
    EXPECT(watches_of_mode()->set >= 0);
    watcher_free_with_pipe(&watcher);
    kernel = kernel_linux;
}

TEST(a_kernel_without_room_is_waited_for, "F7 F13 14")
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOSPC};

    for (enum place place = place_event; place <= place_edge; place++) {
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
            struct poverty poverty = {place, errors[i]};

            probe_on_thread(run_poor, &poverty);
        }
    }
}

static void runs_poor(void)
{
    struct poverty poverty = {place_add, ENOSPC};

    probe_on_thread(run_poor, &poverty);
    probe_on_thread(run_poor, &poverty);
}

TEST(a_refusal_is_logged_once, "F7 F13")
{
    EXPECT_EQ(logged_lines("the kernel cannot watch another descriptor now", runs_poor), 1);
}

static void host_poor(void *context)
{
    const struct poverty *poverty = context;
    static struct probe idle = {.name = "idle", .logging = probe_is_silent};

    make_poor(poverty->place, poverty->error);
    probe_source_add(&idle, 0, LOOP, MODE);
    EXPECT_EQ(CRLRunLoopGetDescriptor(LOOP), -1);
    EXPECT_EQ(CRLRunLoopGetDescriptor(LOOP), -1);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE)); /* the host has the timeout to go by */
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    error_now = 0;
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    EXPECT_EQ(CRLRunLoopGetDescriptor(LOOP), CRLRunLoopGetDescriptor(LOOP));
    CRLRunLoopLeave(LOOP);
    kernel = kernel_linux;
}

TEST(a_host_gets_no_descriptor_while_there_is_no_room, "F7")
{
    static const enum place places[] = {place_event, place_set, place_add, place_alarm};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct poverty poverty = {places[i], EMFILE};

        probe_on_thread(host_poor, &poverty);
    }
}

static int ready_ends[2];

static void run_with_free_numbers(void *context)
{
    const int *numbers = context;
    struct rlimit rich;
    struct rlimit poor;
    struct watcher watcher = {.name = "f", .action = watcher_rearms, .is_silent = true};
    static struct probe source = {.name = "S0", .logging = probe_is_silent};
    int lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
    CFRunLoopSourceRef manual;

    close(lowest);
    getrlimit(RLIMIT_NOFILE, &rich);
    poor = rich;
    poor.rlim_cur = (rlim_t)(lowest + *numbers);
    setrlimit(RLIMIT_NOFILE, &poor);
    watcher_add(&watcher, ready_ends[0], false, reads);
    manual = probe_source_add(&source, 0, LOOP, MODE);
    CFRunLoopSourceSignal(manual);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    EXPECT_EQ(source.calls, 1);
    while (watcher.calls < 3) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    }
    (void)CRLRunLoopGetDescriptor(LOOP);
    EXPECT(CRLRunLoopPrepare(LOOP, MODE));
    EXPECT_EQ(CRLRunLoopDispatch(LOOP), 0);
    CRLRunLoopLeave(LOOP);
    setrlimit(RLIMIT_NOFILE, &rich);
    EXPECT(CRLRunLoopGetDescriptor(LOOP) >= 0);
    watcher_free(&watcher);
    source.calls = 0;
}

TEST(descriptors_may_run_out_at_any_object, "14 F7")
{
    pipe_open(ready_ends);
    pipe_fill(ready_ends, "x");
    for (int numbers = 0; numbers <= 5; numbers++) {
        probe_on_thread(run_with_free_numbers, &numbers);
    }
    pipe_close(ready_ends);
}

TEST(a_descriptor_number_above_1024_is_like_any_other, "F8")
{
    int ends[2];
    int high;
    struct watcher watcher = WATCHER("f", NULL);

    test_need_descriptors(3100);
    pipe_open(ends);
    high = fcntl(ends[0], F_DUPFD_CLOEXEC, 3000);
    REQUIRE(high >= 0);
    watcher_add(&watcher, high, true, reads);
    pipe_fill(ends, "x");
    look();
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(the_librarys_own_descriptors_are_not_taken_for_the_programs, "106 F1")
{
    struct watcher watcher = WATCHER("f", NULL);
    struct watcher other = WATCHER("g", NULL);
    int others[2];

    pipe_open(others);
    watcher_add_on_pipe(&watcher, "", reads);
    close(watcher.ends[0]); /* the eventfd or the wait set takes the number at the first wait */
    watcher_add(&other, others[0], false, reads);
    look();
    look();
    EXPECT_LOG("f:R"); /* the callback learns by reading that the descriptor is gone */
    pipe_fill(others, "x");
    look();
    EXPECT_LOG("g:R");
    watcher_free(&watcher);
    watcher_free(&other);
    close(watcher.ends[1]);
    pipe_close(others);
}
