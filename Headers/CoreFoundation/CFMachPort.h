/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Ports in the style of Mach, between the threads of one process: a number to send to, a queue of messages, and a callback in a run loop.
 *
 * Linux has no Mach. A port here is a queue in the memory of this process. Its number means nothing in another process, carries no rights,
 * and cannot be passed to the kernel. CFMessagePort is for messages between processes. CRLMachPortSend in `CRLMachPort.h` sends messages;
 * Apple's headers leave that to mach_msg. After a fork the child's ports are its own, and empty. An object argument that is NULL, or of
 * another type, stops the process with a message that names the function.
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

/** A port with the callback for its messages. */
typedef struct __CFMachPort *CFMachPortRef;

/* The types and numbers of Apple's kernel headers that its header of this name brings, and that programs use with these functions. */

/** A port's number in this process. It is not reused for another port for a long time after its own port is gone. */
typedef unsigned int mach_port_t;
/** A port's number, where a function needs only the name. */
typedef unsigned int mach_port_name_t;
#if defined(__x86_64__)
/** A truth value in the kernel's interfaces: TRUE or FALSE. */
typedef unsigned int boolean_t;
#else
/** A truth value in the kernel's interfaces: TRUE or FALSE. */
typedef int boolean_t;
#endif

#if !defined(MACH_PORT_NULL)
/** The number that no port has. */
#define MACH_PORT_NULL 0
#endif
#if !defined(MACH_PORT_DEAD)
/** Whether a number can be a port's. The port may be gone all the same. */
#define MACH_PORT_DEAD (~0U)
#endif
#if !defined(MACH_PORT_VALID)
/** Whether a number can be a port's. The port may be gone all the same. */
#define MACH_PORT_VALID(_number) ((_number) != MACH_PORT_NULL && (_number) != MACH_PORT_DEAD)
#endif

/** The data of a port's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called at creation, where its result becomes the `info`, and before each callback. */
    void (*release)(const void *info); /**< Called after each callback if there is a `retain`, and once at its invalidation or end. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFMachPortContext;

/**
 * The callback. `msg` is one message of `size` bytes, which begins with a `mach_msg_header_t` (`CRLMachPort.h`) and is valid during the
 * call. No reply is sent automatically. It runs on the loop's thread.
 */
typedef void (*CFMachPortCallBack)(CFMachPortRef port, void *msg, CFIndex size, void *info);

/** Called once when the port becomes invalid, on the thread that invalidates it. */
typedef void (*CFMachPortInvalidationCallBack)(CFMachPortRef port, void *info);

/**
 * Returns the type id of ports.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFMachPortGetTypeID(void) CRL_LINK(CFMachPortGetTypeID);

/**
 * Creates a port with a number of its own and an empty queue.
 *
 * With a NULL `callout`, messages are thrown away. `context` may be NULL and is copied. `*shouldFreeInfo` becomes false, or true when there
 * is no port; `shouldFreeInfo` may be NULL.
 * Ownership: the caller releases the port; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory. `info` is not retained then.
 */
CF_EXPORT CFMachPortRef CFMachPortCreate(CFAllocatorRef allocator, CFMachPortCallBack callout, CFMachPortContext *context,
                                         Boolean *shouldFreeInfo)
    CRL_LINK(CFMachPortCreate) CF_RETURNS_RETAINED;

/**
 * Returns the port that has the number `portNum`.
 *
 * The other arguments are ignored. `*shouldFreeInfo` becomes true, because the context is not used; `shouldFreeInfo` may be NULL.
 * Ownership: the caller releases the port.
 * Threads: any.
 * Errors: NULL when no valid port of this process has the number.
 * Differs from Apple: only ports have numbers here, so the call never creates a port.
 */
CF_EXPORT CFMachPortRef CFMachPortCreateWithPort(CFAllocatorRef allocator, mach_port_t portNum, CFMachPortCallBack callout,
                                                 CFMachPortContext *context, Boolean *shouldFreeInfo)
    CRL_LINK(CFMachPortCreateWithPort) CF_RETURNS_RETAINED;

/**
 * Returns the port's number, also that of an invalid port.
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
 * Errors: stops the process with a message when `context` is NULL.
 * Differs from Apple: `retain` and `release` are the program's functions, not pointers that must not be called.
 */
CF_EXPORT void CFMachPortGetContext(CFMachPortRef port, CFMachPortContext *context) CRL_LINK(CFMachPortGetContext);

/**
 * Makes the port invalid permanently. In this order: its number loses its meaning, waiting messages are thrown away, waiting senders fail,
 * the invalidation callback is called, its run loop source is invalidated, and `info` is released. A second call does nothing.
 *
 * Ownership: the caller's reference is not given back.
 * Threads: any, also in the callback. While a callback runs on another thread, `info` is released after it.
 */
CF_EXPORT void CFMachPortInvalidate(CFMachPortRef port) CRL_LINK(CFMachPortInvalidate);

/**
 * Returns whether the port has not been invalidated.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFMachPortIsValid(CFMachPortRef port) CRL_LINK(CFMachPortIsValid);

/**
 * Returns the invalidation callback; NULL if there is none.
 *
 * Threads: any.
 */
CF_EXPORT CFMachPortInvalidationCallBack CFMachPortGetInvalidationCallBack(CFMachPortRef port)
    CRL_LINK(CFMachPortGetInvalidationCallBack);

/**
 * Sets the invalidation callback; NULL removes it.
 *
 * On a port that is already invalid, `callout` is called at once, with NULL as its `info`, but only if no callback was ever set. A port
 * that is freed without having been invalidated calls nothing.
 * Threads: any.
 */
CF_EXPORT void CFMachPortSetInvalidationCallBack(CFMachPortRef port, CFMachPortInvalidationCallBack callout)
    CRL_LINK(CFMachPortSetInvalidationCallBack);

/**
 * Creates the port's run loop source; later calls return the same source.
 *
 * Add it to the modes in which messages are to be handled, one in a pass. Messages that were sent earlier are handled too. Only the `order`
 * of the first call counts. The source is a version-1 source.
 * Ownership: the caller releases the source, which keeps the port alive.
 * Threads: any.
 * Errors: NULL when the port is invalid, or there is no descriptor or memory.
 */
CF_EXPORT CFRunLoopSourceRef CFMachPortCreateRunLoopSource(CFAllocatorRef allocator, CFMachPortRef port, CFIndex order)
    CRL_LINK(CFMachPortCreateRunLoopSource) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFMACHPORT__ */
