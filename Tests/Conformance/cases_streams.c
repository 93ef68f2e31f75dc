/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of memory: rules 300 to 306 and 310 to 317. A client's token is its event; a read's is what it returned. */
#define CONFORMANCE_GROUP "streams"
#include "conformance.h"

#include <string.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

static CFIndex bytes_per_event; /* read in the callback; 0: none */

static void note_event(CFStreamEventType type)
{
    static const char *const names[] = {"open", "bytes", "room", "error", "end"};

    for (int i = 0; i < 5; i++) {
        if (type == (CFStreamEventType)1 << i) {
            probe_note("%s", names[i]);
        }
    }
}

static void note_read(CFReadStreamRef stream, CFIndex size)
{
    UInt8 bytes[100];
    CFIndex count = CFReadStreamRead(stream, bytes, size);

    probe_note("%ld:%.*s", (long)count, count > 0 ? (int)count : 0, (const char *)bytes);
}

static void read_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    (void)info;
    note_event(type);
    if (type == kCFStreamEventHasBytesAvailable && bytes_per_event > 0) {
        note_read(stream, bytes_per_event);
    }
}

static void write_event(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    (void)info;
    note_event(type);
}

static CFReadStreamRef reader_of(const char *text)
{
    return CFReadStreamCreateWithBytesNoCopy(NULL, (const UInt8 *)text, (CFIndex)strlen(text), kCFAllocatorNull);
}

static void watch_reader(CFReadStreamRef stream, CFOptionFlags events)
{
    CFStreamClientContext context = {0};

    probe_note("set=%d", CFReadStreamSetClient(stream, events, read_event, &context));
    CFReadStreamScheduleWithRunLoop(stream, LOOP, MODE);
}

static void run_some(void)
{
    for (int i = 0; i < 5; i++) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
}

static void note_status(CFReadStreamRef stream)
{
    probe_note("status=%ld", (long)CFReadStreamGetStatus(stream));
}

CASE(a_stream_is_opened_and_closed_once, "300 301 302", on_thread)
{
    CFReadStreamRef stream = reader_of("abc");
    note_status(stream);
    CFReadStreamClose(stream);
    note_status(stream);
    note_read(stream, 2);
    probe_note("open=%d", CFReadStreamOpen(stream));
    note_status(stream);
    probe_note("open=%d", CFReadStreamOpen(stream));
    note_read(stream, 2);
    CFReadStreamClose(stream);
    note_status(stream);
    probe_note("open=%d", CFReadStreamOpen(stream));
    note_read(stream, 2);
    CFRelease(stream);
}

CASE(a_stream_of_bytes_ends_with_its_last_byte, "303", on_thread)
{
    CFReadStreamRef stream = reader_of("abcde");
    CFReadStreamOpen(stream);
    note_read(stream, 3);
    note_status(stream);
    note_read(stream, 2);
    note_status(stream);
    note_read(stream, 2);
    probe_note_bool("has", CFReadStreamHasBytesAvailable(stream));
    CFRelease(stream);
}

CASE(memory_lends_its_bytes, "304", on_thread)
{
    CFReadStreamRef stream = reader_of("abcde");
    CFIndex count = 0;
    const UInt8 *bytes;
    CFReadStreamOpen(stream);
    bytes = CFReadStreamGetBuffer(stream, 2, &count);
    probe_note("%ld:%.*s", (long)count, (int)count, (const char *)bytes);
    bytes = CFReadStreamGetBuffer(stream, 10, &count);
    probe_note("%ld:%.*s", (long)count, (int)count, (const char *)bytes);
    note_status(stream);
    CFRelease(stream);
}

CASE(a_write_into_a_buffer_fits_or_fails, "305", on_thread)
{
    char buffer[6] = {0};
    CFWriteStreamRef stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 5);
    CFWriteStreamOpen(stream);
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"abc", 3));
    probe_note_bool("can", CFWriteStreamCanAcceptBytes(stream));
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"def", 3));
    probe_note("%s %ld", buffer, (long)CFWriteStreamGetStatus(stream));
    CFRelease(stream);
    stream = CFWriteStreamCreateWithBuffer(NULL, (UInt8 *)buffer, 5);
    CFWriteStreamOpen(stream);
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"vwxyz", 5));
    probe_note_bool("can", CFWriteStreamCanAcceptBytes(stream));
    CFRelease(stream);
}

CASE(allocated_buffers_keep_what_was_written, "306", on_thread)
{
    CFWriteStreamRef stream = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    CFDataRef data;
    CFWriteStreamOpen(stream);
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"abc", 3));
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"de", 2));
    CFWriteStreamClose(stream);
    data = CFWriteStreamCopyProperty(stream, kCFStreamPropertyDataWritten);
    probe_note("%.*s", (int)CFDataGetLength(data), (const char *)CFDataGetBytePtr(data));
    CFRelease(data);
    CFRelease(stream);
}

CASE(bytes_are_told_once_until_a_read, "310 311 312", on_thread)
{
    CFReadStreamRef stream = reader_of("abcde");
    bytes_per_event = 0;
    watch_reader(stream, 31);
    CFReadStreamOpen(stream);
    run_some();
    probe_note("|");
    note_read(stream, 2);
    run_some();
    probe_note("|");
    note_read(stream, 3);
    run_some();
    CFReadStreamClose(stream);
    CFRelease(stream);
}

CASE(a_callback_reads_a_stream_to_its_end, "310 311 312", on_thread)
{
    CFReadStreamRef stream = reader_of("abcde");
    bytes_per_event = 2;
    watch_reader(stream, 31);
    CFReadStreamOpen(stream);
    run_some();
    note_status(stream);
    CFReadStreamClose(stream);
    CFRelease(stream);
}

CASE(no_event_comes_after_a_stream_was_closed, "315", on_thread)
{
    CFReadStreamRef stream = reader_of("abc");
    bytes_per_event = 0;
    watch_reader(stream, 31);
    CFReadStreamOpen(stream);
    CFReadStreamClose(stream);
    run_some();
    CFRelease(stream);
}

CASE(a_client_without_events_is_removed, "316 317", on_thread)
{
    CFReadStreamRef stream = reader_of("abc");
    bytes_per_event = 0;
    watch_reader(stream, kCFStreamEventHasBytesAvailable | kCFStreamEventEndEncountered);
    CFReadStreamOpen(stream);
    run_some();
    probe_note("set=%d", CFReadStreamSetClient(stream, kCFStreamEventNone, NULL, NULL));
    note_read(stream, 1);
    run_some();
    CFReadStreamClose(stream);
    CFRelease(stream);
}

CASE(room_is_told_once_until_a_write, "312", on_thread)
{
    CFStreamClientContext context = {0};
    CFWriteStreamRef stream = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL);
    CFWriteStreamSetClient(stream, 31, write_event, &context);
    CFWriteStreamScheduleWithRunLoop(stream, LOOP, MODE);
    CFWriteStreamOpen(stream);
    run_some();
    probe_note("%ld", (long)CFWriteStreamWrite(stream, (const UInt8 *)"abc", 3));
    run_some();
    CFWriteStreamClose(stream);
    CFRelease(stream);
}
