/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to what is behind a queue: see write_queue.h. */
#include <errno.h>

#include "Support/invariant.h"
#include "Write/write_kernel.h"
#include "Write/write_queue.h"

int write_queue_open(CRLWriteQueueRef queue)
{
    int native;
    int copy;

    if (queue->stream || queue->watch.descriptor >= 0) {
        return 0;
    }
    native = CFSocketGetNative(queue->socket);
    copy = native < 0 ? -EBADF : write_kernel.descriptor_copy(native);
    if (copy >= 0 && !CFSocketIsValid(queue->socket)) { /* the number may have been another file's */
        write_kernel.close(copy);
        copy = -EBADF;
    }
    if (copy < 0) {
        return copy;
    }
    queue->watch.descriptor = copy;
    return 0;
}

void write_queue_fail(CRLWriteQueueRef queue, int error)
{
    invariant(error > 0);
    write_bytes_drop(&queue->waiting);
    queue->counts.error = queue->counts.error != 0 ? queue->counts.error : error;
}

static ssize_t error_of_stream(CFWriteStreamRef stream)
{
    CFStreamError error = CFWriteStreamGetError(stream);

    return error.domain == kCFStreamErrorDomainPOSIX && error.error > 0 ? -error.error : -EIO;
}

REQUIRES(the_service_lock) static ssize_t put_into_stream(CRLWriteQueueRef queue, const UInt8 *bytes, size_t size)
{
    CFWriteStreamRef stream = queue->stream;
    bool has_room = queue->stream_has_room;

    queue->stream_has_room = false;
    switch (CFWriteStreamGetStatus(stream)) {
    case kCFStreamStatusClosed:
    case kCFStreamStatusAtEnd:
        return -EPIPE;
    case kCFStreamStatusError:
        return error_of_stream(stream);
    default: {
        CFIndex count = has_room || CFWriteStreamCanAcceptBytes(stream) ? CFWriteStreamWrite(stream, bytes, (CFIndex)size) : 0;

        return count > 0 ? (ssize_t)count : count < 0 ? error_of_stream(stream) : -EAGAIN;
    }
    }
}

ssize_t write_queue_put(CRLWriteQueueRef queue, const UInt8 *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t count = queue->stream ? put_into_stream(queue, bytes + done, size - done)
                                      : write_kernel.socket_send(queue->watch.descriptor, bytes + done, size - done);

        if (count == -EAGAIN) {
            break;
        }
        if (count < 0) {
            return count;
        }
        done += (size_t)count;
        queue->counts.written += (uint64_t)count;
    }
    return (ssize_t)done;
}
