/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of memory, and what holds of every stream without a client: rules 300 to 306, 309, 323. */
#include <errno.h>
#include <string.h>

#include "Runtime/Object/counting_allocator.h"
#include "Stream/stream_recorder.h"

TEST(a_stream_is_opened_once, "300 302")
{
    CFReadStreamRef stream = reader_of("abc");

    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusNotOpen);
    CFReadStreamClose(stream); /* a stream that was not opened stays as it is */
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusNotOpen);
    EXPECT(CFReadStreamOpen(stream));
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusOpen);
    EXPECT(!CFReadStreamOpen(stream));
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusOpen);
    CFReadStreamClose(stream);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusClosed);
    EXPECT(!CFReadStreamOpen(stream));
    CFReadStreamClose(stream);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusClosed);
    EXPECT_EQ(CFReadStreamGetError(stream).domain, 0);
    CFRelease(stream);
}

TEST(a_stream_that_is_not_open_moves_no_bytes, "301")
{
    CFReadStreamRef reader = reader_of("abc");
    CFWriteStreamRef writer = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    UInt8 bytes[8];
    CFIndex count = 7;

    EXPECT_EQ(CFReadStreamRead(reader, bytes, 8), -1);
    EXPECT(!CFReadStreamGetBuffer(reader, 0, &count));
    EXPECT_EQ(count, -1);
    EXPECT(!CFReadStreamHasBytesAvailable(reader));
    EXPECT_EQ(write_text(writer, "abc"), -1);
    EXPECT(!CFWriteStreamCanAcceptBytes(writer));
    EXPECT_EQ(CFWriteStreamGetStatus(writer), kCFStreamStatusNotOpen);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    EXPECT_EQ(CFReadStreamRead(reader, bytes, 8), -1);
    EXPECT_EQ(write_text(writer, "abc"), -1);
    EXPECT_EQ(CFWriteStreamGetStatus(writer), kCFStreamStatusClosed);
    CFRelease(reader);
    CFRelease(writer);
}

TEST(a_stream_of_bytes_ends_with_its_last_byte, "303 301")
{
    struct trace trace = {0};
    CFReadStreamRef stream = reader_of("abcde");

    EXPECT(CFReadStreamOpen(stream));
    EXPECT(CFReadStreamHasBytesAvailable(stream));
    note_read(&trace, stream, 3);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusOpen);
    note_read(&trace, stream, 2);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusAtEnd);
    EXPECT(!CFReadStreamHasBytesAvailable(stream));
    note_read(&trace, stream, 2);
    EXPECT_TRACE(&trace, "3\"abc\" 2\"de\" 0");
    CFRelease(stream);

    stream = reader_of("");
    EXPECT(CFReadStreamOpen(stream));
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusAtEnd);
    CFRelease(stream);
}

TEST(memory_lends_its_bytes, "304")
{
    const char *text = "abcdef";
    CFReadStreamRef stream = reader_of(text);
    CFIndex count;

    EXPECT(CFReadStreamOpen(stream));
    EXPECT(CFReadStreamGetBuffer(stream, 2, &count) == (const UInt8 *)text);
    EXPECT_EQ(count, 2);
    EXPECT(CFReadStreamGetBuffer(stream, 1, NULL) == (const UInt8 *)text + 2);
    EXPECT(CFReadStreamGetBuffer(stream, 0, &count) == (const UInt8 *)text + 3);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(CFReadStreamGetStatus(stream), kCFStreamStatusAtEnd);
    EXPECT(!CFReadStreamGetBuffer(stream, -1, &count));
    EXPECT_EQ(count, 0);
    CFRelease(stream);
}

TEST(moving_no_bytes_changes_nothing, "323")
{
    UInt8 bytes[4] = "xyz";
    CFReadStreamRef reader = reader_of("abc");
    CFWriteStreamRef writer = CFWriteStreamCreateWithBuffer(NULL, bytes, 4);

    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(CFReadStreamRead(reader, bytes, 0), 0);
    EXPECT_EQ(CFReadStreamRead(reader, NULL, 4), -1);
    EXPECT_EQ(CFReadStreamRead(reader, bytes, -1), -1);
    EXPECT_EQ(CFWriteStreamWrite(writer, bytes, 0), 0);
    EXPECT_EQ(CFWriteStreamWrite(writer, NULL, 4), -1);
    EXPECT_EQ(CFWriteStreamWrite(writer, bytes, -1), -1);
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusOpen);
    EXPECT_EQ(CFWriteStreamGetStatus(writer), kCFStreamStatusOpen);
    CFRelease(reader);
    CFRelease(writer);
}

TEST(a_write_into_a_buffer_fits_or_fails, "305 302")
{
    char buffer[6] = {0};
    CFWriteStreamRef stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 5);

    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(write_text(stream, "abc"), 3);
    EXPECT(CFWriteStreamCanAcceptBytes(stream));
    EXPECT_EQ(write_text(stream, "def"), -1);
    EXPECT_STR(buffer, "abc");
    EXPECT_EQ(CFWriteStreamGetStatus(stream), kCFStreamStatusError);
    EXPECT_ERRNO(CFWriteStreamGetError(stream), ENOMEM);
    EXPECT_EQ(write_text(stream, "d"), -1);
    CFWriteStreamClose(stream);
    EXPECT_EQ(CFWriteStreamGetStatus(stream), kCFStreamStatusClosed);
    EXPECT_ERRNO(CFWriteStreamGetError(stream), ENOMEM);
    CFRelease(stream);

    stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 5);
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(write_text(stream, "vwxyz"), 5);
    EXPECT(!CFWriteStreamCanAcceptBytes(stream));
    EXPECT_STR(buffer, "vwxyz");
    EXPECT(!CFWriteStreamCopyProperty(stream, kCFStreamPropertyDataWritten));
    CFRelease(stream);

    stream = CFWriteStreamCreateWithBuffer(NULL, NULL, 0);
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(CFWriteStreamGetStatus(stream), kCFStreamStatusAtEnd);
    CFRelease(stream);
}

static bool has_written(CFWriteStreamRef stream, const char *text)
{
    CFDataRef data = CFWriteStreamCopyProperty(stream, kCFStreamPropertyDataWritten);
    bool is_equal = data && CFDataGetLength(data) == (CFIndex)strlen(text) && memcmp(CFDataGetBytePtr(data), text, strlen(text)) == 0;

    if (data) {
        CFRelease(data);
    }
    return is_equal;
}

TEST(allocated_buffers_keep_all_that_was_written, "306")
{
    struct counting counting;
    UInt8 piece[700] = {'x'};
    CFDataRef data;

    counting_open(&counting, -1, false);
    CFWriteStreamRef stream = CFWriteStreamCreateWithAllocatedBuffers(NULL, counting.allocator);
    EXPECT(has_written(stream, ""));
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(write_text(stream, "abc"), 3);
    EXPECT(has_written(stream, "abc"));
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(CFWriteStreamWrite(stream, piece, sizeof piece), sizeof piece);
    }
    EXPECT(CFWriteStreamCanAcceptBytes(stream));
    CFWriteStreamClose(stream);
    data = CFWriteStreamCopyProperty(stream, kCFStreamPropertyDataWritten);
    EXPECT_EQ(CFDataGetLength(data), 7003);
    EXPECT(memcmp(CFDataGetBytePtr(data), "abcx", 4) == 0 && CFDataGetBytePtr(data)[3 + 9 * 700] == 'x');
    CFRelease(data);
    CFRelease(stream);
    counting_close(&counting);
}

TEST(a_write_without_memory_fails, "306 301")
{
    struct counting counting;

    counting_open(&counting, 0, false);
    CFWriteStreamRef stream = CFWriteStreamCreateWithAllocatedBuffers(NULL, counting.allocator);
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(write_text(stream, "abc"), -1);
    EXPECT_ERRNO(CFWriteStreamGetError(stream), ENOMEM);
    CFRelease(stream);
    counting_close(&counting);
}

TEST(bytes_are_freed_with_their_stream, "309")
{
    struct counting counting;

    counting_open(&counting, -1, true);
    for (int opens = 0; opens < 2; opens++) {
        UInt8 *bytes = CFAllocatorAllocate(counting.allocator, 10, 0);
        CFReadStreamRef stream = CFReadStreamCreateWithBytesNoCopy(NULL, bytes, 10, counting.allocator);

        EXPECT(!opens || CFReadStreamOpen(stream));
        EXPECT_EQ(counting.blocks, 1);
        CFRelease(stream);
        EXPECT_EQ(counting.blocks, 0);
    }
    counting_close(&counting);
}

TEST(wrong_arguments_make_no_stream_of_memory, "301")
{
    UInt8 bytes[4] = {0};

    EXPECT(!CFReadStreamCreateWithBytesNoCopy(NULL, bytes, -1, kCFAllocatorNull));
    EXPECT(!CFReadStreamCreateWithBytesNoCopy(NULL, NULL, 1, kCFAllocatorNull));
    EXPECT(!CFWriteStreamCreateWithBuffer(NULL, bytes, -1));
    EXPECT(!CFWriteStreamCreateWithBuffer(NULL, NULL, 1));
    EXPECT(!CFWriteStreamCreateWithAllocatedBuffers(NULL, kCFAllocatorNull));
}

TEST(streams_have_their_types, "183")
{
    CFReadStreamRef reader = reader_of("abc");
    CFWriteStreamRef writer = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);

    EXPECT_EQ(CFGetTypeID(reader), CFReadStreamGetTypeID());
    EXPECT_EQ(CFGetTypeID(writer), CFWriteStreamGetTypeID());
    EXPECT(CFReadStreamGetTypeID() != CFWriteStreamGetTypeID());
    EXPECT_STOPS("CFReadStreamOpen: ", { CFReadStreamOpen((CFReadStreamRef)writer); });
    EXPECT_STOPS("CFWriteStreamOpen: ", { CFWriteStreamOpen(NULL); });
    EXPECT(!CFReadStreamCopyProperty(reader, kCFStreamPropertyDataWritten));
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, kCFBooleanTrue));
    CFRelease(reader);
    CFRelease(writer);
}

TEST(a_description_tells_status_error_and_client, "186")
{
    struct stream_recorder recorder = {0};
    char buffer[2];
    char text[400];
    CFWriteStreamRef stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 2);
    CFStringRef description;

    recorder_watch_writer(&recorder, stream, events_all);
    EXPECT(CFWriteStreamOpen(stream));
    EXPECT_EQ(write_text(stream, "abc"), -1);
    description = CFCopyDescription(stream);
    EXPECT(CFStringGetCString(description, text, sizeof text, kCFStringEncodingUTF8));
    EXPECT(strstr(text, "CFWriteStream") && strstr(text, "status = error, error = 12 in domain 1, client = nameless, events = "));
    EXPECT(strstr(text, "events = OpenCompleted|HasBytesAvailable|CanAcceptBytes|ErrorOccurred|EndEncountered, callout = writer_called"));
    EXPECT(strstr(text, "scheduled in modes = 0}") != NULL); /* no descriptor */
    CFRelease(description);
    CFRelease(stream);
}
