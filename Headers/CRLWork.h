/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Work away from the loop: a function that takes long runs on a thread of a pool, and what follows is told on the loop. It is in the add-on
 * library libcorerunloop-services.
 *
 * The pool is the process's. It has as many threads as the process may use processors, but at least 4 and at most 64. One is started when
 * there is work and none is idle, and ends when it was idle for 10 seconds. Work begins in the order in which it was given. The threads
 * have all signals blocked.
 *
 * The child of a fork has no such threads: what waited, ran, or was not told yet is dropped there without a call, `release` included, and
 * keeps no loop alive. Work that the child itself gives has a pool of its own. After `_Fork`, which runs no handlers, there is none.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with a message
 * that names the function.
 */

#if !defined(CRL_WORK_H)
#define CRL_WORK_H 1

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFRunLoop.h"

#if defined(__swift__)
#define CRLWorkRef CRLWorkRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CRLWork, CRLWork);

/** A piece of work. */
typedef struct __CRLWork *CRLWorkRef;

/** How work came to its end. */
typedef CF_ENUM(CFIndex, CRLWorkEnd) {
    kCRLWorkDone = 0, /**< It ran. */
    kCRLWorkCancelled = 1 /**< CRLWorkCancel came before it began. */
};

/** The work itself, on a thread of the pool. It may take its time. What it gives to CFAutorelease is released when that thread ends. */
typedef void (*CRLWorkFunction)(void *info);

/** Tells the end of the work, once, on the loop's thread. It may call any function. */
typedef void (*CRLWorkCallBack)(CRLWorkRef work, CRLWorkEnd end, void *info);

/**
 * Returns the type id of work.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CRLWorkGetTypeID(void) CRL_LINK(CRLWorkGetTypeID);

/**
 * Has `work` called on a thread of the pool, and then `done` on the loop, when it runs `mode`; kCFRunLoopCommonModes is one.
 *
 * Until then a run of the mode is kept alive. `done` may be NULL, and so may `context`. A pass tells at most 256 ends. If the thread of the
 * loop ends before, what has not begun does not begin, and nothing is told.
 * Ownership: the caller releases the work, perhaps at once. `info` is released with it: when the end was told, or cannot be any more; and
 * the program has no reference left.
 * Threads: any.
 * Errors: NULL without memory, when no thread can be started and there is none, and when the thread of the loop has ended. `info` is not
 * retained then. NULL as well when `work` is NULL, or the context's version is not 0.
 */
CF_EXPORT CRLWorkRef CRLRunLoopPerformInBackground(CFRunLoopRef loop, CFRunLoopMode mode, CRLWorkFunction work, CRLWorkCallBack done,
                                                   const CRLSourceContext *context) CRL_LINK(CRLRunLoopPerformInBackground)
    CF_RETURNS_RETAINED;

/**
 * Cancels the work if it has not begun: then `done` is told kCRLWorkCancelled.
 *
 * Threads: any.
 * Errors: false when it has begun, was cancelled before, or was dropped with its loop.
 */
CF_EXPORT Boolean CRLWorkCancel(CRLWorkRef work) CRL_LINK(CRLWorkCancel);

CF_EXTERN_C_END

#endif /* ! CRL_WORK_H */
