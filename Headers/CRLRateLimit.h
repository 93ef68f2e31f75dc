/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Limits of how often a source or a timer is served, as sd_event_source_set_ratelimit sets them: a busy one does not keep the loop from the
 * others. They are in the add-on library libcorerunloop-services.
 *
 * The callback of the item counts its calls. The last one that an interval allows takes the item out of its mode, and a timer puts it back
 * when the interval is over. So nothing is lost meanwhile: bytes and connections wait in the kernel and messages in their port, a version-0
 * source that was signalled stays so, and a timer whose date has passed fires when it is back.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with a message
 * that names the function.
 */

#if !defined(CRL_RATE_LIMIT_H)
#define CRL_RATE_LIMIT_H 1

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFRunLoop.h"

#if defined(__swift__)
#define CRLRateLimitRef CRLRateLimitRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CRLRateLimit, CRLRateLimit);

/** The limit of one item in one mode. */
typedef struct __CRLRateLimit *CRLRateLimitRef;

/** What a limit tells. */
typedef CF_ENUM(CFIndex, CRLRateLimitEvent) {
    kCRLRateLimitBegins = 0, /**< The item was taken out. */
    kCRLRateLimitEnds = 1 /**< The interval is over: the item is served again. */
};

/** Tells that the item is held back from now on, in CRLRateLimitCount, or is not any more. On the loop's thread; may call any function. */
typedef void (*CRLRateLimitCallBack)(CRLRateLimitRef limit, CRLRateLimitEvent event, void *info);

/**
 * Returns the type id of limits.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CRLRateLimitGetTypeID(void) CRL_LINK(CRLRateLimitGetTypeID);

/**
 * Adds `item`, a CFRunLoopSource or a CFRunLoopTimer, to the mode, which may be kCFRunLoopCommonModes, and limits it there to `burst` calls
 * in `interval` seconds.
 *
 * From now on only the limit adds and removes the item there, and a version-0 source's `schedule` and `cancel` are called each time. While
 * the item is held back, a run of the mode stays alive. `callout` may be NULL, and so may `context`, which is copied.
 * Ownership: the limit stays until CRLRateLimitInvalidate, besides the caller's reference, and keeps the item and the loop. `info` is
 * released with the limit.
 * Threads: any. In the child of a fork a limit goes on as its loop does.
 * Errors: NULL when `interval` is not above 0, or not finite; when `burst` is below 1; when the version of the context is not 0; when the
 * item is invalid, a timer of another loop, or cannot be added, as to a loop whose thread has ended; without memory, and then the item may
 * be in some of the common modes. `info` is not retained then.
 */
CF_EXPORT CRLRateLimitRef CRLRateLimitCreate(CFAllocatorRef allocator, CFRunLoopRef loop, CFRunLoopMode mode, CFTypeRef item,
                                             CFTimeInterval interval, CFIndex burst, CRLRateLimitCallBack callout,
                                             const CRLSourceContext *context) CRL_LINK(CRLRateLimitCreate) CF_RETURNS_RETAINED;

/**
 * Counts a call of the item. The item's callback does this first. Returns whether the item is still served after this call.
 *
 * An interval begins with the first call behind the one before. In the call that is the last of its burst the item is taken out, and
 * `callout` is told kCRLRateLimitBegins before this returns. The call itself is allowed: the callback does its work whatever this returns.
 * A step of the wall clock may end an interval early, and never makes one longer than `interval`.
 * Threads: the loop's.
 * Errors: false, without counting, while the item is held back, and after CRLRateLimitInvalidate. Without memory for holding it back the
 * item stays served, and the next call tries again.
 */
CF_EXPORT Boolean CRLRateLimitCount(CRLRateLimitRef limit) CRL_LINK(CRLRateLimitCount);

/**
 * Ends the limit, and takes the item out of the mode for good. Nothing more is told, except by a callback that is under way.
 *
 * Threads: any, once or more often, also in the callbacks and after the thread of the loop has ended.
 */
CF_EXPORT void CRLRateLimitInvalidate(CRLRateLimitRef limit) CRL_LINK(CRLRateLimitInvalidate);

CF_EXTERN_C_END

#endif /* ! CRL_RATE_LIMIT_H */
