/* SPDX-License-Identifier: Apache-2.0 */
/* Write queues when memory, or a call of the kernel, fails at any place: bytes are refused, or the failure is told, and none are lost. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CRLWriteQueue.h"
#include "Failure/nth_failure.h"
#include "Write/write_kernel.h"

static struct write_kernel linux_calls;

/* Below 0: the error with which a call fails in its turn. */
static int failing(const char *name, int first, int second)
{
    const struct failing_call call = {name, {first, second}};

    return -nth_failure_take(&call);
}

static int failing_type(int socket)
{
    int error = failing("write.socket_type", ENOTSOCK, 0);

    return error ? error : linux_calls.socket_type(socket);
}

static int failing_copy(int descriptor)
{
    int error = failing("write.descriptor_copy", EMFILE, 0);

    return error ? error : linux_calls.descriptor_copy(descriptor);
}

static ssize_t failing_send(int socket, const void *bytes, size_t size)
{
    int error = failing("write.socket_send", EAGAIN, ECONNRESET);

    return error ? error : linux_calls.socket_send(socket, bytes, size);
}

static void install(void)
{
    if (!linux_calls.socket_send) {
        linux_calls = write_kernel;
    }
    write_kernel.socket_type = failing_type;
    write_kernel.descriptor_copy = failing_copy;
    write_kernel.socket_send = failing_send;
}

struct told {
    _Atomic int ends; /* of room and failure */
    int error;
};

static void note(CRLWriteQueueRef queue, CRLWriteQueueEvent event, int error, void *info)
{
    struct told *told = info;

    (void)queue;
    told->error = event == kCRLWriteQueueFailed ? error : told->error;
    told->ends++;
}

enum { piece = 1000, most = 100 };

/* Writes until some wait, and returns how many bytes were taken. */
static size_t fill(CRLWriteQueueRef queue, struct told *told)
{
    static const UInt8 bytes[piece];
    size_t taken = 0;

    for (int i = 0; i < most && CRLWriteQueueGetCounts(queue).waiting == 0 && CRLWriteQueueGetCounts(queue).error == 0; i++) {
        CRLWriteResult result = CRLWriteQueueWrite(queue, bytes, sizeof bytes);

        taken += result == kCRLWriteTaken ? sizeof bytes : 0;
        MUST(result != kCRLWriteRefused);
    }
    told->error = CRLWriteQueueGetCounts(queue).error;
    return taken;
}

static size_t read_all(int peer)
{
    UInt8 bytes[piece];
    size_t seen = 0;
    ssize_t count;

    while ((count = read(peer, bytes, sizeof bytes)) > 0) {
        seen += (size_t)count;
    }
    return seen;
}

static bool fill_and_read(CRLWriteQueueRef queue, int peer, struct told *told)
{
    bool is_scheduled = CRLWriteQueueScheduleWithRunLoop(queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    size_t taken = fill(queue, told);
    size_t seen = 0;
    bool is_whole;

    while (is_scheduled && told->ends == 0 && told->error == 0) {
        seen += read_all(peer);
        is_scheduled = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, true) == kCFRunLoopRunHandledSource || told->ends > 0;
    }
    seen += read_all(peer);
    is_whole = seen == taken;
    MUST(is_whole || told->error != 0 || CRLWriteQueueGetCounts(queue).waiting > 0);
    CRLWriteQueueUnscheduleFromRunLoop(queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CRLWriteQueueInvalidate(queue);
    return is_scheduled && is_whole && told->error == 0 && told->ends == 1;
}

static bool queue_to_a_socket(void)
{
    struct told told = {0, 0};
    CRLSourceContext context = {.info = &told};
    int ends[2];
    int size = 4096;
    CFSocketRef socket;
    CRLWriteQueueRef queue;

    install();
    NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    (void)bag_keep_descriptor(ends[1]);
    socket = CFSocketCreateWithNative(NULL, ends[0], kCFSocketNoCallBack, NULL, NULL);
    if (!socket) {
        close(ends[0]);
        return false;
    }
    (void)bag_keep(socket);
    queue = CRLWriteQueueCreateWithSocket(NULL, socket, 10000, 0, note, &context);
    NEED(bag_keep(queue));
    return fill_and_read(queue, ends[1], &told);
}

static bool queue_to_a_stream(void)
{
    struct told told = {0, 0};
    CRLSourceContext context = {.info = &told};
    int ends[2];
    CFWriteStreamRef stream;
    CRLWriteQueueRef queue;

    NEED(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    (void)bag_keep_descriptor(ends[0]);
    stream = CRLWriteStreamCreateWithDescriptor(NULL, ends[1], true);
    if (!stream) {
        close(ends[1]);
        return false;
    }
    (void)bag_keep(stream);
    NEED(CFWriteStreamOpen(stream));
    queue = CRLWriteQueueCreateWithStream(NULL, stream, 10000, 0, note, &context);
    NEED(bag_keep(queue));
    return fill_and_read(queue, ends[0], &told);
}

TEST_LIMIT(nth_failure_write_queue_of_a_socket, "", 300)
{
    nth_failure_run("write queue of a socket", queue_to_a_socket);
}

TEST_LIMIT(nth_failure_write_queue_of_a_stream, "", 300)
{
    nth_failure_run("write queue of a stream", queue_to_a_stream);
}
