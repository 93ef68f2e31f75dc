/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * File descriptors watched by a run loop, for reading and for writing, with one callback for each request.
 *
 * The library never reads or writes the descriptor. It may be of any kind: socket, pipe, terminal, eventfd, timerfd, signalfd, pidfd,
 * inotify or epoll descriptor. The kernel cannot watch regular files, directories and /dev/null; they are always ready. Several objects may
 * watch one descriptor. An object argument that is NULL, or of another type, stops the process with a message that names the function.
 */

#if !defined(__COREFOUNDATION_CFFILEDESCRIPTOR__)
#define __COREFOUNDATION_CFFILEDESCRIPTOR__ 1

#include "CFBase.h"
#include "CFRunLoop.h"

#if defined(__swift__)
#define CFFileDescriptorRef CRLFileDescriptorRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFFileDescriptor, CFFileDescriptor);

/** A descriptor with the callback for its readiness. */
typedef struct __CFFileDescriptor *CFFileDescriptorRef;

/** A descriptor's number. */
typedef int CFFileDescriptorNativeDescriptor;

/** The kinds of readiness to report; the values may be or'ed. */
CF_ENUM(CFOptionFlags) {
    kCFFileDescriptorReadCallBack = 1UL << 0, /**< Reading will not block: there are bytes, a connection, the end, or an error. */
    kCFFileDescriptorWriteCallBack = 1UL << 1, /**< Writing will not block: there is room, or an error. */
    /** This library's own: something exceptional (POLLPRI), as a byte out of band or a change of a control group's file, or an error. What
     * /proc/pressure/memory tells is gone after a poll by anyone: a loop that another one waits for (CRLRunLoopGetDescriptor) misses it. */
    kCRLFileDescriptorPriorityCallBack = 1UL << 2
};

/** The callback. `callBackTypes` has the kinds for which the descriptor is ready; they are disabled again. It runs on the loop's thread. */
typedef void (*CFFileDescriptorCallBack)(CFFileDescriptorRef f, CFOptionFlags callBackTypes, void *info);

/** The data of a descriptor's callback. Any function may be NULL. `info` is not const here, as on Apple's systems. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    void *(*retain)(void *info); /**< Called once at creation; its result becomes the `info`. */
    void (*release)(void *info); /**< Called once, when the object is invalidated or freed. */
    CFStringRef (*copyDescription)(void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFFileDescriptorContext;

/**
 * Returns the type id of file descriptor objects.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFFileDescriptorGetTypeID(void) CRL_LINK(CFFileDescriptorGetTypeID);

/**
 * Creates an object for the open descriptor `fd`, with every callback disabled.
 *
 * `closeOnInvalidate` makes CFFileDescriptorInvalidate close `fd`. `context` may be NULL and is copied.
 * Ownership: the caller releases the object; `info` is retained as the context says. Without `closeOnInvalidate` the caller keeps `fd`, and
 * closes it only after CFFileDescriptorInvalidate.
 * Threads: any.
 * Errors: NULL when `fd` is not an open descriptor, `callout` is NULL, or there is no memory. Then `fd` stays open and `info` is not
 * retained.
 */
CF_EXPORT CFFileDescriptorRef CFFileDescriptorCreate(CFAllocatorRef allocator, CFFileDescriptorNativeDescriptor fd,
                                                     Boolean closeOnInvalidate, CFFileDescriptorCallBack callout,
                                                     const CFFileDescriptorContext *context)
    CRL_LINK(CFFileDescriptorCreate) CF_RETURNS_RETAINED;

/**
 * Returns the number of the descriptor of `f`; -1 when `f` is invalid.
 *
 * Threads: any.
 */
CF_EXPORT CFFileDescriptorNativeDescriptor CFFileDescriptorGetNativeDescriptor(CFFileDescriptorRef f)
    CRL_LINK(CFFileDescriptorGetNativeDescriptor);

/**
 * Copies the context of `f` into `*context`; `info` is NULL when `f` is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is.
 * Ownership: `info` stays the object's.
 * Threads: any.
 * Errors: stops the process with a message when `context` is NULL.
 */
CF_EXPORT void CFFileDescriptorGetContext(CFFileDescriptorRef f, CFFileDescriptorContext *context) CRL_LINK(CFFileDescriptorGetContext);

/**
 * Requests one callback for each of the kinds in `callBackTypes`. A descriptor that is already ready counts.
 *
 * Each kind is disabled again before its callback, so a callback that wants more enables it again. If the descriptor is still ready then,
 * the callback comes again in the next pass. The call may come before or after the run loop source is created and added.
 * Threads: any, also in the callback. A sleeping loop takes notice without CFRunLoopWakeUp.
 * Errors: other bits and an invalid `f` are ignored.
 */
CF_EXPORT void CFFileDescriptorEnableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
    CRL_LINK(CFFileDescriptorEnableCallBacks);

/**
 * Cancels the requests of CFFileDescriptorEnableCallBacks for the kinds in `callBackTypes`.
 *
 * Threads: any; on the loop's own thread no callback for these kinds comes after the return.
 * Errors: other bits and an invalid `f` are ignored.
 */
CF_EXPORT void CFFileDescriptorDisableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
    CRL_LINK(CFFileDescriptorDisableCallBacks);

/**
 * Makes `f` invalid permanently: no more callbacks, its run loop source is invalidated, `info` is released, and the descriptor is closed if
 * the creator requested that. A second call does nothing.
 *
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the callback.
 */
CF_EXPORT void CFFileDescriptorInvalidate(CFFileDescriptorRef f) CRL_LINK(CFFileDescriptorInvalidate);

/**
 * Returns whether `f` has not been invalidated.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFFileDescriptorIsValid(CFFileDescriptorRef f) CRL_LINK(CFFileDescriptorIsValid);

/**
 * Creates the run loop source of `f`; later calls return the same source.
 *
 * Add it to the modes in which the callback may come. Only the `order` of the first call counts.
 * Ownership: the caller releases the source, which keeps `f` alive; `f` keeps the source until it is invalidated.
 * Threads: any.
 * Errors: NULL when `f` is invalid or there is no memory.
 */
CF_EXPORT CFRunLoopSourceRef CFFileDescriptorCreateRunLoopSource(CFAllocatorRef allocator, CFFileDescriptorRef f, CFIndex order)
    CRL_LINK(CFFileDescriptorCreateRunLoopSource) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFFILEDESCRIPTOR__ */
