/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks of sockets: reading, data, accepting, writing, their order, enabling and disabling (rules 255 to 266, 276). Unix sockets are
 * ready at once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Descriptor/socket_recorder.h"
#include "Kernel/kernel.h"

/* How often the library registers anything, from count_changes on. */
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
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("read read read read read");
    EXPECT(recorder.data == NULL);
    EXPECT(recorder.address == NULL);
    EXPECT_EQ(drain(ends[0]), 3);
    look();
    EXPECT_LOG("");
    recorder_free(&recorder);
    close(ends[1]);
}

static void enables_again(struct recorder *recorder)
{
    CFSocketEnableCallBacks(recorder->object, recorder->type);
}

TEST(a_one_shot_socket_reads_once_until_it_is_enabled, "255 265")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("read");
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read");
    recorder.action = enables_again;
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read read read read read");
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(enabling_a_socket_in_its_callback_costs_no_system_call, "255 262 274")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = enables_again, .is_silent = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(ends[1], "abc");
    look();
    count_changes();
    for (int i = 0; i < 100; i++) {
        look();
    }
    EXPECT(recorder.calls >= 500);
    EXPECT_EQ(changes, 0);
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(a_socket_read_automatically_costs_no_system_call, "255 274")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true, .is_silent = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    look();
    count_changes();
    for (int i = 0; i < 100; i++) {
        tell(ends[1], "abc");
        look();
    }
    EXPECT_EQ(recorder.calls, 100);
    EXPECT_EQ(changes, 0);
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(the_end_of_a_socket_is_read_once, "258 F11")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    tell(ends[1], "abc");
    shutdown(ends[1], SHUT_WR);
    look();
    look();
    EXPECT_LOG("read read"); /* the bytes, and the end */
    EXPECT(CFSocketIsValid(recorder.object));
    tell(ends[0], "still open"); /* the other direction works */
    EXPECT_EQ(drain(ends[1]), 10);
    CFSocketEnableCallBacks(recorder.object, reads); /* whoever asks is told again */
    look();
    EXPECT_LOG("read");
    recorder_free(&recorder);
    close(ends[1]);
}

static void enables_and_looks(struct recorder *recorder)
{
    CFSocketEnableCallBacks(recorder->object, receives);
    look();
}

TEST(the_end_of_data_is_told_once_though_its_callback_enables_and_runs, "257 F9")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = enables_and_looks);

    pair_open(ends);
    recorder_add(&recorder, ends[0], receives);
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER(.action = enables_or_looks);

    pair_open(ends);
    recorder_add(&recorder, ends[0], receives | connects);
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER(.action = reads_one_byte);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    tell(ends[1], "ab");
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER(.action = runs_nested);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    tell(ends[1], "abc");
    CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_LOG("read { }");
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- Data ---- */

static void notes_sender(struct recorder *recorder)
{
    CFDataRef peer = CFSocketCopyPeerAddress(recorder->object);

    EXPECT(recorder->address != NULL);
    EXPECT(peer && CFEqual(peer, recorder->address));
    if (peer) {
        CFRelease(peer);
    }
}

TEST(data_of_a_stream_socket_comes_in_pieces, "256")
{
    enum { length = 100000 };
    int ends[2];
    int size = 4 * length;
    struct recorder recorder = RECORDER(.action = notes_sender);
    char *bytes = calloc(1, length);

    pair_open(ends);
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    recorder_add(&recorder, ends[0], receives);
    EXPECT_EQ(send(ends[1], bytes, length, MSG_DONTWAIT), length);
    look();
    EXPECT_LOG("data(32768) data(32768) data(32768) data(1696)");
    free(bytes);
    recorder_free(&recorder);
    close(ends[1]);
}

static void checks_text(struct recorder *recorder)
{
    EXPECT_EQ(memcmp(CFDataGetBytePtr(recorder->data), "hello", 5), 0);
}

TEST(data_has_the_bytes_that_were_sent, "256")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = checks_text);

    pair_open(ends);
    recorder_add(&recorder, ends[0], receives);
    tell(ends[1], "hello");
    look();
    EXPECT_LOG("data(5)");
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(data_ends_with_none_and_the_socket_is_invalid, "257")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], receives);
    tell(ends[1], "abc");
    close(ends[1]);
    look();
    EXPECT_LOG("data(3) data()");
    EXPECT(!CFSocketIsValid(recorder.object));
    EXPECT_EQ(recorder.releases, recorder.retains);
    CFRelease(recorder.object);
}

static void copies_sender(struct recorder *recorder)
{
    *(CFDataRef *)recorder->context = CFDataCreateCopy(NULL, recorder->address);
}

TEST(datagrams_are_whole_and_name_their_senders, "256 257")
{
    enum { length = 60000 };
    CFDataRef sender = NULL;
    struct recorder recorder = RECORDER(.action = copies_sender, .context = &sender);
    CFSocketContext context = recorder_context(&recorder);
    CFDataRef any = loopback_address(AF_INET);
    CFSocketSignature signature = {PF_INET, SOCK_DGRAM, 0, any};
    CFDataRef where;
    CFDataRef from;
    int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char *bytes = calloc(1, length);

    recorder.object = CFSocketCreateWithSocketSignature(NULL, &signature, receives, recorder_called, &context);
    REQUIRE(recorder.object != NULL);
    recorder_schedule(&recorder);
    where = CFSocketCopyAddress(recorder.object);
    connect(client, (const struct sockaddr *)(const void *)CFDataGetBytePtr(where), (socklen_t)CFDataGetLength(where));
    from = address_of(client);
    EXPECT_EQ(send(client, bytes, length, 0), length);
    recorder_await(&recorder, 1);
    EXPECT_LOG("data(60000)");
    EXPECT(sender && CFEqual(sender, from));
    CFRelease(sender);
    EXPECT_EQ(send(client, bytes, 0, 0), 0); /* an empty datagram is not an end */
    recorder_await(&recorder, 2);
    EXPECT_LOG("data()");
    EXPECT(CFSocketIsValid(recorder.object));
    CFRelease(sender);
    recorder_free(&recorder);
    free(bytes);
    close(client);
    CFRelease(from);
    CFRelease(where);
    CFRelease(any);
}

TEST(the_sender_of_an_unnamed_datagram_is_empty, "256")
{
    int ends[2];
    CFDataRef sender = NULL;
    struct recorder recorder = RECORDER(.action = copies_sender, .context = &sender);

    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    recorder_add(&recorder, ends[0], receives);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    EXPECT(sender && CFDataGetLength(sender) == 0);
    CFRelease(sender);
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- Accept ---- */

static void accept_family(int family)
{
    struct recorder recorder = RECORDER(.action = copies_sender);
    CFSocketContext context = recorder_context(&recorder);
    CFDataRef any = loopback_address(family);
    CFSocketSignature signature = {family, SOCK_STREAM, 0, any};
    CFDataRef where;
    CFDataRef from;
    CFDataRef sender = NULL;
    int client;

    recorder.context = &sender;
    recorder.object = CFSocketCreateWithSocketSignature(NULL, &signature, accepts, recorder_called, &context);
    if (!recorder.object) {
        CFRelease(any);
        SKIP("this family has no loopback here");
    }
    recorder_schedule(&recorder);
    where = CFSocketCopyAddress(recorder.object);
    client = connect_to(where);
    recorder_await(&recorder, 1);
    from = address_of(client);
    EXPECT_LOG("accept");
    EXPECT(CFEqual(sender, from));
    CFRelease(sender);
    REQUIRE(recorder.accepted >= 0);
    EXPECT(fcntl(recorder.accepted, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(fcntl(recorder.accepted, F_GETFL) & O_NONBLOCK, 0);
    tell(client, "hello");
    EXPECT_EQ(drain(recorder.accepted), 5);
    close(client);
    client = connect_to(where); /* the listener goes on */
    recorder_await(&recorder, 2);
    EXPECT_LOG("accept");
    CFRelease(sender);
    close(client);
    recorder_free(&recorder);
    CFRelease(from);
    CFRelease(where);
    CFRelease(any);
}

TEST(socket_connections_are_accepted_on_ipv4, "259")
{
    accept_family(AF_INET);
}

TEST(socket_connections_are_accepted_on_ipv6, "259")
{
    accept_family(AF_INET6);
}

TEST(a_listener_that_is_kept_open_is_left_as_it_was, "259 267")
{
    struct recorder recorder = RECORDER();
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    int client = connect_to(where);

    recorder_add(&recorder, listener, accepts);
    CFSocketSetSocketFlags(recorder.object, kCFSocketAutomaticallyReenableAcceptCallBack);
    recorder_await(&recorder, 1);
    recorder_free(&recorder);
    EXPECT_EQ(fcntl(listener, F_GETFL) & O_NONBLOCK, 0);
    close(listener);
    close(client);
    CFRelease(where);
    CFRelease(any);
}

/* ---- Write ---- */

TEST(room_to_write_is_told_once, "262 265")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], writes);
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
    recorder_free(&recorder);
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    tell(ends[1], "abc");
    enable_in_each_pass(&recorder, reads | writes);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
        EXPECT_LOG("read write");
        EXPECT_EQ(look_for_one(), kCFRunLoopRunTimedOut);
        EXPECT_LOG("");
    }
    recorder_free(&recorder);
    close(ends[1]);
}

TEST(a_look_tells_of_a_socket_what_was_not_told_before, "262 265")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate);
    enable_in_each_pass(&recorder, writes);
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("write");
    tell(ends[1], "abc");
    EXPECT_EQ(look_for_one(), kCFRunLoopRunHandledSource);
    EXPECT_LOG("read");
    recorder_free(&recorder);
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], writes);
    enable_in_each_pass(&recorder, writes);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CFRunLoopRunInMode(MODE, test_patience_s(), true), kCFRunLoopRunHandledSource);
        EXPECT_LOG("write");
    }
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- several events ---- */

TEST(socket_events_come_in_order_in_one_pass, "261 264 275")
{
    int ends[2];
    struct recorder recorder = RECORDER(.logs_context = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], connects | reads | writes);
    trace_clear(&probe_trace);
    tell(ends[1], "abc");
    CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_LOG("retain connect read write release");
    drain(ends[0]);
    recorder_free(&recorder);
    close(ends[1]);
}

static void invalidates_itself(struct recorder *recorder)
{
    CFSocketInvalidate(recorder->object);
}

TEST(an_invalidated_socket_has_no_further_events, "264 F10")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = invalidates_itself);

    pair_open(ends);
    recorder_add(&recorder, ends[0], connects | reads | writes);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("connect");
    EXPECT_EQ(recorder.releases, 2);
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    CFRelease(recorder.object);
    close(ends[1]);
}

TEST(a_connected_native_socket_has_one_connect, "261")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    pair_open(ends);
    recorder_add(&recorder, ends[0], connects);
    look();
    EXPECT_LOG("connect");
    CFSocketEnableCallBacks(recorder.object, connects);
    look();
    EXPECT_LOG("");
    recorder_free(&recorder);
    close(ends[1]);
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
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads | writes);
    CFSocketDisableCallBacks(recorder.object, reads | writes);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("");
    CFSocketEnableCallBacks(recorder.object, reads);
    look();
    EXPECT_LOG("read");
    CFSocketEnableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("write");
    recorder_free(&recorder);
    close(ends[1]);
}

static void disables_itself(struct recorder *recorder)
{
    CFSocketDisableCallBacks(recorder->object, recorder->type);
}

TEST(a_socket_disabled_in_its_callback_is_not_enabled_again, "265")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = disables_itself);

    pair_open(ends);
    recorder_add(&recorder, ends[0], receives);
    tell(ends[1], "abc");
    look();
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    recorder.action = NULL;
    CFSocketEnableCallBacks(recorder.object, receives);
    look();
    tell(ends[1], "de");
    look();
    EXPECT_LOG("data(3) data(2)");
    recorder_free(&recorder);
    close(ends[1]);
}

/* Read's number and Accept's are bits of Data's: any of the three stands for it, to disable it and to enable it. */
TEST(data_is_disabled_and_enabled_by_any_of_its_names, "252 265")
{
    static const CFOptionFlags names[] = {reads, accepts, receives};

    for (size_t i = 0; i < 9; i++) {
        int ends[2];
        struct recorder recorder = RECORDER();

        pair_open(ends);
        recorder_add(&recorder, ends[0], receives);
        CFSocketDisableCallBacks(recorder.object, names[i / 3]);
        tell(ends[1], "abc");
        CFSocketEnableCallBacks(recorder.object, connects | writes); /* never asked for: ignored */
        look();
        EXPECT_LOG("");
        CFSocketEnableCallBacks(recorder.object, names[i % 3]);
        look();
        EXPECT_LOG("data(3)");
        recorder_free(&recorder);
        close(ends[1]);
    }
}

TEST(data_is_enabled_again_by_itself_by_any_of_its_names, "252 253")
{
    static const CFOptionFlags names[] = {reads, accepts, receives};

    for (size_t i = 0; i < 3; i++) {
        int ends[2];
        struct recorder recorder = RECORDER();

        pair_open(ends);
        recorder_add(&recorder, ends[0], receives);
        CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate | names[i]);
        for (int j = 0; j < 2; j++) {
            tell(ends[1], "abc");
            look();
            EXPECT_LOG("data(3)");
        }
        recorder_free(&recorder);
        close(ends[1]);
    }
}

TEST(reading_is_not_enabled_by_the_name_of_accepting, "252 265")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    CFSocketDisableCallBacks(recorder.object, receives);
    tell(ends[1], "abc");
    CFSocketEnableCallBacks(recorder.object, accepts);
    look();
    EXPECT_LOG("");
    CFSocketEnableCallBacks(recorder.object, receives);
    look();
    EXPECT_LOG("read");
    recorder_free(&recorder);
    close(ends[1]);
}

/* As Apple's code has it: the first mode enables all, whatever was disabled or told before. */
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
    CFSocketDisableCallBacks(recorder.object, writes); /* in no mode: of no effect */
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

/* Whichever is first: what is disabled before the last mode is left is forgotten with that, and after it there is nothing to disable. */
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
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    struct probe_thread thread;

    pair_open(ends);
    recorder_add(&recorder, ends[0], reads);
    CFSocketDisableCallBacks(recorder.object, reads);
    tell(ends[1], "abc");
    probe_thread_when_waiting(&thread, LOOP, enables_reading, recorder.object);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 3600, true), kCFRunLoopRunHandledSource);
    EXPECT_LOG("read");
    probe_thread_join(&thread);
    recorder_free(&recorder);
    close(ends[1]);
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
