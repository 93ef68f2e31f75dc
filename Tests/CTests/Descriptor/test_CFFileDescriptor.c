/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFFileDescriptor: arming, delivery, each kind of descriptor, the life of the object (rules 277 to 290). Faults of the kernel and
 * programs that close a watched descriptor are in test_CFFileDescriptor_faults.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Descriptor/watcher.h"
#include "Kernel/kernel.h"
#include "Loop/Core/thread_loop.h"
#include "fake_kernel.h"

static void never_called(CFFileDescriptorRef object, CFOptionFlags kinds, void *info)
{
    (void)object, (void)kinds, (void)info;
    FAIL("a callback that nobody asked for");
}

/* One pass without waiting. */
static CFRunLoopRunResult look(void)
{
    return CFRunLoopRunInMode(MODE, 0, false);
}

TEST(a_descriptor_starts_with_its_callbacks_disabled, "277")
{
    struct watcher watcher = WATCHER("f", NULL);

    watcher_add_on_pipe(&watcher, "x", 0);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("");
    EXPECT_EQ(watcher.retains, 1);
    watcher_free_with_pipe(&watcher);
}

TEST(an_unusable_descriptor_gives_null, "277")
{
    struct watcher watcher = WATCHER("f", NULL);
    int ends[2];

    pipe_open(ends);
    pipe_close(ends);
    EXPECT(watcher_create(&watcher, -1, true) == NULL);
    EXPECT(watcher_create(&watcher, -2147483647 - 1, true) == NULL);
    EXPECT(watcher_create(&watcher, 2147483647, true) == NULL);
    EXPECT(watcher_create(&watcher, ends[0], true) == NULL);
    EXPECT(CFFileDescriptorCreate(NULL, 0, false, NULL, NULL) == NULL);
    EXPECT_EQ(watcher.retains, 0);
    EXPECT_EQ(watcher.releases, 0);
}

TEST(each_kind_is_delivered_once_for_each_enabling, "278")
{
    struct watcher watcher = WATCHER("f", NULL);

    watcher_add_on_pipe(&watcher, "x", reads);
    CFFileDescriptorEnableCallBacks(watcher.object, reads); /* twice is once */
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("f:R");
    watcher_free_with_pipe(&watcher);
}

static void runs_nested(struct watcher *watcher)
{
    (void)watcher;
    probe_run(MODE, 0, true);
}

TEST(a_kind_is_disabled_before_its_callback, "278")
{
    struct watcher watcher = WATCHER("f", runs_nested);

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    EXPECT_LOG("f:R TO");
    watcher_free_with_pipe(&watcher);
}

TEST(a_callback_enabled_again_comes_while_bytes_are_left, "278 279")
{
    struct watcher watcher = WATCHER("f", watcher_rearms);

    watcher_add_on_pipe(&watcher, "x", reads);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    }
    EXPECT_LOG("f:R f:R f:R");
    watcher_free_with_pipe(&watcher);
}

static void replaces_its_source(struct watcher *watcher)
{
    if (watcher->calls == 1) {
        CFRunLoopSourceRef old = CFFileDescriptorCreateRunLoopSource(NULL, watcher->object, 0);
        CFRunLoopSourceRef new;

        CFRunLoopSourceInvalidate(old);
        new = CFFileDescriptorCreateRunLoopSource(NULL, watcher->object, 0);
        EXPECT(new && new != old);
        CFRunLoopAddSource(LOOP, new, MODE);
        CFRelease(new);
        CFRelease(old);
    }
    watcher_rearms(watcher);
}

TEST(enabling_in_a_callback_that_has_replaced_the_source_reaches_the_new_one, "278 288")
{
    struct watcher watcher = WATCHER("f", replaces_its_source);

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    look();
    EXPECT_LOG("f:R f:R");
    watcher_free_with_pipe(&watcher);
}

TEST(rearming_in_the_callback_costs_no_call_of_the_kernel, "278")
{
    struct watcher watcher = {.name = "f", .action = watcher_rearms, .is_silent = true};

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    watcher_count_calls();
    for (int i = 0; i < 100; i++) {
        look();
    }
    EXPECT_EQ(watcher.calls, 101);
    EXPECT_EQ(call_counts.changes + call_counts.adds + call_counts.removals, 0);
    EXPECT_EQ(call_counts.waits, 100);
    watcher_free_with_pipe(&watcher);
}

static void waits_nested_and_rearms(struct watcher *watcher)
{
    if (watcher->calls == 1) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, 3.5, true), kCFRunLoopRunTimedOut);
    }
    watcher_rearms(watcher);
}

/*
 * A kind is disabled during its callback, but the kernel still watches for it, as most callbacks enable it again. A nested run has to tell
 * the kernel, or the ready descriptor would wake it again and again.
 */
static void expect_quiet_while_called(int descriptor)
{
    struct watcher watcher = WATCHER("f", waits_nested_and_rearms);
    static struct probe timer = PROBE("T", NULL);

    clock_start();
    watcher_add(&watcher, descriptor, false, reads);
    probe_timer_add(&timer, 1, 1, LOOP, MODE);
    look();
    EXPECT_LOG("f:R T T T");
    EXPECT(fake_kernel_sleeps() <= 24);
    look();
    look();
    EXPECT_LOG("f:R f:R");
    watcher_free(&watcher);
}

TEST(a_nested_run_does_not_spin_on_what_is_being_called, "278 44")
{
    int ends[2];

    pipe_open(ends);
    pipe_fill(ends, "x");
    expect_quiet_while_called(ends[0]);
    pipe_close(ends);
}

TEST(a_nested_run_does_not_spin_on_a_file_that_is_being_called, "278 285 44")
{
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);

    expect_quiet_while_called(file);
    close(file);
}

#define OTHER_MODE CFSTR("other test")

/* Adds a second source on the descriptor to the other mode. That mode then computes its interest anew, while no kind is wanted. */
static void changes_the_other_mode_and_rearms(struct watcher *watcher)
{
    struct watcher *neighbour = watcher->context;

    if (watcher->calls == 1) {
        CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, neighbour->object, 0);

        CFRunLoopAddSource(LOOP, source, OTHER_MODE);
        CFRelease(source);
    }
    watcher_rearms(watcher);
}

TEST(a_mode_that_stopped_watching_during_the_callback_hears_of_the_rearming, "278 281")
{
    int ends[2];
    struct watcher neighbour = WATCHER("never", NULL);
    struct watcher watcher = {.name = "f", .action = changes_the_other_mode_and_rearms, .context = &neighbour};
    CFRunLoopSourceRef source;

    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_create(&neighbour, ends[0], false);
    watcher_add(&watcher, ends[0], false, reads);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0);
    CFRunLoopAddSource(LOOP, source, OTHER_MODE);
    CFRelease(source);
    look();
    EXPECT_EQ(CFRunLoopRunInMode(OTHER_MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("f:R f:R");
    watcher_free(&watcher);
    watcher_free(&neighbour);
    pipe_close(ends);
}

static _Atomic(CFRunLoopRef) second_loop;

static void waits_for_the_same(void *context)
{
    struct watcher *watcher = context;
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, watcher->object, 0);

    CFRunLoopAddSource(LOOP, source, MODE);
    second_loop = LOOP;
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRelease(source);
}

/* The other thread adds the source while no kind is wanted, and sleeps. Only its loop can then make the second call. */
static void rearms_while_another_loop_sleeps(struct watcher *watcher)
{
    struct probe_thread *thread = watcher->context;

    if (watcher->calls == 1) {
        probe_thread_start(thread, waits_for_the_same, watcher);
        while (!second_loop) {
            sched_yield();
        }
        probe_await_sleep(second_loop);
        watcher_rearms(watcher);
        probe_thread_join(thread);
    }
}

TEST(a_loop_that_joined_during_the_callback_hears_of_the_rearming, "278 281 282")
{
    struct probe_thread thread;
    struct watcher watcher = {.name = "f", .action = rearms_while_another_loop_sleeps, .context = &thread};

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    EXPECT_LOG("f:R f:R");
    watcher_free_with_pipe(&watcher);
}

static void *rearms_elsewhere(void *info)
{
    watcher_rearms(info);
    return NULL;
}

static void is_rearmed_by_another_thread(struct watcher *watcher)
{
    pthread_t thread;

    (void)pthread_create(&thread, NULL, rearms_elsewhere, watcher);
    (void)pthread_join(thread, NULL);
}

TEST(another_thread_may_enable_what_is_being_called, "278 281")
{
    struct watcher watcher = WATCHER("f", is_rearmed_by_another_thread);

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    look();
    EXPECT_LOG("f:R f:R");
    watcher_free_with_pipe(&watcher);
}

TEST(a_descriptor_called_once_is_not_watched_afterwards, "278")
{
    struct watcher watcher = WATCHER("f", NULL);
    static struct probe timer = PROBE("T", NULL);

    clock_start();
    watcher_add_on_pipe(&watcher, "x", reads);
    probe_timer_add(&timer, 1, 0, LOOP, MODE);
    look();
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 2, false), kCFRunLoopRunTimedOut);
    EXPECT_LOG("f:R T");
    EXPECT(fake_kernel_sleeps() <= 8);
    watcher_free_with_pipe(&watcher);
}

TEST(the_callback_is_told_what_fired, "280")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    watcher_add(&watcher, ends[0], false, reads | writes);
    look();
    EXPECT_LOG("f:W"); /* the other kind stays enabled */
    pipe_fill(ends, "x");
    look();
    EXPECT_LOG("f:R");
    CFFileDescriptorEnableCallBacks(watcher.object, reads | writes);
    look();
    look();
    EXPECT_LOG("f:RW");
    CFFileDescriptorEnableCallBacks(watcher.object, ~(CFOptionFlags)3); /* other bits are ignored */
    look();
    EXPECT_LOG("");
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(enabling_counts_whenever_it_is_done, "281")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);
    CFRunLoopSourceRef source;

    pipe_open(ends);
    pipe_fill(ends, "x"); /* pending at every step */
    watcher_create(&watcher, ends[0], false);
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("f:R");
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFFileDescriptorEnableCallBacks(watcher.object, reads); /* between source and mode */
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("f:R");
    CFFileDescriptorEnableCallBacks(watcher.object, reads); /* in the mode */
    look();
    EXPECT_LOG("f:R");
    CFRelease(source);
    watcher_free(&watcher);
    pipe_close(ends);
}

static void enables_reading(void *context)
{
    CFFileDescriptorEnableCallBacks(((struct watcher *)context)->object, reads);
}

TEST(enabling_from_another_thread_reaches_a_sleeping_loop, "282")
{
    struct watcher watcher = WATCHER("f", watcher_stops_loop);
    struct probe_thread thread;

    watcher_add_on_pipe(&watcher, "x", 0);
    probe_activities_add(LOOP, MODE);
    probe_thread_when_waiting(&thread, LOOP, enables_reading, &watcher);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT_LOG("E BT BS BW AW f:R X"); /* one pass: it was not woken for nothing */
    watcher_free_with_pipe(&watcher);
}

TEST(enabling_from_another_thread_reaches_a_loop_asleep_without_descriptors, "282")
{
    struct watcher watcher = WATCHER("f", watcher_stops_loop);
    struct probe_thread thread;
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

    REQUIRE(file >= 0);
    watcher_add(&watcher, file, true, 0);
    probe_activities_add(LOOP, MODE);
    probe_thread_when_waiting(&thread, LOOP, enables_reading, &watcher); /* always ready: the kernel cannot tell the loop */
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT_LOG("E BT BS BW AW f:R X");
    watcher_free(&watcher);
}

TEST(a_source_added_to_a_sleeping_loop_is_live, "282 70")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", watcher_stops_loop);
    struct probe_thread thread;
    static struct probe idle = PROBE("idle", NULL);

    pipe_open(ends);
    pipe_fill(ends, "x");
    probe_source_add(&idle, 0, LOOP, MODE);
    watcher_add(&watcher, ends[0], false, 0);
    probe_thread_when_waiting(&thread, LOOP, enables_reading, &watcher);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), false), kCFRunLoopRunStopped);
    probe_thread_join(&thread);
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    pipe_close(ends);
}

static void disables_the_other(struct watcher *watcher)
{
    struct watcher *other = watcher->context;

    if (watcher->calls + other->calls == 1) {
        CFFileDescriptorDisableCallBacks(other->object, reads);
    }
}

TEST(nothing_comes_after_disabling, "283")
{
    int one[2];
    int two[2];
    struct watcher first = WATCHER("f", disables_the_other);
    struct watcher second = WATCHER("g", disables_the_other);

    first.context = &second;
    second.context = &first;
    pipe_open(one);
    pipe_open(two);
    pipe_fill(one, "x");
    pipe_fill(two, "x");
    watcher_add(&first, one[0], false, reads);
    watcher_add(&second, two[0], false, reads);
    look(); /* the loop has both reports when the first callback disables the second */
    look();
    EXPECT_EQ(first.calls + second.calls, 1);
    CFFileDescriptorEnableCallBacks(first.object, reads);
    CFFileDescriptorDisableCallBacks(first.object, writes); /* another kind */
    look();
    EXPECT_EQ(first.calls + second.calls, 2);
    CFFileDescriptorDisableCallBacks(first.object, reads);
    CFFileDescriptorDisableCallBacks(first.object, reads);
    look();
    EXPECT_EQ(first.calls + second.calls, 2);
    watcher_free(&first);
    watcher_free(&second);
    pipe_close(one);
    pipe_close(two);
}

TEST(a_closed_peer_is_noticed_and_nothing_is_read, "284 F9")
{
    int ends[2];
    int count = 0;
    struct watcher reader = WATCHER("r", NULL);
    struct watcher writer = WATCHER("w", NULL);

    pipe_open(ends);
    watcher_add(&reader, ends[0], false, reads);
    pipe_fill(ends, "abc");
    look();
    EXPECT_LOG("r:R");
    EXPECT(ioctl(ends[0], FIONREAD, &count) == 0);
    EXPECT_EQ(count, 3);
    close(ends[1]);
    CFFileDescriptorEnableCallBacks(reader.object, reads); /* bytes, then the end: once for each enabling */
    look();
    look();
    EXPECT_LOG("r:R");
    watcher_reads_a_byte(&reader);
    watcher_reads_a_byte(&reader);
    watcher_reads_a_byte(&reader);
    CFFileDescriptorEnableCallBacks(reader.object, reads);
    look();
    look();
    EXPECT_LOG("r:R");
    watcher_free(&reader);
    close(ends[0]);

    pipe_open(ends);
    watcher_add(&writer, ends[1], false, writes);
    close(ends[0]);
    look();
    EXPECT_LOG("w:W"); /* EPIPE will not block */
    CFFileDescriptorEnableCallBacks(writer.object, reads | writes);
    look();
    EXPECT_LOG("w:RW"); /* an error counts as both */
    watcher_free(&writer);
    close(ends[1]);
}

TEST(a_half_closed_socket_reads_its_end_and_still_writes, "284 F11")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    watcher_add(&watcher, ends[0], false, reads);
    look();
    EXPECT_LOG("");
    shutdown(ends[1], SHUT_WR);
    look();
    EXPECT_LOG("f:R");
    CFFileDescriptorEnableCallBacks(watcher.object, writes);
    look();
    EXPECT_LOG("f:W");
    watcher_free(&watcher);
    pipe_close(ends);
}

static void file_is_always_ready(const char *name, int descriptor)
{
    int ends[2];
    struct watcher file = {.name = name, .action = watcher_rearms, .is_silent = true};
    struct watcher other = {.name = "pipe", .action = watcher_rearms, .is_silent = true};
    struct probe timer = {.name = "T", .logging = probe_is_silent};

    REQUIRE(descriptor >= 0);
    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_add(&file, descriptor, true, reads);
    watcher_add(&other, ends[0], false, reads);
    probe_timer_add(&timer, -1, 1e-9, LOOP, MODE); /* always due */
    for (int i = 0; i < 60; i++) {
        look();
    }
    if (file.calls < 12 || other.calls < 12 || timer.calls < 12 || file.calls + other.calls + timer.calls < 60) {
        test_failed(__FILE__, __LINE__, "%s: %d, pipe: %d, timer: %d", name, file.calls, other.calls, timer.calls);
    }
    CFRunLoopTimerInvalidate(probe_timer_of(&timer));
    watcher_free(&file);
    watcher_free(&other);
    pipe_close(ends);
}

/* ---- priority ---- */

/* A TCP connection over loopback. */
static void connect_over_loopback(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(bind(listener, (const struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(ends[1], (const struct sockaddr *)&address, size) == 0);
    ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(ends[0] >= 0);
    (void)close(listener);
}

static void send_out_of_band(const int ends[2])
{
    struct pollfd arrival = {.fd = ends[0], .events = POLLPRI};

    REQUIRE(send(ends[1], "!", 1, MSG_OOB) == 1 && poll(&arrival, 1, -1) == 1);
}

TEST(a_byte_out_of_band_is_told_as_priority_until_it_is_read, "278 279 280a")
{
    struct watcher watcher = WATCHER("f", NULL);
    int ends[2];
    char byte;

    connect_over_loopback(ends);
    watcher_add(&watcher, ends[0], false, priorities);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    send_out_of_band(ends);
    (void)look();
    (void)look();
    EXPECT_LOG("f:P");
    CFFileDescriptorEnableCallBacks(watcher.object, priorities);
    (void)look();
    EXPECT_LOG("f:P");
    EXPECT_EQ(recv(ends[0], &byte, 1, MSG_OOB), 1);
    CFFileDescriptorEnableCallBacks(watcher.object, priorities);
    EXPECT_EQ(look(), kCFRunLoopRunTimedOut);
    EXPECT_LOG("");
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(priority_is_told_beside_the_other_kinds_and_alone, "280 280a 284 290")
{
    struct watcher watcher = WATCHER("f", NULL);
    struct watcher reader = {.name = "r", .is_silent = true};
    int ends[2];

    connect_over_loopback(ends);
    watcher_add(&watcher, ends[0], false, reads | writes | priorities);
    EXPECT_EQ(send(ends[1], "text", 4, 0), 4);
    send_out_of_band(ends);
    (void)look();
    EXPECT_LOG("f:RWP");
    watcher.is_silent = true;
    watcher_add(&reader, ends[0], false, reads);
    CFFileDescriptorEnableCallBacks(watcher.object, priorities);
    (void)look();
    (void)look();
    EXPECT(reader.calls == 1 && watcher.calls == 2); /* each is told of its own kind */
    watcher.is_silent = false;
    watcher_free(&reader);
    (void)shutdown(ends[0], SHUT_RDWR);
    CFFileDescriptorEnableCallBacks(watcher.object, priorities);
    (void)look();
    EXPECT_LOG("f:P");
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(a_regular_file_has_no_priority, "280a 285")
{
    struct watcher watcher = WATCHER("f", NULL);
    char path[] = "/tmp/crl-priority-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);

    REQUIRE(file >= 0 && unlink(path) == 0);
    watcher_add(&watcher, file, true, priorities);
    (void)look();
    EXPECT_LOG("");
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    (void)look();
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
}

TEST(what_the_kernel_cannot_watch_is_always_ready_and_fair, "285 F3 35")
{
    char path[] = "/tmp/crl-XXXXXX";

    file_is_always_ready("regular file", mkostemp(path, O_CLOEXEC));
    unlink(path);
    file_is_always_ready("directory", open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    file_is_always_ready("/dev/null", open("/dev/null", O_RDWR | O_CLOEXEC));
    file_is_always_ready("/dev/zero", open("/dev/zero", O_RDONLY | O_CLOEXEC));
    file_is_always_ready("memfd", memfd_create("x", MFD_CLOEXEC));
}

TEST(two_files_take_turns, "285 F3")
{
    struct watcher one = {.name = "one", .action = watcher_rearms, .is_silent = true};
    struct watcher two = {.name = "two", .action = watcher_rearms, .is_silent = true};

    watcher_add(&one, open("/dev/null", O_RDONLY | O_CLOEXEC), true, reads);
    watcher_add(&two, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), true, reads);
    for (int i = 0; i < 10; i++) {
        look();
    }
    EXPECT_EQ(one.calls, 5);
    EXPECT_EQ(two.calls, 5);
    watcher_free(&one);
    watcher_free(&two);
}

/* The clock moves only in sleeps. A loop that asked again without sleeping would never end. */
TEST(a_kernel_that_is_less_late_than_it_may_be_is_asked_once_more, "44 114 T9")
{
    struct watcher watcher = WATCHER("f", NULL);
    static struct probe timer = PROBE("T", NULL);

    clock_start();
    fake_kernel_set_slack(50000);
    watcher_add_on_pipe(&watcher, "", reads);
    probe_timer_add(&timer, 0.01, 0.01, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.025, false), kCFRunLoopRunTimedOut);
    EXPECT_LOG("T T");
    EXPECT_EQ(fake_kernel_sleeps(), 6);
    watcher_free_with_pipe(&watcher);
}

TEST(a_disabled_file_does_not_make_the_loop_spin, "285 F3")
{
    struct watcher file = WATCHER("f", NULL);
    static struct probe timer = PROBE("T", NULL);

    clock_start();
    watcher_add(&file, open("/dev/null", O_RDWR | O_CLOEXEC), true, reads | writes);
    probe_timer_add(&timer, 1, 1, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3.5, false), kCFRunLoopRunTimedOut);
    EXPECT_LOG("f:RW T T T");
    EXPECT(fake_kernel_sleeps() <= 24); /* a wait in a set is asked to end a little early, and then asked for the rest */
    watcher_free(&file);
}

TEST(a_timerfd_can_be_watched, "286")
{
    struct watcher watcher = WATCHER("f", NULL);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    uint64_t count = 0;

    watcher_add(&watcher, timer, true, reads);
    look();
    EXPECT_LOG("");
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &(struct itimerspec){.it_value = {0, 1}}, NULL);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("f:R");
    EXPECT_EQ(read(timer, &count, sizeof count), 8); /* the library has not taken it */
    EXPECT_EQ(count, 1);
    watcher_free(&watcher);
}

TEST(an_epoll_set_can_be_watched, "286")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};

    pipe_open(ends);
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    watcher_add(&watcher, set, true, reads);
    look();
    EXPECT_LOG("");
    pipe_fill(ends, "x");
    look();
    EXPECT_LOG("f:R");
    EXPECT_EQ(epoll_wait(set, &event, 1, 0), 1);
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(a_signalfd_can_be_watched, "286")
{
    struct watcher watcher = WATCHER("f", NULL);
    sigset_t signals;
    struct signalfd_siginfo info;
    int descriptor;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    watcher_add(&watcher, descriptor, true, reads);
    raise(SIGUSR1);
    look();
    EXPECT_LOG("f:R");
    EXPECT_EQ(read(descriptor, &info, sizeof info), sizeof info);
    watcher_free(&watcher);
}

TEST(an_inotify_descriptor_can_be_watched, "286")
{
    struct watcher watcher = WATCHER("f", NULL);
    char path[] = "/tmp/crl-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);
    int notices = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (notices < 0 || inotify_add_watch(notices, path, IN_MODIFY) < 0) {
        close(file);
        SKIP("no inotify here");
    }
    watcher_add(&watcher, notices, true, reads);
    look();
    EXPECT_LOG("");
    EXPECT_EQ(write(file, "x", 1), 1);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("f:R");
    watcher_free(&watcher);
    close(file);
    unlink(path);
}

TEST(a_pidfd_can_be_watched, "286")
{
    struct watcher watcher = WATCHER("f", NULL);
    pid_t child = fork();
    int descriptor;

    if (child == 0) {
        _exit(0);
    }
    descriptor = (int)syscall(SYS_pidfd_open, child, 0);
    if (descriptor < 0) {
        SKIP("no process descriptors here");
    }
    watcher_add(&watcher, descriptor, true, reads);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("f:R");
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    watcher_free(&watcher);
}

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

TEST(invalidation_ends_everything_once, "287")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);
    CFRunLoopSourceRef source;

    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_add(&watcher, ends[0], true, reads);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0);
    EXPECT(CFFileDescriptorIsValid(watcher.object));
    CFFileDescriptorInvalidate(watcher.object);
    EXPECT(!CFFileDescriptorIsValid(watcher.object));
    EXPECT(!CFRunLoopSourceIsValid(source));
    EXPECT(!CFRunLoopContainsSource(LOOP, source, MODE));
    EXPECT_EQ(watcher.releases, 1);
    EXPECT(!is_open(ends[0]));
    ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes the number: a second close would hit it */
    CFFileDescriptorInvalidate(watcher.object);
    EXPECT_EQ(watcher.releases, 1);
    EXPECT(is_open(ends[0]));
    CFFileDescriptorEnableCallBacks(watcher.object, reads); /* ignored */
    EXPECT_EQ(look(), kCFRunLoopRunFinished);
    EXPECT_LOG("");
    CFRelease(source);
    watcher_free(&watcher);
    EXPECT_EQ(watcher.releases, 1);
    EXPECT(is_open(ends[0]));
    pipe_close(ends);
}

TEST(a_descriptor_that_is_not_to_be_closed_stays_open, "287")
{
    struct watcher watcher = WATCHER("f", NULL);

    watcher_add_on_pipe(&watcher, "", reads);
    watcher_free(&watcher);
    EXPECT(is_open(watcher.ends[0]));
    pipe_close(watcher.ends);
}

TEST(a_freed_object_ends_like_an_invalidated_one, "287")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);

    pipe_open(ends);
    watcher_create(&watcher, ends[0], true);
    CFRelease(watcher.object);
    EXPECT_EQ(watcher.releases, 1);
    EXPECT(!is_open(ends[0]));
    close(ends[1]);
}

static void frees_itself(struct watcher *watcher)
{
    watcher_free(watcher);
    EXPECT_EQ(watcher->releases, 1);
}

TEST(an_object_may_be_invalidated_and_released_in_its_callback, "287 L17")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", frees_itself);

    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_add(&watcher, ends[0], true, reads | writes);
    look();
    EXPECT_LOG("f:R");
    EXPECT_EQ(watcher.releases, 1);
    EXPECT(!is_open(ends[0]));
    close(ends[1]);
}

static atomic_int gate;

static void invalidates_and_opens_the_gate(void *context)
{
    struct watcher *watcher = context;

    CFFileDescriptorInvalidate(watcher->object);
    EXPECT_EQ(watcher->releases, 0); /* the callback on the other thread still uses the info */
    gate = 1;
}

static void is_invalidated_by_another(struct watcher *watcher)
{
    struct probe_thread thread;

    probe_thread_start(&thread, invalidates_and_opens_the_gate, watcher);
    probe_await_count(&gate, 1);
    EXPECT_EQ(watcher->releases, 0);
    probe_thread_join(&thread);
}

TEST(an_object_invalidated_elsewhere_releases_its_context_after_the_callback, "287 289")
{
    struct watcher watcher = WATCHER("f", is_invalidated_by_another);

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    EXPECT_LOG("f:R");
    EXPECT_EQ(watcher.releases, 1);
    watcher_free(&watcher);
    EXPECT_EQ(watcher.releases, 1);
    pipe_close(watcher.ends);
}

static void is_called_and_then_invalidates(void *context)
{
    struct watcher *watcher = context;
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, watcher->object, 0);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFFileDescriptorEnableCallBacks(watcher->object, reads);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    CFFileDescriptorInvalidate(watcher->object);
    EXPECT_EQ(watcher->releases, 0); /* the callback on the other thread still uses the info */
    CFRelease(source);
}

static void is_called_elsewhere_meanwhile(struct watcher *watcher)
{
    if (watcher->calls == 1) {
        probe_on_thread(is_called_and_then_invalidates, watcher);
        EXPECT_EQ(watcher->releases, 0);
    }
}

TEST(an_object_invalidated_behind_a_callback_keeps_its_info_for_that_on_another_thread, "287 289")
{
    struct watcher watcher = WATCHER("f", is_called_elsewhere_meanwhile);

    watcher_add_on_pipe(&watcher, "x", reads);
    look();
    EXPECT_LOG("f:R f:R");
    EXPECT_EQ(watcher.releases, 1);
    watcher_free_with_pipe(&watcher);
}

TEST(the_source_is_made_once, "288")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef again;

    pipe_open(ends);
    watcher_create(&watcher, ends[0], false);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 7);
    again = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 9);
    EXPECT(source == again);
    EXPECT_EQ(CFRunLoopSourceGetOrder(source), 7);
    CFRelease(source);
    CFRelease(again);
    EXPECT_EQ(CFFileDescriptorGetNativeDescriptor(watcher.object), ends[0]);
    CFFileDescriptorInvalidate(watcher.object);
    EXPECT(CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0) == NULL);
    EXPECT_EQ(CFFileDescriptorGetNativeDescriptor(watcher.object), -1);
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(a_source_that_is_gone_is_made_anew, "288")
{
    int ends[2];
    struct watcher watcher = WATCHER("f", NULL);
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef another;

    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_create(&watcher, ends[0], false);
    CFFileDescriptorEnableCallBacks(watcher.object, reads);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0);
    CFRunLoopSourceInvalidate(source);
    another = CFFileDescriptorCreateRunLoopSource(NULL, watcher.object, 0);
    REQUIRE(another != NULL);
    EXPECT(another != source);
    CFRunLoopAddSource(LOOP, another, MODE);
    look();
    EXPECT_LOG("f:R");
    CFRelease(source);
    CFRelease(another);
    watcher_free(&watcher);
    pipe_close(ends);
}

TEST(the_source_keeps_the_object, "288")
{
    struct watcher watcher = WATCHER("f", NULL);

    watcher_add_on_pipe(&watcher, "x", reads);
    CFRelease(watcher.object);
    EXPECT_EQ(watcher.releases, 0);
    look();
    EXPECT_LOG("f:R");
    watcher.object = (CFFileDescriptorRef)(uintptr_t)CFRetain(watcher.object);
    watcher_free(&watcher);
    EXPECT_EQ(watcher.releases, 1);
    pipe_close(watcher.ends);
}

static int context_calls;

static void *gives_another_info(void *info)
{
    (void)info;
    return &context_calls;
}

static void counts_release(void *info)
{
    EXPECT(info == &context_calls);
    context_calls++;
}

static CFStringRef describes(void *info)
{
    EXPECT(info == &context_calls);
    return CFStringCreateWithCString(NULL, "the reader of the log", kCFStringEncodingUTF8);
}

TEST(the_context_is_retained_at_creation_and_released_at_the_end, "288 289")
{
    int ends[2];
    CFFileDescriptorContext context = {.info = ends, .retain = gives_another_info, .release = counts_release, .copyDescription = describes};
    CFFileDescriptorContext copy = {.version = 0};
    CFFileDescriptorRef object;
    CFStringRef text;

    pipe_open(ends);
    object = CFFileDescriptorCreate(NULL, ends[0], false, never_called, &context);
    context.info = NULL; /* the object has a copy */
    CFFileDescriptorGetContext(object, &copy);
    EXPECT(copy.info == &context_calls);
    EXPECT(copy.retain == gives_another_info && copy.release == counts_release && copy.copyDescription == describes);
    text = CFCopyDescription(object);
    EXPECT(CFStringFind(text, CFSTR("the reader of the log"), 0).location != kCFNotFound);
    CFRelease(text);
    EXPECT_EQ(context_calls, 0);
    CFFileDescriptorInvalidate(object);
    EXPECT_EQ(context_calls, 1);
    CFFileDescriptorGetContext(object, &copy);
    EXPECT(copy.info == NULL);
    CFRelease(object);
    EXPECT_EQ(context_calls, 1);
    pipe_close(ends);
}

TEST(a_descriptor_needs_no_context, "289")
{
    int ends[2];
    CFFileDescriptorContext copy = {.version = 0, .info = ends};
    CFFileDescriptorRef object;

    pipe_open(ends);
    object = CFFileDescriptorCreate(NULL, ends[0], false, never_called, NULL);
    CFFileDescriptorGetContext(object, &copy);
    EXPECT(copy.info == NULL);
    EXPECT_EQ(CFGetTypeID(object), CFFileDescriptorGetTypeID());
    CFFileDescriptorInvalidate(object);
    CFRelease(object);
    pipe_close(ends);
}

TEST(several_objects_watch_one_descriptor, "290 F4")
{
    int ends[2];
    struct watcher one = WATCHER("one", NULL);
    struct watcher two = WATCHER("two", NULL);
    struct watcher three = WATCHER("three", NULL);

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    watcher_add(&one, ends[0], false, reads);
    watcher_add(&two, ends[0], false, reads);
    watcher_add(&three, ends[0], false, 0);
    pipe_fill(ends, "x");
    look();
    look();
    look();
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(two.calls, 1);
    trace_clear(&probe_trace);
    CFFileDescriptorEnableCallBacks(three.object, writes); /* interests add up */
    look();
    EXPECT_LOG("three:W");
    watcher_free(&one);
    CFFileDescriptorEnableCallBacks(two.object, reads);
    look();
    EXPECT_LOG("two:R"); /* the registration outlives one of its users */
    watcher_free(&two);
    watcher_free(&three);
    pipe_close(ends);
}

TEST(objects_on_one_descriptor_take_turns, "290 F4")
{
    struct watcher one = {.name = "one", .action = watcher_rearms, .is_silent = true};
    struct watcher two = {.name = "two", .action = watcher_rearms, .is_silent = true};
    struct probe port = {.name = "S1", .logging = probe_is_silent, .descriptor = -1};

    watcher_add_on_pipe(&one, "x", reads);
    watcher_add(&two, one.ends[0], false, reads);
    probe_port_source_add(&port, 0, one.ends[0], LOOP, MODE);
    for (int i = 0; i < 30; i++) {
        look();
    }
    EXPECT_EQ(one.calls, 10);
    EXPECT_EQ(two.calls, 10);
    EXPECT_EQ(port.calls, 10);
    probe_invalidate(&port);
    watcher_free(&one);
    watcher_free(&two);
    pipe_close(one.ends);
}

static int shared_ends[2];

static void watches_on_its_own_loop(void *context)
{
    struct watcher *watcher = context;

    watcher_add(watcher, shared_ends[0], false, reads);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    watcher_free(watcher);
}

TEST(two_loops_watch_one_descriptor, "290")
{
    struct watcher one = WATCHER("f", NULL);
    struct watcher two = WATCHER("f", NULL);
    struct probe_thread threads[2];

    pipe_open(shared_ends);
    probe_thread_start(&threads[0], watches_on_its_own_loop, &one);
    probe_thread_start(&threads[1], watches_on_its_own_loop, &two);
    pipe_fill(shared_ends, "x");
    probe_thread_join(&threads[0]);
    probe_thread_join(&threads[1]);
    EXPECT_LOG("f:R f:R");
    pipe_close(shared_ends);
}

/* A callback that goes on while its neighbour on another loop has ended. */
struct long_call {
    struct watcher watcher;
    CFRunLoopSourceRef source;
    _Atomic int begun;
    _Atomic int ended_early;
    _Atomic int is_invalid;
};

static void goes_on_if_first(struct watcher *watcher)
{
    struct long_call *call = watcher->context;

    if (call->begun++ == 0) {
        CFFileDescriptorEnableCallBacks(watcher->object, reads);
        probe_await_count(&call->is_invalid, 1);
        EXPECT_EQ(watcher->releases, 0);
    }
}

static void calls_on_its_own_loop(void *context)
{
    struct long_call *call = context;

    CFRunLoopAddSource(LOOP, call->source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
    call->ended_early++;
}

static void *invalidates_without_a_loop(void *context)
{
    struct long_call *call = context;

    CFFileDescriptorInvalidate(call->watcher.object);
    call->is_invalid = 1;
    return NULL;
}

TEST(a_thread_without_a_loop_leaves_the_info_to_a_callback_under_way, "289")
{
    struct long_call call = {.watcher = {.name = "f", .action = goes_on_if_first, .is_silent = true}};
    struct probe_thread loops[2];
    pthread_t thread;

    call.watcher.context = &call;
    pipe_open(shared_ends);
    pipe_fill(shared_ends, "x");
    CFFileDescriptorEnableCallBacks(watcher_create(&call.watcher, shared_ends[0], false), reads);
    call.source = CFFileDescriptorCreateRunLoopSource(NULL, call.watcher.object, 0);
    probe_thread_start(&loops[0], calls_on_its_own_loop, &call);
    probe_await_count(&call.begun, 1);
    probe_thread_start(&loops[1], calls_on_its_own_loop, &call);
    probe_await_count(&call.ended_early, 1);
    REQUIRE(pthread_create(&thread, NULL, invalidates_without_a_loop, &call) == 0);
    pthread_join(thread, NULL);
    probe_thread_join(&loops[0]);
    probe_thread_join(&loops[1]);
    EXPECT_EQ(call.watcher.releases, 1);
    CFRelease(call.source);
    watcher_free(&call.watcher);
    pipe_close(shared_ends);
}

/* A timer that is always due makes the loop poll for descriptors. During that poll the descriptor is armed, as another thread might do. */
static struct watcher armed_meanwhile = WATCHER("f", NULL);
static struct probe always_due;
static bool has_armed;
static int (*set_wait)(int set, struct kernel_event *events, int capacity, int64_t deadline_ns);

static int arms_in_the_poll(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    if (deadline_ns == 0 && !has_armed) {
        has_armed = true;
        probe_invalidate(&always_due);
        CFFileDescriptorEnableCallBacks(armed_meanwhile.object, reads);
        return 0; /* the kernel watched for nothing when the poll began */
    }
    return set_wait(set, events, capacity, deadline_ns);
}

static void lets_time_pass(struct probe *probe)
{
    (void)probe;
    fake_kernel_advance(1000);
}

TEST(what_is_armed_while_the_loop_polls_is_watched_in_the_sleep_after_it, "70 282")
{
    static struct probe passes = {.name = "o", .action = lets_time_pass, .logging = probe_is_silent};
    int ends[2];

    fake_kernel_install();
    set_wait = kernel.set_wait;
    kernel.set_wait = arms_in_the_poll;
    always_due = (struct probe){.name = "T", .logging = probe_is_silent};
    pipe_open(ends);
    pipe_fill(ends, "x");
    watcher_add(&armed_meanwhile, ends[0], false, 0);
    probe_timer_add(&always_due, 0, 1e-7, LOOP, MODE);
    probe_observer_add(&passes, kCFRunLoopBeforeTimers, 0, LOOP, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 1, true), kCFRunLoopRunHandledSource);
    EXPECT(has_armed);
    EXPECT_EQ(fake_kernel_sleeps(), 0);
    EXPECT_LOG("f:R");
    watcher_free(&armed_meanwhile);
    pipe_close(ends);
}

TEST(misuse_of_a_descriptor_object_stops_with_a_sentence, "")
{
    EXPECT_STOPS("CFFileDescriptorInvalidate: the file descriptor is NULL", { CFFileDescriptorInvalidate(NULL); });
    EXPECT_STOPS("CFFileDescriptorEnableCallBacks: ", { CFFileDescriptorEnableCallBacks((CFFileDescriptorRef)(uintptr_t)CFSTR("x"), 1); });
    EXPECT_STOPS("CFFileDescriptorDisableCallBacks: ", { CFFileDescriptorDisableCallBacks(NULL, 1); });
    EXPECT_STOPS("CFFileDescriptorIsValid: ", { (void)CFFileDescriptorIsValid(NULL); });
    EXPECT_STOPS("CFFileDescriptorGetNativeDescriptor: ", { (void)CFFileDescriptorGetNativeDescriptor(NULL); });
    EXPECT_STOPS("CFFileDescriptorCreateRunLoopSource: ", { (void)CFFileDescriptorCreateRunLoopSource(NULL, NULL, 0); });
    EXPECT_STOPS("CFFileDescriptorGetContext: ", { CFFileDescriptorGetContext(NULL, NULL); });
    EXPECT_STOPS("CFFileDescriptorGetContext: the context is NULL", {
        int ends[2];

        pipe_open(ends);
        CFFileDescriptorGetContext(CFFileDescriptorCreate(NULL, ends[0], false, never_called, NULL), NULL);
    });
}
