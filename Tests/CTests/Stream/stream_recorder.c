/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_recorder.h. Counters are atomic because loops on several threads are tested. */
#define _GNU_SOURCE
#include "Stream/stream_recorder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void *info_retain(void *info)
{
    ((struct stream_recorder *)info)->retains++;
    return info;
}

static void info_release(void *info)
{
    ((struct stream_recorder *)info)->releases++;
}

static CFStringRef info_describe(void *info)
{
    return CFStringCreateWithCString(NULL, ((struct stream_recorder *)info)->name ? "named" : "nameless", kCFStringEncodingUTF8);
}

static CFStreamClientContext context_of(struct stream_recorder *recorder)
{
    return (CFStreamClientContext){.info = recorder, .retain = info_retain, .release = info_release, .copyDescription = info_describe};
}

static const char *name_of(CFStreamEventType type)
{
    switch (type) {
    case kCFStreamEventOpenCompleted:
        return "open";
    case kCFStreamEventHasBytesAvailable:
        return "bytes";
    case kCFStreamEventCanAcceptBytes:
        return "room";
    case kCFStreamEventErrorOccurred:
        return "error";
    case kCFStreamEventEndEncountered:
        return "end";
    default:
        return "unknown";
    }
}

static void note(struct stream_recorder *recorder, CFStreamEventType type)
{
    trace_addf(&recorder->trace, "%s%s%s", recorder->name ? recorder->name : "", recorder->name ? ":" : "", name_of(type));
}

static void finish(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    if (recorder->action) {
        recorder->action(recorder, stream, type);
    }
    recorder->ends += type == kCFStreamEventEndEncountered;
    recorder->calls++; /* last: whoever waits for it finds all done */
}

void note_read(struct trace *trace, CFReadStreamRef stream, CFIndex size)
{
    UInt8 bytes[1000];
    CFIndex count = CFReadStreamRead(stream, bytes, size < (CFIndex)sizeof bytes ? size : (CFIndex)sizeof bytes);

    if (count > 0) {
        trace_addf(trace, "%ld\"%.*s\"", (long)count, (int)count, (const char *)bytes);
    } else {
        trace_addf(trace, "%ld", (long)count);
    }
}

static void read_all(struct stream_recorder *recorder, CFReadStreamRef stream)
{
    UInt8 bytes[4096];
    CFIndex count = CFReadStreamRead(stream, bytes, sizeof bytes);

    recorder->total += count > 0 ? count : 0;
}

static void reader_called(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    struct stream_recorder *recorder = info;

    if (!recorder->reads_all || type != kCFStreamEventHasBytesAvailable) {
        note(recorder, type);
    }
    if (type == kCFStreamEventHasBytesAvailable && recorder->reads_all) {
        read_all(recorder, stream);
    } else if (type == kCFStreamEventHasBytesAvailable && recorder->reads > 0) {
        note_read(&recorder->trace, stream, recorder->reads);
    }
    finish(recorder, stream, type);
}

static void writer_called(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    struct stream_recorder *recorder = info;

    note(recorder, type);
    if (type == kCFStreamEventCanAcceptBytes && recorder->writes) {
        trace_addf(&recorder->trace, "%ld", (long)write_text(stream, recorder->writes));
        recorder->writes = NULL;
    }
    finish(recorder, stream, type);
}

void recorder_watch_reader(struct stream_recorder *recorder, CFReadStreamRef stream, CFOptionFlags events)
{
    CFStreamClientContext context = context_of(recorder);

    REQUIRE(CFReadStreamSetClient(stream, events, reader_called, &context));
}

void recorder_watch_writer(struct stream_recorder *recorder, CFWriteStreamRef stream, CFOptionFlags events)
{
    CFStreamClientContext context = context_of(recorder);

    REQUIRE(CFWriteStreamSetClient(stream, events, writer_called, &context));
}

void recorder_add_reader(struct stream_recorder *recorder, CFReadStreamRef stream)
{
    recorder_watch_reader(recorder, stream, events_all);
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

void recorder_add_writer(struct stream_recorder *recorder, CFWriteStreamRef stream)
{
    recorder_watch_writer(recorder, stream, events_all);
    CFWriteStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

void run_what_is_ready(void)
{
    while (CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
    }
}

void run_until_count(const _Atomic int *counter, int wanted)
{
    while (*counter < wanted) {
        if (CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true) != kCFRunLoopRunHandledSource && *counter < wanted) {
            FAIL("an event did not come");
        }
    }
}

struct stream_pair stream_pair_to(CFStringRef host, UInt32 port)
{
    struct stream_pair pair;

    CFStreamCreatePairWithSocketToHost(NULL, host, port, &pair.reader, &pair.writer);
    REQUIRE(pair.reader && pair.writer);
    return pair;
}

void stream_pair_release(struct stream_pair pair)
{
    CFRelease(pair.reader);
    CFRelease(pair.writer);
}

CFReadStreamRef reader_of(const char *text)
{
    CFReadStreamRef stream = CFReadStreamCreateWithBytesNoCopy(NULL, (const UInt8 *)text, (CFIndex)strlen(text), kCFAllocatorNull);

    REQUIRE(stream);
    return stream;
}

CFIndex write_text(CFWriteStreamRef stream, const char *text)
{
    return CFWriteStreamWrite(stream, (const UInt8 *)text, (CFIndex)strlen(text));
}

void socket_pair_open(int ret_ends[2])
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends) == 0);
}

struct peered_pair peered_pair_open(void)
{
    struct peered_pair pair;
    int ends[2];

    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &pair.reader, &pair.writer);
    pair.peer = ends[1];
    REQUIRE(pair.reader && pair.writer);
    EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue));
    return pair;
}

void peered_pair_free(struct peered_pair pair)
{
    CFRelease(pair.reader);
    CFRelease(pair.writer);
    close(pair.peer);
}

int listener_open(UInt32 *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    *ret_port = ntohs(address.sin_port);
    return listener;
}

bool descriptor_is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}
