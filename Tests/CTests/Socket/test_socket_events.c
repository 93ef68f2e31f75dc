/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of sockets: reading, writing, the order of several events, enabling and disabling, several loops (rules 255 to 266, 276). Data
 * and Accept callbacks are in test_socket_receive.c and test_socket_accept.c. Unix sockets are ready at once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Socket/socket_recorder.h"
#include "Kernel/kernel.h"

/* Counts the registrations that the library makes or changes, from count_changes on. */
static _Atomic int changes;

static int counted_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    changes++;
    return kernel_linux.set_change(set, descriptor, interest, token);
}

static int counted_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    changes++;
    return kernel_linux.set_add(set, descriptor, interest, token);
}

static int counted_remove(int set, int descriptor)
{
    changes++;
    return kernel_linux.set_remove(set, descriptor);
}

static void count_changes(void)
{
    changes = 0;
    kernel.set_change = counted_change;
    kernel.set_add = counted_add;
    kernel.set_remove = counted_remove;
}

/* ---- Read ---- */

TEST(a_readable_socket_is_told_as_long_as_bytes_remain, "255")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads);
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("read read read read read");
    EXPECT(recorder.data == NULL);
    EXPECT(recorder.address == NULL);
    EXPECT_EQ(drain(recorder.ends[0]), 3);
    look();
    EXPECT_LOG("");
    recorder_free_with_pair(&recorder);
}

static void enables_again(struct recorder *recorder)
{
    CFSocketEnableCallBacks(recorder->object, recorder->type);
}

TEST(a_one_shot_socket_reads_once_until_it_is_enabled, "255 265")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("read");
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read");
    recorder.action = enables_again;
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read read read read read");
    recorder_free_with_pair(&recorder);
}

TEST(enabling_a_socket_in_its_callback_costs_no_system_call, "255 262 274")
{
    struct recorder recorder = RECORDER(.action = enables_again, .is_silent = true);

    recorder_add_on_pair(&recorder, reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(recorder.ends[1], "abc");
    look();
    count_changes();
    for (int i = 0; i < 100; i++) {
        look();
    }
    EXPECT(recorder.calls >= 500);
    EXPECT_EQ(changes, 0);
    recorder_free_with_pair(&recorder);
}

TEST(a_socket_read_automatically_costs_no_system_call, "255 274")
{
    struct recorder recorder = RECORDER(.drains = true, .is_silent = true);

    recorder_add_on_pair(&recorder, reads);
    look();
    count_changes();
    for (int i = 0; i < 100; i++) {
        tell(recorder.ends[1], "abc");
        look();
    }
    EXPECT_EQ(recorder.calls, 100);
    EXPECT_EQ(changes, 0);
    recorder_free_with_pair(&recorder);
}

TEST(the_end_of_a_socket_is_read_once, "258 F11")
{
    struct recorder recorder = RECORDER(.drains = true);

    recorder_add_on_pair(&recorder, reads);
    tell(recorder.ends[1], "abc");
    shutdown(recorder.ends[1], SHUT_WR);
    look();
    look();
    EXPECT_LOG("read read"); /* the bytes, and the end */
    EXPECT(CFSocketIsValid(recorder.object));
    tell(recorder.ends[0], "still open"); /* the other direction works */
    EXPECT_EQ(drain(recorder.ends[1]), 10);
    CFSocketEnableCallBacks(recorder.object, reads); /* whoever asks is told again */
    look();
    EXPECT_LOG("read");
    recorder_free_with_pair(&recorder);
}

static void enables_and_looks(struct recorder *recorder)
{
    CFSocketEnableCallBacks(recorder->object, receives);
    look();
}

TEST(the_end_of_data_is_told_once_though_its_callback_enables_and_runs, "257 F9")
{
    struct recorder recorder = RECORDER(.action = enables_and_looks);

    recorder_add_on_pair(&recorder, receives);
    close(recorder.ends[1]);
    look();
    EXPECT_LOG("data()");
    EXPECT(!CFSocketIsValid(recorder.object));
    recorder_free(&recorder);
}

static void enables_or_looks(struct recorder *recorder)
{
    if (recorder->type == kCFSocketConnectCallBack) {
        CFSocketEnableCallBacks(recorder->object, receives);
    } else {
        look();
    }
}

TEST(the_end_of_data_is_told_once_though_connect_enabled_reading_again, "257 F9")
{
    struct recorder recorder = RECORDER(.action = enables_or_looks);

    recorder_add_on_pair(&recorder, receives | connects);
    close(recorder.ends[1]);
    look();
    EXPECT_LOG("connect data()");
    recorder_free(&recorder);
}

static void reads_one_byte(struct recorder *recorder)
{
    char byte;

    probe_note("%ld", (long)recv(CFSocketGetNative(recorder->object), &byte, 1, MSG_DONTWAIT));
}

TEST(a_closed_peer_of_a_socket_leaves_its_data_first, "258 F9")
{
    struct recorder recorder = RECORDER(.action = reads_one_byte);

    recorder_add_on_pair(&recorder, reads);
    tell(recorder.ends[1], "ab");
    close(recorder.ends[1]);
    look();
    look();
    EXPECT_LOG("read 1 read 1 read 0");
    recorder_free(&recorder);
}

static void runs_nested(struct recorder *recorder)
{
    (void)recorder;
    probe_log("{");
    CFRunLoopRunInMode(MODE, 0, true);
    probe_log("}");
}

TEST(a_socket_is_not_told_again_inside_its_callback, "255")
{
    struct recorder recorder = RECORDER(.action = runs_nested);

    recorder_add_on_pair(&recorder, reads);
    tell(recorder.ends[1], "abc");
    CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_LOG("read { }");
    recorder_free_with_pair(&recorder);
}

/* ---- Write ---- */

TEST(room_to_write_is_told_once, "262 265")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, writes);
    look();
    EXPECT_LOG("write");
    CFSocketEnableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("write");
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate | kCFSocketAutomaticallyReenableWriteCallBack);
    look();
    EXPECT_LOG("");
    CFSocketEnableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("write write write write write");
    recorder_free_with_pair(&recorder);
}

TEST(a_full_socket_is_not_written, "262")
{
    int ends[2];
    struct recorder recorder = RECORDER();
    char bytes[65536] = {0};

    pair_open(ends);
    while (send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    recorder_add(&recorder, ends[0], writes);
    look();
    EXPECT_LOG("");
    while (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    look();
    EXPECT_LOG("write");
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- enabled by an observer ---- */

static void enable_in_observer(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    struct recorder *recorder = info;

    (void)observer, (void)activity;
    CFSocketEnableCallBacks(recorder->object, (CFOptionFlags)(uintptr_t)recorder->context);
}

/* Enables `types` of the recorder's object in each pass, before its sources. */
static void enable_in_each_pass(struct recorder *recorder, CFOptionFlags types)
{
    CFRunLoopObserverContext context = {.info = recorder};
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeSources, true, 0, enable_in_observer, &context);

    recorder->context = (void *)(uintptr_t)types;
    CFRunLoopAddObserver(LOOP, observer, MODE);
    CFRelease(observer);
}

static CFRunLoopRunResult look_for_one(void)
{
    return CFRunLoopRunInMode(MODE, 0, true);
}

TEST(looking_as_long_as_a_source_is_handled_ends_though_an_observer_enables_what_was_told, "262 265")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(recorder.ends[1], "abc");
    enable_in_each_pass(&recorder, reads | writes);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
        EXPECT_LOG("read write");
        EXPECT_EQ(look_for_one(), kCFRunLoopRunTimedOut);
        EXPECT_LOG("");
    }
    recorder_free_with_pair(&recorder);
}

TEST(a_look_tells_of_a_socket_what_was_not_told_before, "262 265")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    enable_in_each_pass(&recorder, writes);
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("write");
    tell(recorder.ends[1], "abc");
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("read");
    recorder_free_with_pair(&recorder);
}

TEST(a_socket_that_a_look_leaves_does_not_hide_another, "262 265")
{
    int ends[2];
    int others[2];
    struct recorder recorder = RECORDER(.name = "a");
    struct recorder other = RECORDER(.name = "b");

    pair_open(ends);
    pair_open(others);
    recorder_add(&recorder, ends[0], writes);
    recorder_add(&other, others[0], reads);
    enable_in_each_pass(&recorder, writes);
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("a:write");
    tell(others[1], "abc");
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("b:read");
    recorder_free(&recorder);
    recorder_free(&other);
    close(ends[1]);
    close(others[1]);
}

TEST(a_run_that_may_sleep_tells_what_an_observer_has_enabled, "262 265")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, writes);
    enable_in_each_pass(&recorder, writes);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
        EXPECT_LOG("write");
    }
    recorder_free_with_pair(&recorder);
}

/* ---- several events ---- */

TEST(socket_events_come_in_order_in_one_pass, "261 264 275")
{
    struct recorder recorder = RECORDER(.logs_context = true);

    recorder_add_on_pair(&recorder, connects | reads | writes);
    trace_clear(&probe_trace);
    tell(recorder.ends[1], "abc");
    CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_LOG("retain connect read write release");
    drain(recorder.ends[0]);
    recorder_free_with_pair(&recorder);
}

static void invalidates_itself(struct recorder *recorder)
{
    CFSocketInvalidate(recorder->object);
}

TEST(an_invalidated_socket_has_no_further_events, "264 F10")
{
    struct recorder recorder = RECORDER(.action = invalidates_itself);

    recorder_add_on_pair(&recorder, connects | reads | writes);
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("connect");
    EXPECT_EQ(recorder.releases, 2);
    EXPECT_EQ(fcntl(recorder.ends[0], F_GETFD), -1);
    CFRelease(recorder.object);
    close(recorder.ends[1]);
}

TEST(a_connected_native_socket_has_one_connect, "261")
{
    struct recorder recorder = RECORDER();

    recorder_add_on_pair(&recorder, connects);
    look();
    EXPECT_LOG("connect");
    CFSocketEnableCallBacks(recorder.object, connects);
    look();
    EXPECT_LOG("");
    recorder_free_with_pair(&recorder);
}

TEST(a_datagram_socket_has_no_connect, "261")
{
    struct recorder recorder = RECORDER();
    int native = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    recorder_add(&recorder, native, connects | writes);
    look();
    EXPECT_LOG("write");
    recorder_free(&recorder);
}

/* ---- disabling ---- */

TEST(a_disabled_socket_event_waits, "265")
{
    struct recorder recorder = RECORDER(.drains = true);

    recorder_add_on_pair(&recorder, reads | writes);
    CFSocketDisableCallBacks(recorder.object, reads | writes);
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("");
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read");
    CFSocketEnableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("write");
    recorder_free_with_pair(&recorder);
}

static void disables_itself(struct recorder *recorder)
{
    CFSocketDisableCallBacks(recorder->object, recorder->type);
}

TEST(a_socket_disabled_in_its_callback_is_not_enabled_again, "265")
{
    struct recorder recorder = RECORDER(.action = disables_itself);

    recorder_add_on_pair(&recorder, receives);
    tell(recorder.ends[1], "abc");
    look();
    tell(recorder.ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    recorder.action = NULL;
    CFSocketEnableCallBacks(recorder.object, receives);
    look();
    tell(recorder.ends[1], "de");
    look();
    EXPECT_LOG("data(3) data(2)");
    recorder_free_with_pair(&recorder);
}

/* The values of Read and Accept are bits of Data's value. Any of the three names disables and enables Data. */
TEST(data_is_disabled_and_enabled_by_any_of_its_names, "252 265")
{
    static const CFOptionFlags names[] = {reads, accepts, receives};

    for (size_t i = 0; i < 9; i++) {
        struct recorder recorder = RECORDER();

        recorder_add_on_pair(&recorder, receives);
        CFSocketDisableCallBacks(recorder.object, names[i / 3]);
        tell(recorder.ends[1], "abc");
        CFSocketEnableCallBacks(recorder.object, connects | writes); /* never asked for: ignored */
        look();
        EXPECT_LOG("");
        CFSocketEnableCallBacks(recorder.object, names[i % 3]);
        look();
        EXPECT_LOG("data(3)");
        recorder_free_with_pair(&recorder);
    }
}

TEST(data_is_enabled_again_by_itself_by_any_of_its_names, "252 253")
{
    static const CFOptionFlags names[] = {reads, accepts, receives};

    for (size_t i = 0; i < 3; i++) {
        struct recorder recorder = RECORDER();

        recorder_add_on_pair(&recorder, receives);
        CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate | names[i]);
        for (int j = 0; j < 2; j++) {
            tell(recorder.ends[1], "abc");
            look();
            EXPECT_LOG("data(3)");
        }
        recorder_free_with_pair(&recorder);
    }
}

TEST(reading_is_not_enabled_by_the_name_of_accepting, "252 265")
{
    struct recorder recorder = RECORDER(.drains = true);

    recorder_add_on_pair(&recorder, reads);
    CFSocketDisableCallBacks(recorder.object, receives);
    tell(recorder.ends[1], "abc");
    CFSocketEnableCallBacks(recorder.object, accepts);
    look();
    EXPECT_LOG("");
    CFSocketEnableCallBacks(recorder.object, receives);
    look();
    EXPECT_LOG("read");
    recorder_free_with_pair(&recorder);
}

/* As in Apple's code, joining the first mode enables all callbacks, even those that were disabled or delivered before. */
TEST(a_socket_that_joins_its_first_mode_has_all_callbacks_enabled, "254 262 265")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    CFRunLoopSourceRef source;

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate); /* each is told once */
    CFSocketDisableCallBacks(recorder.object, reads | writes);
    recorder_schedule(&recorder);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("read write");
    tell(ends[1], "abc");
    source = CFSocketCreateRunLoopSource(NULL, recorder.object, 0);
    CFRunLoopAddSource(LOOP, source, CFSTR("another"));
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopAddSource(LOOP, source, MODE); /* not its first */
    look();
    EXPECT_LOG("");
    CFRunLoopRemoveSource(LOOP, source, CFSTR("another"));
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("read write");
    CFSocketDisableCallBacks(recorder.object, reads | writes);
    CFRunLoopRemoveSource(LOOP, source, MODE);
    CFSocketDisableCallBacks(recorder.object, writes); /* has no effect, as the source is in no mode */
    tell(ends[1], "abc");
    CFRunLoopAddSource(LOOP, source, MODE);
    look();
    EXPECT_LOG("read write");
    CFRelease(source);
    recorder_free(&recorder);
    close(ends[1]);
}

static CFSocketRef paused;
static pthread_barrier_t pausing;

enum { pauses = 2000 };

static void *pause_in_each_round(void *unused)
{
    for (int i = 0; i < pauses; i++) {
        (void)pthread_barrier_wait(&pausing);
        CFSocketDisableCallBacks(paused, reads);
        (void)pthread_barrier_wait(&pausing);
    }
    return unused;
}

/* Either order is right. Leaving the last mode forgets what was disabled before; after that, disabling has no effect. */
TEST(stress_disabling_beside_the_end_of_the_last_mode_silences_no_later_one, "254 265")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true, .is_silent = true);
    CFRunLoopSourceRef source;
    pthread_t other;

    pair_open(ends);
    paused = recorder_create(&recorder, ends[0], reads);
    source = CFSocketCreateRunLoopSource(NULL, paused, 0);
    REQUIRE(pthread_barrier_init(&pausing, NULL, 2) == 0 && pthread_create(&other, NULL, pause_in_each_round, NULL) == 0);
    for (int i = 0; i < pauses; i++) {
        CFRunLoopAddSource(LOOP, source, MODE);
        (void)pthread_barrier_wait(&pausing);
        CFRunLoopRemoveSource(LOOP, source, MODE);
        (void)pthread_barrier_wait(&pausing);
        CFRunLoopAddSource(LOOP, source, MODE);
        tell(ends[1], "x");
        (void)CFRunLoopRunInMode(MODE, 0, false);
        EXPECT_EQ(recorder.calls, i + 1);
        recorder.calls = i + 1; /* once is enough */
        (void)drain(ends[0]);
        CFRunLoopRemoveSource(LOOP, source, MODE);
    }
    (void)pthread_join(other, NULL);
    pthread_barrier_destroy(&pausing);
    CFRelease(source);
    recorder_free(&recorder);
    close(ends[1]);
}

static void enables_reading(void *socket)
{
    CFSocketEnableCallBacks(socket, reads);
}

TEST(enabling_a_socket_reaches_a_sleeping_loop, "265")
{
    struct recorder recorder = RECORDER(.drains = true);
    struct probe_thread thread;

    recorder_add_on_pair(&recorder, reads);
    CFSocketDisableCallBacks(recorder.object, reads);
    tell(recorder.ends[1], "abc");
    probe_thread_when_waiting(&thread, LOOP, enables_reading, recorder.object);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3600, true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("read");
    probe_thread_join(&thread);
    recorder_free_with_pair(&recorder);
}

TEST(a_socket_without_a_callback_has_no_events, "254")
{
    int ends[2];
    CFSocketRef s;
    CFRunLoopSourceRef source;

    pair_open(ends);
    s = CFSocketCreateWithNative(NULL, ends[0], receives | writes | connects, NULL, NULL);
    source = CFSocketCreateRunLoopSource(NULL, s, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    tell(ends[1], "abc");
    look();
    EXPECT_EQ(drain(ends[0]), 3);
    CFRelease(source);
    CFSocketInvalidate(s);
    CFRelease(s);
    close(ends[1]);
}

/* ---- several loops ---- */

struct second_loop {
    struct recorder *recorder;
    CFRunLoopSourceRef source;
    _Atomic(CFRunLoopRef) loop;
    _Atomic bool ends;
};

static void run_second_loop(void *context)
{
    struct second_loop *second = context;

    CFRunLoopAddSource(LOOP, second->source, MODE);
    second->loop = LOOP;
    while (!second->ends) {
        CFRunLoopRunInMode(MODE, 0.05, false);
    }
    CFRunLoopRemoveSource(LOOP, second->source, MODE);
}

TEST(an_event_of_a_socket_goes_to_one_of_its_loops, "276")
{
    enum { messages = 200 };
    int ends[2];
    struct recorder recorder = RECORDER(.is_silent = true);
    struct second_loop second = {.recorder = &recorder};
    struct probe_thread thread;

    pair_open(ends);
    recorder_create(&recorder, ends[0], receives);
    second.source = CFSocketCreateRunLoopSource(NULL, recorder.object, 0);
    CFRunLoopAddSource(LOOP, second.source, MODE);
    probe_thread_start(&thread, run_second_loop, &second);
    for (int i = 1; i <= messages; i++) {
        CFAbsoluteTime end = CFAbsoluteTimeGetCurrent() + test_patience_s();

        tell(ends[1], "x");
        while (recorder.calls < i && CFAbsoluteTimeGetCurrent() < end) {
            CFRunLoopRunInMode(MODE, 0.001, true);
        }
        REQUIRE(recorder.calls == i);
    }
    second.ends = true;
    probe_thread_join(&thread);
    EXPECT_EQ(recorder.calls, messages);
    CFRelease(second.source);
    recorder_free(&recorder);
    EXPECT_EQ(recorder.retains, recorder.releases);
    close(ends[1]);
}

TEST(an_event_of_a_socket_goes_to_the_loop_that_waits, "276")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    struct second_loop second = {.recorder = &recorder};
    struct probe_thread thread;
    CFAbsoluteTime end = CFAbsoluteTimeGetCurrent() + test_patience_s();

    pair_open(ends);
    recorder_create(&recorder, ends[0], reads);
    second.source = CFSocketCreateRunLoopSource(NULL, recorder.object, 0);
    CFRunLoopAddSource(LOOP, second.source, MODE); /* which nobody runs */
    probe_thread_start(&thread, run_second_loop, &second);
    tell(ends[1], "x");
    while (recorder.calls == 0 && CFAbsoluteTimeGetCurrent() < end) {
        sched_yield();
    }
    EXPECT_EQ(recorder.calls, 1);
    second.ends = true;
    probe_thread_join(&thread);
    CFRelease(second.source);
    recorder_free(&recorder);
    close(ends[1]);
}
