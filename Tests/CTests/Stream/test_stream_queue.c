/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on dispatch queues, in a process that has libdispatch: rules 338 and 339 to 342. */
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CFNetwork/CFSocketStream.h"
#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Stream/fake_names.h"
#include "Stream/stream_recorder.h"

extern void *dispatch_queue_create(const char *label, void *attributes) __attribute__((weak));
extern void dispatch_sync_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern void dispatch_barrier_sync_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
extern void dispatch_suspend(void *object) __attribute__((weak));
extern void dispatch_resume(void *object) __attribute__((weak));
extern char _dispatch_queue_attr_concurrent[] __attribute__((weak));
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

/* libdispatch lets go of the descriptors of a place some time after the stream has left it. */
static void await_descriptors(void)
{
    enum { few = 40 };
    int lowest_free;

    do {
        sched_yield();
        lowest_free = dup(STDERR_FILENO);
        REQUIRE(lowest_free >= 0);
        close(lowest_free);
    } while (lowest_free > few);
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
    int before;
    char byte;

    kernel.set_wait = count_wait; /* before the queue's threads read it */
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
    before = waits;
    for (int i = 0; i < 1000; i++) {
        await_queue(queue);
    }
    EXPECT(waits - before < 10);
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

/* ---- closing and releasing on the queue ---- */

static void close_at_bytes(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)recorder;
    if (type == kCFStreamEventHasBytesAvailable) {
        CFReadStreamClose((CFReadStreamRef)stream);
    }
}

TEST(a_callback_on_a_queue_may_close_its_stream, "338 315 340")
{
    struct stream_recorder recorder = {.action = close_at_bytes};
    void *queue = make_queue();
    CFReadStreamRef reader;
    int ends[2];

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &reader, NULL);
    CFReadStreamSetProperty(reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    recorder_watch_reader(&recorder, reader, events_all);
    put_reader_on(reader, queue);
    EXPECT(CFReadStreamOpen(reader));
    EXPECT_EQ(write(ends[1], "abc", 3), 3);
    probe_await_count(&recorder.calls, 2);
    close(ends[1]);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "open bytes");
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusClosed);
    EXPECT_EQ(copy_queue_of_reader(reader), NULL);
    EXPECT(!descriptor_is_open(ends[0]));
    put_reader_on(reader, queue); /* in vain */
    EXPECT_EQ(copy_queue_of_reader(reader), NULL);
    CFRelease(reader);
    EXPECT_EQ(recorder.releases, 1);
    dispatch_release(queue);
}

static void release_at_bytes(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)recorder;
    if (type == kCFStreamEventHasBytesAvailable) {
        CFRelease(stream);
    }
}

TEST(a_callback_on_a_queue_may_release_its_stream, "338 315 319 340")
{
    struct stream_recorder recorder = {.action = release_at_bytes};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
    recorder_watch_reader(&recorder, reader, events_all);
    put_reader_on(reader, queue);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "abc"), 3);
    probe_await_count(&recorder.calls, 2);
    CFWriteStreamClose(writer);
    await_queue(queue);
    EXPECT_EQ(recorder.releases, 1);
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFRelease(writer);
    dispatch_release(queue);
}

/* What the queue has begun to tell may come after the close on another thread; nothing that it has not begun. */
TEST(no_event_comes_on_a_queue_after_the_close, "338 315 340")
{
    void *queue = make_queue();

    for (int i = 0; i < 200; i++) {
        struct stream_recorder recorder = {.reads_all = true};
        CFReadStreamRef reader;
        CFWriteStreamRef writer;
        int calls;

        CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
        recorder_watch_reader(&recorder, reader, events_all);
        put_reader_on(reader, queue);
        EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
        EXPECT_EQ(write_text(writer, "abc"), 3);
        if (i % 2) {
            probe_await_count(&recorder.calls, 1);
        }
        CFReadStreamClose(reader);
        await_queue(queue);
        calls = recorder.calls;
        CFRelease(writer);
        await_queue(queue);
        EXPECT_EQ(recorder.calls, calls);
        CFRelease(reader);
        EXPECT_EQ(recorder.releases, 1);
        await_descriptors();
    }
    dispatch_release(queue);
}

/* ---- order ---- */

/* Until the end was told, and the callback has returned. */
static void await_end(struct stream_recorder *recorder, void *queue)
{
    probe_await_count(&recorder->ends, 1);
    dispatch_barrier_sync_f(queue, NULL, do_nothing);
}

struct one_at_a_time {
    _Atomic int inside, most_inside;
};

/* The other threads of a concurrent queue get their chance to come in. */
static void look_for_others(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    struct one_at_a_time *counts = recorder->context;
    int inside = ++counts->inside;

    (void)stream, (void)type;
    if (inside > counts->most_inside) {
        counts->most_inside = inside;
    }
    sched_yield();
    counts->inside--;
}

static void *make_concurrent_queue(void)
{
    void *serial = make_queue(); /* or the end of the test */

    dispatch_release(serial);
    return dispatch_queue_create("streams", _dispatch_queue_attr_concurrent);
}

TEST(a_concurrent_queue_tells_one_event_of_a_stream_at_a_time, "338 310 339")
{
    enum { rounds = 300 };
    struct one_at_a_time counts = {0};
    struct stream_recorder recorder = {.reads_all = true, .action = look_for_others, .context = &counts};
    void *queue = make_concurrent_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 2);
    recorder_watch_reader(&recorder, reader, events_all);
    put_reader_on(reader, queue);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    for (int i = 0; i < rounds; i++) {
        EXPECT_EQ(write_text(writer, "x"), 1);
    }
    CFWriteStreamClose(writer);
    await_end(&recorder, queue);
    EXPECT_EQ(recorder.total, rounds);
    EXPECT_EQ(counts.most_inside, 1);
    EXPECT_TRACE(&recorder.trace, "open end");
    CFRelease(reader);
    CFRelease(writer);
    dispatch_release(queue);
}

/* All that has happened meanwhile is told in the order of a loop. */
TEST(a_queue_that_was_held_up_tells_the_events_in_order, "338 310 339")
{
    struct stream_recorder recorder = {.reads = 10};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    dispatch_suspend(queue);
    CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
    recorder_watch_reader(&recorder, reader, events_all);
    put_reader_on(reader, queue);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "abc"), 3);
    CFWriteStreamClose(writer);
    EXPECT_EQ(recorder.calls, 0);
    dispatch_resume(queue);
    probe_await_count(&recorder.calls, 3);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "open bytes 3\"abc\" end");
    CFRelease(reader);
    CFRelease(writer);
    dispatch_release(queue);
}

/* ---- sockets that connect ---- */

TEST(a_stream_connects_on_a_queue, "338 329")
{
    struct stream_recorder reading = {.reads = 10};
    struct stream_recorder writing = {.writes = "hello"};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    UInt32 port;
    int listener = listener_open(&port);
    int peer;

    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("localhost"), port, &reader, &writer);
    recorder_watch_reader(&reading, reader, events_all);
    recorder_watch_writer(&writing, writer, events_all);
    put_reader_on(reader, queue);
    put_writer_on(writer, queue);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    probe_await_count(&writing.calls, 2);
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(write(peer, "abc", 3), 3);
    probe_await_count(&reading.calls, 2);
    close(peer); /* with bytes that were not read: the connection is torn off */
    probe_await_count(&reading.calls, 3);
    await_queue(queue);
    EXPECT_TRACE(&reading.trace, "open bytes 3\"abc\" error");
    CFRelease(reader);
    CFRelease(writer);
    close(listener);
    dispatch_release(queue);
}

TEST(a_connection_that_is_refused_is_told_on_the_queue, "338 329 331")
{
    struct stream_recorder recorder = {0};
    void *queue = make_queue();
    CFWriteStreamRef writer;

    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), refusing_port, NULL, &writer);
    recorder_watch_writer(&recorder, writer, events_all);
    put_writer_on(writer, queue);
    EXPECT(CFWriteStreamOpen(writer));
    probe_await_count(&recorder.calls, 1);
    await_queue(queue);
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_ERRNO(CFWriteStreamGetError(writer), ECONNREFUSED);
    CFRelease(writer);
    dispatch_release(queue);
}

/* ---- names ---- */

static void put_writer_in_this_loop(CFWriteStreamRef writer)
{
    CFWriteStreamScheduleWithRunLoop(writer, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

/* On a queue before it is opened or after, from a loop to the queue, back, or again on the queue. */
TEST(a_name_is_resolved_on_the_queue_of_its_stream, "338 334 329")
{
    enum { ways = 5 };

    fake_names_install();
    for (int way = 0; way < ways; way++) {
        struct stream_recorder recorder = {0};
        void *queue = make_queue();
        CFReadStreamRef reader;
        CFWriteStreamRef writer;
        UInt32 port;
        int listener = listener_open(&port);

        CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.example"), port, &reader, &writer);
        recorder_watch_writer(&recorder, writer, events_all);
        if (way == 0) {
            put_writer_on(writer, queue);
        } else if (way >= 2) {
            put_writer_in_this_loop(writer);
        }
        EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
        run_what_is_ready();
        put_writer_on(writer, queue);
        if (way >= 3) {
            put_writer_in_this_loop(writer);
        }
        if (way == 4) {
            put_writer_on(writer, queue);
        }
        fake_names_answer((const int[]){refusing_port, (int)port}, 2);
        if (way == 3) {
            run_until_count(&recorder.calls, 2);
        }
        probe_await_count(&recorder.calls, 2);
        await_queue(queue);
        EXPECT_TRACE(&recorder.trace, "open room");
        CFRelease(reader);
        CFRelease(writer);
        EXPECT_EQ(fake_names_frees(), way + 1);
        close(listener);
        dispatch_release(queue);
    }
}

/* The first address is silent. Both streams are on the queue, before they are opened or while the race is on; or the writer alone. */
TEST(the_addresses_of_a_name_race_on_the_queue_of_its_streams, "338 331 333")
{
    fake_names_install();
    for (int way = 0; way < 3; way++) {
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        struct swallower silent;
        void *queue = make_queue();
        CFReadStreamRef reader;
        CFWriteStreamRef writer;
        char byte = 0;
        int peer;
        UInt32 port;
        int listener = listener_open(&port);

        swallower_open(&silent);
        CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.example"), port, &reader, &writer);
        recorder_watch_reader(&reading, reader, events_all);
        recorder_watch_writer(&writing, writer, events_all);
        if (way == 0) {
            put_reader_on(reader, queue);
            put_writer_on(writer, queue);
        }
        EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
        fake_names_answer((const int[]){silent.port, silent.port, (int)port}, 3);
        put_writer_on(writer, queue);
        if (way == 1) {
            put_reader_on(reader, queue);
        }
        probe_await_count(&writing.calls, 2);
        await_queue(queue);
        EXPECT_TRACE(&writing.trace, "open room");
        if (way < 2) {
            probe_await_count(&reading.calls, 1);
            EXPECT_TRACE(&reading.trace, "open");
        }
        EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusOpen);
        EXPECT_EQ(write_text(writer, "a"), 1);
        peer = accept(listener, NULL, NULL);
        EXPECT(read(peer, &byte, 1) == 1 && byte == 'a');
        close(peer);
        CFRelease(reader);
        CFRelease(writer);
        EXPECT_EQ(fake_names_frees(), way + 1);
        swallower_close(&silent);
        close(listener);
        dispatch_release(queue);
    }
}

TEST(a_name_that_does_not_resolve_is_told_on_the_queue, "338 334 315 343")
{
    fake_names_install();
    for (int round = 0; round < 3; round++) { /* told, closed before, or never answered */
        struct stream_recorder recorder = {0};
        void *queue = make_queue();
        CFNumberRef limit_s = CFNumberCreate(NULL, kCFNumberDoubleType, &(double){0.02});
        CFWriteStreamRef writer;

        CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.example"), 80, NULL, &writer);
        recorder_watch_writer(&recorder, writer, events_all);
        put_writer_on(writer, queue);
        EXPECT(round < 2 || CFWriteStreamSetProperty(writer, kCRLStreamPropertyOpeningTimeout, limit_s));
        EXPECT(CFWriteStreamOpen(writer));
        if (round == 1) {
            CFWriteStreamClose(writer);
        }
        if (round < 2) {
            fake_names_answer(NULL, 0);
        }
        if (round != 1) {
            probe_await_count(&recorder.calls, 1);
        }
        await_queue(queue);
        EXPECT_TRACE(&recorder.trace, round == 1 ? "" : "error");
        CFRelease(writer);
        CFRelease(limit_s);
        dispatch_release(queue);
    }
}

/* ---- other threads ---- */

struct moving {
    CFReadStreamRef reader;
    void *queues[2];
    CFRunLoopRef loop;
    _Atomic int rounds;
    int wanted;
};

/* Puts the stream on one queue, on the other, on none, and into a loop. */
static void move_about(void *context)
{
    struct moving *moving = context;

    while (moving->rounds < moving->wanted) {
        put_reader_on(moving->reader, moving->queues[0]);
        put_reader_on(moving->reader, moving->queues[1]);
        put_reader_on(moving->reader, NULL);
        CFReadStreamScheduleWithRunLoop(moving->reader, moving->loop, kCFRunLoopDefaultMode);
        moving->rounds++;
        await_descriptors();
    }
}

static void write_bytes(void *context)
{
    int *end = context;

    for (int i = 0; i < 2000; i++) {
        EXPECT_EQ(write(*end, "x", 1), 1);
    }
}

/* The events follow the stream, so that all bytes are read. Two threads move it about at once. */
TEST(a_stream_can_be_moved_between_queues_and_loops_by_other_threads, "338 320 341")
{
    struct stream_recorder recorder = {.reads_all = true};
    struct moving moving = {.loop = CFRunLoopGetCurrent(), .wanted = test_is_instrumented() ? 100 : 500};
    struct probe_thread movers[2], thread;
    int ends[2];

    moving.queues[0] = make_queue();
    moving.queues[1] = make_queue();
    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &moving.reader, NULL);
    recorder_watch_reader(&recorder, moving.reader, events_all);
    EXPECT(CFReadStreamOpen(moving.reader));
    probe_thread_start(&thread, write_bytes, &ends[1]);
    probe_thread_start(&movers[0], move_about, &moving);
    probe_thread_start(&movers[1], move_about, &moving);
    while (moving.rounds < moving.wanted) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    }
    probe_thread_join(&movers[0]);
    probe_thread_join(&movers[1]);
    put_reader_on(moving.reader, moving.queues[0]);
    probe_thread_join(&thread);
    close(ends[1]);
    await_end(&recorder, moving.queues[0]);
    EXPECT_EQ(recorder.total, 2000);
    EXPECT_TRACE(&recorder.trace, "open end");
    CFReadStreamClose(moving.reader);
    CFRelease(moving.reader);
    close(ends[0]);
    dispatch_release(moving.queues[0]);
    dispatch_release(moving.queues[1]);
}

/* The two ends of a pair need not be served in the same way. */
TEST(one_end_of_a_pair_is_on_a_queue_and_the_other_in_a_loop, "338 328")
{
    struct stream_recorder reading = {.reads = 10};
    struct stream_recorder writing = {.writes = "abc"};
    void *queue = make_queue();
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 3);
    recorder_watch_reader(&reading, reader, events_all);
    recorder_add_writer(&writing, writer);
    put_reader_on(reader, queue);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    run_until_count(&writing.calls, 3); /* open, room, and room again after the other end has read */
    CFWriteStreamClose(writer);
    probe_await_count(&reading.calls, 3);
    await_queue(queue);
    EXPECT_TRACE(&reading.trace, "open bytes 3\"abc\" end");
    EXPECT_TRACE(&writing.trace, "open room 3 room");
    CFRelease(reader);
    CFRelease(writer);
    dispatch_release(queue);
}

/* ---- without libdispatch ---- */

TEST(a_stream_without_libdispatch_stays_where_it_is, "338 342")
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
