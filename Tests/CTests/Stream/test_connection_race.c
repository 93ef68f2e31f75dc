/* SPDX-License-Identifier: Apache-2.0 */
/* The race of attempts at the addresses of a name: rule 331; and the query that connections drive themselves: rule 334. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CFNetwork/CFSocketStream.h"
#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/fake_names.h"
#include "Stream/stream_recorder.h"

static struct stream_pair pair_to_name(void)
{
    fake_names_install();
    return stream_pair_to(CFSTR("host.example"), 80);
}

/* Opens both streams, and the name has the addresses then. */
static struct stream_pair open_pair(const int *ports, int count)
{
    struct stream_pair pair = pair_to_name();

    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    fake_names_answer(ports, count);
    return pair;
}

/* ---- the race ---- */

TEST(an_address_that_is_silent_does_not_hold_up_the_next, "331 329")
{
    for (int way = 0; way < 3; way++) { /* in a loop, by reading and writing, by asking */
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        struct swallower silent;
        UInt32 port;
        int listener = listener_open(&port);
        struct stream_pair pair;

        swallower_open(&silent);
        pair = open_pair((const int[]){silent.port, (int)port}, 2);
        if (way == 0) {
            recorder_add_reader(&reading, pair.reader);
            recorder_add_writer(&writing, pair.writer);
            run_until_count(&reading.calls, 1);
            run_until_count(&writing.calls, 2);
            EXPECT_TRACE(&reading.trace, "open");
            EXPECT_TRACE(&writing.trace, "open room");
        }
        while (way == 2 && CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening) {
            sched_yield();
        }
        EXPECT_EQ(write_text(pair.writer, "a"), 1);
        EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpen);
        stream_pair_release(pair);
        close(listener);
        swallower_close(&silent);
    }
}

static int families[8];
static int family_count;

static int note_family(int socket, const void *address, size_t length, int64_t deadline_ns)
{
    families[family_count++] = ((const struct sockaddr *)address)->sa_family;
    return kernel_linux.socket_connect(socket, address, length, deadline_ns);
}

TEST(the_families_of_addresses_take_turns, "331")
{
    static const int expected[] = {AF_INET, AF_INET6, AF_INET, AF_INET6, AF_INET};
    struct stream_pair pair;

    kernel.socket_connect = note_family;
    pair = open_pair((const int[]){refusing_port, refusing_port, refusing_port, -refusing_port, -refusing_port}, 5);
    while (CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ECONNREFUSED);
    EXPECT_EQ(family_count, 5);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(families[i], expected[i]);
    }
    stream_pair_release(pair);
}

static int64_t passed_ns;
static int made, most_open;

static int64_t hasty_clock(void)
{
    return kernel_linux.monotonic_ns() + passed_ns;
}

static int count_made(int family, int type, int protocol)
{
    int next = dup(STDERR_FILENO); /* the lowest number that is free */

    close(next);
    most_open = next > most_open ? next : most_open;
    made++;
    return kernel_linux.socket_create(family, type, protocol);
}

/* Each look finds that it is time for the next attempt. */
TEST(only_so_many_attempts_are_under_way_at_once, "331")
{
    enum { count = 100 };
    int ports[count];
    struct swallower silent;
    struct stream_pair pair;

    swallower_open(&silent);
    for (int i = 0; i < count; i++) {
        ports[i] = silent.port;
    }
    pair = open_pair(ports, count);
    kernel.monotonic_ns = hasty_clock;
    kernel.socket_create = count_made;
    for (int i = 0; i < count + 2; i++) {
        EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpening);
        passed_ns += 250000000;
    }
    EXPECT_EQ(made, count);
    EXPECT(most_open < 40);
    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle));
    CFReadStreamClose(pair.reader);
    CFWriteStreamClose(pair.writer);
    stream_pair_release(pair);
    swallower_close(&silent);
}

TEST(the_socket_that_wins_the_race_is_the_stream_s, "331 333")
{
    struct swallower silent;
    UInt32 port;
    int listener = listener_open(&port);
    struct sockaddr_in peer = {0};
    socklen_t length = sizeof peer;
    CFDataRef handle;
    struct stream_pair pair;

    swallower_open(&silent);
    pair = open_pair((const int[]){silent.port, refusing_port, (int)port}, 3);
    EXPECT_EQ(write_text(pair.writer, "a"), 1);
    handle = CFWriteStreamCopyProperty(pair.writer, kCFStreamPropertySocketNativeHandle);
    EXPECT(getpeername(*(const int *)(const void *)CFDataGetBytePtr(handle), (struct sockaddr *)&peer, &length) == 0);
    EXPECT_EQ(ntohs(peer.sin_port), port);
    CFRelease(handle);
    stream_pair_release(pair);
    close(listener);
    swallower_close(&silent);
}

/* ---- the limit ---- */

static void set_limit(CFReadStreamRef reader, double seconds)
{
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberDoubleType, &seconds);

    EXPECT(CFReadStreamSetProperty(reader, kCRLStreamPropertyOpeningTimeout, number));
    CFRelease(number);
}

/* Nothing answers: neither the peer nor, in the odd rounds, the server of names. */
TEST(a_pair_that_is_not_open_in_time_has_failed, "343 329 311")
{
    enum { rounds = 6 };

    for (int round = 0; round < rounds; round++) { /* in a loop, by writing, by asking */
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        struct swallower silent;
        struct stream_pair pair = pair_to_name();

        swallower_open(&silent);
        set_limit(pair.reader, 0.02);
        if (round < 2) {
            recorder_add_reader(&reading, pair.reader);
            recorder_add_writer(&writing, pair.writer);
        }
        if (round % 2 == 0) {
            fake_names_answer_at_once((const int[]){silent.port, silent.port}, 2);
        }
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        if (round < 2) {
            run_until_count(&reading.calls, 1);
            run_until_count(&writing.calls, 1);
            EXPECT_TRACE(&reading.trace, "error");
            EXPECT_TRACE(&writing.trace, "error");
        } else if (round < 4) {
            EXPECT_EQ(write_text(pair.writer, "a"), -1);
        }
        while (CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening ||
               CFWriteStreamGetStatus(pair.writer) == kCFStreamStatusOpening) {
            sched_yield();
        }
        EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ETIMEDOUT);
        EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), ETIMEDOUT);
        EXPECT_EQ(fake_names_frees(), round + 1); /* nobody waits for the answer any more */
        stream_pair_release(pair);
        swallower_close(&silent);
    }
}

TEST(a_limit_for_opening_is_a_number_of_seconds, "343")
{
    static const double refused[] = {-1, 1e10, 1.0 / 0.0, 0.0 / 0.0};
    struct stream_pair pair = pair_to_name();
    CFNumberRef number;
    double seconds = 0;

    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCRLStreamPropertyOpeningTimeout));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        number = CFNumberCreate(NULL, kCFNumberDoubleType, &refused[i]);
        EXPECT(!CFReadStreamSetProperty(pair.reader, kCRLStreamPropertyOpeningTimeout, number));
        CFRelease(number);
    }
    EXPECT(!CFReadStreamSetProperty(pair.reader, kCRLStreamPropertyOpeningTimeout, NULL));
    EXPECT(!CFReadStreamSetProperty(pair.reader, kCRLStreamPropertyOpeningTimeout, kCFBooleanTrue));
    set_limit(pair.reader, 100);
    number = CFWriteStreamCopyProperty(pair.writer, kCRLStreamPropertyOpeningTimeout);
    EXPECT(number && CFNumberGetValue(number, kCFNumberDoubleType, &seconds) && seconds > 99.9 && seconds < 100.1);
    EXPECT(CFReadStreamOpen(pair.reader));
    EXPECT(!CFWriteStreamSetProperty(pair.writer, kCRLStreamPropertyOpeningTimeout, number));
    CFRelease(number);
    CFReadStreamClose(pair.reader);
    stream_pair_release(pair);
}

/* The limit is of opening alone. */
TEST(a_stream_that_has_opened_in_time_is_not_limited, "343")
{
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = pair_to_name();
    struct trace trace = {0};
    int peer;

    set_limit(pair.reader, 60);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    fake_names_answer((const int[]){(int)port}, 1);
    EXPECT_EQ(write_text(pair.writer, "a"), 1);
    kernel.monotonic_ns = hasty_clock;
    passed_ns = INT64_C(100000000000);
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(write(peer, "b", 1), 1);
    note_read(&trace, pair.reader, 1);
    EXPECT_TRACE(&trace, "1\"b\"");
    close(peer);
    stream_pair_release(pair);
    close(listener);
}

/* ---- names ---- */

TEST(a_name_is_resolved_wherever_its_streams_go, "334 329 318")
{
    struct stream_recorder writing = {0};
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = pair_to_name();

    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    CFWriteStreamUnscheduleFromRunLoop(pair.writer, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    CFWriteStreamScheduleWithRunLoop(pair.writer, CFRunLoopGetCurrent(), CFSTR("other"));
    EXPECT(CFReadStreamOpen(pair.reader));
    fake_names_answer((const int[]){(int)port}, 1);
    while (writing.calls < 2) {
        EXPECT_EQ(CFRunLoopRunInMode(CFSTR("other"), test_patience_s(), true), kCFRunLoopRunHandledSource);
    }
    EXPECT_TRACE(&writing.trace, "open room");
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpen);
    EXPECT_EQ(fake_names_frees(), 1); /* an open connection does not keep its query */
    stream_pair_release(pair);
    EXPECT_EQ(fake_names_frees(), 1);
    close(listener);
}

TEST(a_stream_that_opens_after_its_name_has_failed_is_told_the_error, "334 329 311")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to_name();

    EXPECT(CFReadStreamOpen(pair.reader));
    fake_names_answer(NULL, 0);
    while (CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_until_count(&recorder.calls, 1);
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_EQ(CFWriteStreamGetError(pair.writer).domain, kCFStreamErrorDomainNetDB);
    stream_pair_release(pair);
}

TEST(closing_streams_whose_name_is_unknown_yet_ends_all, "334 315")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to_name();

    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    CFReadStreamClose(pair.reader);
    CFWriteStreamClose(pair.writer);
    fake_names_answer(NULL, 0);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    stream_pair_release(pair);
    EXPECT_EQ(fake_names_frees(), 1);
}

/* ---- other threads ---- */

struct moving {
    struct stream_pair pair;
    CFRunLoopRef loop;
    atomic_bool is_over;
    bool closes; /* the reader */
};

static void move_about(void *context)
{
    struct moving *moving = context;

    while (!moving->is_over) {
        CFWriteStreamScheduleWithRunLoop(moving->pair.writer, moving->loop, kCFRunLoopDefaultMode);
        CFReadStreamScheduleWithRunLoop(moving->pair.reader, moving->loop, kCFRunLoopDefaultMode);
        sched_yield(); /* here too, or the loop hardly ever meets the stream on a busy machine */
        CFWriteStreamUnscheduleFromRunLoop(moving->pair.writer, moving->loop, kCFRunLoopDefaultMode);
        sched_yield();
    }
}

static void ask_about(void *context)
{
    struct moving *moving = context;

    while (!moving->is_over) {
        (void)CFWriteStreamGetStatus(moving->pair.writer);
        (void)CFReadStreamGetStatus(moving->pair.reader);
        if (moving->closes) {
            CFReadStreamClose(moving->pair.reader);
        }
        sched_yield();
    }
}

TEST(stress_a_name_is_resolved_while_other_threads_use_its_streams, "334 331 320")
{
    int rounds = test_is_instrumented() ? 20 : 200;
    UInt32 port;
    int listener = listener_open(&port);

    for (int i = 0; i < rounds; i++) {
        struct stream_recorder recorder = {0};
        struct moving moving = {.loop = CFRunLoopGetCurrent(), .closes = i % 2};
        struct probe_thread mover, asker;
        int peer;

        moving.pair = pair_to_name();
        recorder_watch_writer(&recorder, moving.pair.writer, events_all);
        EXPECT(CFReadStreamOpen(moving.pair.reader) && CFWriteStreamOpen(moving.pair.writer));
        probe_thread_start(&mover, move_about, &moving);
        probe_thread_start(&asker, ask_about, &moving);
        fake_names_answer((const int[]){refusing_port, -refusing_port, (int)port}, 3);
        while (recorder.calls < 1) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        }
        moving.is_over = true;
        probe_thread_join(&mover);
        probe_thread_join(&asker);
        EXPECT_EQ(CFWriteStreamGetStatus(moving.pair.writer), kCFStreamStatusOpen);
        EXPECT_EQ(write_text(moving.pair.writer, "a"), 1);
        peer = accept(listener, NULL, NULL);
        EXPECT(peer >= 0);
        close(peer);
        stream_pair_release(moving.pair);
        EXPECT_EQ(fake_names_frees(), i + 1);
    }
    close(listener);
}
