/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on dispatch queues, in a process that has libdispatch: rule 338. */
#include <sched.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

extern void *dispatch_queue_create(const char *label, void *attributes) __attribute__((weak));
extern void dispatch_sync_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
/* By their link names: the header declares them where the dispatch headers are. */
void put_reader_on(CFReadStreamRef stream, void *queue) __asm__("crl_CFReadStreamSetDispatchQueue");
void put_writer_on(CFWriteStreamRef stream, void *queue) __asm__("crl_CFWriteStreamSetDispatchQueue");
void *copy_queue_of_reader(CFReadStreamRef stream) __asm__("crl_CFReadStreamCopyDispatchQueue");
void *copy_queue_of_writer(CFWriteStreamRef stream) __asm__("crl_CFWriteStreamCopyDispatchQueue");

/* A test that needs a queue begins with this. */
static void *make_queue(void)
{
    if (!dispatch_queue_create || !dispatch_sync_f || !dispatch_release) {
        SKIP("there is no libdispatch in the process");
    }
    test_allow_left(64, 64); /* libdispatch's own, and the loops of its threads */
    return dispatch_queue_create("streams", NULL);
}

static void do_nothing(void *unused)
{
    (void)unused;
}

/* What the queue had to do is done. */
static void await_queue(void *queue)
{
    dispatch_sync_f(queue, NULL, do_nothing);
}

TEST(a_dispatch_queue_tells_the_events_of_a_stream, "338 310 312")
{
    struct stream_recorder recorder = {.reads = 10};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
    recorder_watch_reader(&recorder, reader, events_all);
    put_reader_on(reader, queue);
    EXPECT_EQ(copy_queue_of_reader(reader), queue);
    dispatch_release(queue); /* the copy's */
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    probe_await_count(&recorder.calls, 1);
    EXPECT_EQ(write_text(writer, "abc"), 3);
    probe_await_count(&recorder.calls, 2);
    CFWriteStreamClose(writer);
    probe_await_count(&recorder.calls, 3);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "open bytes 3\"abc\" end");
    CFReadStreamClose(reader);
    CFRelease(reader);
    CFRelease(writer);
    dispatch_release(queue);
}

static _Atomic int waits;

static int count_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    waits++;
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

/* Bytes that nobody reads are told once, and do not wake the queue again and again. */
TEST(a_dispatch_queue_watches_the_socket_of_its_stream, "338 312 313 321")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int ends[2];
    char byte;

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &reader, &writer);
    recorder_watch_reader(&reading, reader, events_all);
    recorder_watch_writer(&writing, writer, events_all);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    put_reader_on(reader, queue);
    put_writer_on(writer, queue);
    probe_await_count(&reading.calls, 1);
    probe_await_count(&writing.calls, 2);
    EXPECT_EQ(write_text(writer, "x"), 1);
    probe_await_count(&writing.calls, 3);
    EXPECT_EQ(read(ends[1], &byte, 1), 1);
    EXPECT_EQ(write(ends[1], "abc", 3), 3);
    probe_await_count(&reading.calls, 2);
    await_queue(queue);
    kernel.set_wait = count_wait;
    for (int i = 0; i < 1000; i++) {
        await_queue(queue);
    }
    EXPECT(waits < 10);
    kernel.set_wait = kernel_linux.set_wait;
    note_read(&reading.trace, reader, 10);
    close(ends[1]);
    probe_await_count(&reading.calls, 3);
    await_queue(queue);
    EXPECT_TRACE(&reading.trace, "open bytes 3\"abc\" end");
    EXPECT_TRACE(&writing.trace, "open room room");
    CFRelease(reader);
    CFRelease(writer);
    close(ends[0]);
    dispatch_release(queue);
}

struct reading {
    struct stream_recorder *recorder;
    CFReadStreamRef stream;
};

static void read_a_byte(void *context)
{
    const struct reading *reading = context;

    note_read(&reading->recorder->trace, reading->stream, 1);
}

TEST(a_stream_is_on_a_dispatch_queue_or_in_loops, "338 337 318")
{
    struct stream_recorder recorder = {0};
    void *queue = make_queue();
    CFReadStreamRef stream = reader_of("abc");
    struct reading reading = {&recorder, stream};

    recorder_add_reader(&recorder, stream);
    put_reader_on(stream, queue);
    EXPECT(CFReadStreamOpen(stream));
    probe_await_count(&recorder.calls, 2);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "open bytes");
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    dispatch_sync_f(queue, &reading, read_a_byte);
    probe_await_count(&recorder.calls, 3);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(copy_queue_of_reader(stream), NULL);
    note_read(&recorder.trace, stream, 1);
    await_queue(queue);
    EXPECT_EQ(recorder.calls, 3);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 1\"a\" bytes 1\"b\" bytes");
    put_reader_on(stream, queue);
    put_reader_on(stream, NULL);
    note_read(&recorder.trace, stream, 1); /* the end is owed */
    await_queue(queue);
    run_what_is_ready();
    EXPECT_EQ(recorder.calls, 4);
    put_reader_on(stream, queue);
    probe_await_count(&recorder.calls, 5);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "open bytes 1\"a\" bytes 1\"b\" bytes 1\"c\" end");
    CFRelease(stream); /* the queue does not keep it */
    EXPECT_EQ(recorder.releases, 1);
    dispatch_release(queue);
}

TEST(a_stream_without_libdispatch_stays_where_it_is, "338")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abc");
    CFWriteStreamRef writer = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    int unused;

    if (dispatch_queue_create) {
        SKIP("there is libdispatch in the process");
    }
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    put_reader_on(stream, &unused);
    put_writer_on(writer, NULL);
    EXPECT_EQ(copy_queue_of_reader(stream), NULL);
    EXPECT_EQ(copy_queue_of_writer(writer), NULL);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFRelease(stream);
    CFRelease(writer);
}
