/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Streams of bytes: from memory, files and sockets, and into them. A stream tells its events to a client, on a run loop.
 *
 * A program creates a stream, sets its client, schedules it in a mode of a loop, and opens it. The loop waits for a stream's descriptor
 * together with everything else; there is no helper thread. A stream can also be used without a client: reading and writing then wait.
 *
 * A stream that is scheduled is not kept alive by that: its last release closes it. All functions may be called on any thread, and events
 * come on the thread of the loop. Only one call at a time reads, writes or asks a stream; another one that comes meanwhile, on another
 * thread, is refused. An object argument that is NULL, or of another type, stops the process with a message that names the function.
 */

#if !defined(__COREFOUNDATION_CFSTREAM__)
#define __COREFOUNDATION_CFSTREAM__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFError.h"
#include "CFRunLoop.h"
#include "CFSocket.h"
#include "CFString.h"
#include "CFURL.h"

/* As in CFMessagePort.h: where libdispatch is installed, its queues can tell the events of streams. */
#if !defined(CRL_HAS_DISPATCH_QUEUES) && defined(__clang__) && !defined(__swift__) && !defined(__APPLE__)
#if __has_include(<dispatch/dispatch.h>)
#include <dispatch/dispatch.h>
#define CRL_HAS_DISPATCH_QUEUES 1
#endif
#endif

#if defined(__swift__)
#define CFReadStreamRef CRLReadStreamRef_
#define CFWriteStreamRef CRLWriteStreamRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFReadStream, CFReadStream);
CRL_REFERENCE_TYPE(__CFWriteStream, CFWriteStream);

/** A stream that bytes are read from. */
typedef struct __CFReadStream *CFReadStreamRef;
/** A stream that bytes are written to. */
typedef struct __CFWriteStream *CFWriteStreamRef;

/** The name of a stream's property. */
typedef CFStringRef CFStreamPropertyKey;

/** Where the error numbers of a CFStreamError come from. */
typedef CF_ENUM(CFIndex, CFStreamErrorDomain) {
    kCFStreamErrorDomainCustom = -1L, /**< The kind of stream. */
    kCFStreamErrorDomainPOSIX = 1, /**< errno. */
    kCFStreamErrorDomainMacOSStatus = 2 /**< Never used here. */
};

/** An error of a stream. The error 0 in the domain 0 means that there is none. */
typedef struct {
    CFIndex domain; /**< A CFStreamErrorDomain, or one of the constants kCFStreamErrorDomain... below. */
    SInt32 error; /**< A number of the domain: an errno in kCFStreamErrorDomainPOSIX. */
} CFStreamError;

/** What a stream is doing. */
typedef CF_ENUM(CFIndex, CFStreamStatus) {
    kCFStreamStatusNotOpen = 0, /**< It has not been opened. */
    kCFStreamStatusOpening = 1, /**< It is being opened in the background. */
    kCFStreamStatusOpen = 2, /**< It is open. */
    kCFStreamStatusReading = 3, /**< A call is reading. */
    kCFStreamStatusWriting = 4, /**< A call is writing. */
    kCFStreamStatusAtEnd = 5, /**< There is no more to read, or no more room. */
    kCFStreamStatusClosed = 6, /**< It was closed; it cannot be opened again. */
    kCFStreamStatusError = 7 /**< It has failed. */
};

/** The events of a stream. A callback gets one at a time. */
typedef CF_OPTIONS(CFOptionFlags, CFStreamEventType) {
    kCFStreamEventNone = 0, /**< Nothing. */
    kCFStreamEventOpenCompleted = 1, /**< The stream is open. Comes once. */
    kCFStreamEventHasBytesAvailable = 2, /**< Reading does not wait. Comes again only after a read. */
    kCFStreamEventCanAcceptBytes = 4, /**< Writing does not wait. Comes again only after a write. */
    kCFStreamEventErrorOccurred = 8, /**< The stream has failed. Comes once, and nothing comes after it. */
    kCFStreamEventEndEncountered = 16 /**< There is no more to read, or no more room. Comes once. */
};

/** The data of a client. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    void *(*retain)(void *info); /**< Called when the client is set; its result becomes the `info`. */
    void (*release)(void *info); /**< Called once, when the client is replaced or removed, or the stream ends. */
    CFStringRef (*copyDescription)(void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFStreamClientContext;

/** The callback of a read stream's client. */
typedef void (*CFReadStreamClientCallBack)(CFReadStreamRef stream, CFStreamEventType type, void *clientCallBackInfo);
/** The callback of a write stream's client. */
typedef void (*CFWriteStreamClientCallBack)(CFWriteStreamRef stream, CFStreamEventType type, void *clientCallBackInfo);

/**
 * Returns the type id of read streams.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFReadStreamGetTypeID(void) CRL_LINK(CFReadStreamGetTypeID);

/**
 * Returns the type id of write streams.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFWriteStreamGetTypeID(void) CRL_LINK(CFWriteStreamGetTypeID);

/* Streams of memory */

/**
 * Creates a stream that reads the `length` bytes at `bytes`, which are not copied.
 *
 * Ownership: the caller releases the stream. `bytesDeallocator` frees the bytes when the stream ends; NULL is the default allocator, and
 * kCFAllocatorNull leaves them to the caller, who keeps them as long as the stream.
 * Threads: any.
 * Errors: NULL when there is no memory, when `length` is negative, or when `bytes` is NULL and `length` is not 0. The bytes are not freed.
 */
CF_EXPORT CFReadStreamRef CFReadStreamCreateWithBytesNoCopy(CFAllocatorRef alloc, const UInt8 *bytes, CFIndex length,
                                                            CFAllocatorRef bytesDeallocator)
    CRL_LINK(CFReadStreamCreateWithBytesNoCopy) CF_RETURNS_RETAINED;

/**
 * Creates a stream that writes into the caller's `buffer`, from its start.
 *
 * A write that does not fit as a whole fails with ENOMEM and writes nothing.
 * Ownership: the caller releases the stream, and keeps the buffer as long as the stream.
 * Threads: any.
 * Errors: NULL when there is no memory, when `bufferCapacity` is negative, or when `buffer` is NULL and the capacity is not 0.
 */
CF_EXPORT CFWriteStreamRef CFWriteStreamCreateWithBuffer(CFAllocatorRef alloc, UInt8 *buffer, CFIndex bufferCapacity)
    CRL_LINK(CFWriteStreamCreateWithBuffer) CF_RETURNS_RETAINED;

/**
 * Creates a stream that keeps what is written in memory of `bufferAllocator` (NULL: the default allocator).
 *
 * The property kCFStreamPropertyDataWritten has the bytes.
 * Ownership: the caller releases the stream, which retains the allocator.
 * Threads: any.
 * Errors: NULL when there is no memory, or for kCFAllocatorNull.
 */
CF_EXPORT CFWriteStreamRef CFWriteStreamCreateWithAllocatedBuffers(CFAllocatorRef alloc, CFAllocatorRef bufferAllocator)
    CRL_LINK(CFWriteStreamCreateWithAllocatedBuffers) CF_RETURNS_RETAINED;

/**
 * Creates two streams: what is written to the one is read from the other, through `transferBufferSize` bytes of memory.
 *
 * A write waits while the memory is full, a read while it is empty. Closing the write stream ends the read stream after the last byte.
 * Closing the read stream makes writes fail with EPIPE. A `transferBufferSize` of 0 or less is 4,096.
 * Ownership: the caller releases both streams. Either may be released first.
 * Threads: any. The two streams may be used on two threads.
 * Errors: both are NULL when there is no memory. A NULL argument asks for nothing: the other stream is then at once without its peer.
 */
CF_EXPORT void CFStreamCreateBoundPair(CFAllocatorRef alloc, CFReadStreamRef *readStream, CFWriteStreamRef *writeStream,
                                       CFIndex transferBufferSize) CRL_LINK(CFStreamCreateBoundPair);

/** The bytes written so far to a stream of allocated buffers: a CFData. Read-only. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertyDataWritten CRL_LINK(kCFStreamPropertyDataWritten);
/** Whether a write stream appends to its file: a CFBoolean. Can be set until the stream is opened. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertyAppendToFile CRL_LINK(kCFStreamPropertyAppendToFile);
/** Where in its file a stream reads or writes next, in bytes: a CFNumber. Not for a stream that appends. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertyFileCurrentOffset CRL_LINK(kCFStreamPropertyFileCurrentOffset);

/* Streams of files */

/**
 * Creates a stream that reads the file of `fileURL`, from its start or from kCFStreamPropertyFileCurrentOffset.
 *
 * A pipe or a terminal is waited for by the stream's loops; a regular file always has bytes until its end.
 * Ownership: the caller releases the stream. The path is copied.
 * Threads: any.
 * Errors: NULL when there is no memory, or `fileURL` is NULL, or has another scheme than "file", or no path. Opening reports the rest.
 */
CF_EXPORT CFReadStreamRef CFReadStreamCreateWithFile(CFAllocatorRef alloc, CFURLRef fileURL)
    CRL_LINK(CFReadStreamCreateWithFile) CF_RETURNS_RETAINED;

/**
 * Creates a stream that writes the file of `fileURL`. Opening it makes the file, or empties it; see kCFStreamPropertyAppendToFile.
 *
 * A write to a pipe takes at most PIPE_BUF bytes (4096), for which there is room when kCFStreamEventCanAcceptBytes is told.
 * Ownership: the caller releases the stream. The path is copied.
 * Threads: any.
 * Errors: as CFReadStreamCreateWithFile.
 */
CF_EXPORT CFWriteStreamRef CFWriteStreamCreateWithFile(CFAllocatorRef alloc, CFURLRef fileURL)
    CRL_LINK(CFWriteStreamCreateWithFile) CF_RETURNS_RETAINED;

/* Streams of sockets */

/**
 * Creates a read and a write stream on the connected socket `sock`, which they share.
 *
 * NULL asks for no stream of that kind. The socket stays blocking, or not, as it is; the streams wait only in calls that say so. It is
 * closed when both streams are closed, if kCFStreamPropertyShouldCloseNativeSocket was set to true on one of them.
 * Ownership: the caller releases the streams, and keeps `sock` open until both are closed.
 * Threads: any. The two streams may be used on two threads.
 * Errors: both are NULL when there is no memory. A descriptor that is closed or no socket is refused by opening: EBADF or ENOTSOCK.
 */
CF_EXPORT void CFStreamCreatePairWithSocket(CFAllocatorRef alloc, CFSocketNativeHandle sock, CFReadStreamRef *readStream,
                                            CFWriteStreamRef *writeStream) CRL_LINK(CFStreamCreatePairWithSocket);

/**
 * Creates a read and a write stream that connect to `port` of `host` when one of them is opened. Both share the connection.
 *
 * `host` is a numeric IPv4 or IPv6 address, or "localhost", or a name. The addresses of a host are raced (RFC 8305): their families take
 * turns, the next attempt begins 250 ms after the one before it or once one has failed, and the first connection that is made is used. The
 * streams open in the background: also a connection that is refused at once, or was before the second stream opens, is an event. The
 * library closes the socket when both streams are closed. The low 16 bits of `port` count, so that a program may keep it in a signed type.
 * Ownership: the caller releases the streams.
 * Threads: any. The two streams may be used on two threads.
 * Errors: both are NULL when there is no memory, or `host` is NULL. A name needs the add-on library libcorerunloop-net
 * (CRLNetwork.h) in the process: without it opening returns false with ENOSYS, and a line on standard error says why, once; as does
 * opening with ENOMEM if there is no memory to ask for the name.
 */
CF_EXPORT void CFStreamCreatePairWithSocketToHost(CFAllocatorRef alloc, CFStringRef host, UInt32 port, CFReadStreamRef *readStream,
                                                  CFWriteStreamRef *writeStream) CRL_LINK(CFStreamCreatePairWithSocketToHost);

/**
 * Creates a read and a write stream that connect to the signature's address when one of them is opened, as
 * CFStreamCreatePairWithSocketToHost.
 *
 * Ownership: the caller releases the streams. The signature is copied.
 * Threads: any. The two streams may be used on two threads.
 * Errors: both are NULL when there is no memory, or `signature` or its address is NULL. A wrong address is refused by opening.
 */
CF_EXPORT void CFStreamCreatePairWithPeerSocketSignature(CFAllocatorRef alloc, const CFSocketSignature *signature,
                                                         CFReadStreamRef *readStream, CFWriteStreamRef *writeStream)
    CRL_LINK(CFStreamCreatePairWithPeerSocketSignature);

/** The socket of a stream: a CFData with a CFSocketNativeHandle. Read-only; NULL before there is one. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertySocketNativeHandle CRL_LINK(kCFStreamPropertySocketNativeHandle);
/** Whether the socket is closed with the streams: a CFBoolean, at first true only for sockets that the library has opened. */
CF_EXPORT const CFStringRef kCFStreamPropertyShouldCloseNativeSocket CRL_LINK(kCFStreamPropertyShouldCloseNativeSocket);

/** The host that a stream is, or will be, connected to: a CFString, the name or a numeric address. Read-only; NULL if there is none. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertySocketRemoteHostName CRL_LINK(kCFStreamPropertySocketRemoteHostName);
/** The port that a stream is, or will be, connected to: a CFNumber. Read-only; NULL if there is none. */
CF_EXPORT const CFStreamPropertyKey kCFStreamPropertySocketRemotePortNumber CRL_LINK(kCFStreamPropertySocketRemotePortNumber);

/**
 * The security of a socket stream, and of the other one of its pair: one of the constants below. TLS comes before the streams are open, or
 * begins where open streams stand: what was read is plain, what was written goes out before it, and all that follows is TLS. Plain bytes
 * that the peer sent and nobody has read by then make the handshake fail. Reading and writing wait for the handshake, bytes and room are
 * told after it, and the status stays Open.
 *
 * Setting the same again on either stream returns true. False, with the streams as they were: on open streams, settings that cannot be
 * followed; and once TLS has begun, others, and None.
 *
 * Levels other than None need the add-on library (CRLNetwork.h) in the process. Without it, setting one returns false, and streams that
 * are not opened yet then refuse to open (EOPNOTSUPP), so that nothing goes out in the clear that was to be protected. A line on standard
 * error says what to link.
 */
CF_EXPORT const CFStringRef kCFStreamPropertySocketSecurityLevel CRL_LINK(kCFStreamPropertySocketSecurityLevel);
/** No security. */
CF_EXPORT const CFStringRef kCFStreamSocketSecurityLevelNone CRL_LINK(kCFStreamSocketSecurityLevelNone);
/** SSL 2, which is refused. */
CF_EXPORT const CFStringRef kCFStreamSocketSecurityLevelSSLv2 CRL_LINK(kCFStreamSocketSecurityLevelSSLv2);
/** SSL 3, which is refused. */
CF_EXPORT const CFStringRef kCFStreamSocketSecurityLevelSSLv3 CRL_LINK(kCFStreamSocketSecurityLevelSSLv3);
/** TLS. Version 1.0 is too weak by now: this is the same as NegotiatedSSL. */
CF_EXPORT const CFStringRef kCFStreamSocketSecurityLevelTLSv1 CRL_LINK(kCFStreamSocketSecurityLevelTLSv1);
/** The best version of TLS that both sides have, 1.2 or 1.3. */
CF_EXPORT const CFStringRef kCFStreamSocketSecurityLevelNegotiatedSSL CRL_LINK(kCFStreamSocketSecurityLevelNegotiatedSSL);
/**
 * The settings of TLS: a CFDictionary with keys of CFNetwork/CFSocketStream.h. As kCFStreamPropertySocketSecurityLevel, with more to
 * choose.
 */
CF_EXPORT const CFStringRef kCFStreamPropertySSLSettings CRL_LINK(kCFStreamPropertySSLSettings);
/** The domain of errors of TLS, which CFNetwork/CFSocketStream.h lists. */
CF_EXPORT const int kCFStreamErrorDomainSSL CRL_LINK(kCFStreamErrorDomainSSL);
/** The domain of errors of names that do not resolve: numbers of getaddrinfo. */
CF_EXPORT const int kCFStreamErrorDomainNetDB CRL_LINK(kCFStreamErrorDomainNetDB);

/**
 * A SOCKS proxy: a CFDictionary. This library has no SOCKS. Setting it returns false, and the streams then refuse to open (EOPNOTSUPP), so
 * that nobody is connected to directly who was to be reached through a proxy.
 */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSProxy CRL_LINK(kCFStreamPropertySOCKSProxy);
/** Key of the proxy's host. */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSProxyHost CRL_LINK(kCFStreamPropertySOCKSProxyHost);
/** Key of the proxy's port. */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSProxyPort CRL_LINK(kCFStreamPropertySOCKSProxyPort);
/** Key of the protocol's version. */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSVersion CRL_LINK(kCFStreamPropertySOCKSVersion);
/** Version 4. */
CF_EXPORT const CFStringRef kCFStreamSocketSOCKSVersion4 CRL_LINK(kCFStreamSocketSOCKSVersion4);
/** Version 5. */
CF_EXPORT const CFStringRef kCFStreamSocketSOCKSVersion5 CRL_LINK(kCFStreamSocketSOCKSVersion5);
/** Key of the user's name. */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSUser CRL_LINK(kCFStreamPropertySOCKSUser);
/** Key of the user's password. */
CF_EXPORT const CFStringRef kCFStreamPropertySOCKSPassword CRL_LINK(kCFStreamPropertySOCKSPassword);
/** The domain of errors of SOCKS. Never used here. */
CF_EXPORT const int kCFStreamErrorDomainSOCKS CRL_LINK(kCFStreamErrorDomainSOCKS);

/* All streams */

/**
 * Returns what the stream is doing. Asking looks whether a stream that is being opened in the background is open by now.
 *
 * Threads: any.
 */
CF_EXPORT CFStreamStatus CFReadStreamGetStatus(CFReadStreamRef stream) CRL_LINK(CFReadStreamGetStatus);

/**
 * Returns what the stream is doing, as CFReadStreamGetStatus.
 *
 * Threads: any.
 */
CF_EXPORT CFStreamStatus CFWriteStreamGetStatus(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamGetStatus);

/**
 * Returns the stream's error; the error 0 in the domain 0 if it has not failed.
 *
 * Threads: any.
 */
CF_EXPORT CFStreamError CFReadStreamGetError(CFReadStreamRef stream) CRL_LINK(CFReadStreamGetError);

/**
 * Returns the stream's error; the error 0 in the domain 0 if it has not failed.
 *
 * Threads: any.
 */
CF_EXPORT CFStreamError CFWriteStreamGetError(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamGetError);

/**
 * Copies the stream's error; NULL if it has not failed.
 *
 * The domain is kCFErrorDomainPOSIX for errors of the system, kCFErrorDomainOSStatus for those of TLS, and "kCFErrorDomainCFNetwork" for
 * names that do not resolve. CFErrorCopyFailureReason has the reason in words. Until both streams of a pair are closed, those of TLS have
 * also what its library knows, such as the name that the certificate should have had.
 * Ownership: the caller releases the error.
 * Threads: any.
 * Errors: NULL also without memory.
 */
CF_EXPORT CFErrorRef CFReadStreamCopyError(CFReadStreamRef stream) CRL_LINK(CFReadStreamCopyError) CF_RETURNS_RETAINED;

/**
 * Copies the stream's error, as CFReadStreamCopyError; NULL if it has not failed.
 *
 * Ownership: the caller releases the error.
 * Threads: any.
 * Errors: NULL also without memory.
 */
CF_EXPORT CFErrorRef CFWriteStreamCopyError(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamCopyError) CF_RETURNS_RETAINED;

/**
 * Opens the stream. True also when it goes on opening in the background: kCFStreamEventOpenCompleted or the status then tell the outcome.
 *
 * Threads: any. Opening a named pipe waits for the other end, as open(2) does.
 * Errors: false when the stream was opened or closed before, which changes nothing; and when it cannot be opened: its status is then
 * kCFStreamStatusError, and CFReadStreamGetError has the reason.
 */
CF_EXPORT Boolean CFReadStreamOpen(CFReadStreamRef stream) CRL_LINK(CFReadStreamOpen);

/**
 * Opens the stream, as CFReadStreamOpen. A file is made if there is none, and emptied unless the stream appends.
 *
 * Threads: any.
 * Errors: as CFReadStreamOpen.
 */
CF_EXPORT Boolean CFWriteStreamOpen(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamOpen);

/**
 * Closes the stream for good, takes it out of all loops, and gives back its descriptor. No event comes afterwards.
 *
 * A stream that was not opened stays as it is. A stream that has failed is closed as well, and keeps its error.
 * Threads: any, also in a callback. On another thread than the loop's, a callback that is under way goes on. A call that waits on another
 * thread goes on waiting; the descriptor is closed after it.
 */
CF_EXPORT void CFReadStreamClose(CFReadStreamRef stream) CRL_LINK(CFReadStreamClose);

/**
 * Closes the stream, as CFReadStreamClose. What was written has been handed to the system; nothing is lost.
 *
 * Threads: any, also in a callback; see CFReadStreamClose.
 */
CF_EXPORT void CFWriteStreamClose(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamClose);

/**
 * Returns whether reading would not wait. False unless the stream is open.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFReadStreamHasBytesAvailable(CFReadStreamRef stream) CRL_LINK(CFReadStreamHasBytesAvailable);

/**
 * Reads up to `bufferLength` bytes into `buffer`, and returns how many; 0 at the end.
 *
 * Waits for the first byte, and for a stream that is still opening. Afterwards kCFStreamEventHasBytesAvailable can come again.
 * Threads: any; it may wait, and holds no lock meanwhile.
 * Errors: -1 when the stream fails, or is not open, or is being read on another thread. -1 also for a `bufferLength` below 0 or a NULL
 * `buffer`, which changes nothing.
 */
CF_EXPORT CFIndex CFReadStreamRead(CFReadStreamRef stream, UInt8 *buffer, CFIndex bufferLength) CRL_LINK(CFReadStreamRead);

/**
 * Takes bytes from the stream without a copy: a pointer to them, with their number in `*numBytesRead`. NULL if that cannot be done.
 *
 * Streams of memory can do it, others cannot. At most `maxBytesToRead` bytes are taken if that is above 0. The bytes count as read.
 * Ownership: the bytes stay the stream's. They are valid until its next use.
 * Threads: any.
 * Errors: `*numBytesRead` is -1 when the stream is not open, and 0 at the end or where it cannot be done. It may be NULL.
 */
CF_EXPORT const UInt8 *CFReadStreamGetBuffer(CFReadStreamRef stream, CFIndex maxBytesToRead, CFIndex *numBytesRead)
    CRL_LINK(CFReadStreamGetBuffer);

/**
 * Returns whether writing would not wait. False unless the stream is open.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFWriteStreamCanAcceptBytes(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamCanAcceptBytes);

/**
 * Writes up to `bufferLength` bytes of `buffer`, and returns how many were taken, at least one.
 *
 * Waits for room for the first byte, and for a stream that is still opening. Afterwards kCFStreamEventCanAcceptBytes can come again.
 * SIGPIPE is not raised.
 * Threads: any; it may wait, and holds no lock meanwhile.
 * Errors: -1 when the stream fails, or is not open, or is being written on another thread. -1 also for a `bufferLength` below 0 or a NULL
 * `buffer`, which changes nothing.
 */
CF_EXPORT CFIndex CFWriteStreamWrite(CFWriteStreamRef stream, const UInt8 *buffer, CFIndex bufferLength) CRL_LINK(CFWriteStreamWrite);

/**
 * Copies a property of the stream.
 *
 * Ownership: the caller releases the value.
 * Threads: any.
 * Errors: NULL when the stream has no such property, or has no value for it yet, or there is no memory.
 */
CF_EXPORT CFTypeRef CFReadStreamCopyProperty(CFReadStreamRef stream, CFStreamPropertyKey propertyName)
    CRL_LINK(CFReadStreamCopyProperty);

/**
 * Copies a property of the stream, as CFReadStreamCopyProperty.
 *
 * Ownership: the caller releases the value.
 * Threads: any.
 * Errors: NULL when the stream has no such property, or has no value for it yet, or there is no memory.
 */
CF_EXPORT CFTypeRef CFWriteStreamCopyProperty(CFWriteStreamRef stream, CFStreamPropertyKey propertyName)
    CRL_LINK(CFWriteStreamCopyProperty);

/**
 * Sets a property of the stream. The comments of the properties say until when they can be set.
 *
 * Threads: any.
 * Errors: false when the stream has no such property, or it cannot be set now, or the value is of the wrong type.
 */
CF_EXPORT Boolean CFReadStreamSetProperty(CFReadStreamRef stream, CFStreamPropertyKey propertyName, CFTypeRef propertyValue)
    CRL_LINK(CFReadStreamSetProperty);

/**
 * Sets a property of the stream, as CFReadStreamSetProperty.
 *
 * Threads: any.
 * Errors: as CFReadStreamSetProperty.
 */
CF_EXPORT Boolean CFWriteStreamSetProperty(CFWriteStreamRef stream, CFStreamPropertyKey propertyName, CFTypeRef propertyValue)
    CRL_LINK(CFWriteStreamSetProperty);

/**
 * Makes `clientCB` the callback for `streamEvents`, in place of the client before.
 *
 * kCFStreamEventNone, or a NULL callback or context, removes the client. Events that hold already come as soon as the stream is scheduled
 * and its loop runs. An event that came before the client asked for it does not come again, but for bytes and room.
 * Ownership: `info` is retained as the context says. A callback that is under way keeps it until it returns.
 * Threads: any, also in the callback.
 * Errors: false when there is no memory; the client before is kept.
 */
CF_EXPORT Boolean CFReadStreamSetClient(CFReadStreamRef stream, CFOptionFlags streamEvents, CFReadStreamClientCallBack clientCB,
                                        CFStreamClientContext *clientContext) CRL_LINK(CFReadStreamSetClient);

/**
 * Makes `clientCB` the callback for `streamEvents`, as CFReadStreamSetClient.
 *
 * Ownership: `info` is retained as the context says. A callback that is under way keeps it until it returns.
 * Threads: any, also in the callback.
 * Errors: false when there is no memory; the client before is kept.
 */
CF_EXPORT Boolean CFWriteStreamSetClient(CFWriteStreamRef stream, CFOptionFlags streamEvents, CFWriteStreamClientCallBack clientCB,
                                         CFStreamClientContext *clientContext) CRL_LINK(CFWriteStreamSetClient);

/**
 * Adds the stream to a mode of a loop, where its events are then told. A stream can be in several modes and loops: each event is told once.
 *
 * Ownership: the loop does not keep the stream alive.
 * Threads: any.
 * Errors: a closed stream is ignored, and so is a mode that the stream is in already. Without memory the stream is not added.
 */
CF_EXPORT void CFReadStreamScheduleWithRunLoop(CFReadStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
    CRL_LINK(CFReadStreamScheduleWithRunLoop);

/**
 * Adds the stream to a mode of a loop, as CFReadStreamScheduleWithRunLoop.
 *
 * Threads: any.
 * Errors: as CFReadStreamScheduleWithRunLoop.
 */
CF_EXPORT void CFWriteStreamScheduleWithRunLoop(CFWriteStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
    CRL_LINK(CFWriteStreamScheduleWithRunLoop);

/**
 * Takes the stream out of a mode of a loop. What happens meanwhile is told when it is scheduled again.
 *
 * Threads: any. On the loop's own thread no event is told in that mode after the return.
 * Errors: a mode that the stream is not in is ignored.
 */
CF_EXPORT void CFReadStreamUnscheduleFromRunLoop(CFReadStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
    CRL_LINK(CFReadStreamUnscheduleFromRunLoop);

/**
 * Takes the stream out of a mode of a loop, as CFReadStreamUnscheduleFromRunLoop.
 *
 * Threads: any.
 * Errors: a mode that the stream is not in is ignored.
 */
CF_EXPORT void CFWriteStreamUnscheduleFromRunLoop(CFWriteStreamRef stream, CFRunLoopRef runLoop, CFRunLoopMode runLoopMode)
    CRL_LINK(CFWriteStreamUnscheduleFromRunLoop);

#if defined(CRL_HAS_DISPATCH_QUEUES)
/**
 * Has the events of the stream told on a dispatch queue, and takes the stream out of all run loops. NULL ends that, and leaves loops alone.
 *
 * Scheduling the stream on a run loop takes it off the queue. A stream that connects to a host by name asks for the name in the modes of
 * run loops: put it on a queue when it is open. The function is declared only where the dispatch headers are installed.
 * Ownership: the stream keeps the queue until it is closed, freed or scheduled elsewhere. The queue does not keep the stream alive.
 * Threads: any. One event at a time is told, on concurrent queues too. A callback that is under way goes on.
 * Errors: ignored for a closed stream. Ignored, and logged once, in a process without libdispatch, and without memory or a descriptor.
 */
CF_EXPORT void CFReadStreamSetDispatchQueue(CFReadStreamRef stream, dispatch_queue_t q) CRL_LINK(CFReadStreamSetDispatchQueue);

/**
 * Has the events of the stream told on a dispatch queue, as CFReadStreamSetDispatchQueue.
 *
 * Ownership: as CFReadStreamSetDispatchQueue.
 * Threads: any.
 * Errors: as CFReadStreamSetDispatchQueue.
 */
CF_EXPORT void CFWriteStreamSetDispatchQueue(CFWriteStreamRef stream, dispatch_queue_t q) CRL_LINK(CFWriteStreamSetDispatchQueue);

/**
 * Copies the dispatch queue that tells the events of the stream, or NULL if none does.
 *
 * Ownership: the caller releases the queue with dispatch_release.
 * Threads: any.
 */
CF_EXPORT dispatch_queue_t CFReadStreamCopyDispatchQueue(CFReadStreamRef stream) CRL_LINK(CFReadStreamCopyDispatchQueue);

/**
 * Copies the dispatch queue that tells the events of the stream, or NULL if none does.
 *
 * Ownership: the caller releases the queue with dispatch_release.
 * Threads: any.
 */
CF_EXPORT dispatch_queue_t CFWriteStreamCopyDispatchQueue(CFWriteStreamRef stream) CRL_LINK(CFWriteStreamCopyDispatchQueue);
#endif

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSTREAM__ */
