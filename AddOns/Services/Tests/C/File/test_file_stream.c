/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files in the background: what they read and write, and that a loop goes on while a disk hangs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLWriteQueue.h"
#include "File/background_file.h"
#include "File/file_kernel.h"
#include "file_probe.h"
#include "scratch_folder.h"
#include "work_probe.h"

static void run_once(void)
{
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
}

static void schedule_writer(struct stream_recorder *recorder, CFWriteStreamRef writer)
{
    recorder_add_writer(recorder, writer);
    REQUIRE(CFWriteStreamOpen(writer));
}

static CFReadStreamRef open_reader(struct stream_recorder *recorder, const char *path)
{
    CFReadStreamRef reader = background_reader(path);

    recorder_add_reader(recorder, reader);
    REQUIRE(CFReadStreamOpen(reader));
    return reader;
}

/* ---- reading ---- */

/* Compares what is read with the pattern. */
struct checked_reading {
    CFIndex piece;
    size_t total;
    size_t wrong;
    _Atomic int ends; /* of the stream, or its failure */
    int error;
};

static void check_piece(struct checked_reading *reading, CFReadStreamRef reader)
{
    UInt8 *bytes = malloc((size_t)reading->piece);
    CFIndex count = CFReadStreamRead(reader, bytes, reading->piece);

    for (CFIndex i = 0; i < count; i++) {
        reading->wrong += bytes[i] != pattern_byte(reading->total + (size_t)i);
    }
    reading->total += count > 0 ? (size_t)count : 0;
    reading->ends += count <= 0;
    free(bytes);
}

static void read_and_check(CFReadStreamRef reader, CFStreamEventType type, void *info)
{
    struct checked_reading *reading = info;

    if (type == kCFStreamEventHasBytesAvailable) {
        check_piece(reading, reader);
        return;
    }
    reading->ends++;
    reading->error = (int)CFReadStreamGetError(reader).error;
}

static const size_t sizes[] = {0, 1, 4096, file_block - 1, file_block, file_room, file_room + 1, 1000003};

TEST(a_file_is_read_by_a_loop_whatever_its_size, "2227 2228")
{
    char folder[scratch_size];

    scratch_enter(folder);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct checked_reading reading = {.piece = i % 2 ? 60000 : 300000};
        CFStreamClientContext context = {.info = &reading};
        CFReadStreamRef reader;

        pattern_write_file("file", sizes[i]);
        reader = background_reader("file");
        EXPECT(CFReadStreamSetClient(reader, kCFStreamEventHasBytesAvailable | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered,
                                     read_and_check, &context));
        CFReadStreamScheduleWithRunLoop(reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        EXPECT(CFReadStreamOpen(reader));
        run_until_count(&reading.ends, 1);
        EXPECT_EQ(reading.total, sizes[i]);
        EXPECT_EQ(reading.wrong, 0);
        EXPECT_EQ(reading.error, 0);
        EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusAtEnd);
        background_reader_end(reader);
    }
    scratch_leave(folder);
}

TEST(a_file_is_read_without_a_loop_whatever_its_size, "2231")
{
    char folder[scratch_size];

    scratch_enter(folder);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct checked_reading reading = {.piece = i % 2 ? 60000 : 300000};
        CFReadStreamRef reader;

        pattern_write_file("file", sizes[i]);
        reader = background_reader("file");
        EXPECT(CFReadStreamOpen(reader));
        while (reading.ends == 0) {
            check_piece(&reading, reader);
        }
        EXPECT_EQ(reading.total, sizes[i]);
        EXPECT_EQ(reading.wrong, 0);
        EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusAtEnd);
        background_reader_end(reader);
    }
    scratch_leave(folder);
}

TEST(the_events_of_a_small_file_come_in_order, "2228")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {.reads = 10};
    CFReadStreamRef reader;
    FILE *file;

    scratch_enter(folder);
    file = fopen("file", "we");
    REQUIRE(file && fputs("hello", file) >= 0 && fclose(file) == 0);
    reader = open_reader(&recorder, "file");
    run_until_count(&recorder.ends, 1);
    EXPECT_TRACE(&recorder.trace, "open bytes 5\"hello\" end");
    background_reader_end(reader);
    scratch_leave(folder);
}

TEST(an_error_of_opening_is_told, "2227")
{
    char folder[scratch_size];
    struct stream_recorder missing = {0};
    struct stream_recorder forbidden = {0};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    scratch_enter(folder);
    reader = open_reader(&missing, "none");
    run_until_count(&missing.calls, 1);
    EXPECT_TRACE(&missing.trace, "error");
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusError);
    EXPECT_ERRNO(CFReadStreamGetError(reader), ENOENT);
    background_reader_end(reader);

    reader = background_reader("none"); /* without a loop */
    EXPECT(CFReadStreamOpen(reader));
    EXPECT_EQ(CFReadStreamRead(reader, (UInt8[1]){0}, 1), -1);
    EXPECT_ERRNO(CFReadStreamGetError(reader), ENOENT);
    background_reader_end(reader);

    scratch_make_file("file");
    REQUIRE(chmod("file", 0) == 0 && chmod(".", 0755) == 0);
    REQUIRE(geteuid() != 0 || seteuid(65534) == 0);
    writer = background_writer("file");
    schedule_writer(&forbidden, writer);
    run_until_count(&forbidden.calls, 1);
    EXPECT_TRACE(&forbidden.trace, "error");
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EACCES);
    REQUIRE(getuid() != 0 || seteuid(0) == 0);
    background_writer_end(writer);
    scratch_leave(folder);
}

static void fail_from_the_second_block(const char *call)
{
    static int reads;

    if (strcmp(call, "read") == 0 && ++reads == 2) {
        file_probe.errors[1] = EIO;
    }
}

TEST(an_error_of_reading_is_told_behind_the_bytes, "2228")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {0};
    struct stream_recorder behind = {.reads_all = true};
    CFReadStreamRef reader;

    scratch_enter(folder);
    file_probe_install();
    reader = open_reader(&recorder, "."); /* a folder can be opened */
    run_until_count(&recorder.calls, 2);
    EXPECT_TRACE(&recorder.trace, "open error");
    EXPECT_ERRNO(CFReadStreamGetError(reader), EISDIR);
    background_reader_end(reader);
    file_probe_await_closes(1);

    pattern_write_file("file", 2 * file_room);
    file_probe.before = fail_from_the_second_block;
    reader = open_reader(&behind, "file");
    while (CFReadStreamGetStatus(reader) != kCFStreamStatusError) {
        run_once();
    }
    run_what_is_ready();
    EXPECT_TRACE(&behind.trace, "open error");
    EXPECT_EQ(behind.total, file_block);
    background_reader_end(reader);
    scratch_leave(folder);
}

TEST(reading_ahead_is_bounded, "2228")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {0};
    CFReadStreamRef reader;

    scratch_enter(folder);
    pattern_write_file("file", 4 * file_room);
    file_probe_install();
    work_steps_begin(0);
    reader = open_reader(&recorder, "file");
    work_step_finish(work_step_take());
    run_until_count(&recorder.calls, 2);
    EXPECT_TRACE(&recorder.trace, "open bytes");
    EXPECT_TRACE(&file_probe.trace, "open read read");
    EXPECT(!work_step_take()); /* nothing is to be done */
    EXPECT_EQ(CFReadStreamRead(reader, (UInt8[4096]){0}, 4096), 4096);
    EXPECT(!work_step_take()); /* nor for a piece */
    CFReadStreamClose(reader);
    work_step_finish(work_step_take());
    CFRelease(reader);
    work_steps_end();
    scratch_leave(folder);
}

/* ---- a slow disk ---- */

static sem_t disk; /* the call that is `slow` waits for it */
static const char *_Atomic slow;
static sem_t has_reached_disk;

static void wait_for_disk(const char *call)
{
    const char *waits = slow;

    if (waits && strcmp(call, waits) == 0) {
        EXPECT(sem_post(&has_reached_disk) == 0);
        while (sem_wait(&disk) < 0 && errno == EINTR) {
        }
    }
}

static void make_slow(const char *call)
{
    REQUIRE(sem_init(&disk, 0, 0) == 0 && sem_init(&has_reached_disk, 0, 0) == 0);
    slow = call;
    file_probe.before = wait_for_disk;
    file_probe_install();
}

static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(_Atomic int *)info;
}

/* Timers fire meanwhile, and the stream tells nothing. */
static void expect_loop_goes_on(struct stream_recorder *recorder)
{
    _Atomic int ticks = 0;
    CFRunLoopTimerContext context = {.info = &ticks};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0.001, 0, 0, tick, &context);
    int calls = recorder->calls;

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    while (ticks < 10) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    }
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    EXPECT_EQ(recorder->calls, calls);
}

TEST(a_loop_goes_on_while_a_pipe_keeps_the_open_and_the_read_waiting, "2227")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {.reads = 10};
    CFReadStreamRef reader;
    int pipe_end;

    scratch_enter(folder);
    REQUIRE(mkfifo("pipe", 0600) == 0);
    reader = open_reader(&recorder, "pipe");
    expect_loop_goes_on(&recorder); /* open(2) waits for a writer */
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusOpening);
    EXPECT(!CFReadStreamHasBytesAvailable(reader));
    pipe_end = open("pipe", O_WRONLY | O_CLOEXEC);
    run_until_count(&recorder.calls, 1);
    expect_loop_goes_on(&recorder); /* and read(2) for bytes */
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusOpen);
    EXPECT_EQ(write(pipe_end, "abc", 3), 3);
    run_until_count(&recorder.calls, 2);
    expect_loop_goes_on(&recorder);
    EXPECT_EQ(write(pipe_end, "de", 2), 2);
    run_until_count(&recorder.calls, 3);
    (void)close(pipe_end);
    run_until_count(&recorder.ends, 1);
    EXPECT_TRACE(&recorder.trace, "open bytes 3\"abc\" bytes 2\"de\" end");
    background_reader_end(reader);
    scratch_leave(folder);
}

TEST(a_loop_goes_on_while_any_call_of_the_disk_hangs, "2227")
{
    static const char *const calls[] = {"open", "write", "sync", "close"};
    char folder[scratch_size];

    scratch_enter(folder);
    make_slow(NULL);
    for (int i = 0; i < 4; i++) {
        struct stream_recorder recorder = {.writes = "text"};
        CFWriteStreamRef writer = background_writer("file");

        slow = calls[i];
        schedule_writer(&recorder, writer);
        EXPECT(i > 0 || CFWriteStreamGetStatus(writer) == kCFStreamStatusOpening);
        while (i > 0 && recorder.writes) {
            run_once();
        }
        EXPECT(i == 0 || CRLWriteStreamFinish(writer, true));
        while (sem_wait(&has_reached_disk) < 0) {
        }
        run_what_is_ready();
        expect_loop_goes_on(&recorder);
        slow = NULL;
        EXPECT(sem_post(&disk) == 0);
        while (recorder.writes) {
            run_once();
        }
        EXPECT(i > 0 || CRLWriteStreamFinish(writer, true));
        run_until_count(&recorder.ends, 1);
        background_writer_end(writer);
    }
    scratch_leave(folder);
}

TEST(a_read_that_hangs_holds_no_stream, "2232")
{
    char folder[scratch_size];

    scratch_enter(folder);
    pattern_write_file("file", 100);
    make_slow("read");
    for (int closes = 0; closes < 2; closes++) {
        struct stream_recorder recorder = {0};
        CFReadStreamRef reader = open_reader(&recorder, "file");

        run_until_count(&recorder.calls, 1);
        while (sem_wait(&has_reached_disk) < 0) {
        }
        if (closes) {
            CFReadStreamClose(reader);
            EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusClosed);
        }
        CFRelease(reader);
        EXPECT_EQ(recorder.releases, 1); /* it is gone */
        EXPECT_EQ(file_probe.opened, 1); /* the file is not */
        EXPECT(sem_post(&disk) == 0);
        file_probe_await_closes(closes + 1);
        EXPECT_TRACE(&recorder.trace, "open");
    }
    scratch_leave(folder);
}

static void *read_one(void *info)
{
    UInt8 byte = 0;

    return CFReadStreamRead(info, &byte, 1) == 1 && byte == pattern_byte(0) ? NULL : info;
}

TEST(a_thread_waits_for_bytes_that_the_pool_reads, "2231")
{
    char folder[scratch_size];
    CFReadStreamRef reader;
    pthread_t thread;
    void *result;

    scratch_enter(folder);
    pattern_write_file("file", 100);
    make_slow("read");
    reader = background_reader("file");
    EXPECT(CFReadStreamOpen(reader));
    while (sem_wait(&has_reached_disk) < 0) {
    }
    slow = NULL;
    REQUIRE(pthread_create(&thread, NULL, read_one, reader) == 0);
    while (CFReadStreamGetStatus(reader) != kCFStreamStatusReading) {
        (void)sched_yield();
    }
    EXPECT(!CFReadStreamHasBytesAvailable(reader));
    EXPECT(sem_post(&disk) == 0);
    EXPECT(pthread_join(thread, &result) == 0 && !result);
    background_reader_end(reader);
    file_probe_await_closes(1);
    scratch_leave(folder);
}

TEST(a_call_does_the_work_that_no_thread_has_begun, "2231")
{
    char folder[scratch_size];
    CFWriteStreamRef writer;
    CFReadStreamRef reader;
    UInt8 bytes[1000] = {0};
    size_t written = 0;

    scratch_enter(folder);
    work_steps_begin(0); /* the pool is full */
    writer = background_writer("file");
    EXPECT(CFWriteStreamOpen(writer));
    while (written < 2 * file_room) {
        pattern_fill(bytes, written, sizeof bytes);
        written += (size_t)CFWriteStreamWrite(writer, bytes, sizeof bytes);
    }
    CFWriteStreamClose(writer);
    CFRelease(writer);
    work_step_finish(work_step_take());
    EXPECT(pattern_is_file("file", written));
    reader = background_reader("file");
    EXPECT(CFReadStreamOpen(reader));
    EXPECT_EQ(CFReadStreamRead(reader, bytes, 1), 1);
    EXPECT_EQ(bytes[0], pattern_byte(0));
    background_reader_end(reader);
    work_step_finish(work_step_take());
    work_steps_end();
    scratch_leave(folder);
}

TEST(without_any_thread_a_stream_fails_or_does_its_work_itself, "2231")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {0};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    scratch_enter(folder);
    scratch_make_file("file");
    work_steps_begin(-EAGAIN);
    reader = open_reader(&recorder, "file");
    run_until_count(&recorder.calls, 1);
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_ERRNO(CFReadStreamGetError(reader), EAGAIN);
    background_reader_end(reader);

    work_steps_begin(0);
    writer = background_writer("file");
    EXPECT(CFWriteStreamOpen(writer));
    work_step_finish(work_step_take());
    EXPECT_EQ(write_text(writer, "some"), 4);
    work_step_finish(work_step_take());
    work_steps_end();
    work_steps_begin(-EAGAIN);
    EXPECT_EQ(write_text(writer, "more"), 4);
    EXPECT_EQ(write_text(writer, "more"), -1); /* what was taken could not be written */
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EAGAIN);
    background_writer_end(writer);

    work_steps_begin(0);
    writer = background_writer("file");
    EXPECT(CFWriteStreamOpen(writer));
    work_step_finish(work_step_take());
    work_steps_end();
    work_steps_begin(-EAGAIN);
    background_writer_end(writer); /* closes the file here */
    work_steps_end();
    scratch_leave(folder);
}

/* ---- writing ---- */

/* Writes the pattern in pieces whenever there is room. */
static void write_pattern(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    CFWriteStreamRef writer = (CFWriteStreamRef)(uintptr_t)stream;
    const size_t *size = recorder->context;
    UInt8 bytes[70001];
    size_t offset = (size_t)recorder->total;
    size_t left = *size - offset < sizeof bytes ? *size - offset : sizeof bytes;

    trace_clear(&recorder->trace);
    if (type == kCFStreamEventCanAcceptBytes && left > 0) {
        pattern_fill(bytes, offset, left);
        recorder->total += CFWriteStreamWrite(writer, bytes, (CFIndex)left);
    } else if (type == kCFStreamEventCanAcceptBytes) {
        EXPECT(CRLWriteStreamFinish(writer, true));
        EXPECT(!CRLWriteStreamFinish(writer, true)); /* once */
        EXPECT_EQ(write_text(writer, "more"), 0);
        EXPECT(!CFWriteStreamCanAcceptBytes(writer));
    }
}

TEST(a_file_is_written_by_a_loop_whatever_its_size, "2229 2230")
{
    char folder[scratch_size];

    scratch_enter(folder);
    file_probe_install();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct stream_recorder recorder = {.action = write_pattern, .context = (void *)(uintptr_t)&sizes[i]};
        CFWriteStreamRef writer = background_writer("file");

        schedule_writer(&recorder, writer);
        run_until_count(&recorder.ends, 1);
        EXPECT_EQ(file_probe.opened, 0); /* told once the file is closed */
        EXPECT_EQ(CFWriteStreamGetStatus(writer), kCFStreamStatusAtEnd);
        EXPECT_EQ(write_text(writer, "more"), -1);
        EXPECT(pattern_is_file("file", sizes[i]));
        background_writer_end(writer);
    }
    scratch_leave(folder);
}

TEST(finishing_writes_and_syncs_and_closes_and_then_tells, "2230")
{
    char folder[scratch_size];
    struct stream_recorder synced = {.writes = "text"};
    struct stream_recorder plain = {0};
    CFWriteStreamRef writer;

    scratch_enter(folder);
    writer = background_writer("file");
    file_probe_install();
    EXPECT(!CRLWriteStreamFinish(writer, true)); /* it is not open */
    schedule_writer(&synced, writer);
    run_until_count(&synced.calls, 2);
    EXPECT(CRLWriteStreamFinish(writer, true));
    run_until_count(&synced.ends, 1);
    EXPECT_TRACE(&synced.trace, "open room 4 end");
    EXPECT_TRACE(&file_probe.trace, "open write sync close");
    trace_clear(&file_probe.trace);
    background_writer_end(writer);

    writer = background_writer("file");
    schedule_writer(&plain, writer);
    run_until_count(&plain.calls, 2); /* of room that is not used */
    EXPECT(CRLWriteStreamFinish(writer, false));
    run_until_count(&plain.ends, 1);
    EXPECT_TRACE(&plain.trace, "open room end");
    EXPECT_TRACE(&file_probe.trace, "open close");
    background_writer_end(writer);
    scratch_leave(folder);
}

TEST(only_a_stream_in_the_background_is_finished, "2230")
{
    CFWriteStreamRef other = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    CFReadStreamRef reader = background_reader("/dev/null");

    EXPECT(!CRLWriteStreamFinish(other, true));
    CFRelease(other);
    EXPECT(!CFReadStreamSetProperty(reader, CFSTR("kCRLStreamPropertyFinish"), kCFBooleanTrue));
    EXPECT_STOPS("CRLWriteStreamFinish: the stream is NULL", { (void)CRLWriteStreamFinish(NULL, true); });
    CFRelease(reader);
}

TEST(what_was_taken_is_written_though_the_stream_is_closed_or_released_at_once, "2229")
{
    char folder[scratch_size];
    UInt8 bytes[2 * file_room];

    scratch_enter(folder);
    file_probe_install();
    pattern_fill(bytes, 0, sizeof bytes);
    for (int i = 0; i < 20; i++) {
        CFWriteStreamRef writer = background_writer("file");
        size_t written = 0;

        EXPECT(CFWriteStreamOpen(writer));
        while (written < (size_t)i * 20000) {
            CFIndex count = CFWriteStreamWrite(writer, bytes + written, (CFIndex)((size_t)i * 20000 - written));

            EXPECT(count > 0);
            written += (size_t)count;
        }
        if (i % 2) {
            CFWriteStreamClose(writer);
        }
        CFRelease(writer);
        file_probe_await_closes(i + 1);
        EXPECT(pattern_is_file("file", written));
    }
    scratch_leave(folder);
}

TEST(a_writer_takes_no_more_than_there_is_room_for, "2229")
{
    char folder[scratch_size];
    struct stream_recorder recorder = {0};
    static const UInt8 bytes[2 * file_room];
    CFWriteStreamRef writer;

    scratch_enter(folder);
    writer = background_writer("file");
    make_slow("write");
    schedule_writer(&recorder, writer);
    run_until_count(&recorder.calls, 2);
    EXPECT_EQ(CFWriteStreamWrite(writer, bytes, sizeof bytes), file_room);
    EXPECT(!CFWriteStreamCanAcceptBytes(writer));
    expect_loop_goes_on(&recorder);
    slow = NULL;
    EXPECT(sem_post(&disk) == 0);
    run_until_count(&recorder.calls, 3);
    EXPECT_TRACE(&recorder.trace, "open room room");
    EXPECT(CFWriteStreamCanAcceptBytes(writer));
    background_writer_end(writer);
    file_probe_await_closes(1);
    scratch_leave(folder);
}

TEST(a_disk_that_is_full_is_an_error, "2230")
{
    struct stream_recorder recorder = {.writes = "text"};
    CFWriteStreamRef writer = background_writer("/dev/full");

    file_probe_install();
    schedule_writer(&recorder, writer);
    run_until_count(&recorder.calls, 2);
    file_probe_await_closes(1); /* there was room till then */
    run_until_count(&recorder.calls, 3);
    EXPECT_TRACE(&recorder.trace, "open room 4 error");
    EXPECT_ERRNO(CFWriteStreamGetError(writer), ENOSPC);
    EXPECT_EQ(write_text(writer, "more"), -1);
    EXPECT(!CRLWriteStreamFinish(writer, false));
    background_writer_end(writer);
}

TEST(an_error_of_the_sync_or_the_close_is_told_in_place_of_the_end, "2230")
{
    char folder[scratch_size];

    scratch_enter(folder);
    file_probe_install();
    for (int call = 3; call < 5; call++) {
        struct stream_recorder recorder = {.writes = "text"};
        CFWriteStreamRef writer = background_writer("file");

        file_probe.errors[3] = call == 3 ? EIO : 0;
        file_probe.errors[4] = EDQUOT;
        schedule_writer(&recorder, writer);
        run_until_count(&recorder.calls, 2);
        EXPECT(CRLWriteStreamFinish(writer, true));
        run_until_count(&recorder.calls, 3);
        EXPECT_TRACE(&recorder.trace, "open room 4 error");
        EXPECT_ERRNO(CFWriteStreamGetError(writer), call == 3 ? EIO : EDQUOT);
        EXPECT_EQ(recorder.ends, 0);
        file_probe_await_closes(call - 2);
        background_writer_end(writer);
    }
    scratch_leave(folder);
}

TEST(a_pipe_that_nobody_reads_any_more_is_an_error_and_no_signal, "2227")
{
    char folder[scratch_size];
    CFWriteStreamRef writer;
    int pipe_end;

    scratch_enter(folder);
    REQUIRE(mkfifo("pipe", 0600) == 0);
    pipe_end = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    work_steps_begin(0); /* this thread writes */
    writer = background_writer("pipe");
    EXPECT(CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "text"), 4);
    (void)close(pipe_end);
    work_step_finish(work_step_take());
    EXPECT_EQ(write_text(writer, "more"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EPIPE);
    background_writer_end(writer);
    work_steps_end();
    scratch_leave(folder);
}

/* They have nothing to sync. */
TEST(a_pipe_or_a_device_is_finished_with_a_sync_as_any_file, "2230")
{
    static const char *const paths[] = {"pipe", "/dev/null"};
    char folder[scratch_size];
    int pipe_end;

    scratch_enter(folder);
    REQUIRE(mkfifo("pipe", 0600) == 0);
    pipe_end = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        CFWriteStreamRef writer = background_writer(paths[i]);
        struct stream_recorder recorder = {.writes = "text"};

        schedule_writer(&recorder, writer);
        run_until_count(&recorder.calls, 2);
        EXPECT(CRLWriteStreamFinish(writer, true));
        run_until_count(&recorder.calls, 3);
        EXPECT_TRACE(&recorder.trace, "open room 4 end");
        background_writer_end(writer);
    }
    (void)close(pipe_end);
    scratch_leave(folder);
}

/* Whether the pool's thread writes or this one, which has the signal as the system sets it: to end the process. */
TEST(a_file_that_may_grow_no_more_is_an_error_and_no_signal, "2227")
{
    const struct rlimit most = {4, RLIM_INFINITY};
    char folder[scratch_size];
    CFWriteStreamRef writer;
    struct rlimit before;
    sigset_t waiting;

    scratch_enter(folder);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    work_steps_begin(0); /* this thread writes */
    writer = background_writer("file");
    EXPECT(CFWriteStreamOpen(writer));
    work_step_finish(work_step_take());
    EXPECT_EQ(write_text(writer, "text"), 4);
    work_step_finish(work_step_take());
    REQUIRE(setrlimit(RLIMIT_FSIZE, &most) == 0);
    EXPECT_EQ(write_text(writer, "more"), 4);
    work_step_finish(work_step_take());
    EXPECT_EQ(write_text(writer, "more"), -1);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    EXPECT_ERRNO(CFWriteStreamGetError(writer), EFBIG);
    EXPECT_EQ(sigpending(&waiting), 0);
    EXPECT(!sigismember(&waiting, SIGXFSZ));
    background_writer_end(writer);
    work_steps_end();
    scratch_leave(folder);
}

TEST(a_queue_writes_to_a_file_in_the_background, "2229")
{
    char folder[scratch_size];
    CFWriteStreamRef writer;
    CRLWriteQueueRef queue;
    UInt8 bytes[100000];

    scratch_enter(folder);
    writer = background_writer("file");
    queue = CRLWriteQueueCreateWithStream(NULL, writer, 2000000, 0, NULL, NULL);
    file_probe_install();
    REQUIRE(queue && CRLWriteQueueScheduleWithRunLoop(queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT(CFWriteStreamOpen(writer));
    for (size_t i = 0; i < 10; i++) {
        pattern_fill(bytes, i * sizeof bytes, sizeof bytes);
        EXPECT_EQ(CRLWriteQueueWrite(queue, bytes, sizeof bytes), kCRLWriteTaken);
    }
    CRLWriteQueueFinish(queue);
    CFRelease(queue);
    while (CFWriteStreamGetStatus(writer) != kCFStreamStatusClosed) {
        run_once();
    }
    CFRelease(writer);
    file_probe_await_closes(1);
    EXPECT(pattern_is_file("file", 10 * sizeof bytes));
    scratch_leave(folder);
}

/* ---- properties ---- */

static void expect_offset(CFTypeRef number, int64_t expected)
{
    int64_t offset = -1;

    REQUIRE(number);
    EXPECT(CFNumberGetValue(number, kCFNumberSInt64Type, &offset));
    EXPECT_EQ(offset, expected);
    CFRelease(number);
}

static CFNumberRef number_of(int64_t value)
{
    return CFNumberCreate(NULL, kCFNumberSInt64Type, &value);
}

TEST(the_offset_is_where_the_program_is, "2228")
{
    char folder[scratch_size];
    CFNumberRef offset = number_of(1000);
    CFNumberRef below = number_of(-1);
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    UInt8 bytes[100];

    scratch_enter(folder);
    pattern_write_file("file", 5000);
    reader = background_reader("file");
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, below));
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, kCFBooleanTrue));
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyAppendToFile, kCFBooleanTrue));
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, offset));
    EXPECT(CFReadStreamOpen(reader));
    EXPECT_EQ(CFReadStreamRead(reader, bytes, sizeof bytes), sizeof bytes);
    EXPECT_EQ(bytes[0], pattern_byte(1000));
    expect_offset(CFReadStreamCopyProperty(reader, kCFStreamPropertyFileCurrentOffset), 1100);
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, offset)); /* it is open */
    EXPECT(!CFReadStreamCopyProperty(reader, kCFStreamPropertyDataWritten));
    background_reader_end(reader);

    writer = background_writer("file");
    EXPECT(!CFWriteStreamSetProperty(writer, kCFStreamPropertyDataWritten, offset));
    EXPECT(!CFWriteStreamSetProperty(writer, kCFStreamPropertyAppendToFile, offset));
    EXPECT_EQ(CFWriteStreamCopyProperty(writer, kCFStreamPropertyAppendToFile), kCFBooleanFalse);
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertyAppendToFile, kCFBooleanTrue));
    EXPECT_EQ(CFWriteStreamCopyProperty(writer, kCFStreamPropertyAppendToFile), kCFBooleanTrue);
    EXPECT(!CFWriteStreamSetProperty(writer, kCFStreamPropertyFileCurrentOffset, offset));
    EXPECT(!CFWriteStreamCopyProperty(writer, kCFStreamPropertyFileCurrentOffset));
    file_probe_install();
    EXPECT(CFWriteStreamOpen(writer));
    pattern_fill(bytes, 5000, sizeof bytes);
    EXPECT_EQ(CFWriteStreamWrite(writer, bytes, sizeof bytes), sizeof bytes);
    background_writer_end(writer);
    file_probe_await_closes(1);
    EXPECT(pattern_is_file("file", 5100));

    writer = background_writer("/dev/tty-of-nobody/file"); /* no such folder */
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertyFileCurrentOffset, offset));
    expect_offset(CFWriteStreamCopyProperty(writer, kCFStreamPropertyFileCurrentOffset), 1000);
    CFRelease(writer);
    REQUIRE(mkfifo("pipe", 0600) == 0); /* which has no offset */
    writer = background_writer("pipe");
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertyFileCurrentOffset, offset));
    EXPECT(CFWriteStreamOpen(writer));
    (void)close(open("pipe", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(write_text(writer, "text"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(writer), ESPIPE);
    background_writer_end(writer);
    CFRelease(below);
    CFRelease(offset);
    scratch_leave(folder);
}

TEST(a_stream_in_the_background_needs_the_url_of_a_file, "2227")
{
    CFURLRef url = CFURLCreateWithString(NULL, CFSTR("http://host.example/file"), NULL);

    EXPECT(!CRLReadStreamCreateWithFileInBackground(NULL, NULL));
    EXPECT(!CRLReadStreamCreateWithFileInBackground(NULL, url));
    EXPECT(!CRLWriteStreamCreateWithFileInBackground(NULL, url));
    CFRelease(url);
}

/* ---- the system ---- */

TEST(no_file_takes_the_place_of_a_standard_stream, "2227")
{
    char folder[scratch_size];
    int saved = dup(STDIN_FILENO);
    int file;

    scratch_enter(folder);
    scratch_make_file("file");
    REQUIRE(saved >= 0);
    (void)close(STDIN_FILENO);
    file = file_kernel.open("file", O_RDONLY);
    EXPECT(file > STDERR_FILENO);
    EXPECT(fcntl(file, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(file_kernel.close(file), 0);
    EXPECT_EQ(file_kernel.close(file), -EBADF);
    EXPECT(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    (void)close(saved);
    scratch_leave(folder);
}

/* ---- the child of a fork ---- */

static void check_child(CFReadStreamRef reader, CFWriteStreamRef writer, CFReadStreamRef unopened)
{
    UInt8 byte;

    if (CFReadStreamRead(reader, &byte, 1) != -1 || CFReadStreamGetError(reader).error != ECHILD || write_text(writer, "more") != -1 ||
        CRLWriteStreamFinish(writer, true) || CFReadStreamSetProperty(unopened, kCFStreamPropertyFileCurrentOffset, NULL)) {
        _exit(1);
    }
    CFRelease(CFReadStreamCopyProperty(unopened, kCFStreamPropertyFileCurrentOffset));
    (void)CFReadStreamOpen(unopened);
    if (CFReadStreamGetError(unopened).error != ECHILD) {
        _exit(2);
    }
    background_reader_end(reader);
    background_reader_end(unopened);
    background_writer_end(writer);
    _exit(0);
}

TEST(the_child_of_a_fork_leaves_the_files_to_its_parent, "2232")
{
    char folder[scratch_size];
    CFReadStreamRef reader;
    CFReadStreamRef unopened;
    CFWriteStreamRef writer;
    int status = -1;
    pid_t child;

    scratch_enter(folder);
    pattern_write_file("file", 100);
    file_probe_install();
    reader = background_reader("file");
    unopened = background_reader("file");
    writer = background_writer("written");
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "text"), 4);
    child = fork();
    if (child == 0) {
        check_child(reader, writer, unopened);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT(!read_one(reader));
    EXPECT_EQ(write_text(writer, "more"), 4);
    background_reader_end(reader);
    CFRelease(unopened);
    background_writer_end(writer);
    file_probe_await_closes(2);
    scratch_leave(folder);
}
