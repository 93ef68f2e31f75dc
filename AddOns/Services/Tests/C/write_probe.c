/* SPDX-License-Identifier: Apache-2.0 */
/* See write_probe.h. */
#define _GNU_SOURCE
#include "write_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static UInt8 byte_at(size_t place)
{
    return (UInt8)(place * 7 + place / 251);
}

static void note(CRLWriteQueueRef queue, CRLWriteQueueEvent event, int error, void *info)
{
    static const char *const names[] = {"", "room", "failed", "finished"};
    struct write_probe *probe = info;

    EXPECT(queue == probe->queue || !probe->queue);
    trace_addf(&probe->told, event == kCRLWriteQueueFailed ? "%s:%d" : "%s", names[event], error);
    if (probe->action) {
        probe->action(probe);
    }
}

static void count_release(const void *info)
{
    ((struct write_probe *)(uintptr_t)info)->releases++;
}

static void note_write(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct write_probe *probe = info;

    (void)s;
    (void)address;
    (void)data;
    trace_add(&probe->told, type == kCFSocketWriteCallBack ? "own" : "data");
}

static void schedule(struct write_probe *probe)
{
    REQUIRE(probe->queue);
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe->queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
}

void write_probe_begin(struct write_probe *probe, CFIndex limit, CFIndex mark, CFOptionFlags types)
{
    CRLSourceContext context = {.info = probe, .release = count_release};
    CFSocketContext own = {.info = probe};
    CFRunLoopSourceRef source;
    int ends[2];
    int size = 4096;

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    EXPECT(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    probe->peer = ends[1];
    probe->socket = CFSocketCreateWithNative(NULL, ends[0], types, note_write, &own);
    source = CFSocketCreateRunLoopSource(NULL, probe->socket, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    probe->queue = CRLWriteQueueCreateWithSocket(NULL, probe->socket, limit, mark, note, &context);
    schedule(probe);
}

void write_probe_begin_stream(struct write_probe *probe, CFIndex limit, CFIndex mark)
{
    CRLSourceContext context = {.info = probe, .release = count_release};
    int ends[2];

    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    probe->peer = ends[0];
    probe->stream = CRLWriteStreamCreateWithDescriptor(NULL, ends[1], true);
    probe->queue = CRLWriteQueueCreateWithStream(NULL, probe->stream, limit, mark, note, &context);
    schedule(probe);
}

CRLWriteResult write_probe_ask(struct write_probe *probe, size_t size)
{
    UInt8 bytes[100000];
    CRLWriteResult result;

    REQUIRE(size <= sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(probe->asked + i);
    }
    result = CRLWriteQueueWrite(probe->queue, bytes, (CFIndex)size);
    probe->asked += result == kCRLWriteTaken ? size : 0;
    return result;
}

CRLWriteQueueCounts write_probe_counts(const struct write_probe *probe)
{
    return CRLWriteQueueGetCounts(probe->queue);
}

void write_probe_fill(struct write_probe *probe)
{
    while (write_probe_counts(probe).waiting == 0) {
        REQUIRE(write_probe_ask(probe, 1000) == kCRLWriteTaken);
    }
}

bool write_probe_read(struct write_probe *probe, size_t most)
{
    UInt8 bytes[3000];

    while (most > 0) {
        ssize_t count = read(probe->peer, bytes, most < sizeof bytes ? most : sizeof bytes);

        for (ssize_t i = 0; i < count; i++) {
            probe->is_wrong |= bytes[i] != byte_at(probe->seen++);
        }
        if (count <= 0) {
            EXPECT(count == 0 || errno == EAGAIN || errno == ECONNRESET);
            return count == 0;
        }
        most -= (size_t)count;
    }
    return false;
}

void write_probe_run(void)
{
    while (CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
    }
}

void write_probe_read_all(struct write_probe *probe)
{
    while (probe->seen < probe->asked && !write_probe_read(probe, SIZE_MAX)) {
        write_probe_run();
    }
    EXPECT(!probe->is_wrong);
    EXPECT_EQ(probe->seen, probe->asked);
}

void write_probe_end(struct write_probe *probe)
{
    CRLWriteQueueRef queue = probe->queue;

    probe->queue = NULL;
    if (probe->socket) {
        CFSocketInvalidate(probe->socket);
        CFRelease(probe->socket);
    } else {
        CRLWriteQueueInvalidate(queue);
        CFRelease(probe->stream);
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    (void)CRLWriteQueueGetCounts(queue); /* finds that the socket is gone */
    CFRelease(queue);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    EXPECT_EQ(probe->releases, 1);
    close(probe->peer);
}
