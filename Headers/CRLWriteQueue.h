/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Queues in front of a CFSocket or a CFWriteStream: what the peer has no room for waits in order, up to a limit, and is written as the loop
 * runs. They are in the add-on library libcorerunloop-services.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with a message
 * that names the function. In the child of a fork a queue takes and writes nothing more, and may only be released: the parent goes on.
 */

#if !defined(CRL_WRITE_QUEUE_H)
#define CRL_WRITE_QUEUE_H 1

#include <stdint.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFSocket.h"
#include "CoreFoundation/CFStream.h"

#if defined(__swift__)
#define CRLWriteQueueRef CRLWriteQueueRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CRLWriteQueue, CRLWriteQueue);

/** A queue of bytes to write. */
typedef struct __CRLWriteQueue *CRLWriteQueueRef;

/** What became of bytes that were to be written. */
typedef CF_ENUM(CFIndex, CRLWriteResult) {
    kCRLWriteTaken = 0, /**< All of them are written, or wait. */
    kCRLWriteRefused = 1, /**< None: with them, more than the limit would wait. */
    kCRLWriteFailed = 2 /**< Not all of them, and errno says why. */
};

/** What a queue tells. */
typedef CF_ENUM(CFIndex, CRLWriteQueueEvent) {
    kCRLWriteQueueHasRoom = 1, /**< No more than the mark waits, after more did, or after a refusal. */
    kCRLWriteQueueFailed = 2, /**< Nothing more can be written, and what waited is dropped. */
    kCRLWriteQueueFinished = 3 /**< All is written that waited at CRLWriteQueueFinish. */
};

/** What a queue has counted, in bytes. What was dropped is what `taken` has beyond `written` and `waiting`. */
typedef struct {
    CFIndex version; /**< 0. */
    CFIndex waiting; /**< Now. */
    uint64_t taken; /**< By CRLWriteQueueWrite. */
    uint64_t written; /**< To the kernel or the stream. */
    uint64_t refused; /**< For the limit. */
    int error; /**< The errno of the failure; EBADF once the socket, or the queue, was invalidated; 0 as long as it works. */
} CRLWriteQueueCounts;

/**
 * Tells what happened to the queue, on the loop's thread. `error` is that of kCRLWriteQueueFailed: EPIPE or ECONNRESET, for instance, when
 * the peer is gone. It may call any function. A failure that CRLWriteQueueWrite itself has returned is not told again.
 */
typedef void (*CRLWriteQueueCallBack)(CRLWriteQueueRef queue, CRLWriteQueueEvent event, int error, void *info);

/**
 * Returns the type id of write queues.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CRLWriteQueueGetTypeID(void) CRL_LINK(CRLWriteQueueGetTypeID);

/**
 * Creates a queue for a socket of the type SOCK_STREAM, which may still be connecting.
 *
 * At most `limit` bytes wait. The socket's own callbacks stay as they are, Write as well; the program sends to the socket by this queue
 * only. CFSocketInvalidate drops what waits. While bytes wait, the queue has the connection open too, up to the end of the loop's pass in
 * which the socket is invalidated. `callout` and `context` may be NULL; `info` is released with the queue.
 * Ownership: the caller releases the queue, which keeps the socket. One that is released goes on until nothing waits.
 * Threads: any.
 * Errors: NULL, and errno says why: EINVAL for a limit below 1, a negative mark, or a context of another version; EBADF for a socket that
 * is invalid; EPROTOTYPE for one of another type; ENOMEM.
 */
CF_EXPORT CRLWriteQueueRef CRLWriteQueueCreateWithSocket(CFAllocatorRef allocator, CFSocketRef socket, CFIndex limit, CFIndex mark,
                                                         CRLWriteQueueCallBack callout, const CRLSourceContext *context)
    CRL_LINK(CRLWriteQueueCreateWithSocket) CF_RETURNS_RETAINED;

/**
 * Creates a queue for a stream, as CRLWriteQueueCreateWithSocket does for a socket.
 *
 * The program opens and closes the stream, before or after this, and sets no client of it: the queue is its client while bytes wait. They
 * wait until it is open. A failure is the code of the stream's error if that is an errno, otherwise EIO; EPIPE is a stream that is closed.
 * Ownership: as of CRLWriteQueueCreateWithSocket.
 * Threads: any.
 * Errors: as of CRLWriteQueueCreateWithSocket.
 */
CF_EXPORT CRLWriteQueueRef CRLWriteQueueCreateWithStream(CFAllocatorRef allocator, CFWriteStreamRef stream, CFIndex limit, CFIndex mark,
                                                         CRLWriteQueueCallBack callout, const CRLSourceContext *context)
    CRL_LINK(CRLWriteQueueCreateWithStream) CF_RETURNS_RETAINED;

/**
 * Has what waits written in a mode of a loop; kCFRunLoopCommonModes is one. It keeps the run alive while bytes wait.
 *
 * Threads: any. The thread of the loop ends only after CRLWriteQueueUnscheduleFromRunLoop, or when nothing waits.
 * Errors: false when it is scheduled on another loop, and without memory.
 */
CF_EXPORT Boolean CRLWriteQueueScheduleWithRunLoop(CRLWriteQueueRef queue, CFRunLoopRef loop, CFRunLoopMode mode)
    CRL_LINK(CRLWriteQueueScheduleWithRunLoop);

/**
 * Ends that for one mode. Without a mode left, what waits goes on waiting, and the queue may be scheduled on another loop.
 *
 * Threads: any.
 */
CF_EXPORT void CRLWriteQueueUnscheduleFromRunLoop(CRLWriteQueueRef queue, CFRunLoopRef loop, CFRunLoopMode mode)
    CRL_LINK(CRLWriteQueueUnscheduleFromRunLoop);

/**
 * Writes the bytes behind those that wait: at once as far as there is room, and the rest later, all in order. Nothing waits for the peer.
 *
 * Bytes are refused whole, also where there was room for some. More than the limit is always refused; 0 bytes never. SIGPIPE is not raised.
 * Ownership: the bytes are copied.
 * Threads: any, several at once; what one call writes stays together.
 * Errors: kCRLWriteFailed and an errno. ENOMEM and EMFILE: nothing was taken, and the queue goes on; unless CRLWriteQueueGetCounts tells an
 * error, as a connection that has taken a part and finds no memory for the wait cannot go on. ESHUTDOWN: after CRLWriteQueueFinish. ECHILD:
 * in the child of a fork. EINVAL: `length` is negative. All others are the failure of the queue, and come again with each call.
 */
CF_EXPORT CRLWriteResult CRLWriteQueueWrite(CRLWriteQueueRef queue, const UInt8 *bytes, CFIndex length) CRL_LINK(CRLWriteQueueWrite);

/**
 * Ends the queue once all is written, whatever becomes of the socket: the program may invalidate that at once, and loses nothing. A stream
 * is closed then. Nothing more is taken.
 *
 * A peer that never reads keeps the queue until CRLWriteQueueInvalidate.
 * Threads: any.
 */
CF_EXPORT void CRLWriteQueueFinish(CRLWriteQueueRef queue) CRL_LINK(CRLWriteQueueFinish);

/**
 * Drops what waits. Nothing more is taken or told, but what another thread is telling.
 *
 * Threads: any.
 */
CF_EXPORT void CRLWriteQueueInvalidate(CRLWriteQueueRef queue) CRL_LINK(CRLWriteQueueInvalidate);

/**
 * Returns the counts.
 *
 * Threads: any.
 */
CF_EXPORT CRLWriteQueueCounts CRLWriteQueueGetCounts(CRLWriteQueueRef queue) CRL_LINK(CRLWriteQueueGetCounts);

CF_EXTERN_C_END

#endif /* ! CRL_WRITE_QUEUE_H */
