/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of streams on connected sockets: rules 313, 315, 321 and 323 to 327. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"
#include "fake_kernel.h"

TEST(a_socket_tells_bytes_room_and_end_to_its_streams, "312 313 310")
{
    struct stream_recorder reading = {.reads = 3};
    struct stream_recorder writing = {.writes = "hello"};
    struct peered_pair pair = peered_pair_open();
    char bytes[8] = {0};

    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open");
    EXPECT_TRACE(&writing.trace, "open room 5 room");
    EXPECT_EQ(read(pair.peer, bytes, sizeof bytes), 5);
    EXPECT_STR(bytes, "hello");
    EXPECT_EQ(write(pair.peer, "abcde", 5), 5);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open bytes 3\"abc\" bytes 2\"de\"");
    EXPECT_EQ(write(pair.peer, "f", 1), 1);
    shutdown(pair.peer, SHUT_WR);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open bytes 3\"abc\" bytes 2\"de\" bytes 1\"f\" end");
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusAtEnd);
    EXPECT_EQ(CFWriteStreamGetStatus(pair.writer), kCFStreamStatusOpen);
    peered_pair_free(pair);
}

static bool open_in_order(struct peered_pair pair, bool is_reader_first)
{
    bool is_open = !is_reader_first || CFReadStreamOpen(pair.reader);

    is_open = is_open && CFWriteStreamOpen(pair.writer);
    return is_open && (is_reader_first || CFReadStreamOpen(pair.reader));
}

/* Writes until there is no room. */
static void fill(struct peered_pair pair)
{
    CFDataRef data = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle);
    static char bytes[4096];
    int native;

    REQUIRE(data);
    memcpy(&native, CFDataGetBytePtr(data), sizeof native);
    CFRelease(data);
    while (send(native, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

/* Both are due at once, and the socket itself has nothing to report. */
TEST(both_streams_of_a_socket_are_told_that_they_are_open, "311 310")
{
    for (int i = 0; i < 2; i++) {
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        struct peered_pair pair = peered_pair_open();

        fill(pair);
        recorder_add_writer(&writing, pair.writer);
        recorder_add_reader(&reading, pair.reader);
        EXPECT(open_in_order(pair, i));
        run_what_is_ready();
        EXPECT_TRACE(&writing.trace, "open");
        EXPECT_TRACE(&reading.trace, "open");
        peered_pair_free(pair);
    }
}

TEST(a_socket_that_nobody_reads_is_told_once_to_its_stream, "312 321")
{
    struct stream_recorder recorder = {0};
    struct peered_pair pair = peered_pair_open();

    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader));
    EXPECT_EQ(write(pair.peer, "abc", 3), 3);
    EXPECT(CFReadStreamHasBytesAvailable(pair.reader));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true), kCFRunLoopRunTimedOut);
    peered_pair_free(pair);
}

static void read_of_other(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)stream;
    if (type == kCFStreamEventHasBytesAvailable) {
        note_read(&recorder->trace, recorder->context, 10);
    }
}

/* The loop knows of the bytes of both when it tells one, whose callback takes those of the other. Reading there would wait for good. */
TEST(bytes_that_another_callback_has_read_are_not_told, "312")
{
    struct stream_recorder recorders[2] = {{.action = read_of_other}, {.action = read_of_other}};
    struct peered_pair pairs[2] = {peered_pair_open(), peered_pair_open()};
    bool first_is_told;

    for (int i = 0; i < 2; i++) {
        recorders[i].context = pairs[1 - i].reader;
        recorder_watch_reader(&recorders[i], pairs[i].reader, kCFStreamEventHasBytesAvailable);
        CFReadStreamScheduleWithRunLoop(pairs[i].reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        EXPECT(CFReadStreamOpen(pairs[i].reader));
        EXPECT_EQ(write(pairs[i].peer, "a", 1), 1);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    run_what_is_ready();
    first_is_told = recorders[0].calls > 0;
    EXPECT_TRACE(&recorders[first_is_told ? 0 : 1].trace, "bytes 1\"a\"");
    EXPECT_TRACE(&recorders[first_is_told ? 1 : 0].trace, "");
    peered_pair_free(pairs[0]);
    peered_pair_free(pairs[1]);
}

TEST(an_idle_pair_of_streams_wakes_no_loop, "321")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    struct peered_pair pair;
    uint64_t sleeps;

    fake_kernel_install();
    pair = peered_pair_open();
    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    EXPECT_TRACE(&writing.trace, "open room");
    sleeps = fake_kernel_sleeps();
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1000, false), kCFRunLoopRunTimedOut);
    EXPECT_EQ(fake_kernel_sleeps() - sleeps, 1);
    peered_pair_free(pair);
}

TEST(the_streams_of_a_socket_close_it_together, "324")
{
    struct peered_pair pair = peered_pair_open();
    char byte;

    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    CFReadStreamClose(pair.reader);
    EXPECT_EQ(write_text(pair.writer, "a"), 1);
    EXPECT_EQ(read(pair.peer, &byte, 1), 1);
    CFWriteStreamClose(pair.writer);
    EXPECT_EQ(read(pair.peer, &byte, 1), 0);
    EXPECT(!CFWriteStreamCopyProperty(pair.writer, kCFStreamPropertySocketNativeHandle));
    peered_pair_free(pair);
}

TEST(a_given_socket_stays_open_unless_its_streams_are_told, "324")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    CFTypeRef value;
    int ends[2];

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &reader, &writer);
    value = CFReadStreamCopyProperty(reader, kCFStreamPropertyShouldCloseNativeSocket);
    EXPECT(value == kCFBooleanFalse);
    CFRelease(value);
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyShouldCloseNativeSocket, NULL));
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyShouldCloseNativeSocket, kCFStreamPropertySocketNativeHandle));
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    CFRelease(reader);
    CFRelease(writer);
    EXPECT(descriptor_is_open(ends[0]));
    CFStreamCreatePairWithSocket(NULL, ends[0], NULL, &writer); /* never opened: freeing it closes the socket */
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    CFRelease(writer);
    EXPECT(!descriptor_is_open(ends[0]));
    CFStreamCreatePairWithSocket(NULL, ends[1], NULL, NULL);
    close(ends[1]);
}

TEST(a_descriptor_that_is_no_socket_is_refused_by_opening_its_streams, "325 300 311")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int file = open("/dev/null", O_RDWR | O_CLOEXEC);

    CFStreamCreatePairWithSocket(NULL, file, &reader, NULL);
    recorder_add_reader(&recorder, reader);
    EXPECT(!CFReadStreamOpen(reader));
    EXPECT_ERRNO(CFReadStreamGetError(reader), ENOTSOCK);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    CFRelease(reader);
    close(file);
    CFStreamCreatePairWithSocket(NULL, file, NULL, &writer);
    EXPECT(!CFWriteStreamOpen(writer));
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EBADF);
    CFRelease(writer);
    CFStreamCreatePairWithSocket(NULL, -1, NULL, &writer);
    EXPECT(!CFWriteStreamOpen(writer));
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EBADF);
    CFRelease(writer);
}

/* A TCP connection on loopback, whose far end is torn off: the system sends a reset. */
static struct peered_pair open_torn_pair(const char *sent_before)
{
    const struct linger at_once = {.l_onoff = 1};
    struct peered_pair pair;
    UInt32 port;
    int listener = listener_open(&port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(connect(near, (struct sockaddr *)&address, sizeof address) == 0);
    pair.peer = accept(listener, NULL, NULL);
    close(listener);
    CFStreamCreatePairWithSocket(NULL, near, &pair.reader, &pair.writer);
    EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    EXPECT_EQ(write(pair.peer, sent_before, strlen(sent_before)), strlen(sent_before));
    EXPECT(setsockopt(pair.peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    close(pair.peer);
    pair.peer = -1;
    return pair;
}

TEST(a_torn_connection_is_an_error_of_its_stream, "326 311 314")
{
    struct stream_recorder recorder = {.reads = 10};
    struct peered_pair pair = open_torn_pair("");

    recorder_add_reader(&recorder, pair.reader);
    run_until_count(&recorder.calls, 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ECONNRESET);
    peered_pair_free(pair);
}

TEST(a_torn_connection_is_an_error_of_both_its_streams, "326")
{
    struct stream_recorder writing = {0};
    struct stream_recorder reading = {.reads = 10};
    struct peered_pair pair = open_torn_pair("");
    struct trace trace = {0};

    recorder_add_writer(&writing, pair.writer);
    run_until_count(&writing.calls, 1); /* the kernel tells the error here, and then no more */
    EXPECT_TRACE(&writing.trace, "error");
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), ECONNRESET);
    recorder_add_reader(&reading, pair.reader);
    run_until_count(&reading.calls, 1);
    EXPECT_TRACE(&reading.trace, "error");
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ECONNRESET);
    note_read(&trace, pair.reader, 10);
    EXPECT_TRACE(&trace, "-1");
    peered_pair_free(pair);

    pair = open_torn_pair("");
    EXPECT(CFWriteStreamCanAcceptBytes(pair.writer) || true);
    while (write_text(pair.writer, "x") > 0) {
    }
    note_read(&trace, pair.reader, 10);
    EXPECT_TRACE(&trace, "-1 -1");
    peered_pair_free(pair);
}

TEST(writing_to_a_peer_that_is_gone_fails_and_reading_goes_on, "327 313")
{
    struct stream_recorder recorder = {0};
    struct trace trace = {0};
    struct peered_pair pair = peered_pair_open();

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    EXPECT_EQ(write(pair.peer, "bye", 3), 3);
    close(pair.peer);
    EXPECT_EQ(write_text(pair.writer, "a"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), EPIPE);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open error");
    note_read(&trace, pair.reader, 10);
    note_read(&trace, pair.reader, 10);
    EXPECT_TRACE(&trace, "3\"bye\" 0");
    pair.peer = -1;
    peered_pair_free(pair);
}

/* A slow peer: it takes the bytes in pieces, on another thread. */
struct slow_peer {
    int socket;
    long received;
    bool is_in_order;
};

static void receive_slowly(void *context)
{
    struct slow_peer *peer = context;
    unsigned char bytes[1777];
    ssize_t count;

    peer->is_in_order = true;
    while ((count = read(peer->socket, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < count; i++) {
            peer->is_in_order = peer->is_in_order && bytes[i] == (unsigned char)(peer->received++ % 251);
        }
    }
}

TEST(bytes_reach_a_slow_peer_of_a_stream_in_order, "323")
{
    enum { length = 2000000 };
    struct peered_pair pair = peered_pair_open();
    struct slow_peer peer = {.socket = pair.peer};
    struct probe_thread thread;
    UInt8 *bytes = malloc(length);
    CFIndex sent = 0;

    for (long i = 0; i < length; i++) {
        bytes[i] = (UInt8)(i % 251);
    }
    EXPECT(CFWriteStreamOpen(pair.writer));
    probe_thread_start(&thread, receive_slowly, &peer);
    while (sent < length) {
        CFIndex taken = CFWriteStreamWrite(pair.writer, bytes + sent, length - sent);

        REQUIRE(taken > 0);
        sent += taken;
    }
    CFWriteStreamClose(pair.writer);
    CFRelease(pair.writer);
    CFRelease(pair.reader);
    probe_thread_join(&thread);
    EXPECT_EQ(peer.received, length);
    EXPECT(peer.is_in_order);
    free(bytes);
    close(pair.peer);
}

TEST(room_for_a_stopped_peer_of_a_stream_comes_when_it_reads, "312 323")
{
    enum { piece = 65536 };
    static UInt8 bytes[piece];
    struct stream_recorder recorder = {0};
    struct peered_pair pair = peered_pair_open();

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    while (CFWriteStreamCanAcceptBytes(pair.writer)) {
        EXPECT(CFWriteStreamWrite(pair.writer, bytes, piece) > 0);
    }
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room");
    while (recorder.calls == 2) {
        EXPECT(read(pair.peer, bytes, piece) > 0);
        run_what_is_ready();
    }
    EXPECT_TRACE(&recorder.trace, "open room room");
    peered_pair_free(pair);
}

TEST(ten_thousand_pairs_of_streams_leave_nothing, "324 319")
{
    int rounds = test_is_instrumented() ? 1000 : 10000;

    for (int i = 0; i < rounds; i++) {
        struct stream_recorder recorder = {.reads_all = true};
        struct peered_pair pair = peered_pair_open();

        recorder_add_reader(&recorder, pair.reader);
        REQUIRE(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        REQUIRE(write_text(pair.writer, "x") == 1);
        run_what_is_ready();
        peered_pair_free(pair);
        REQUIRE(recorder.releases == 1);
    }
}

/* Fills the socket by one write. */
static void fill_by_one_write(CFWriteStreamRef writer)
{
    enum { more_than_fits = 8000000 };
    UInt8 *bytes = calloc(1, more_than_fits);
    CFIndex taken = CFWriteStreamWrite(writer, bytes, more_than_fits);

    EXPECT(taken > 0 && taken < more_than_fits);
    free(bytes);
}

/* When the stream is open, runs the loop once: that fetches a report of the room. When there is room, leaves none. */
static void fetch_report_and_fill(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    if (type == kCFStreamEventOpenCompleted) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    } else if (type == kCFStreamEventCanAcceptBytes && !recorder->context) {
        recorder->context = recorder;
        fill_by_one_write((CFWriteStreamRef)(uintptr_t)stream);
    }
}

TEST(room_that_was_reported_before_a_write_is_not_told_after_it, "312 323")
{
    struct stream_recorder recorder = {.action = fetch_report_and_fill};
    struct peered_pair pair = peered_pair_open();

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room");
    EXPECT(!CFWriteStreamCanAcceptBytes(pair.writer));
    peered_pair_free(pair);
}

/* A source that is served first, in a loop that has fetched the report of the room with it, runs the loop in another mode. */
static void run_other_mode(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    char byte;

    (void)type, (void)address, (void)data, (void)info;
    EXPECT_EQ(read(CFSocketGetNative(socket), &byte, 1), 1);
    (void)CFRunLoopRunInMode(CFSTR("other"), 0, true);
}

static void fill_at_first(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    if (type == kCFStreamEventCanAcceptBytes && !recorder->context) {
        recorder->context = recorder;
        fill_by_one_write((CFWriteStreamRef)(uintptr_t)stream);
    }
}

TEST(room_that_another_common_mode_reported_before_a_write_is_not_told_after_it, "312 318 323")
{
    struct stream_recorder recorder = {.action = fill_at_first};
    struct peered_pair pair = peered_pair_open();
    CFSocketRef first;
    CFRunLoopSourceRef source;
    int ends[2];

    socket_pair_open(ends);
    first = CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, run_other_mode, NULL);
    source = CFSocketCreateRunLoopSource(NULL, first, -1);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), CFSTR("other"));
    EXPECT(CFWriteStreamOpen(pair.writer));
    recorder_watch_writer(&recorder, pair.writer, events_all);
    CFWriteStreamScheduleWithRunLoop(pair.writer, CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "room");
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    CFSocketInvalidate(first);
    CFRelease(first);
    close(ends[1]);
    peered_pair_free(pair);
}

/* ---- an error that one thread takes while another one reads ---- */

struct torn_reading {
    struct probe_thread thread;
    CFReadStreamRef reader;
    CFIndex result;
    _Atomic bool is_done;
};

static struct torn_reading torn_reading;

static void read_torn(void *context)
{
    struct torn_reading *reading = context;
    UInt8 byte;

    reading->result = CFReadStreamRead(reading->reader, &byte, 1);
    reading->is_done = true;
}

/* Takes the error, and returns after the other thread has read, unless that waits for this one. */
static int take_error_slowly(int socket)
{
    enum { most_turns = 10000 };
    int error = kernel_linux.socket_take_error(socket);

    EXPECT_EQ(error, ECONNRESET);
    probe_thread_start(&torn_reading.thread, read_torn, &torn_reading);
    for (int i = 0; i < most_turns && !torn_reading.is_done; i++) {
        sched_yield();
    }
    return error;
}

TEST(a_torn_connection_is_no_end_for_a_reader_while_the_writer_takes_the_error, "326")
{
    struct peered_pair pair = open_torn_pair("");

    torn_reading.reader = pair.reader;
    kernel.socket_take_error = take_error_slowly;
    EXPECT(!CFWriteStreamCanAcceptBytes(pair.writer));
    kernel.socket_take_error = kernel_linux.socket_take_error;
    probe_thread_join(&torn_reading.thread);
    EXPECT_EQ(torn_reading.result, -1);
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ECONNRESET);
    peered_pair_free(pair);
}

/* ---- a send that a signal interrupts ---- */

static int interrupted_send(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    (void)socket, (void)bytes, (void)size, (void)address, (void)length, (void)deadline_ns;
    kernel.socket_send = kernel_linux.socket_send;
    return -EINTR;
}

/* A little room, which the kernel does not report: waiting for it would not end. */
TEST(a_write_that_a_signal_interrupts_takes_the_room_that_there_is, "323")
{
    struct peered_pair pair = peered_pair_open();
    char bytes[4096];

    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    while (CFWriteStreamCanAcceptBytes(pair.writer)) {
        EXPECT_EQ(write_text(pair.writer, "x"), 1);
    }
    kernel.socket_send = interrupted_send;
    EXPECT_EQ(write_text(pair.writer, "x"), 1);
    EXPECT(read(pair.peer, bytes, sizeof bytes) > 0);
    peered_pair_free(pair);
}
