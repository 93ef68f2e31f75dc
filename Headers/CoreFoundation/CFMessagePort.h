/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Message ports: named requests and replies between the threads of a process and between the processes of one user.
 *
 * A local port receives: it has a name that one process at a time can own, and a callback. A remote port sends to whoever owns its name.
 * Data is handed over whole or not at all. Names are UTF-8 of at most 128 bytes, and longer ones are cut at a character; they stand for
 * files in a directory that only the user can enter, below XDG_RUNTIME_DIR, and nobody else can find, own or reach them. An object argument
 * that is NULL, or of another type, stops the process with one sentence that names the function.
 *
 * Messages within a process do not pass through the kernel; CORERUNLOOP_MESSAGES=socket in the environment, which is read when the process
 * makes its first port, has them do so, for comparison. The rules are the same either way.
 */

#if !defined(__COREFOUNDATION_CFMESSAGEPORT__)
#define __COREFOUNDATION_CFMESSAGEPORT__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFDate.h"
#include "CFRunLoop.h"
#include "CFString.h"

/*
 * Where libdispatch is installed, its queues can drive a local port. Its headers need Clang, and headers of Apple's where a program is told
 * by -D__APPLE__ that it is compiled there.
 */
#if defined(__clang__) && !defined(__swift__) && !defined(__APPLE__) && __has_include(<dispatch/dispatch.h>)
#include <dispatch/dispatch.h>
#define CRL_HAS_DISPATCH_QUEUES 1
#endif

#if defined(__swift__)
#define CFMessagePortRef CRLMessagePortRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFMessagePort, CFMessagePort);

/** A port, local or remote. */
typedef struct __CFMessagePort *CFMessagePortRef;

/** What CFMessagePortSendRequest returns. */
CF_ENUM(SInt32) {
    kCFMessagePortSuccess = 0, /**< The message was queued, and the reply came if one was asked for. */
    kCFMessagePortSendTimeout = -1, /**< The receiver's queue stayed full; nothing was sent. */
    kCFMessagePortReceiveTimeout = -2, /**< No reply came in time; the message may still be handled. */
    kCFMessagePortIsInvalid = -3, /**< The port was invalid already, its receiver was gone, or it is a local one; nothing was sent. */
    kCFMessagePortTransportError = -4, /**< Nothing was done: too large for the receiver, or the system has no means left. */
    kCFMessagePortBecameInvalidError = -5 /**< The receiver, or the port, went away meanwhile; the message may have been handled. */
};

/** What a local port carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, where its result is kept as the `info`, and before each callback. */
    void (*release)(const void *info); /**< Called after each callback if there is a `retain`, and when the port is invalidated. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CFMessagePortContext;

/**
 * A local port's callback: one call for each message, on the thread whose loop has the port's source.
 *
 * `data` is never NULL and is the callback's only while it runs: copy it to keep it. What the callback returns is the reply; it is released
 * by the port, so return something of its own reference. NULL is an empty reply. The reply to a one-way message is thrown away.
 */
typedef CFDataRef (*CFMessagePortCallBack)(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info);

/** Told once that a port has become invalid; `info` is the context's for a local port, NULL for a remote one. */
typedef void (*CFMessagePortInvalidationCallBack)(CFMessagePortRef ms, void *info);

/**
 * Gets the type id of message ports.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFMessagePortGetTypeID(void) CRL_LINK(CFMessagePortGetTypeID);

/**
 * Creates a local port and registers `name` for it, or returns the valid local port that this process already has under that name.
 *
 * `name` may be NULL for a port that nobody can reach until CFMessagePortSetName. `context` may be NULL and is copied. `shouldFreeInfo`, if
 * not NULL, is set to false when a new port was made and to true in every other case, in which the callback and the context are not used.
 * Ownership: the caller releases the port; `info` is retained as the context says, for a new port only.
 * Threads: any; the port outlives the thread.
 * Errors: NULL when another process has the name, the name is empty or has a zero in it, the directory of names cannot be used, or there is
 * no memory or descriptor left. A process that has died, however it died, has no names.
 * Differs from Apple: a name with a zero in it gives NULL, not a port without a name.
 */
CF_EXPORT CFMessagePortRef CFMessagePortCreateLocal(CFAllocatorRef allocator, CFStringRef name, CFMessagePortCallBack callout,
                                                    CFMessagePortContext *context, Boolean *shouldFreeInfo)
    CRL_LINK(CFMessagePortCreateLocal) CF_RETURNS_RETAINED;

/**
 * Creates a remote port that sends to the owner of `name`, or returns the valid one that this process already has.
 *
 * The owner may be this process, and even this thread. It is not waited for.
 * Ownership: the caller releases the port.
 * Threads: any; the port can be used from several at once.
 * Errors: NULL when nobody has the name now, when it is NULL, empty or has a zero in it, or when no memory or descriptor is left.
 */
CF_EXPORT CFMessagePortRef CFMessagePortCreateRemote(CFAllocatorRef allocator, CFStringRef name)
    CRL_LINK(CFMessagePortCreateRemote) CF_RETURNS_RETAINED;

/**
 * Says whether `ms` is a remote port.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFMessagePortIsRemote(CFMessagePortRef ms) CRL_LINK(CFMessagePortIsRemote);

/**
 * Gets the name of `ms`; NULL when it has none.
 *
 * Ownership: the port's; it lasts as long as the port, also when the port gets another name.
 * Threads: any.
 */
CF_EXPORT CFStringRef CFMessagePortGetName(CFMessagePortRef ms) CRL_LINK(CFMessagePortGetName) CF_RETURNS_NOT_RETAINED;

/**
 * Registers `newName` for the local port `ms` and gives up its old name.
 *
 * The port stays valid and its source keeps working; remote ports that were connected by the old name become invalid, and messages that
 * waited are dropped.
 * Threads: any.
 * Errors: false, and nothing changes, when `ms` is remote or invalid, the name is unusable, or any local port, this one included, has it.
 */
CF_EXPORT Boolean CFMessagePortSetName(CFMessagePortRef ms, CFStringRef newName) CRL_LINK(CFMessagePortSetName);

/**
 * Copies the context of the local port `ms` into `*context`; `info` is NULL when `ms` is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is. For a remote port everything is NULL.
 * Ownership: `info` stays the port's.
 * Threads: any.
 * Errors: stops the process with one sentence when `context` is NULL.
 */
CF_EXPORT void CFMessagePortGetContext(CFMessagePortRef ms, CFMessagePortContext *context) CRL_LINK(CFMessagePortGetContext);

/**
 * Makes `ms` invalid for good: gives up its name, calls its invalidation callback, releases `info`, invalidates its source, and closes it,
 * in that order. A second call does nothing.
 *
 * Messages that wait are dropped, and those who wait for replies get kCFMessagePortBecameInvalidError. When a callback of the port runs on
 * another thread, `info` is released when that has ended.
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the port's callback.
 */
CF_EXPORT void CFMessagePortInvalidate(CFMessagePortRef ms) CRL_LINK(CFMessagePortInvalidate);

/**
 * Says whether `ms` is valid; of a remote port it asks whether the receiver still is there.
 *
 * Threads: any; if the receiver is found to be gone, the invalidation callback runs on the calling thread.
 * Differs from Apple: the end of a receiver is noticed here, in CFMessagePortSendRequest and while waiting for a reply, and not by a thread
 * in the background.
 */
CF_EXPORT Boolean CFMessagePortIsValid(CFMessagePortRef ms) CRL_LINK(CFMessagePortIsValid);

/**
 * Gets the invalidation callback of `ms`; NULL when it has none.
 *
 * Threads: any.
 */
CF_EXPORT CFMessagePortInvalidationCallBack CFMessagePortGetInvalidationCallBack(CFMessagePortRef ms)
    CRL_LINK(CFMessagePortGetInvalidationCallBack);

/**
 * Sets the invalidation callback of `ms`; NULL takes it away.
 *
 * When `ms` is invalid already, `callout` is called at once, with NULL for the info.
 * Threads: any; the callback runs on the thread that invalidates the port, or that finds out.
 */
CF_EXPORT void CFMessagePortSetInvalidationCallBack(CFMessagePortRef ms, CFMessagePortInvalidationCallBack callout)
    CRL_LINK(CFMessagePortSetInvalidationCallBack);

/**
 * Sends a message to the remote port `remote`, and waits for the reply if `replyMode` is not NULL.
 *
 * `msgid` is any number; `data` may be NULL, which arrives as empty data, and has at most 0x60000000 bytes. `sendTimeout` is how long, in
 * seconds, to wait while the receiver's queue is full: below a millisecond it is tried once, from ten days on and for a NaN there is no
 * limit. That wait does not run the loop. The wait for the reply, of `rcvTimeout` seconds by the same measure from when the message is
 * queued, runs the calling thread's loop in `replyMode`, so that other sources of that mode are served and callbacks may send in turn;
 * kCFRunLoopCommonModes stands for the default mode there. At 0 and below, it is looked once. CFRunLoopStop does not end the wait.
 * `*returnData` is written only when the result is kCFMessagePortSuccess and `replyMode` is not NULL; it may be NULL.
 * Ownership: the caller releases `*returnData`, which is never NULL after success.
 * Threads: any number at once on one port; each gets its own reply.
 * Errors: the codes above; an oversized message gives kCFMessagePortTransportError and is not sent.
 * Differs from Apple: a local port gives kCFMessagePortIsInvalid; a request that the receiver drops fails at once.
 */
CF_EXPORT SInt32 CFMessagePortSendRequest(CFMessagePortRef remote, SInt32 msgid, CFDataRef data, CFTimeInterval sendTimeout,
                                          CFTimeInterval rcvTimeout, CFStringRef replyMode, CFDataRef *returnData)
    CRL_LINK(CFMessagePortSendRequest);

/**
 * Creates the run loop source of the local port `local`, to be added to the modes in which messages are to be handled; later calls return
 * the same source.
 *
 * `order` counts in the first call only. The source is a version-1 source and handles one message a pass.
 * Ownership: the caller releases the source; it and the port keep each other alive until CFMessagePortInvalidate.
 * Threads: any.
 * Errors: NULL when the port is invalid, remote or driven by a dispatch queue, or when there is no memory.
 */
CF_EXPORT CFRunLoopSourceRef CFMessagePortCreateRunLoopSource(CFAllocatorRef allocator, CFMessagePortRef local, CFIndex order)
    CRL_LINK(CFMessagePortCreateRunLoopSource) CF_RETURNS_RETAINED;

#if defined(CRL_HAS_DISPATCH_QUEUES)
/**
 * Has the messages of the local port `ms` handled on a dispatch queue; NULL ends that.
 *
 * Declared only where the dispatch headers are installed.
 * Ownership: the port keeps the queue until it is invalidated or gets another one.
 * Threads: any.
 * Errors: ignored, and logged once, for a port that is remote, invalid or has a run loop source, and in a process without libdispatch.
 */
CF_EXPORT void CFMessagePortSetDispatchQueue(CFMessagePortRef ms, dispatch_queue_t queue) CRL_LINK(CFMessagePortSetDispatchQueue);
#endif

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFMESSAGEPORT__ */
