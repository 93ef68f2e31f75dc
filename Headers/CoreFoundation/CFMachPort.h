/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Ports in the style of Mach, between the threads of one process: a number to send to, a queue of messages, a callback in a run loop.
 *
 * Linux has no Mach. A port here is a queue in this process's memory: its number means nothing in another process, carries no rights, and
 * cannot be handed to the kernel. For messages between processes there is CFMessagePort. Messages are sent with CRLMachPortSend, in
 * `CRLMachPort.h`, as Apple's headers leave that to mach_msg. After a fork the child's ports are its own, and empty. An object argument
 * that is NULL, or of another type, stops the process with one sentence that names the function.
 */

#if !defined(__COREFOUNDATION_CFMACHPORT__)
#define __COREFOUNDATION_CFMACHPORT__ 1

#include "CFBase.h"
#include "CFRunLoop.h"

#if defined(__swift__)
#define CFMachPortRef CRLMachPortRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFMachPort, CFMachPort);

/** A port, and who is to be told of its messages. */
typedef struct __CFMachPort *CFMachPortRef;

/* What Apple's header of this name brings from the kernel's: the types and numbers that sources use beside the functions below. */

/** A port's number, in this process. It is not given to another port for a long time after its own is gone. */
typedef unsigned int mach_port_t;
/** The same number, where only a name is meant. */
typedef unsigned int mach_port_name_t;
#if defined(__x86_64__)
/** A truth value in the kernel's interfaces: TRUE or FALSE. */
typedef unsigned int boolean_t;
#else
/** A truth value in the kernel's interfaces: TRUE or FALSE. */
typedef int boolean_t;
#endif

#if !defined(MACH_PORT_NULL)
/** The number of no port. */
#define MACH_PORT_NULL 0
#endif
#if !defined(MACH_PORT_DEAD)
/** The number that stands for a port that is gone. */
#define MACH_PORT_DEAD (~0U)
#endif
#if !defined(MACH_PORT_VALID)
/** Whether a number can be a port's. The port may be gone all the same. */
#define MACH_PORT_VALID(_number) ((_number) != MACH_PORT_NULL && (_number) != MACH_PORT_DEAD)
#endif

/** What a port carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, what it returns is kept as the `info`; and before each callback. */
    void (*release)(const void *info); /**< Called after each callback, and once when the port is invalidated or freed. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CFMachPortContext;

/**
 * The callback: `msg` is one message, `size` bytes in all, which begins with a `mach_msg_header_t` (`CRLMachPort.h`) and is valid during
 * the call. No reply is sent by itself. It runs on the loop's thread.
 */
typedef void (*CFMachPortCallBack)(CFMachPortRef port, void *msg, CFIndex size, void *info);

/** Called once when the port becomes invalid, on the thread that invalidates it. */
typedef void (*CFMachPortInvalidationCallBack)(CFMachPortRef port, void *info);

/**
 * Gets the type id of ports.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFMachPortGetTypeID(void) CRL_LINK(CFMachPortGetTypeID);

/**
 * Creates a port with a number of its own, and an empty queue.
 *
 * `callout` may be NULL: messages are thrown away then. `context` may be NULL and is copied. `*shouldFreeInfo` becomes false, and true when
 * there is no port; it may be NULL.
 * Ownership: the caller releases the port; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory; then `info` is not retained.
 */
CF_EXPORT CFMachPortRef CFMachPortCreate(CFAllocatorRef allocator, CFMachPortCallBack callout, CFMachPortContext *context,
                                         Boolean *shouldFreeInfo)
    CRL_LINK(CFMachPortCreate) CF_RETURNS_RETAINED;

/**
 * Returns the port that has the number `portNum`; the other arguments are ignored, and `*shouldFreeInfo` becomes true: the context was not
 * used. It may be NULL.
 *
 * Ownership: the caller releases the port.
 * Threads: any.
 * Errors: NULL when no valid port of this process has the number.
 * Differs from Apple: there are no numbers but those of ports, so that nothing is ever created.
 */
CF_EXPORT CFMachPortRef CFMachPortCreateWithPort(CFAllocatorRef allocator, mach_port_t portNum, CFMachPortCallBack callout,
                                                 CFMachPortContext *context, Boolean *shouldFreeInfo)
    CRL_LINK(CFMachPortCreateWithPort) CF_RETURNS_RETAINED;

/**
 * Gets the port's number, also of an invalid port.
 *
 * Threads: any.
 */
CF_EXPORT mach_port_t CFMachPortGetPort(CFMachPortRef port) CRL_LINK(CFMachPortGetPort);

/**
 * Copies the port's context into `*context`; `info` is NULL when the port is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is.
 * Ownership: `info` stays the port's.
 * Threads: any.
 * Errors: stops the process with one sentence when `context` is NULL.
 * Differs from Apple: `retain` and `release` are the program's functions, not pointers that must not be called.
 */
CF_EXPORT void CFMachPortGetContext(CFMachPortRef port, CFMachPortContext *context) CRL_LINK(CFMachPortGetContext);

/**
 * Makes the port invalid for good: its number means nothing any more, waiting messages are thrown away, waiting senders fail, the
 * invalidation callback is called, its run loop source is invalidated, and `info` is released, in this order. A second call does nothing.
 *
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the callback. While a callback is under way on another thread, `info` is released after it.
 */
CF_EXPORT void CFMachPortInvalidate(CFMachPortRef port) CRL_LINK(CFMachPortInvalidate);

/**
 * Says whether the port has not been invalidated.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFMachPortIsValid(CFMachPortRef port) CRL_LINK(CFMachPortIsValid);

/**
 * Gets the invalidation callback; NULL if there is none.
 *
 * Threads: any.
 */
CF_EXPORT CFMachPortInvalidationCallBack CFMachPortGetInvalidationCallBack(CFMachPortRef port)
    CRL_LINK(CFMachPortGetInvalidationCallBack);

/**
 * Sets the invalidation callback; NULL takes it away.
 *
 * On a port that is invalid already, `callout` is called at once, with NULL as its `info`, if no callback was ever set; and nothing happens
 * otherwise. A port that is freed without having been invalidated calls nothing.
 * Threads: any.
 */
CF_EXPORT void CFMachPortSetInvalidationCallBack(CFMachPortRef port, CFMachPortInvalidationCallBack callout)
    CRL_LINK(CFMachPortSetInvalidationCallBack);

/**
 * Creates the port's run loop source, to be added to the modes in which messages are to be handled, one in a pass; later calls return the
 * same source.
 *
 * Messages that were sent before are handled, too. `order` counts in the first call only. The source is one of version 1.
 * Ownership: the caller releases the source, which keeps the port alive.
 * Threads: any.
 * Errors: NULL when the port is invalid, or there is no descriptor or memory.
 */
CF_EXPORT CFRunLoopSourceRef CFMachPortCreateRunLoopSource(CFAllocatorRef allocator, CFMachPortRef port, CFIndex order)
    CRL_LINK(CFMachPortCreateRunLoopSource) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFMACHPORT__ */
