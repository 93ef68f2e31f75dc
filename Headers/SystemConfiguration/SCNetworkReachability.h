/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Reachability: whether this machine has a way to an address or a name, and when that changes. It is in the add-on library
 * libcorerunloop-services.
 *
 * What is asked is the kernel's routing: nothing is sent, and the other machine may be off. A name is asked for as by CFHost, which needs
 * the add-on library libcorerunloop-net for all names but "localhost" and numeric addresses; of its addresses the first counts to which
 * there is a way. A name without an address has no flags. On a loop or a queue it is asked for again after changes, at most once a second,
 * and 10 seconds after servers were silent.
 *
 * The address 0.0.0.0 stands for the way to the Internet, by IPv4 or else by IPv6, and :: for that by IPv6. It is the route to an address
 * that is kept for documents, 192.0.2.1 or 2001:db8::1, as a default route has it.
 *
 * A target that is scheduled listens to the kernel's messages about links, addresses and routes. They say no more than that it is time to
 * look again: its callback comes when the flags are others than before, and many messages may make one look. It takes three descriptors.
 * Without memory or a descriptor for a look there is another one a second later. A sandbox that has no AF_NETLINK refuses to schedule, and
 * its SCNetworkReachabilityGetFlags never has kSCNetworkReachabilityFlagsIsDirect.
 *
 * Functions may be called on any thread, and not from signal handlers. A target that is NULL, or of another type, stops the process with a
 * message that names the function. In the child of a fork a target of its parent can only be asked for its flags.
 */

#if !defined(_SCNETWORKREACHABILITY_H)
#define _SCNETWORKREACHABILITY_H 1

#include <stdint.h>
#include <sys/socket.h>

#include "../CoreFoundation/CFBase.h"
#include "../CoreFoundation/CFRunLoop.h"

#if defined(__swift__)
#define SCNetworkReachabilityRef CRLNetworkReachabilityRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__SCNetworkReachability, SCNetworkReachability);

/** A target: an address, a pair of them, or a name. */
typedef const struct __SCNetworkReachability *SCNetworkReachabilityRef;

/** Flags of a target; 0: there is no way to it. */
typedef uint32_t SCNetworkReachabilityFlags;

/** The flags. */
enum {
    kSCNetworkReachabilityFlagsTransientConnection = 1 << 0, /**< The way begins with a link of PPP. */
    kSCNetworkReachabilityFlagsReachable = 1 << 1, /**< There is a way. */
    kSCNetworkReachabilityFlagsConnectionRequired = 1 << 2, /**< Never told here: who makes connections on demand has a route. */
    kSCNetworkReachabilityFlagsConnectionOnTraffic = 1 << 3, /**< Never told here. */
    kSCNetworkReachabilityFlagsInterventionRequired = 1 << 4, /**< Never told here. */
    kSCNetworkReachabilityFlagsConnectionOnDemand = 1 << 5, /**< Never told here. */
    kSCNetworkReachabilityFlagsIsLocalAddress = 1 << 16, /**< The address is this machine's own. */
    kSCNetworkReachabilityFlagsIsDirect = 1 << 17, /**< There is no gateway on the way. */
    kSCNetworkReachabilityFlagsIsWWAN = 1 << 18, /**< Never told here. */
    kSCNetworkReachabilityFlagsConnectionAutomatic = kSCNetworkReachabilityFlagsConnectionOnTraffic /**< Its other name. */
};

/** The data of a target's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called when the callback is set; its result becomes the `info`. */
    void (*release)(const void *info); /**< Called once, when the callback is replaced or removed, or the target ends. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} SCNetworkReachabilityContext;

/**
 * A target's callback: its flags are others now. One that is scheduled as a name is told its first flags, too, once they are known; others
 * have theirs from SCNetworkReachabilityGetFlags.
 *
 * Threads: the loop's or the queue's; one call at a time. What changes meanwhile is told when it returns. It may set another callback,
 * unschedule and release the target.
 */
typedef void (*SCNetworkReachabilityCallBack)(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags flags, void *info);

/**
 * Creates a target of an address, a `struct sockaddr_in` or a `struct sockaddr_in6`. Its port does not matter.
 *
 * Ownership: the caller releases the target. The address is copied.
 * Threads: any.
 * Errors: NULL, with kSCStatusInvalidArgument for NULL and for other families, and kSCStatusFailed without memory.
 */
CF_EXPORT SCNetworkReachabilityRef SCNetworkReachabilityCreateWithAddress(CFAllocatorRef allocator, const struct sockaddr *address)
    CRL_LINK(SCNetworkReachabilityCreateWithAddress) CF_RETURNS_RETAINED;

/**
 * Creates a target of the way from one address of this machine to another one. Without `remoteAddress` it can be reached as long as
 * `localAddress` is this machine's own, and without `localAddress` it is that of SCNetworkReachabilityCreateWithAddress.
 *
 * Ownership: the caller releases the target. The addresses are copied.
 * Threads: any.
 * Errors: NULL, with kSCStatusInvalidArgument if both are NULL, or one is of another family or of none that IP has, and kSCStatusFailed
 * without memory.
 */
CF_EXPORT SCNetworkReachabilityRef SCNetworkReachabilityCreateWithAddressPair(CFAllocatorRef allocator, const struct sockaddr *localAddress,
                                                                              const struct sockaddr *remoteAddress)
    CRL_LINK(SCNetworkReachabilityCreateWithAddressPair) CF_RETURNS_RETAINED;

/**
 * Creates a target of a name, UTF-8, or of an address in digits. Nothing is asked yet.
 *
 * Ownership: the caller releases the target. The name is copied.
 * Threads: any.
 * Errors: NULL, with kSCStatusInvalidArgument if the name is NULL, empty or no UTF-8, and kSCStatusFailed without memory.
 */
CF_EXPORT SCNetworkReachabilityRef SCNetworkReachabilityCreateWithName(CFAllocatorRef allocator, const char *nodename)
    CRL_LINK(SCNetworkReachabilityCreateWithName) CF_RETURNS_RETAINED;

/**
 * Returns the type id of targets.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID SCNetworkReachabilityGetTypeID(void) CRL_LINK(SCNetworkReachabilityGetTypeID);

/**
 * Stores the target's flags as they are now in `*flags`.
 *
 * Of a name that is scheduled, those of the addresses that were found last. Of another name, it asks for the addresses and waits, as
 * CFHostStartInfoResolution does.
 * Threads: any; with a name it may wait, and holds no lock meanwhile.
 * Errors: false, with kSCStatusInvalidArgument if `flags` is NULL, and kSCStatusReachabilityUnknown as long as a scheduled name has no
 * answer yet, where the add-on library is needed and is not there, and without memory or a descriptor. `*flags` is 0 then.
 */
CF_EXPORT Boolean SCNetworkReachabilityGetFlags(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags *flags)
    CRL_LINK(SCNetworkReachabilityGetFlags);

/**
 * Makes `callout` the target's callback, in the place of the one before. NULL removes it. `context` may be NULL and is copied.
 *
 * Threads: any. A callback under way on another thread keeps its info until it returns.
 * Errors: false, with kSCStatusInvalidArgument for another version, and kSCStatusFailed without memory; the callback before stays.
 */
CF_EXPORT Boolean SCNetworkReachabilitySetCallback(SCNetworkReachabilityRef target, SCNetworkReachabilityCallBack callout,
                                                   SCNetworkReachabilityContext *context) CRL_LINK(SCNetworkReachabilitySetCallback);

/**
 * Schedules the target in a mode of a loop. It may be in several.
 *
 * Ownership: the target holds itself until it is taken out of all, which is to be done before a loop's thread ends.
 * Threads: any.
 * Errors: false, with kSCStatusInvalidArgument for NULL and if the target is on a queue, with kSCStatusAccessError in a sandbox that has no
 * AF_NETLINK, and with kSCStatusFailed without memory or descriptors. Where it is already it stays, which is no error.
 */
CF_EXPORT Boolean SCNetworkReachabilityScheduleWithRunLoop(SCNetworkReachabilityRef target, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(SCNetworkReachabilityScheduleWithRunLoop);

/**
 * Takes the target out of a mode of a loop.
 *
 * Threads: any; on the loop's own thread no callback comes in that mode after the return.
 * Errors: false, with kSCStatusInvalidArgument for NULL and if it is not there.
 */
CF_EXPORT Boolean SCNetworkReachabilityUnscheduleFromRunLoop(SCNetworkReachabilityRef target, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(SCNetworkReachabilityUnscheduleFromRunLoop);

/**
 * Has the target served by a queue of libdispatch, where the process has that. A name is asked for on a global queue. NULL takes it off
 * its queue.
 *
 * Ownership: the target holds itself until it is taken off.
 * Threads: any; a callback under way goes on.
 * Errors: false, with kSCStatusInvalidArgument if the target is on a loop or a queue, or for NULL on none, with kSCStatusAccessError in a
 * sandbox that has no AF_NETLINK, and with kSCStatusFailed without libdispatch, memory or descriptors.
 */
CF_EXPORT Boolean SCNetworkReachabilitySetDispatchQueue(SCNetworkReachabilityRef target, void *queue)
    CRL_LINK(SCNetworkReachabilitySetDispatchQueue);

CF_EXTERN_C_END

#endif /* ! _SCNETWORKREACHABILITY_H */
