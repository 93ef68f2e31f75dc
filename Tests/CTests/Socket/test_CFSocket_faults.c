/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults around sockets: numbers above 1024, reset connections, signals, spurious readiness, threads that invalidate (rule 274, fault cases
 * F8 to F15). Failures that the system does not produce on demand are put into the kernel table. Failures of accept are in
 * test_socket_accept.c.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sched.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CFFileDescriptor.h"
#include "Socket/socket_recorder.h"
#include "Support/lock.h"
#include "Kernel/kernel.h"
#include "fake_kernel.h"

/* ---- numbers, hang-ups, errors ---- */

TEST(sockets_above_number_1024_are_like_any_other, "274 F8")
{
    int ends[2];
    struct recorder recorder = RECORDER(.drains = true);
    int high;

    test_need_descriptors(3100);
    pair_open(ends);
    high = fcntl(ends[0], F_DUPFD_CLOEXEC, 2500);
    REQUIRE(high >= 2500);
    close(ends[0]);
    recorder_add(&recorder, high, reads | writes);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("read write");
    recorder_free(&recorder);
    close(ends[1]);
}

static int thread_count(void)
{
    DIR *directory = opendir("/proc/self/task");
    int count = 0;

    while (directory && readdir(directory)) {
        count++;
    }
    if (directory) {
        closedir(directory);
    }
    return count - 2; /* . and .. */
}

TEST(many_sockets_make_no_thread, "274 F8")
{
    enum { count = 500 };
    static struct recorder recorders[count];
    static int peers[count];
    CFIndex calls = 0;

    test_need_descriptors(2 * count + 100);
    for (int i = 0; i < count; i++) {
        int ends[2];

        pair_open(ends);
        recorders[i] = (struct recorder)RECORDER(.is_silent = true, .drains = true);
        recorder_add(&recorders[i], ends[0], reads);
        peers[i] = ends[1];
        tell(ends[1], "x");
    }
    CFRunLoopRunInMode(MODE, 0, false);
    for (int i = 0; i < count; i++) {
        look();
    }
    for (int i = 0; i < count; i++) {
        calls += recorders[i].calls;
        recorder_free(&recorders[i]);
        close(peers[i]);
    }
    EXPECT_EQ(calls, count);
    EXPECT(thread_count() <= 1 || test_is_instrumented()); /* a sanitizer has one of its own */
}

static void reset_peer(int socket)
{
    struct linger linger = {1, 0};

    setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(socket);
}

TEST(a_reset_socket_gives_its_data_and_one_end, "257 F9")
{
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    struct recorder recorder = RECORDER();
    int client = connect_to(where);
    int server = accept(listener, NULL, NULL);

    recorder_add(&recorder, client, receives);
    tell(server, "abc");
    recorder_await(&recorder, 1);
    reset_peer(server);
    recorder_await(&recorder, 2);
    look();
    EXPECT_LOG("data(3) data()");
    EXPECT(!CFSocketIsValid(recorder.object));
    CFRelease(recorder.object);
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

static void notes_result(struct recorder *recorder)
{
    char byte;
    ssize_t got = recv(CFSocketGetNative(recorder->object), &byte, 1, MSG_DONTWAIT);

    probe_note("%s", got > 0 ? "byte" : got == 0 ? "end" : errno == ECONNRESET ? "reset" : "other");
}

TEST(a_reset_socket_is_read_to_its_end, "258 F9")
{
    CFDataRef any = loopback_address(AF_INET);
    int listener = listen_on(any, 5);
    CFDataRef where = address_of(listener);
    struct recorder recorder = RECORDER(.action = notes_result);
    int client = connect_to(where);
    int server = accept(listener, NULL, NULL);

    recorder_add(&recorder, client, reads);
    reset_peer(server);
    recorder_await(&recorder, 2);
    look();
    look();
    EXPECT_LOG("read reset read end"); /* the program gets the error */
    recorder_free(&recorder);
    close(listener);
    CFRelease(where);
    CFRelease(any);
}

TEST(a_half_closed_socket_still_writes, "F11 258")
{
    struct recorder recorder = RECORDER(.drains = true);

    recorder_add_on_pair(&recorder, reads | writes);
    look();
    EXPECT_LOG("write");
    shutdown(recorder.ends[1], SHUT_WR);
    look();
    EXPECT_LOG("read");
    CFSocketEnableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("write");
    tell(recorder.ends[0], "abc");
    EXPECT_EQ(drain(recorder.ends[1]), 3);
    recorder_free_with_pair(&recorder);
}

TEST(an_error_of_one_datagram_is_not_an_end, "257 F14")
{
    CFDataRef nobody = refusing_address();
    struct recorder recorder = RECORDER();
    int native = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    connect(native, (const struct sockaddr *)(const void *)CFDataGetBytePtr(nobody), (socklen_t)CFDataGetLength(nobody));
    recorder_add(&recorder, native, receives);
    tell(native, "is somebody there?");
    for (int i = 0; i < 20; i++) {
        CFRunLoopRunInMode(MODE, 0.005, false);
    }
    EXPECT_LOG(""); /* the refusal was received, and is no data */
    EXPECT(CFSocketIsValid(recorder.object));
    recorder_free(&recorder);
    CFRelease(nobody);
}

/* ---- readiness that is not there ---- */

static int lying_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count = kernel_linux.set_wait(set, events, capacity, deadline_ns);

    for (int i = 0; i < count; i++) {
        events[i].ready |= kernel_readable;
    }
    return count;
}

TEST(spurious_readiness_of_a_socket_delivers_nothing, "F14")
{
    int ends[2];
    struct recorder recorder = RECORDER();

    kernel.set_wait = lying_wait;
    pair_open(ends); /* blocking: a read would hang */
    recorder_add(&recorder, ends[0], receives | writes);
    CFSocketSetSocketFlags(recorder.object, kCFSocketCloseOnInvalidate | kCFSocketAutomaticallyReenableWriteCallBack | receives);
    look();
    EXPECT_LOG("write write write write write");
    tell(ends[1], "abc"); /* the false report has not used up the one shot */
    CFSocketDisableCallBacks(recorder.object, writes);
    look();
    EXPECT_LOG("data(3)");
    recorder_free(&recorder);
    close(ends[1]);
}

/* ---- invalidation ---- */

static int closed_number;
static _Atomic int close_count;

static int counted_close(int descriptor)
{
    close_count += descriptor == closed_number;
    return kernel_linux.close(descriptor);
}

static void invalidates_and_reuses(struct recorder *recorder)
{
    int number = CFSocketGetNative(recorder->object);

    CFSocketInvalidate(recorder->object);
    EXPECT_EQ(fcntl(number, F_GETFD), -1);
    *(int *)recorder->context = dup2(STDERR_FILENO, number); /* another file has the number from here on */
}

TEST(a_socket_invalidated_in_its_callback_is_closed_once, "267 F10")
{
    int ends[2];
    int stranger = -1;
    struct recorder recorder = RECORDER(.action = invalidates_and_reuses, .context = &stranger);

    pair_open(ends);
    closed_number = ends[0];
    kernel.close = counted_close;
    recorder_add(&recorder, ends[0], receives | writes);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("data(3)");
    CFSocketInvalidate(recorder.object);
    CFRelease(recorder.object);
    EXPECT_EQ(close_count, 1);
    EXPECT(fcntl(stranger, F_GETFD) >= 0);
    close(stranger);
    close(ends[1]);
}

TEST(a_socket_closed_by_the_program_does_not_close_its_successor, "251 F10")
{
    int ends[2];
    struct recorder recorder = RECORDER();
    int number;
    CFSocketRef successor;

    pair_open(ends);
    number = ends[0];
    recorder_create(&recorder, number, reads);
    close(number); /* wrong, but it happens */
    successor = CFSocketCreate(NULL, PF_UNIX, SOCK_STREAM, 0, 0, NULL, NULL);
    EXPECT_EQ(CFSocketGetNative(successor), number);
    EXPECT(successor != recorder.object);
    CFSocketInvalidate(recorder.object);
    EXPECT(fcntl(number, F_GETFD) >= 0);
    CFRelease(recorder.object);
    CFRelease(successor);
    EXPECT_EQ(fcntl(number, F_GETFD), -1);
    close(ends[1]);
}

struct invalidator {
    CFSocketRef socket;
    _Atomic bool starts;
};

static void invalidates_at_once(void *context)
{
    struct invalidator *invalidator = context;

    while (!invalidator->starts) {
        sched_yield();
    }
    CFSocketInvalidate(invalidator->socket);
}

TEST(a_socket_may_be_invalidated_by_another_thread_meanwhile, "267 276 F10")
{
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"hello", 5);

    for (int round = 0; round < 200; round++) {
        struct recorder recorder = RECORDER(.is_silent = true);
        struct invalidator invalidator = {NULL, false};
        struct probe_thread thread;

        recorder_add_on_pair(&recorder, receives | writes);
        invalidator.socket = recorder.object;
        probe_thread_start(&thread, invalidates_at_once, &invalidator);
        tell(recorder.ends[1], "abc");
        invalidator.starts = true;
        while (CFSocketIsValid(recorder.object)) {
            CFRunLoopRunInMode(MODE, 0, true);
            (void)CFSocketSendData(recorder.object, NULL, data, 1);
            (void)drain(recorder.ends[1]);
        }
        probe_thread_join(&thread);
        look();
        EXPECT_EQ(recorder.retains, recorder.releases);
        EXPECT_EQ(CFGetRetainCount(recorder.object), 1);
        CFRelease(recorder.object);
        close(recorder.ends[1]);
    }
    CFRelease(data);
}

static void is_called_and_then_invalidates(void *context)
{
    struct recorder *recorder = context;

    recorder_schedule(recorder);
    CFSocketEnableCallBacks(recorder->object, writes);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 5, true), kCFRunLoopRunHandledSource);
    CFSocketInvalidate(recorder->object);
    EXPECT_EQ(recorder->releases, 0); /* the callback on the other thread still uses the info */
}

static void is_called_elsewhere_meanwhile(struct recorder *recorder)
{
    if (recorder->type == reads) {
        probe_on_thread(is_called_and_then_invalidates, recorder);
        EXPECT_EQ(recorder->releases, 0);
    }
}

TEST(a_socket_invalidated_behind_a_callback_keeps_its_info_for_that_on_another_thread, "267 275")
{
    int ends[2];
    struct recorder recorder = RECORDER(.action = is_called_elsewhere_meanwhile);
    CFSocketContext context = recorder_context(&recorder);

    pair_open(ends);
    context.retain = NULL;
    recorder.object = CFSocketCreateWithNative(NULL, ends[0], reads | writes, recorder_called, &context);
    CFSocketDisableCallBacks(recorder.object, writes);
    recorder_schedule(&recorder);
    tell(ends[1], "abc");
    look();
    EXPECT_LOG("read write");
    EXPECT_EQ(recorder.releases, 1);
    CFRelease(recorder.object);
    EXPECT_EQ(recorder.releases, 1);
    close(ends[1]);
}

struct sender {
    CFSocketRef socket;
    CFDataRef data;
    _Atomic bool is_sending;
    CFSocketError error;
};

static void sends(void *context)
{
    struct sender *sender = context;

    sender->is_sending = true;
    sender->error = CFSocketSendData(sender->socket, NULL, sender->data, 0.3);
}

TEST(a_socket_in_use_is_closed_by_its_last_user, "267 272 F10")
{
    int ends[2];
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    struct sender sender = {.data = data};
    struct probe_thread thread;

    pair_open(ends);
    CFDataSetLength(data, 10000000); /* more than fits: the sender blocks, without a lock */
    sender.socket = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    probe_thread_start(&thread, sends, &sender);
    while (!sender.is_sending) {
        sched_yield();
    }
    CFSocketInvalidate(sender.socket);
    EXPECT_EQ(CFSocketGetNative(sender.socket), -1);
    probe_thread_join(&thread);
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    CFRelease(sender.socket);
    CFRelease(data);
    close(ends[1]);
}

struct race {
    int native;
    _Atomic int ready;
    CFSocketRef objects[2];
};

static void creates(void *context)
{
    struct race *race = context;

    race->ready++;
    while (race->ready < 2) {
    }
    race->objects[1] = CFSocketCreateWithNative(NULL, race->native, 0, NULL, NULL);
}

TEST(threads_that_race_for_a_socket_get_the_same, "251")
{
    for (int round = 0; round < 200; round++) {
        int ends[2];
        struct race race = {.ready = 0};
        struct probe_thread thread;

        pair_open(ends);
        race.native = ends[0];
        probe_thread_start(&thread, creates, &race);
        race.ready++;
        while (race.ready < 2) {
        }
        race.objects[0] = CFSocketCreateWithNative(NULL, race.native, 0, NULL, NULL);
        probe_thread_join(&thread);
        REQUIRE(race.objects[0] == race.objects[1]);
        EXPECT_EQ(CFGetRetainCount(race.objects[0]), 2);
        CFRelease(race.objects[0]);
        CFRelease(race.objects[1]);
        close(ends[1]);
    }
}

/* ---- signals ---- */

static _Atomic int alarms;

static void counts_alarm(int number)
{
    (void)number;
    alarms++;
}

/* The interval grows with the time that a tool needs. If delivering a signal took longer, the thread would do nothing else. */
static void storm(bool begins)
{
    struct sigaction action = {.sa_handler = counts_alarm}; /* no SA_RESTART */
    long interval_us = begins ? 20 * (long)test_patience_s() : 0;
    struct itimerval interval = {{0, interval_us}, {0, interval_us}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

TEST(a_storm_of_signals_moves_no_deadline_of_a_socket, "F12 268 272")
{
    int ends[2];
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    CFSocketRef s;
    CFAbsoluteTime start;

    pair_open(ends);
    CFDataSetLength(data, 10000);
    s = CFSocketCreateWithNative(NULL, ends[0], 0, NULL, NULL);
    while (CFSocketSendData(s, NULL, data, 0.01) == kCFSocketSuccess) {
    }
    storm(true);
    start = CFAbsoluteTimeGetCurrent();
    EXPECT_EQ(CFSocketSendData(s, NULL, data, 0.2), kCFSocketTimeout);
    storm(false);
    EXPECT(CFAbsoluteTimeGetCurrent() - start >= 0.19);
    EXPECT(CFAbsoluteTimeGetCurrent() - start < 0.2 + test_patience_s());
    EXPECT(alarms > 0);
    CFRelease(s);
    CFRelease(data);
    close(ends[1]);
}

TEST(data_of_a_socket_comes_through_a_storm_of_signals, "F12")
{
    struct recorder recorder = RECORDER(.is_silent = true);

    recorder_add_on_pair(&recorder, receives);
    storm(true);
    for (int i = 1; i <= 200; i++) {
        while (send(recorder.ends[1], "x", 1, MSG_NOSIGNAL) < 0) {
        }
        recorder_await(&recorder, i);
    }
    storm(false);
    EXPECT_EQ(recorder.bytes, 200);
    recorder_free_with_pair(&recorder);
}

/* ---- the kernel's room ---- */

static int add_refusals;

static int full_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return add_refusals-- > 0 ? -ENOSPC : kernel_linux.set_add(set, descriptor, interest, token);
}

TEST(a_socket_the_kernel_cannot_watch_is_watched_later, "F13")
{
    struct recorder recorder = RECORDER(.drains = true);

    kernel.set_add = full_add;
    add_refusals = 3;
    recorder_add_on_pair(&recorder, reads);
    tell(recorder.ends[1], "abc");
    recorder_await(&recorder, 1);
    tell(recorder.ends[1], "abc");
    recorder_await(&recorder, 2);
    CFRunLoopRunInMode(MODE, 0.1, false);
    EXPECT(add_refusals <= 0);
    recorder_free_with_pair(&recorder);
}

/* ---- others on the same descriptor ---- */

static void notes_descriptor(CFFileDescriptorRef f, CFOptionFlags types, void *info)
{
    (void)f, (void)info;
    probe_note("descriptor(%lu)", types);
}

TEST(a_socket_and_a_file_descriptor_object_share_a_number, "290 F4")
{
    struct recorder recorder = RECORDER();
    CFFileDescriptorRef f;
    CFRunLoopSourceRef source;

    recorder_add_on_pair(&recorder, reads);
    f = CFFileDescriptorCreate(NULL, recorder.ends[0], false, notes_descriptor, NULL);
    source = CFFileDescriptorCreateRunLoopSource(NULL, f, 0);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorWriteCallBack);
    look();
    EXPECT_LOG("descriptor(2)");
    tell(recorder.ends[1], "abc");
    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorReadCallBack);
    recorder.drains = true;
    CFSocketSetSocketFlags(recorder.object, 0);
    CFRunLoopRunInMode(MODE, 0, true);
    CFFileDescriptorInvalidate(f);
    CFRelease(source);
    CFRelease(f);
    look();
    EXPECT_EQ(recorder.calls, 1);
    recorder_free(&recorder);
    pair_close(recorder.ends);
}

/* ---- forks ---- */

struct creator {
    int native;
    _Atomic bool ends;
};

static void creates_and_frees(void *context)
{
    struct creator *creator = context;

    while (!creator->ends) {
        CFSocketRef s = CFSocketCreateWithNative(NULL, creator->native, 0, NULL, NULL);

        CFSocketSetSocketFlags(s, 0);
        CFRelease(s);
    }
}

struct holder {
    struct lock *lock;
    atomic_bool has_it;
    atomic_bool may_end; /* after the fork: the thread sanitizer calls a thread that has ended and was not joined a leak of the child */
};

static void *holds_for_a_while(void *context)
{
    enum { looks = 5000 };
    struct holder *holder = context;

    lock_take(holder->lock);
    atomic_store(&holder->has_it, true);
    for (int i = 0; i < looks; i++) {
        sched_yield();
    }
    lock_drop(holder->lock);
    while (!atomic_load(&holder->may_end)) {
        sched_yield();
    }
    return NULL;
}

/* A process that has sockets and no loop: the child must find the locks of items free all the same. */
TEST(the_child_of_a_fork_finds_the_locks_of_its_sockets_free, "176 P2")
{
    int ends[2];
    int status = -1;
    CFSocketRef s;
    struct holder holder = {.has_it = false, .may_end = false};
    pthread_t thread;
    pid_t child;

    pair_open(ends);
    s = CFSocketCreateWithNative(NULL, ends[1], 0, NULL, NULL);
    holder.lock = item_lock(s);
    REQUIRE(pthread_create(&thread, NULL, holds_for_a_while, &holder) == 0);
    while (!atomic_load(&holder.has_it)) {
        sched_yield();
    }
    child = fork();
    if (child == 0) {
        _exit(lock_is_taken(holder.lock) ? 1 : 0);
    }
    atomic_store(&holder.may_end, true);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    CFRelease(s);
    close(ends[0]);
}

TEST(the_child_of_a_fork_can_find_its_sockets, "176 P2")
{
    int ends[2];
    struct creator creator = {.ends = false};
    struct probe_thread thread;
    CFSocketRef known;

    pair_open(ends);
    known = CFSocketCreateWithNative(NULL, ends[1], 0, NULL, NULL);
    creator.native = ends[0];
    probe_thread_start(&thread, creates_and_frees, &creator);
    for (int i = 0; i < 50; i++) {
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
            /* Another thread may have held the table's lock at the fork. No allocation: a sanitizer's would not survive a fork. */
            CFSocketRef s = CFSocketCreateWithNative(NULL, ends[1], 0, NULL, NULL);

            _exit(s == known && CFSocketIsValid(s) ? 0 : 1);
        }
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    creator.ends = true;
    probe_thread_join(&thread);
    CFRelease(known);
    close(ends[0]);
}
