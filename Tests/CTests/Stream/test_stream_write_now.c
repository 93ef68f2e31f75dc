/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that do not wait, for the overlay: what they take, what is told after them, and when they are refused. Rules 312, 318 and 323. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Overlay/overlay.h"
#include "Stream/stream_recorder.h"
#include "fake_kernel.h"

static CFIndex write_now(CFWriteStreamRef writer, CFIndex size)
{
    static UInt8 bytes[65536];

    return overlay_stream_write_now(writer, bytes, size);
}

TEST(room_is_told_again_after_a_write_that_found_too_little_and_not_after_one_that_took_all, "312 323")
{
    static UInt8 bytes[65536];
    struct stream_recorder recorder = {0};
    struct peered_pair pair = peered_pair_open();
    CFIndex taken;

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(write_now(pair.writer, 100), 100);
        run_what_is_ready();
    }
    EXPECT_TRACE(&recorder.trace, "open room");
    do {
        taken = write_now(pair.writer, sizeof bytes);
    } while (taken > 0);
    EXPECT_EQ(taken, -EAGAIN);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room");
    while (recorder.calls == 2) {
        EXPECT(read(pair.peer, bytes, sizeof bytes) > 0);
        run_what_is_ready();
    }
    EXPECT_TRACE(&recorder.trace, "open room room");
    EXPECT_EQ(write_now(pair.writer, 100), 100);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room room");
    peered_pair_free(pair);
}

TEST(a_write_that_cannot_be_done_without_waiting_is_refused_and_does_nothing, "323")
{
    struct peered_pair pair = peered_pair_open();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    EXPECT_EQ(write_now(pair.writer, 1), -EBUSY); /* it is not open */
    EXPECT(CFWriteStreamOpen(pair.writer));
    EXPECT_EQ(write_now(pair.writer, 0), -EBUSY);
    CFWriteStreamClose(pair.writer);
    EXPECT_EQ(write_now(pair.writer, 1), -EBUSY);
    peered_pair_free(pair);
    CFStreamCreateBoundPair(NULL, &reader, &writer, 8);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_now(writer, 1), -EBUSY);
    EXPECT(!CFReadStreamHasBytesAvailable(reader));
    CFRelease(reader);
    CFRelease(writer);
}

static CFWriteStreamRef claimed_writer;
static CFIndex result_of_second_write;

/* The thread that sends has claimed the stream. */
static int send_while_another_writes(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    kernel.socket_send = kernel_linux.socket_send;
    result_of_second_write = write_now(claimed_writer, 5);
    return kernel.socket_send(socket, bytes, size, address, length, deadline_ns);
}

TEST(a_write_beside_another_of_the_same_stream_is_refused, "323")
{
    struct stream_recorder recorder = {0};
    struct peered_pair pair = peered_pair_open();
    char bytes[16];

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    claimed_writer = pair.writer;
    kernel.socket_send = send_while_another_writes;
    EXPECT_EQ(write_now(pair.writer, 3), 3);
    EXPECT_EQ(result_of_second_write, -EBUSY);
    EXPECT_EQ(read(pair.peer, bytes, sizeof bytes), 3);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room");
    peered_pair_free(pair);
}

static int interrupted_send(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    (void)socket, (void)bytes, (void)size, (void)address, (void)length, (void)deadline_ns;
    kernel.socket_send = kernel_linux.socket_send;
    return -EINTR;
}

TEST(a_write_that_does_not_wait_goes_on_after_a_signal_and_fails_with_its_peer, "323 327")
{
    struct stream_recorder recorder = {0};
    struct peered_pair pair = peered_pair_open();

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    kernel.socket_send = interrupted_send;
    EXPECT_EQ(write_now(pair.writer, 4), 4);
    close(pair.peer);
    pair.peer = -1;
    EXPECT_EQ(write_now(pair.writer, 4), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), EPIPE);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room error");
    peered_pair_free(pair);
}

/* ---- reports that are believed ---- */

static uint32_t polls;

static uint32_t counted_poll(int descriptor, uint32_t wanted)
{
    polls++;
    return kernel_linux.descriptor_ready(descriptor, wanted);
}

TEST(a_stream_in_the_common_modes_is_polled_only_while_these_are_several, "312 318")
{
    struct stream_recorder recorder = {.reads = 1};
    struct peered_pair pair = peered_pair_open();

    EXPECT(CFReadStreamOpen(pair.reader));
    recorder_watch_reader(&recorder, pair.reader, events_all);
    CFReadStreamScheduleWithRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
    run_what_is_ready();
    kernel.descriptor_ready = counted_poll;
    for (int i = 0; i < 2; i++) {
        polls = 0;
        EXPECT_EQ(write(pair.peer, "a", 1), 1);
        run_what_is_ready();
        EXPECT_EQ(polls > 0, i > 0);
        CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), CFSTR("other"));
    }
    EXPECT_EQ(recorder.calls, 2);
    peered_pair_free(pair);
}
