/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files: rules 307, 308 and 313. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Stream/stream_recorder.h"

static char folder[] = "/tmp/crl-stream-XXXXXX";
static char path[64];

static void begin_file(void)
{
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void end_file(void)
{
    unlink(path);
    rmdir(folder);
}

static CFURLRef url_of_file(void)
{
    return CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)path, (CFIndex)strlen(path), false);
}

static CFReadStreamRef file_reader(void)
{
    CFURLRef url = url_of_file();
    CFReadStreamRef stream = CFReadStreamCreateWithFile(NULL, url);

    CFRelease(url);
    return stream;
}

static CFWriteStreamRef file_writer(void)
{
    CFURLRef url = url_of_file();
    CFWriteStreamRef stream = CFWriteStreamCreateWithFile(NULL, url);

    CFRelease(url);
    return stream;
}

TEST(a_stream_of_a_file_needs_the_url_of_a_file, "307")
{
    CFURLRef url = CFURLCreateWithString(NULL, CFSTR("http://host.example/file"), NULL);

    EXPECT(!CFReadStreamCreateWithFile(NULL, NULL));
    EXPECT(!CFReadStreamCreateWithFile(NULL, url));
    EXPECT(!CFWriteStreamCreateWithFile(NULL, url));
    CFRelease(url);
}

static void write_file_of(const char *text, bool appends)
{
    CFWriteStreamRef stream = file_writer();

    EXPECT(CFWriteStreamSetProperty(stream, kCFStreamPropertyAppendToFile, appends ? kCFBooleanTrue : kCFBooleanFalse));
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT(!CFWriteStreamSetProperty(stream, kCFStreamPropertyAppendToFile, kCFBooleanTrue)); /* too late */
    EXPECT_EQ(write_text(stream, text), (CFIndex)strlen(text));
    CFWriteStreamClose(stream);
    CFRelease(stream);
}

TEST(a_file_is_written_and_read_by_streams, "307 308")
{
    struct trace trace = {0};
    CFReadStreamRef stream;

    begin_file();
    write_file_of("too long to stay", false);
    write_file_of("abc", false);
    write_file_of("de", true);
    stream = file_reader();
    EXPECT(CFReadStreamOpen(stream));
    note_read(&trace, stream, 4);
    note_read(&trace, stream, 4);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusOpen); /* only a read that finds nothing finds the end */
    note_read(&trace, stream, 4);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusAtEnd);
    EXPECT_TRACE(&trace, "4\"abcd\" 1\"e\" 0");
    CFRelease(stream);
    end_file();
}

static int64_t offset_of(CFTypeRef value)
{
    int64_t offset = -1;

    if (value) {
        EXPECT(CFNumberGetValue(value, kCFNumberSInt64Type, &offset));
        CFRelease(value);
    }
    return offset;
}

static CFNumberRef number(int64_t value)
{
    return CFNumberCreate(NULL, kCFNumberSInt64Type, &value);
}

TEST(a_stream_tells_and_sets_its_place_in_a_file, "308")
{
    struct trace trace = {0};
    CFNumberRef two = number(2);
    CFNumberRef below = number(-1);
    CFReadStreamRef stream;
    CFWriteStreamRef writer;

    begin_file();
    write_file_of("abcdef", false);
    stream = file_reader();
    EXPECT_EQ(offset_of(CFReadStreamCopyProperty(stream, kCFStreamPropertyFileCurrentOffset)), -1);
    EXPECT(CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, two));
    EXPECT_EQ(offset_of(CFReadStreamCopyProperty(stream, kCFStreamPropertyFileCurrentOffset)), 2);
    EXPECT(!CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, below));
    EXPECT(!CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, kCFBooleanTrue));
    EXPECT(!CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, NULL));
    EXPECT(!CFReadStreamSetProperty(stream, NULL, two));
    EXPECT(!CFReadStreamSetProperty(stream, kCFStreamPropertyAppendToFile, kCFBooleanTrue));
    EXPECT(CFReadStreamOpen(stream));
    note_read(&trace, stream, 3);
    EXPECT_EQ(offset_of(CFReadStreamCopyProperty(stream, kCFStreamPropertyFileCurrentOffset)), 5);
    EXPECT(CFReadStreamSetProperty(stream, kCFStreamPropertyFileCurrentOffset, two));
    note_read(&trace, stream, 2);
    EXPECT_TRACE(&trace, "3\"cde\" 2\"cd\"");
    CFRelease(stream);
    writer = file_writer();
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertyAppendToFile, kCFBooleanTrue));
    EXPECT(!CFWriteStreamSetProperty(writer, kCFStreamPropertyFileCurrentOffset, two));
    EXPECT(!CFWriteStreamSetProperty(writer, kCFStreamPropertyAppendToFile, two));
    EXPECT(!CFWriteStreamCopyProperty(writer, kCFStreamPropertyFileCurrentOffset));
    CFRelease(writer);
    CFRelease(two);
    CFRelease(below);
    end_file();
}

TEST(a_file_that_cannot_be_opened_is_the_error_of_its_stream, "307 300 311")
{
    struct stream_recorder recorder = {0};
    CFReadStreamRef stream;

    begin_file();
    stream = file_reader();
    recorder_add_reader(&recorder, stream);
    EXPECT(!CFReadStreamOpen(stream));
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusError);
    EXPECT_ERRNO(CFReadStreamGetError(stream), ENOENT);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT(!CFReadStreamOpen(stream));
    CFRelease(stream);
    snprintf(path, sizeof path, "%s", folder);
    stream = file_reader();
    EXPECT(CFReadStreamOpen(stream)); /* a folder opens, and refuses to be read */
    note_read(&recorder.trace, stream, 1);
    EXPECT_TRACE(&recorder.trace, "error -1");
    EXPECT_ERRNO(CFReadStreamGetError(stream), EISDIR);
    CFRelease(stream);
    end_file();
}

TEST(a_file_tells_events_to_the_client_of_its_stream, "312 313 307")
{
    struct stream_recorder recorder = {.reads = 4};
    struct stream_recorder writing = {.writes = "abcdef"};
    CFReadStreamRef stream;
    CFWriteStreamRef writer;

    begin_file();
    writer = file_writer();
    recorder_add_writer(&writing, writer);
    EXPECT(CFWriteStreamOpen(writer));
    run_what_is_ready();
    EXPECT_TRACE(&writing.trace, "open room 6 room");
    EXPECT(CFWriteStreamCanAcceptBytes(writer));
    stream = file_reader();
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    EXPECT(CFReadStreamHasBytesAvailable(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 4\"abcd\" bytes 2\"ef\" bytes 0 end");
    CFRelease(stream);
    CFRelease(writer);
    end_file();
}

TEST(a_named_pipe_is_watched_by_the_loop_of_its_stream, "313 321 312")
{
    struct stream_recorder recorder = {.reads = 4};
    CFReadStreamRef stream;
    int writing;

    begin_file();
    EXPECT(mkfifo(path, 0600) == 0);
    writing = open(path, O_RDWR | O_CLOEXEC); /* so that opening it to read does not wait */
    stream = file_reader();
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT(!CFReadStreamHasBytesAvailable(stream));
    EXPECT_TRACE(&recorder.trace, "open");
    EXPECT_EQ(write(writing, "ab", 2), 2);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 2\"ab\"");
    close(writing);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 2\"ab\" end");
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusAtEnd);
    CFRelease(stream);
    end_file();
}

TEST(a_pipe_without_a_reader_is_found_by_writing, "313 307")
{
    struct stream_recorder recorder = {0};
    CFWriteStreamRef stream;
    int reading;

    begin_file();
    EXPECT(mkfifo(path, 0600) == 0);
    reading = open(path, O_RDWR | O_CLOEXEC);
    stream = file_writer();
    recorder_add_writer(&recorder, stream);
    EXPECT(CFWriteStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room");
    EXPECT_EQ(write_text(stream, "a"), 1);
    close(reading);
    signal(SIGPIPE, SIG_DFL); /* no signal is raised */
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open room room");
    EXPECT_EQ(write_text(stream, "b"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(stream), EPIPE);
    CFRelease(stream);
    end_file();
}
