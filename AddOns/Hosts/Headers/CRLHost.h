/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * A thread's run loop inside a host: another event loop, which waits for descriptors. CRLHostGLib.h, CRLHostLibuv.h and CRLHostQt.h do
 * this for their hosts; these functions are for any other. They are compiled into the program, which needs no further library.
 *
 *     CRLHost *host = CRLHostCreate(NULL, NULL);
 *     the host polls CRLRunLoopGetDescriptor(host->loop), level-triggered, and calls CRLHostServe(host) whenever it is readable
 *     CRLHostEnd(host);
 *
 * The loop then runs, in the default mode, as far as its items can see: with `CFRunLoopGetMain` timers, sources, ports, blocks of the main
 * dispatch queue and jobs of Swift's main actor are served. The next pass is prepared at once after a pass. So the loop counts as waiting
 * while the host calls its own functions, and one of these that signals a source has to wake the loop up, as another thread has to.
 * A callback of the loop that runs the host's loop, as a modal dialog does, keeps the run loop waiting until that returns. A function of
 * the host's may run either.
 */

#if !defined(CRL_HOST_H)
#define CRL_HOST_H 1

#include <stdio.h>
#include <stdlib.h>

/* SwiftPM's targets have this folder alone in their path. */
#if !defined(__has_include) || __has_include("CRLRunLoop.h")
#include "CRLRunLoop.h"
#else
#include "../../../Headers/CRLRunLoop.h"
#endif

CF_EXTERN_C_BEGIN

/** A run loop in a host. Only the loop's own thread uses it. */
typedef struct CRLHost {
    CFRunLoopRef loop; /**< The run loop, retained: the host's may outlive its thread. */
    CFRunLoopSourceRef anchor; /**< Is never signalled. A mode with a source is never empty, so the run does not finish. */
    void (*stopped)(void *info); /**< The program's function, or NULL. */
    void *info; /**< Its argument. */
    Boolean isServing; /**< A pass is under way. */
    Boolean isOver; /**< The host was ended in that pass. */
} CRLHost;

/** The anchor's callback, which is not called. */
CF_INLINE void CRLHostAnchor(void *info)
{
    (void)info;
}

/** Begins a run if none is under way, and prepares its next pass. An observer of the run's entry may stop it once. */
CF_INLINE Boolean CRLHostPrepare(CRLHost *host)
{
    if (CRLRunLoopPrepare(host->loop, kCFRunLoopDefaultMode)) {
        return 1;
    }
    CRLRunLoopLeave(host->loop);
    return CRLRunLoopPrepare(host->loop, kCFRunLoopDefaultMode);
}

/** Leaves the run and frees `host`, which is not serving. */
CF_INLINE void CRLHostFree(CRLHost *host)
{
    CRLRunLoopLeave(host->loop);
    CFRunLoopSourceInvalidate(host->anchor);
    CFRelease(host->anchor);
    CFRelease(host->loop);
    free(host);
}

/**
 * Begins to run the calling thread's loop in its host. The loop has a first pass as soon as the host polls.
 *
 * `stopped`, if not NULL, is called with `info` after each CFRunLoopStop, which ends one run; the next one has begun by then. A host's loop
 * is ended with the run loop by a function that ends it.
 * Ownership: the caller ends the host by CRLHostEnd.
 * Threads: the loop's own. Wake-ups and stops come from any thread, as for every loop.
 * Errors: NULL when the loop is running already, as in a callback or in another host, which a line on the standard error output says, or
 * when there is no memory or no descriptor.
 */
CF_INLINE CRLHost *CRLHostCreate(void (*stopped)(void *info), void *info)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopMode running = CFRunLoopCopyCurrentMode(loop);
    CFRunLoopSourceContext context = {0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, CRLHostAnchor};
    CRLHost *host = NULL;

    if (running) {
        (void)fputs("CRLHost: the run loop is running already; attach it to its host before it runs\n", stderr);
        CFRelease(running);
    } else if (CRLRunLoopGetDescriptor(loop) >= 0) {
        host = (CRLHost *)calloc(1, sizeof *host);
    }
    if (!host) {
        return NULL;
    }
    host->anchor = CFRunLoopSourceCreate(NULL, 0, &context);
    if (!host->anchor) {
        free(host);
        return NULL;
    }
    host->loop = (CFRunLoopRef)CFRetain(loop);
    host->stopped = stopped;
    host->info = info;
    CFRunLoopAddSource(loop, host->anchor, kCFRunLoopDefaultMode);
    if (!CRLHostPrepare(host)) {
        CRLHostFree(host);
        return NULL;
    }
    CFRunLoopWakeUp(loop);
    return host;
}

/**
 * Does one pass: handles what is ready, and prepares the next one. For the host, when the descriptor is readable; more calls do no harm.
 *
 * Threads: the loop's own. In a callback of the loop it does nothing.
 */
CF_INLINE void CRLHostServe(CRLHost *host)
{
    CFRunLoopRunResult result;

    if (host->isServing) {
        return;
    }
    host->isServing = 1;
    result = CRLRunLoopDispatch(host->loop);
    if (result) {
        CRLRunLoopLeave(host->loop);
    }
    if (!host->isOver) {
        (void)CRLHostPrepare(host);
    }
    if (result == kCFRunLoopRunStopped && host->stopped && !host->isOver) {
        host->stopped(host->info);
    }
    host->isServing = 0;
    if (host->isOver) {
        CRLHostFree(host);
    }
}

/**
 * Ends the run in the host, and frees `host`. In a callback of the loop that happens when the pass is over.
 *
 * Threads: the loop's own.
 */
CF_INLINE void CRLHostEnd(CRLHost *host)
{
    if (host->isServing) {
        host->isOver = 1;
    } else {
        CRLHostFree(host);
    }
}

CF_EXTERN_C_END

#endif /* ! CRL_HOST_H */
