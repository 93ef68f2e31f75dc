/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a stream and its events: rules 310 to 317, with streams of memory and bound pairs. */
#include <errno.h>
#include <string.h>

#include "Loop/loop_probe.h"
#include "Stream/Core/stream.h"
#include "Stream/Core/stream_schedule.h"
#include "Stream/stream_recorder.h"

TEST(stream_events_come_in_order_and_bytes_once_until_a_read, "310 311 312 303")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abcde");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    EXPECT_TRACE(&recorder.trace, ""); /* events come from the loop alone */
    run_what_is_ready();
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    note_read(&recorder.trace, stream, 2);
    run_what_is_ready();
    note_read(&recorder.trace, stream, 3);
    run_what_is_ready();
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 2\"ab\" bytes 3\"cde\" end");
    CFRelease(stream);
}

TEST(a_stream_without_bytes_tells_its_end, "310 311 303")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open end");
    CFRelease(stream);
}

TEST(room_of_a_stream_comes_once_until_a_write, "312 305")
{
    struct stream_recorder recorder = {.writes = "abc"};
    char buffer[4];
    CFWriteStreamRef stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 4);

    recorder_add_writer(&recorder, stream);
    EXPECT(CFWriteStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room 3 room");
    EXPECT_EQ(write_text(stream, "d"), 1);
    run_what_is_ready(); /* the buffer is full */
    EXPECT_TRACE(&recorder.trace, "open room 3 room");
    CFRelease(stream);
}

TEST(nothing_comes_after_the_error_of_a_stream, "314 305 311")
{
    struct stream_recorder recorder = {.writes = "abcde"};
    char buffer[4];
    CFWriteStreamRef stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 4);

    recorder_add_writer(&recorder, stream);
    EXPECT(CFWriteStreamOpen(stream));
    run_what_is_ready();
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room -1 error");
    CFRelease(stream);
}

static void close_in(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    if (type == *(const CFStreamEventType *)recorder->context) {
        CFReadStreamClose((CFReadStreamRef)(uintptr_t)stream);
    }
}

TEST(a_callback_may_close_its_stream, "315")
{
    static CFStreamEventType events[] = {kCFStreamEventOpenCompleted, kCFStreamEventHasBytesAvailable};
    static const char *const traces[] = {"open", "open bytes"};

    for (int i = 0; i < 2; i++) {
        struct stream_recorder recorder = {.action = close_in, .context = &events[i]};
        CFReadStreamRef stream = reader_of("abc");

        recorder_add_reader(&recorder, stream);
        EXPECT(CFReadStreamOpen(stream));
        run_what_is_ready();
        run_what_is_ready();
        EXPECT_TRACE(&recorder.trace, traces[i]);
        EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusClosed);
        CFRelease(stream);
        EXPECT_EQ(recorder.releases, 1);
    }
}

static void release_in(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)type;
    recorder->action = NULL;
    CFRelease(stream);
}

TEST(a_callback_may_release_its_stream, "315 319")
{
    struct stream_recorder recorder = {.action = release_in};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_EQ(recorder.releases, 1);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
}

static void release_and_run(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    release_in(recorder, stream, type);
    run_what_is_ready();
}

TEST(no_event_comes_after_a_callback_has_released_its_stream, "315 319")
{
    struct stream_recorder recorder = {.action = release_and_run};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open");
    EXPECT_EQ(recorder.releases, 1);
}

static void read_in_open(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    if (type == kCFStreamEventOpenCompleted) {
        note_read(&recorder->trace, (CFReadStreamRef)(uintptr_t)stream, 10);
    }
}

TEST(bytes_that_the_callback_of_opening_reads_are_not_told, "312 315")
{
    struct stream_recorder recorder = {.action = read_in_open};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
    recorder_add_reader(&recorder, reader);
    EXPECT(CFWriteStreamOpen(writer) && CFReadStreamOpen(reader));
    EXPECT_EQ(write_text(writer, "abc"), 3);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open 3\"abc\"");
    EXPECT_EQ(write_text(writer, "d"), 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open 3\"abc\" bytes");
    CFRelease(reader);
    CFRelease(writer);
}

TEST(no_event_comes_after_a_stream_was_closed, "315")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    CFReadStreamClose(stream); /* what is due is dropped */
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    CFRelease(stream);
}

static void run_nested(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)stream;
    if (type == kCFStreamEventOpenCompleted || type == kCFStreamEventHasBytesAvailable) {
        trace_add(&recorder->trace, "{");
        run_what_is_ready();
        trace_add(&recorder->trace, "}");
    }
}

TEST(a_callback_of_a_stream_may_run_its_loop, "315 312")
{
    struct stream_recorder recorder = {.action = run_nested, .reads = 2};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open { } bytes 2\"ab\" { bytes 1\"c\" { end } }");
    CFRelease(stream);
}

static void replace_client(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)type;
    recorder_watch_reader(recorder->context, (CFReadStreamRef)(uintptr_t)stream, events_all);
    EXPECT_EQ(recorder->releases, 0); /* the callback still has its info */
}

TEST(a_client_of_a_stream_is_replaced_by_the_next, "316 317")
{
    struct stream_recorder second = RECORDER_NAMED("second");
    struct stream_recorder first = {.name = "first", .action = replace_client, .context = &second};
    CFReadStreamRef stream = reader_of("abc");

    recorder_add_reader(&first, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&first.trace, "first:open");
    EXPECT_EQ(first.releases, 1);
    EXPECT_TRACE(&second.trace, "second:bytes");
    EXPECT(CFReadStreamSetClient(stream, kCFStreamEventNone, NULL, NULL));
    EXPECT_EQ(second.releases, 1);
    note_read(&second.trace, stream, 1);
    run_what_is_ready();
    EXPECT_TRACE(&second.trace, "second:bytes 1\"a\"");
    recorder_watch_reader(&second, stream, kCFStreamEventHasBytesAvailable);
    run_what_is_ready();
    EXPECT_TRACE(&second.trace, "second:bytes 1\"a\" second:bytes"); /* the new client hears of bytes that are there */
    EXPECT(CFReadStreamSetClient(stream, events_all, NULL, NULL));
    EXPECT_EQ(second.releases, 2);
    CFRelease(stream);
}

static int readable_descriptor;

static int open_readable(struct stream *s)
{
    stream_schedule_descriptor_changed(s, readable_descriptor);
    return 0;
}

/* As of TLS, where the last bytes and the farewell may come as one. */
static CFIndex read_all(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    (void)s, (void)size;
    memcpy(bytes, "abc", 3);
    *ret_at_end = true;
    return 3;
}

static int look_readable(struct stream *s, uint32_t ready)
{
    (void)s, (void)ready;
    return kCFStreamEventHasBytesAvailable;
}

static const struct stream_kind readable_kind = {
    .size = sizeof(struct stream), .open = open_readable, .read = read_all, .look = look_readable};

TEST(the_end_is_told_in_a_later_turn_than_the_bytes_before_it, "310")
{
    CFReadStreamRef streams[2];
    int ends[2];

    socket_pair_open(ends);
    EXPECT_EQ(write(ends[1], "a", 1), 1);
    readable_descriptor = ends[0];
    streams[0] = reader_of("abc");
    streams[1] = (CFReadStreamRef)stream_create(NULL, &readable_kind, true);
    for (int i = 0; i < 2; i++) {
        struct stream_recorder recorder = {.reads = 10};

        recorder_add_reader(&recorder, streams[i]);
        EXPECT(CFReadStreamOpen(streams[i]));
        while (recorder.calls < 2) {
            EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunHandledSource);
        }
        EXPECT_TRACE(&recorder.trace, "open bytes 3\"abc\"");
        run_what_is_ready();
        EXPECT_TRACE(&recorder.trace, "open bytes 3\"abc\" end");
        CFRelease(streams[i]);
    }
    close(ends[0]);
    close(ends[1]);
}

TEST(events_of_a_stream_go_to_who_wants_them, "317 311")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abc");

    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(CFReadStreamOpen(stream)); /* nobody wanted to hear of it */
    recorder_watch_reader(&recorder, stream, kCFStreamEventOpenCompleted | kCFStreamEventEndEncountered);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    note_read(&recorder.trace, stream, 10);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "3\"abc\" end");
    CFRelease(stream);
}

TEST(a_stream_may_be_opened_before_it_is_scheduled, "318 317")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream = reader_of("abc");

    recorder_watch_reader(&recorder, stream, events_all);
    EXPECT(CFReadStreamOpen(stream));
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    CFRelease(stream);
}

static void leave_by_jump(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)recorder;
    (void)stream;
    if (type == kCFStreamEventHasBytesAvailable) {
        longjmp(probe_way_out, 1);
    }
}

static void run_until_left(struct probe *probe)
{
    (void)probe;
    EXPECT(probe_run_is_left(CFSTR("inner")));
}

TEST(a_callback_of_a_stream_that_does_not_return_gives_back_all, "315 316")
{
    struct stream_recorder recorder = {.action = leave_by_jump};
    struct probe outer = PROBE("outer", run_until_left);
    CFRunLoopSourceRef source = probe_source_add(&outer, 0, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFReadStreamRef stream = reader_of("abc");

    recorder_watch_reader(&recorder, stream, events_all);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), CFSTR("inner"));
    EXPECT(CFReadStreamOpen(stream));
    CFRunLoopSourceSignal(source);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes");
    EXPECT_EQ(CFGetRetainCount(stream), 1);
    EXPECT(CFReadStreamSetClient(stream, kCFStreamEventNone, NULL, NULL));
    EXPECT_EQ(recorder.releases, 1);
    CFRelease(stream);
    CFRunLoopSourceInvalidate(source);
}
