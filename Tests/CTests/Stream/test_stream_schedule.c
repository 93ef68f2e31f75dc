/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in modes and loops, and on several threads: rules 318 to 322. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

#define OTHER CFSTR("another mode")

static void run_other_mode(void)
{
    while (CFRunLoopRunInMode(OTHER, 0, true) == kCFRunLoopRunHandledSource) {
    }
}

TEST(a_stream_tells_its_events_in_the_mode_that_runs, "318")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abcdef");

    recorder_add_reader(&recorder, stream);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), OTHER);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), OTHER);
    EXPECT(CFReadStreamOpen(stream));
    run_other_mode();
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes"); /* told once, though both modes have run */
    CFReadStreamUnscheduleFromRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    note_read(&recorder.trace, stream, 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 1\"a\"");
    run_other_mode();
    EXPECT_TRACE(&recorder.trace, "open bytes 1\"a\" bytes");
    CFReadStreamUnscheduleFromRunLoop(stream, CFRunLoopGetCurrent(), OTHER);
    CFReadStreamUnscheduleFromRunLoop(stream, CFRunLoopGetCurrent(), OTHER);
    note_read(&recorder.trace, stream, 1);
    run_other_mode();
    EXPECT_EQ(recorder.calls, 3);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopCommonModes);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 1\"a\" bytes 1\"b\" bytes");
    CFRelease(stream);
}

static void leave_loop(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    CFReadStreamRef leaving = recorder->context ? recorder->context : (CFReadStreamRef)(uintptr_t)stream;

    (void)type;
    CFReadStreamUnscheduleFromRunLoop(leaving, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

TEST(a_callback_that_takes_its_stream_out_of_the_loop_hears_no_more, "337 318")
{
    struct stream_recorder recorder = {.action = leave_loop};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open"); /* not "bytes", which was due as well */
    recorder.action = NULL;
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFRelease(stream);
}

/* Both are to be told in one pass, and the first takes the second out of the loop. */
TEST(a_stream_that_another_takes_out_of_the_loop_tells_nothing, "337 318")
{
    struct stream_recorder first = {.action = leave_loop};
    struct stream_recorder second = {.action = leave_loop};
    CFReadStreamRef streams[2] = {reader_of("abc"), reader_of("abc")};

    first.context = streams[1];
    second.context = streams[0];
    recorder_add_reader(&first, streams[0]);
    recorder_add_reader(&second, streams[1]);
    CFReadStreamScheduleWithRunLoop(streams[0], CFRunLoopGetCurrent(), OTHER);
    CFReadStreamScheduleWithRunLoop(streams[1], CFRunLoopGetCurrent(), OTHER);
    EXPECT(CFReadStreamOpen(streams[0]) && CFReadStreamOpen(streams[1]));
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    EXPECT((first.calls == 0) != (second.calls == 0));
    run_other_mode(); /* there it is told */
    EXPECT_TRACE(&first.trace, "open bytes");
    EXPECT_TRACE(&second.trace, "open bytes");
    CFRelease(streams[0]);
    CFRelease(streams[1]);
}

static void *refuse_all(CFIndex size, CFOptionFlags hint, void *info)
{
    (void)size, (void)hint, (void)info;
    return NULL;
}

TEST(a_stream_that_found_no_memory_is_scheduled_by_asking_again, "318")
{
    CFAllocatorContext context = {.allocate = refuse_all};
    CFAllocatorRef refusing = CFAllocatorCreate(NULL, &context);
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abcdef");

    CFRunLoopGetCurrent();
    CFAllocatorSetDefault(refusing);
    recorder_add_reader(&recorder, stream);
    CFAllocatorSetDefault(kCFAllocatorSystemDefault);
    EXPECT(CFReadStreamOpen(stream));
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFRelease(stream);
    CFRelease(refusing); /* a default allocator is kept */
    CFRelease(refusing);
}

TEST(a_closed_stream_cannot_be_scheduled, "322 315")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abc");

    EXPECT(CFReadStreamOpen(stream));
    CFReadStreamClose(stream);
    recorder_add_reader(&recorder, stream);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    EXPECT_TRACE(&recorder.trace, "");
    CFRelease(stream);
}

TEST(a_loop_does_not_keep_a_stream, "319")
{
    struct stream_recorder recorder = {0};
    int ends[2];
    char byte;
    CFReadStreamRef stream;

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &stream, NULL);
    EXPECT(CFReadStreamSetProperty(stream, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    CFRelease(stream);
    EXPECT_EQ(recorder.releases, 1);
    EXPECT_EQ(read(ends[1], &byte, 1), 0); /* the socket is closed */
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    close(ends[1]);
}

TEST(the_loop_or_mode_of_a_stream_must_be_there, "318")
{
    CFReadStreamRef stream = reader_of("abc");

    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), NULL); /* ignored */
    CFReadStreamUnscheduleFromRunLoop(stream, CFRunLoopGetCurrent(), NULL);
    EXPECT_STOPS("CFReadStreamScheduleWithRunLoop: ", { CFReadStreamScheduleWithRunLoop(stream, NULL, kCFRunLoopDefaultMode); });
    CFRelease(stream);
}

struct work {
    CFReadStreamRef stream;
    struct stream_recorder recorder;
    _Atomic(CFRunLoopRef) loop;
    int other_end;
    struct probe ender; /* a source of the loop, which ends the work */
    CFRunLoopSourceRef ending;
    _Atomic bool is_over;
};

static void run_loop_of_work(void *context)
{
    struct work *work = context;

    work->ending = probe_source_add(&work->ender, 0, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    work->loop = CFRunLoopGetCurrent();
    while (!work->is_over) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
    }
}

/* The loop and its source are retained: the thread may see `is_over` and end before the signal and the wake-up. */
static void end_work(struct work *work)
{
    CFRunLoopRef loop = (CFRunLoopRef)(uintptr_t)CFRetain(work->loop);
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)CFRetain(work->ending);

    work->is_over = true;
    CFRunLoopSourceSignal(source);
    CFRunLoopWakeUp(loop);
    CFRelease(source);
    CFRelease(loop);
}

TEST(a_stream_is_scheduled_and_closed_from_another_thread, "320")
{
    struct probe_thread thread;
    struct work work = {.recorder = {.reads_all = true}, .ender = PROBE("ender", NULL)};
    int ends[2];

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &work.stream, NULL);
    probe_thread_start(&thread, run_loop_of_work, &work);
    while (!work.loop) {
        sched_yield();
    }
    recorder_watch_reader(&work.recorder, work.stream, events_all);
    CFReadStreamScheduleWithRunLoop(work.stream, work.loop, kCFRunLoopDefaultMode);
    EXPECT(CFReadStreamOpen(work.stream));
    probe_await_count(&work.recorder.calls, 1);
    for (int i = 2; i < 50; i++) {
        EXPECT_EQ(write(ends[1], "x", 1), 1);
        probe_await_count(&work.recorder.calls, i);
    }
    EXPECT_TRACE(&work.recorder.trace, "open");
    EXPECT_EQ(work.recorder.total, 48);
    CFReadStreamClose(work.stream);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    CFRelease(work.stream);
    end_work(&work);
    probe_thread_join(&thread);
    EXPECT_EQ(work.recorder.total, 48);
    close(ends[0]);
    close(ends[1]);
}

static void read_a_byte(void *context)
{
    struct work *work = context;

    note_read(&work->recorder.trace, work->stream, 1);
}

TEST(a_second_reader_of_a_stream_is_refused, "320 323")
{
    struct probe_thread thread;
    struct work work = {0};
    struct trace trace = {0};
    int ends[2];

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &work.stream, NULL);
    EXPECT(CFReadStreamOpen(work.stream));
    probe_thread_start(&thread, read_a_byte, &work);
    while (CFReadStreamGetStatus(work.stream) != kCFStreamStatusReading) {
        sched_yield();
    }
    note_read(&trace, work.stream, 1);
    EXPECT(!CFReadStreamHasBytesAvailable(work.stream));
    EXPECT_TRACE(&trace, "-1");
    EXPECT_EQ(CFReadStreamGetStatus(work.stream), kCFStreamStatusReading);
    CFReadStreamClose(work.stream); /* the other thread reads on */
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    probe_thread_join(&thread);
    EXPECT_TRACE(&work.recorder.trace, "1\"x\"");
    EXPECT_EQ(CFReadStreamGetStatus(work.stream), kCFStreamStatusClosed);
    CFRelease(work.stream);
    close(ends[0]);
    close(ends[1]);
}

static void schedule_and_leave(void *context)
{
    struct work *work = context;

    CFReadStreamScheduleWithRunLoop(work->stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

TEST(a_stream_outlives_a_loop_that_it_is_scheduled_in, "318 319")
{
    struct work work = {.stream = reader_of("abc")};

    recorder_watch_reader(&work.recorder, work.stream, events_all);
    probe_on_thread(schedule_and_leave, &work);
    EXPECT(CFReadStreamOpen(work.stream));
    CFReadStreamScheduleWithRunLoop(work.stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    EXPECT_TRACE(&work.recorder.trace, "open bytes");
    CFRelease(work.stream);
}
