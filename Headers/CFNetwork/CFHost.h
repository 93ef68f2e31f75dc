/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Hosts: the addresses of a name, the names of an address, and whether there is a way to it. A host asks once it is told to, and keeps what
 * it has learned.
 *
 * With a client, asking goes on in the background, on the loops that the host is scheduled on, and the client hears when it is over.
 * Without one, CFHostStartInfoResolution waits. Numeric addresses and "localhost" are known without asking. Other names, and the names of
 * an address, need the add-on library libcorerunloop-net (CRLNetwork.h) in the process.
 *
 * All functions may be called on any thread, and the callback comes on the thread of a loop. An object argument that is NULL, or of another
 * type, stops the process with a message that names the function.
 */

#if !defined(__CFHOST__)
#define __CFHOST__ 1

#include "../CoreFoundation/CFArray.h"
#include "../CoreFoundation/CFBase.h"
#include "../CoreFoundation/CFData.h"
#include "../CoreFoundation/CFRunLoop.h"
#include "../CoreFoundation/CFStream.h"
#include "../CoreFoundation/CFString.h"

#if defined(__swift__)
#define CFHostRef CRLHostRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFHost, CFHost);

/** A host, made of a name or of an address. */
typedef struct __CFHost *CFHostRef;

/** What can be asked of a host. */
typedef CF_ENUM(int, CFHostInfoType) {
    kCFHostAddresses = 0, /**< Its addresses. */
    kCFHostNames = 1, /**< Its names. */
    kCFHostReachability = 2 /**< Whether there is a way to it. */
};

/** What reachability says: the bits of the 32-bit number in the data of CFHostGetReachability, which Apple's SystemConfiguration names. */
enum {
    kSCNetworkFlagsReachable = 1 << 1, /**< The system has a route to one of the host's addresses. It says nothing of the host itself. */
    kSCNetworkFlagsIsLocalAddress = 1 << 16 /**< One of the addresses is this machine's own. */
};

/** The data of a client. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    CFAllocatorRetainCallBack retain; /**< Called when the client is set; its result becomes the `info`. */
    CFAllocatorReleaseCallBack release; /**< Called once, when the client is replaced or removed, or the host ends. */
    CFAllocatorCopyDescriptionCallBack copyDescription; /**< Returns a string for CFCopyDescription, which releases it. */
} CFHostClientContext;

/**
 * The callback of a host's client: what was asked for is there, or the `error` says why not; its error is 0 otherwise. The host can be
 * asked again in the callback, changed, or released.
 */
typedef void (*CFHostClientCallBack)(CFHostRef theHost, CFHostInfoType typeInfo, const CFStreamError *error, void *info);

/**
 * Returns the type id of hosts.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFHostGetTypeID(void) CRL_LINK(CFHostGetTypeID);

/**
 * Creates a host of a name, which may also be a numeric address. Nothing is asked yet. CFHostGetNames has the name.
 *
 * Ownership: the caller releases the host. The name is copied.
 * Threads: any.
 * Errors: NULL when `hostname` is NULL, or there is no memory.
 */
CF_EXPORT CFHostRef CFHostCreateWithName(CFAllocatorRef allocator, CFStringRef hostname)
    CRL_LINK(CFHostCreateWithName) CF_RETURNS_RETAINED;

/**
 * Creates a host of an address, a `struct sockaddr` in a CFData. Nothing is asked yet. CFHostGetAddressing has the address.
 *
 * Ownership: the caller releases the host. The address is copied.
 * Threads: any.
 * Errors: NULL when `addr` is NULL, or is no IPv4 or IPv6 address, or there is no memory.
 */
CF_EXPORT CFHostRef CFHostCreateWithAddress(CFAllocatorRef allocator, CFDataRef addr)
    CRL_LINK(CFHostCreateWithAddress) CF_RETURNS_RETAINED;

/**
 * Creates a host with what another one has learned. It has no client, is on no loop, and asks nothing.
 *
 * Ownership: the caller releases the host.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFHostRef CFHostCreateCopy(CFAllocatorRef alloc, CFHostRef host) CRL_LINK(CFHostCreateCopy) CF_RETURNS_RETAINED;

/**
 * Begins to ask for `info`. With a client it returns at once, and the client hears the outcome. Without one it waits for the outcome.
 *
 * Waiting runs the calling thread's loop in a mode of its own, in which the program has nothing. Reachability asks for the addresses
 * first if they are not known.
 * Threads: any; it may wait, and holds no lock meanwhile.
 * Errors: false, with the reason in `*error` unless that is NULL. In kCFStreamErrorDomainPOSIX: EBUSY when the host is asking already,
 * ENOSYS when the add-on library is needed and is not there, ENOMEM, and ECANCELED when another thread has cancelled the wait. In
 * kCFStreamErrorDomainNetDB: why a name that was waited for has no answer; a CFError with this number in "kCFErrorDomainCFNetwork" has it
 * in words. What the host knew before stays. After a success `*error` is 0 in the domain 0.
 */
CF_EXPORT Boolean CFHostStartInfoResolution(CFHostRef theHost, CFHostInfoType info, CFStreamError *error)
    CRL_LINK(CFHostStartInfoResolution);

/**
 * Returns the known addresses of the host, each a CFData with a `struct sockaddr`, and in `*hasBeenResolved` whether there are any.
 *
 * Ownership: the array stays the host's. It is valid until the addresses are asked for again, or the host is freed.
 * Threads: any.
 * Errors: NULL before they are known. `hasBeenResolved` may be NULL.
 */
CF_EXPORT CFArrayRef CFHostGetAddressing(CFHostRef theHost, Boolean *hasBeenResolved)
    CRL_LINK(CFHostGetAddressing) CF_RETURNS_NOT_RETAINED;

/**
 * Returns the known names of the host, each a CFString, and in `*hasBeenResolved` whether there are any.
 *
 * Ownership: the array stays the host's. It is valid until the names are asked for again, or the host is freed.
 * Threads: any.
 * Errors: NULL before they are known. `hasBeenResolved` may be NULL.
 */
CF_EXPORT CFArrayRef CFHostGetNames(CFHostRef theHost, Boolean *hasBeenResolved) CRL_LINK(CFHostGetNames) CF_RETURNS_NOT_RETAINED;

/**
 * Returns what is known of the way to the host, a CFData with a 32-bit number of kSCNetworkFlags, and in `*hasBeenResolved` whether it is.
 *
 * Ownership: the data stays the host's. It is valid until reachability is asked for again, or the host is freed.
 * Threads: any.
 * Errors: NULL before it is known. `hasBeenResolved` may be NULL.
 * Differs from Apple: only the two flags above are known.
 */
CF_EXPORT CFDataRef CFHostGetReachability(CFHostRef theHost, Boolean *hasBeenResolved)
    CRL_LINK(CFHostGetReachability) CF_RETURNS_NOT_RETAINED;

/**
 * Stops asking for `info`. The client hears nothing of it any more. A thread that waits in CFHostStartInfoResolution returns.
 *
 * Threads: any, also in the callback. On another thread than the loop's, a callback that is under way goes on.
 * Errors: does nothing if the host is not asking, or is asking for something else.
 */
CF_EXPORT void CFHostCancelInfoResolution(CFHostRef theHost, CFHostInfoType info) CRL_LINK(CFHostCancelInfoResolution);

/**
 * Makes `clientCB` the host's client, in the place of the one before. NULL, for the callback or the context, removes it.
 *
 * Ownership: `info` is retained as the context says; the context is copied.
 * Threads: any. A callback under way on another thread keeps its info until it returns.
 * Errors: false when there is no memory; the client before stays.
 */
CF_EXPORT Boolean CFHostSetClient(CFHostRef theHost, CFHostClientCallBack clientCB, CFHostClientContext *clientContext)
    CRL_LINK(CFHostSetClient);

/**
 * Schedules the host in a mode of a loop, in which its client may then be called. It may be in several.
 *
 * Ownership: the loop does not keep the host.
 * Threads: any.
 * Errors: without memory the host is not scheduled, and a line on standard error says so, once.
 */
CF_EXPORT void CFHostScheduleWithRunLoop(CFHostRef theHost, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(CFHostScheduleWithRunLoop);

/**
 * Takes the host out of a mode of a loop. What it asks goes on only in other modes.
 *
 * Threads: any; on the loop's own thread no callback comes in that mode after the return.
 * Errors: does nothing if it is not there.
 */
CF_EXPORT void CFHostUnscheduleFromRunLoop(CFHostRef theHost, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(CFHostUnscheduleFromRunLoop);

CF_EXTERN_C_END

#endif /* ! __CFHOST__ */
