/* SPDX-License-Identifier: Apache-2.0 */
/* Bound pairs: rules 313, 323 and 328. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

static struct stream_pair open_pair(CFIndex capacity)
{
    struct stream_pair pair;

    CFStreamCreateBoundPair(NULL, &pair.reader, &pair.writer, capacity);
    REQUIRE(pair.reader && pair.writer && CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    return pair;
}

TEST(a_bound_pair_hands_on_bytes_in_order, "328 323")
{
    struct trace trace = {0};
    struct stream_pair pair = open_pair(5);

    EXPECT(!CFReadStreamHasBytesAvailable(pair.reader));
    EXPECT_EQ(write_text(pair.writer, "abc"), 3);
    EXPECT(CFReadStreamHasBytesAvailable(pair.reader));
    note_read(&trace, pair.reader, 2);
    EXPECT_EQ(write_text(pair.writer, "defgh"), 4); /* as much as there is room for, round the end of the memory */
    EXPECT(!CFWriteStreamCanAcceptBytes(pair.writer));
    note_read(&trace, pair.reader, 100);
    EXPECT(CFWriteStreamCanAcceptBytes(pair.writer));
    EXPECT_TRACE(&trace, "2\"ab\" 5\"cdefg\"");
    stream_pair_release(pair);
}

TEST(a_bound_pair_ends_with_its_writer, "328 313")
{
    struct stream_recorder recorder = {.reads = 2};
    struct stream_pair pair = open_pair(10);

    recorder_add_reader(&recorder, pair.reader);
    EXPECT_EQ(write_text(pair.writer, "abc"), 3);
    CFWriteStreamClose(pair.writer);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "bytes 2\"ab\" bytes 1\"c\" end");
    note_read(&recorder.trace, pair.reader, 2);
    EXPECT_TRACE(&recorder.trace, "bytes 2\"ab\" bytes 1\"c\" end 0");
    stream_pair_release(pair);
}

TEST(writing_to_a_bound_pair_without_reader_fails, "328 314")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = open_pair(10);

    recorder_add_writer(&recorder, pair.writer);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "room");
    CFReadStreamClose(pair.reader);
    EXPECT_EQ(write_text(pair.writer, "abc"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), EPIPE);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "room error");
    stream_pair_release(pair);
}

TEST(a_bound_pair_tells_that_its_reader_is_gone, "328 313")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = open_pair(3);

    EXPECT_EQ(write_text(pair.writer, "abc"), 3);
    recorder_add_writer(&recorder, pair.writer);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    CFReadStreamClose(pair.reader);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    stream_pair_release(pair);
}

TEST(a_full_bound_pair_tells_when_there_is_room, "312 328")
{
    struct stream_recorder recorder = {0};
    struct trace trace = {0};
    struct stream_pair pair = open_pair(3);

    EXPECT_EQ(write_text(pair.writer, "abcd"), 3);
    recorder_add_writer(&recorder, pair.writer);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    note_read(&trace, pair.reader, 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "room");
    stream_pair_release(pair);
}

struct flow {
    struct stream_pair pair;
    long length;
};

static void write_flow(void *context)
{
    struct flow *flow = context;
    UInt8 bytes[60];

    for (long sent = 0; sent < flow->length;) {
        CFIndex size = flow->length - sent < (long)sizeof bytes ? (CFIndex)(flow->length - sent) : (CFIndex)sizeof bytes;
        CFIndex taken;

        for (CFIndex i = 0; i < size; i++) {
            bytes[i] = (UInt8)(sent + i);
        }
        taken = CFWriteStreamWrite(flow->pair.writer, bytes, size);
        REQUIRE(taken > 0);
        sent += taken;
    }
    CFWriteStreamClose(flow->pair.writer);
}

TEST(a_bound_pair_waits_on_two_threads, "328 323 320")
{
    struct flow flow = {.pair = open_pair(7), .length = 20000};
    struct probe_thread thread;
    UInt8 bytes[11];
    long received = 0;
    bool is_in_order = true;
    CFIndex count;

    probe_thread_start(&thread, write_flow, &flow);
    while ((count = CFReadStreamRead(flow.pair.reader, bytes, sizeof bytes)) > 0) {
        for (CFIndex i = 0; i < count; i++) {
            is_in_order = is_in_order && bytes[i] == (UInt8)received++;
        }
    }
    EXPECT_EQ(count, 0);
    EXPECT_EQ(received, flow.length);
    EXPECT(is_in_order);
    probe_thread_join(&thread);
    stream_pair_release(flow.pair);
}

TEST(half_of_a_bound_pair_has_no_peer, "328")
{
    struct stream_pair pair;
    struct trace trace = {0};

    CFStreamCreateBoundPair(NULL, &pair.reader, NULL, 0);
    EXPECT(CFReadStreamOpen(pair.reader));
    note_read(&trace, pair.reader, 1);
    EXPECT_TRACE(&trace, "0");
    CFRelease(pair.reader);
    CFStreamCreateBoundPair(NULL, NULL, &pair.writer, -1);
    EXPECT(CFWriteStreamOpen(pair.writer));
    EXPECT_EQ(write_text(pair.writer, "a"), -1);
    CFRelease(pair.writer);
    CFStreamCreateBoundPair(NULL, NULL, NULL, 10);
}

struct released_end {
    CFWriteStreamRef writer;
    atomic_bool is_over;
    atomic_bool is_released;
    int heard; /* calls of the client after the release */
};

static void hear(CFReadStreamRef reader, CFStreamEventType event, void *info)
{
    struct released_end *end = info;
    UInt8 bytes[64];

    if (end->is_released) {
        end->heard++;
    } else if (event == kCFStreamEventHasBytesAvailable) {
        (void)CFReadStreamRead(reader, bytes, sizeof bytes);
    }
}

static void *write_until_over(void *info)
{
    struct released_end *end = info;

    while (!end->is_over) {
        if (CFWriteStreamCanAcceptBytes(end->writer)) {
            (void)CFWriteStreamWrite(end->writer, (const UInt8 *)"sixteen letters.", 16);
        }
    }
    return NULL;
}

/* While another thread tells the end of each write. */
TEST(stress_nothing_is_heard_after_the_last_release_of_an_end, "328")
{
    int rounds = test_is_soak() ? 20000 : 1000;

    for (int i = 0; i < rounds; i++) {
        struct stream_pair pair = open_pair(64);
        struct released_end end = {.writer = pair.writer};
        CFStreamClientContext context = {.info = &end};
        pthread_t thread;

        EXPECT(CFReadStreamSetClient(pair.reader, kCFStreamEventHasBytesAvailable | kCFStreamEventEndEncountered, hear, &context));
        CFReadStreamScheduleWithRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        REQUIRE(pthread_create(&thread, NULL, write_until_over, &end) == 0);
        for (int passes = i % 7; passes > 0; passes--) {
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, true);
        }
        end.is_released = true;
        CFRelease(pair.reader);
        for (int passes = 3; passes > 0; passes--) {
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
        }
        end.is_over = true;
        pthread_join(thread, NULL);
        EXPECT_EQ(end.heard, 0);
        CFWriteStreamClose(pair.writer);
        CFRelease(pair.writer);
    }
}
