/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Message ports: named requests and replies between the threads of a process and between the processes of one user.
 *
 * A local port receives: it has a callback, and a name that only one process at a time can own. A remote port sends to the owner of its
 * name. Data is delivered whole or not at all. Names are UTF-8 of at most 128 bytes; longer ones are cut at a character. They stand for
 * files below CORERUNLOOP_PORTS if that is set, otherwise below XDG_RUNTIME_DIR, else /run/user/UID, else TMPDIR or /tmp, in a directory
 * that only the user can enter. So no other user can find, own or reach them, and two processes that choose different directories do not
 * find each other's ports. An object argument that is
 * NULL, or of another type, stops the process with a message that names the function.
 *
 * Messages within a process do not pass through the kernel. For comparison, CORERUNLOOP_MESSAGES=socket in the environment sends them
 * through it; it is read when the process creates its first port. The rules are the same either way.
 */

#if !defined(__COREFOUNDATION_CFMESSAGEPORT__)
#define __COREFOUNDATION_CFMESSAGEPORT__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFDate.h"
#include "CFRunLoop.h"
#include "CFString.h"

/*
 * Where libdispatch is installed, its queues can drive a local port. Its headers need Clang. With -D__APPLE__ they also need Apple's own
 * headers, so they are not included then.
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

/** The results of CFMessagePortSendRequest. */
CF_ENUM(SInt32) {
    kCFMessagePortSuccess = 0, /**< The message was queued, and the reply came if one was asked for. */
    kCFMessagePortSendTimeout = -1, /**< The receiver's queue stayed full; nothing was sent. */
    kCFMessagePortReceiveTimeout = -2, /**< No reply came in time; the message may still be handled. */
    kCFMessagePortIsInvalid = -3, /**< The port was invalid already, its receiver was gone, or it is a local one; nothing was sent. */
    kCFMessagePortTransportError = -4, /**< The request failed: too large, refused, or without a reply. It may have been handled. */
    kCFMessagePortBecameInvalidError = -5 /**< The receiver, or the port, went away meanwhile; the message may have been handled. */
};

/** The data of a local port's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, where its result becomes the `info`, and before each callback. */
    void (*release)(const void *info); /**< Called after each callback if there is a `retain`, and when the port is invalidated. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFMessagePortContext;

/**
 * A local port's callback: one call for each message, on the thread whose loop has the port's source.
 *
 * `data` is never NULL and is valid only while the callback runs: copy it to keep it. The return value is the reply. The port releases it,
 * so return data with a reference of its own. NULL is an empty reply. The reply to a one-way message is thrown away.
 */
typedef CFDataRef (*CFMessagePortCallBack)(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info);

/**
 * Called once when a port has become invalid. `info` is the context's for a local port, NULL for a remote one. CFMessagePortInvalidate
 * calls it at once. When the receiver of a remote port ends, a run loop calls it: see CFMessagePortSetInvalidationCallBack.
 */
typedef void (*CFMessagePortInvalidationCallBack)(CFMessagePortRef ms, void *info);

/**
 * Returns the type id of message ports.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFMessagePortGetTypeID(void) CRL_LINK(CFMessagePortGetTypeID);

/**
 * Creates a local port and registers `name` for it, or returns the valid local port of this process that already has the name.
 *
 * `name` may be NULL for a port that nobody can reach until CFMessagePortSetName. `context` may be NULL and is copied. `shouldFreeInfo`, if
 * not NULL, is set to false when a new port was created. In every other case it is set to true, and the callback and the context are not
 * used.
 * Ownership: the caller releases the port. `info` is retained as the context says, for a new port only.
 * Threads: any; the port outlives the thread.
 * Errors: NULL when another process has the name, the name is empty or contains a zero, the directory of names cannot be used, or no memory
 * or descriptor is left. A process that has died, however it died, owns no names.
 * Differs from Apple: a name that contains a zero gives NULL, not a port without a name.
 */
CF_EXPORT CFMessagePortRef CFMessagePortCreateLocal(CFAllocatorRef allocator, CFStringRef name, CFMessagePortCallBack callout,
                                                    CFMessagePortContext *context, Boolean *shouldFreeInfo)
    CRL_LINK(CFMessagePortCreateLocal) CF_RETURNS_RETAINED;

/**
 * Creates a remote port that sends to the owner of `name`, or returns the valid remote port of this process for that name.
 *
 * The owner may be this process, and even this thread. The call does not wait for it.
 * Ownership: the caller releases the port.
 * Threads: any; several threads can use the port at once.
 * Errors: NULL when nobody owns the name now, when it is NULL, empty or contains a zero, or when no memory or descriptor is left.
 */
CF_EXPORT CFMessagePortRef CFMessagePortCreateRemote(CFAllocatorRef allocator, CFStringRef name)
    CRL_LINK(CFMessagePortCreateRemote) CF_RETURNS_RETAINED;

/**
 * Returns whether `ms` is a remote port.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFMessagePortIsRemote(CFMessagePortRef ms) CRL_LINK(CFMessagePortIsRemote);

/**
 * Returns the name of `ms`; NULL when it has none.
 *
 * Ownership: the port owns the string. It is valid as long as the port lives, also when the port gets another name.
 * Threads: any.
 */
CF_EXPORT CFStringRef CFMessagePortGetName(CFMessagePortRef ms) CRL_LINK(CFMessagePortGetName) CF_RETURNS_NOT_RETAINED;

/**
 * Registers `newName` for the local port `ms` and gives up its old name.
 *
 * The port stays valid and its source keeps working. Remote ports that were connected by the old name become invalid, and waiting messages
 * are dropped.
 * Threads: any.
 * Errors: false, and nothing changes, when `ms` is remote or invalid, when the name is unusable, or when any local port, this one included,
 * has it.
 */
CF_EXPORT Boolean CFMessagePortSetName(CFMessagePortRef ms, CFStringRef newName) CRL_LINK(CFMessagePortSetName);

/**
 * Copies the context of the local port `ms` into `*context`; `info` is NULL when `ms` is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is. For a remote port everything is NULL.
 * Ownership: `info` stays the port's.
 * Threads: any.
 * Errors: stops the process with a message when `context` is NULL.
 */
CF_EXPORT void CFMessagePortGetContext(CFMessagePortRef ms, CFMessagePortContext *context) CRL_LINK(CFMessagePortGetContext);

/**
 * Makes `ms` invalid permanently: gives up its name, calls its invalidation callback, releases `info`, invalidates its source, and closes
 * it, in that order. A second call does nothing.
 *
 * Waiting messages are dropped, and callers that wait for replies get kCFMessagePortBecameInvalidError. When a callback of the port runs on
 * another thread, `info` is released after that callback.
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the port's callback.
 */
CF_EXPORT void CFMessagePortInvalidate(CFMessagePortRef ms) CRL_LINK(CFMessagePortInvalidate);

/**
 * Returns whether `ms` is valid. For a remote port it also checks that the receiver still exists.
 *
 * Threads: any. If the receiver is found to be gone, the port is invalid at once, and its invalidation callback is left to a run loop.
 * Differs from Apple: the end of the receiver of a port without an invalidation callback is noticed here, in CFMessagePortSendRequest and
 * while waiting for a reply. No thread in the background notices it.
 */
CF_EXPORT Boolean CFMessagePortIsValid(CFMessagePortRef ms) CRL_LINK(CFMessagePortIsValid);

/**
 * Returns the invalidation callback of `ms`; NULL when it has none.
 *
 * Threads: any.
 */
CF_EXPORT CFMessagePortInvalidationCallBack CFMessagePortGetInvalidationCallBack(CFMessagePortRef ms)
    CRL_LINK(CFMessagePortGetInvalidationCallBack);

/**
 * Sets the invalidation callback of `ms`; NULL removes it.
 *
 * When `ms` is already invalid, `callout` is called at once, with NULL for the info.
 *
 * For a remote port, the run loop of the calling thread then watches for the receiver's end, in its common modes. It calls `callout` within
 * 50 ms of that end, even if nothing is sent. If that loop is not running in a common mode, or has ended, the main loop calls. A call that
 * finds the receiver gone returns its error and leaves `callout` to the loop, so the caller may hold a lock that `callout` takes. A watch
 * keeps no run going. A port whose callback is due lives until it was called.
 * Threads: any; the callback runs on the thread that invalidates the port, or on that of the loop that watches.
 * Errors: without a descriptor for the watch, the call that finds the receiver gone calls `callout`.
 * Differs from Apple: Apple's library has a thread of its own for it, or the main loop.
 */
CF_EXPORT void CFMessagePortSetInvalidationCallBack(CFMessagePortRef ms, CFMessagePortInvalidationCallBack callout)
    CRL_LINK(CFMessagePortSetInvalidationCallBack);

/**
 * Sends a message to the remote port `remote`, and waits for the reply if `replyMode` is not NULL.
 *
 * `msgid` is any number. `data` has at most 0x60000000 bytes; NULL arrives as empty data. `sendTimeout` is the time in seconds to wait
 * while the receiver's queue is full. Below a millisecond the call tries once; ten days or more, and not-a-number, mean no limit. This wait
 * does not run the loop.
 *
 * The wait for the reply takes at most `rcvTimeout` seconds, measured the same way from when the message is queued; with 0 or less the call
 * looks once. It runs the calling thread's loop in `replyMode`, so other sources of that mode are served and callbacks may send messages in
 * turn. kCFRunLoopCommonModes stands for the default mode there. CFRunLoopStop does not end the wait. `*returnData` is written only when
 * the result is kCFMessagePortSuccess and `replyMode` is not NULL. `returnData` may be NULL.
 * Ownership: the caller releases `*returnData`, which is never NULL after success.
 * Threads: any number at once on one port; each gets its own reply.
 * Errors: the codes above. An oversized message gives kCFMessagePortTransportError and is not sent.
 * Differs from Apple: a local port gives kCFMessagePortIsInvalid. A request that the receiver drops fails at once.
 */
CF_EXPORT SInt32 CFMessagePortSendRequest(CFMessagePortRef remote, SInt32 msgid, CFDataRef data, CFTimeInterval sendTimeout,
                                          CFTimeInterval rcvTimeout, CFStringRef replyMode, CFDataRef *returnData)
    CRL_LINK(CFMessagePortSendRequest);

/**
 * Creates the run loop source of the local port `local`; later calls return the same source.
 *
 * Add it to the modes in which messages are to be handled. Only the `order` of the first call counts. The source is a version-1 source and
 * handles one message in a pass.
 * Ownership: the caller releases the source. It and the port keep each other alive until CFMessagePortInvalidate.
 * Threads: any.
 * Errors: NULL when the port is invalid, remote or driven by a dispatch queue, or when there is no memory.
 */
CF_EXPORT CFRunLoopSourceRef CFMessagePortCreateRunLoopSource(CFAllocatorRef allocator, CFMessagePortRef local, CFIndex order)
    CRL_LINK(CFMessagePortCreateRunLoopSource) CF_RETURNS_RETAINED;

#if defined(CRL_HAS_DISPATCH_QUEUES)
/**
 * Makes a dispatch queue handle the messages of the local port `ms`; NULL ends that.
 *
 * The function is declared only where the dispatch headers are installed.
 * Ownership: the port keeps the queue until it is invalidated or gets another one.
 * Threads: any.
 * Errors: ignored, and logged once, for a port that is remote, invalid or has a run loop source, and in a process without libdispatch.
 */
CF_EXPORT void CFMessagePortSetDispatchQueue(CFMessagePortRef ms, dispatch_queue_t queue) CRL_LINK(CFMessagePortSetDispatchQueue);
#endif

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFMESSAGEPORT__ */
