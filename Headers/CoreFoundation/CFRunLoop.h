/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Run loops: loops, modes, sources, timers, observers and queued blocks.
 *
 * Each thread has one loop. A loop runs in one mode at a time, a mode is a name with the sources, timers and observers added under it, and
 * a pass over a mode has a fixed order (docs/order.md). Mode names are compared as strings, and `kCFRunLoopCommonModes` stands for every
 * mode of the loop's common set wherever a mode is expected, but for the mode to run.
 *
 * No lock is held while a callback runs, so a callback may call any function of this header, for this loop or another.
 *
 * A loop, source, observer or timer that is NULL, or an object of another type, stops the process with one sentence that names the
 * function. A mode that is NULL or no string makes a call do nothing; that is logged once. Every other bad value has the effect that the
 * function's comment gives. "Signal handlers included" means: safe in a signal handler that owns a reference to the object.
 */

#if !defined(__COREFOUNDATION_CFRUNLOOP__)
#define __COREFOUNDATION_CFRUNLOOP__ 1

#include "CFArray.h"
#include "CFBase.h"
#include "CFDate.h"
#include "CFString.h"

#if defined(__swift__)
#define CFRunLoopRef CRLRunLoopRef_
#define CFRunLoopSourceRef CRLRunLoopSourceRef_
#define CFRunLoopObserverRef CRLRunLoopObserverRef_
#define CFRunLoopTimerRef CRLRunLoopTimerRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFRunLoop, CFRunLoop);
CRL_REFERENCE_TYPE(__CFRunLoopSource, CFRunLoopSource);
CRL_REFERENCE_TYPE(__CFRunLoopObserver, CFRunLoopObserver);
CRL_REFERENCE_TYPE(__CFRunLoopTimer, CFRunLoopTimer);

/** A thread's run loop. It is made by the first CFRunLoopGetCurrent of its thread and taken down when the thread ends. */
typedef struct __CFRunLoop *CFRunLoopRef;

/** Something that asks for its `perform` to be called: version 0 when it is signalled, version 1 when its descriptor is readable. */
typedef struct __CFRunLoopSource *CFRunLoopSourceRef;

/** A callback for chosen points of each pass. */
typedef struct __CFRunLoopObserver *CFRunLoopObserverRef;

/** A callback for an instant, or for every interval after it. */
typedef struct __CFRunLoopTimer *CFRunLoopTimerRef;

/** The name of a mode. Any string is one; equal strings name the same mode. */
typedef CFStringRef CFRunLoopMode CF_EXTENSIBLE_STRING_ENUM;

/** Why a run ended. */
typedef CF_ENUM(SInt32, CFRunLoopRunResult) {
    kCFRunLoopRunFinished = 1, /**< The mode has no source, timer or block left to wait for. */
    kCFRunLoopRunStopped = 2, /**< CFRunLoopStop was called. */
    kCFRunLoopRunTimedOut = 3, /**< The given time has passed. */
    kCFRunLoopRunHandledSource = 4 /**< A source was handled and the run was to return after one. */
};

/** The points of a pass at which observers are called; a mask when an observer is created, exactly one bit in a call. */
typedef CF_OPTIONS(CFOptionFlags, CFRunLoopActivity) {
    kCFRunLoopEntry = (1UL << 0), /**< The run has begun; once, before the first pass. */
    kCFRunLoopBeforeTimers = (1UL << 1), /**< A pass begins; sent whether or not there is a timer. */
    kCFRunLoopBeforeSources = (1UL << 2), /**< Blocks and version-0 sources come next; sent whether or not there are any. */
    kCFRunLoopBeforeWaiting = (1UL << 5), /**< The thread is about to sleep. */
    kCFRunLoopAfterWaiting = (1UL << 6), /**< The thread has woken, and has not yet handled what woke it. */
    kCFRunLoopExit = (1UL << 7), /**< The run is over; once, after the last pass. */
    kCFRunLoopAllActivities = 0x0FFFFFFFU /**< All of them, as a mask. */
};

/** The mode that CFRunLoopRun runs, and the first member of every loop's common modes. Its string is its own name. */
CF_EXPORT const CFRunLoopMode kCFRunLoopDefaultMode CRL_LINK(kCFRunLoopDefaultMode);

/**
 * Stands for every common mode of a loop when items are added, removed and looked up, and when blocks are queued. Its string is its own
 * name.
 * Differs from Apple: any equal string is recognised, not only this constant.
 */
CF_EXPORT const CFRunLoopMode kCFRunLoopCommonModes CRL_LINK(kCFRunLoopCommonModes);

#if defined(__swift__)
/* Darwin's spellings in Swift, `.defaultMode` and `.commonModes`, beside the constants' names. A mode is a CFString there. */
CF_EXPORT const CFRunLoopMode CRLDefaultModeMember CRL_LINK(kCFRunLoopDefaultMode) __attribute__((swift_name("CFString.defaultMode")));
CF_EXPORT const CFRunLoopMode CRLCommonModesMember CRL_LINK(kCFRunLoopCommonModes) __attribute__((swift_name("CFString.commonModes")));
#endif

/* Run loops */

/**
 * Gets the type id of run loops.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopGetTypeID(void) CRL_LINK(CFRunLoopGetTypeID);

/**
 * Gets the calling thread's run loop, and makes it when the thread has none yet; every call on one thread returns the same loop.
 *
 * Ownership: borrowed, and alive as long as the thread; retain it to keep it longer.
 * Threads: any, but not in a signal handler.
 * Errors: stops the process with one sentence when there is no memory for the loop.
 */
CF_EXPORT CFRunLoopRef CFRunLoopGetCurrent(void) CRL_LINK(CFRunLoopGetCurrent) CF_RETURNS_NOT_RETAINED;

/**
 * Gets the main thread's run loop, and makes it when it does not exist yet.
 *
 * Ownership: borrowed; the main loop lives as long as the process.
 * Threads: any, also before the main thread has used its loop.
 * Errors: stops the process with one sentence when there is no memory for the loop.
 */
CF_EXPORT CFRunLoopRef CFRunLoopGetMain(void) CRL_LINK(CFRunLoopGetMain) CF_RETURNS_NOT_RETAINED;

/**
 * Copies the name of the mode in which `rl` runs: of nested runs the innermost.
 *
 * Ownership: the caller releases the name; NULL when the loop is not running.
 * Threads: any; from other threads the answer may be out of date when it arrives.
 */
CF_EXPORT CFRunLoopMode CFRunLoopCopyCurrentMode(CFRunLoopRef rl) CRL_LINK(CFRunLoopCopyCurrentMode) CF_RETURNS_RETAINED;

/**
 * Copies the names of all modes of `rl` in no particular order; `kCFRunLoopCommonModes` is never one of them.
 *
 * Ownership: the caller releases the array; NULL when there is no memory.
 * Threads: any.
 */
CF_EXPORT CFArrayRef CFRunLoopCopyAllModes(CFRunLoopRef rl) CRL_LINK(CFRunLoopCopyAllModes) CF_RETURNS_RETAINED;

/**
 * Makes `mode` one of the common modes of `rl` for good and adds every item of the common set to it.
 *
 * A mode that is common already, `kCFRunLoopCommonModes` itself and NULL are ignored.
 * Ownership: the name is copied.
 * Threads: any; `schedule` of the sources added is called on the calling thread.
 * Differs from Apple: `kCFRunLoopCommonModes` as the mode is ignored, where Apple's code recurses without end.
 */
CF_EXPORT void CFRunLoopAddCommonMode(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddCommonMode);

/**
 * Gets the earliest next fire date of the timers in `mode` of `rl`, in seconds since 2001; 0 when the mode is unknown, NULL or without
 * timers.
 *
 * Threads: any.
 */
CF_EXPORT CFAbsoluteTime CFRunLoopGetNextTimerFireDate(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CFRunLoopGetNextTimerFireDate);

/**
 * Runs the calling thread's loop in the default mode until it is stopped or the mode has nothing left to wait for.
 *
 * Threads: any, for its own loop; runs may be nested.
 * Differs from Apple: without the dispatch library in the process the main loop, too, returns when its default mode is empty.
 */
CF_EXPORT void CFRunLoopRun(void) CRL_LINK(CFRunLoopRun);

/**
 * Runs the calling thread's loop in `mode` for at most `seconds`, and says why it ended.
 *
 * `seconds` count from when the observers of kCFRunLoopEntry have been called; 0 or less makes one pass without sleeping, more than
 * 504,911,232 (16 years) means no limit. With `returnAfterSourceHandled` the run ends after the first source handled; timers, blocks and
 * observers are no sources. When several reasons hold at the end of a pass, the first of these counts: HandledSource, TimedOut, Stopped,
 * Finished. A mode that is empty or does not exist, NULL, and `kCFRunLoopCommonModes` are Finished at once, without a call to any
 * observer.
 * Threads: any, for its own loop; runs may be nested, in any mode.
 * Errors: not-a-number as `seconds` counts as 0; that, and a NULL mode, are each logged once.
 * Differs from Apple: not-a-number is no limit there; the limit here needs no helper thread and no timer descriptor.
 */
CF_EXPORT CFRunLoopRunResult CFRunLoopRunInMode(CFRunLoopMode mode, CFTimeInterval seconds, Boolean returnAfterSourceHandled)
    CRL_LINK(CFRunLoopRunInMode);

/**
 * Says whether the thread of `rl` sleeps in its loop, or is just about to or just back.
 *
 * Threads: any, signal handlers included.
 */
CF_EXPORT Boolean CFRunLoopIsWaiting(CFRunLoopRef rl) CRL_LINK(CFRunLoopIsWaiting);

/**
 * Makes `rl` do another pass: a sleeping loop wakes, and one that is on its way to sleep does not sleep.
 *
 * Several calls before the loop wakes count as one; a call while the loop is not running, or between its sleep and its next pass, has no
 * effect, as the next pass looks at everything anyway.
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler; no system call when the loop is awake or already woken.
 */
CF_EXPORT void CFRunLoopWakeUp(CFRunLoopRef rl) CRL_LINK(CFRunLoopWakeUp);

/**
 * Ends the innermost run of `rl` at the end of its current pass, and wakes it for that; a loop that is not running is left alone.
 *
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler.
 */
CF_EXPORT void CFRunLoopStop(CFRunLoopRef rl) CRL_LINK(CFRunLoopStop);

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Queues `block` to be run once by `rl`, in whichever mode of `mode` it runs first; blocks run in the order in which they were queued.
 *
 * `mode` is a mode's name, or a CFArray or CFSet of names; modes that do not exist are made. The loop is not woken: call CFRunLoopWakeUp if
 * it may be asleep. A block that is queued while a block runs waits for the next time that blocks are run.
 * Ownership: the block is copied, and released after it has run or when the loop is taken down.
 * Threads: any.
 * Errors: a NULL block, a NULL `mode` and one of another type are ignored.
 */
CF_EXPORT void CFRunLoopPerformBlock(CFRunLoopRef rl, CFTypeRef mode, void (^block)(void)) CRL_LINK(CFRunLoopPerformBlock);
#endif

/**
 * Says whether `source`, or one equal to it, is in `mode` of `rl`; for `kCFRunLoopCommonModes`, whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopContainsSource);

/**
 * Adds `source` to `mode` of `rl` and calls its `schedule` once for each mode that it joins, before returning.
 *
 * Nothing happens when it is there already, when a source equal to it is (two sources with one `perform` and NULL `info` are equal), or
 * when it is invalid. A mark that a version-0 source carries is kept and honoured. The loop is not woken.
 * Ownership: the loop retains the source until it is removed or invalidated, or the loop's thread ends.
 * Threads: any; `schedule` and `getPort` are called on the calling thread.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored; nothing is added when there is no memory, which is
 * logged once.
 */
CF_EXPORT void CFRunLoopAddSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddSource);

/**
 * Takes `source` out of `mode` of `rl` and calls its `cancel` once for each mode that it leaves, before returning.
 *
 * A source removed from one common mode by that mode's name stays in the common set. The source stays valid and keeps its mark.
 * Ownership: the loop's reference is given back.
 * Threads: any; `cancel` is called on the calling thread.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopRemoveSource);

/**
 * Says whether `observer` is in `mode` of `rl`; for `kCFRunLoopCommonModes`, whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode)
    CRL_LINK(CFRunLoopContainsObserver);

/**
 * Adds `observer` to `mode` of `rl`; it is called from the next notification on.
 *
 * An observer is in one loop at most, in any number of its modes; adding it to a second loop, twice to one mode, or when it is invalid does
 * nothing.
 * Ownership: the loop retains the observer until it is removed or invalidated, or the loop's thread ends.
 * Threads: any.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored; nothing is added when there is no memory, which is
 * logged once.
 */
CF_EXPORT void CFRunLoopAddObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddObserver);

/**
 * Takes `observer` out of `mode` of `rl`; out of its last mode, it may join another loop.
 *
 * Ownership: the loop's reference is given back.
 * Threads: any.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode)
    CRL_LINK(CFRunLoopRemoveObserver);

/**
 * Says whether `timer` is in `mode` of `rl`; for `kCFRunLoopCommonModes`, whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopContainsTimer);

/**
 * Adds `timer` to `mode` of `rl`; a loop asleep in that mode wakes in time for it without being asked.
 *
 * A timer is in one loop at most, in any number of its modes; adding it to a second loop, twice to one mode, or when it is invalid does
 * nothing.
 * Ownership: the loop retains the timer until it is removed or invalidated, or the loop's thread ends.
 * Threads: any.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored; nothing is added when there is no memory, which is
 * logged once.
 */
CF_EXPORT void CFRunLoopAddTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddTimer);

/**
 * Takes `timer` out of `mode` of `rl`; it stays valid and keeps its fire date, and out of its last mode it may join another loop.
 *
 * Ownership: the loop's reference is given back.
 * Threads: any.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopRemoveTimer);

/* Sources */

/** What a version-0 source is made of: a source that is marked by CFRunLoopSourceSignal. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to every function below. */
    const void *(*retain)(const void *info); /**< Called once at creation; what it returns is kept as the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed; not by CFRunLoopSourceInvalidate. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
    Boolean (*equal)(const void *info1, const void *info2); /**< Whether two sources are equal; NULL compares the pointers. */
    CFHashCode (*hash)(const void *info); /**< Equal infos have equal values; NULL takes the pointer. */
    void (*schedule)(void *info, CFRunLoopRef rl, CFRunLoopMode mode); /**< The source has joined this mode; on the thread that added it. */
    void (*cancel)(void *info, CFRunLoopRef rl, CFRunLoopMode mode); /**< The source has left this mode; on the thread that removed it. */
    void (*perform)(void *info); /**< The work; on the loop's thread. */
} CFRunLoopSourceContext;

/** A descriptor, in the place of Apple's Mach port. */
typedef int __CFPort;

/**
 * What a version-1 source is made of: a source that performs when its descriptor is readable. Any function may be NULL.
 *
 * The loop takes the 8 bytes of an eventfd or timerfd itself, once for each `perform`, and leaves every byte of any other descriptor to
 * `perform`, which is called again as long as something is left to read. At most one version-1 source is handled in a pass.
 * Differs from Apple: `getPort` returns a descriptor and `perform` has one parameter; Apple's returns a Mach port, and its `perform` gets a
 * message.
 */
typedef struct {
    CFIndex version; /**< 1. */
    void *info; /**< The program's own; given to every function below. */
    const void *(*retain)(const void *info); /**< Called once at creation; what it returns is kept as the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed; not by CFRunLoopSourceInvalidate. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
    Boolean (*equal)(const void *info1, const void *info2); /**< Whether two sources are equal; NULL compares the pointers. */
    CFHashCode (*hash)(const void *info); /**< Equal infos have equal values; NULL takes the pointer. */
    __CFPort (*getPort)(void *info); /**< The descriptor to watch, the same as long as the source is in a loop; -1 for none. */
    void (*perform)(void *info); /**< The work; on the loop's thread. */
} CFRunLoopSourceContext1;

/**
 * Gets the type id of sources.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopSourceGetTypeID(void) CRL_LINK(CFRunLoopSourceGetTypeID);

/**
 * Creates a source that is in no loop yet.
 *
 * `order` decides which of several marked sources is performed first: the lowest, and of equal ones the one marked first. `context` is a
 * CFRunLoopSourceContext, or a CFRunLoopSourceContext1 whose `version` is 1; it is copied.
 * Ownership: the caller releases the source; loops that it is added to retain it. `info` is retained as the context says.
 * Threads: any; `retain` is called on the calling thread.
 * Errors: NULL when there is no memory, or `context->version` is neither 0 nor 1, which is logged once; a NULL `context` stops the process
 * with one sentence.
 */
CF_EXPORT CFRunLoopSourceRef CFRunLoopSourceCreate(CFAllocatorRef allocator, CFIndex order, CFRunLoopSourceContext *context)
    CRL_LINK(CFRunLoopSourceCreate) CF_RETURNS_RETAINED;

/**
 * Gets the order with which `source` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopSourceGetOrder(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceGetOrder);

/**
 * Makes `source` invalid for good: it loses its mark and leaves every mode of every loop, with one call of `cancel` for each.
 *
 * A second call does nothing. `info` is not released before the source is freed.
 * Ownership: the loops' references are given back; the caller's is not.
 * Threads: any, also in the source's own callbacks; `cancel` is called on the calling thread. On the loop's own thread nothing of the
 * source starts after the return; from another thread one `perform` that had been chosen before may still run.
 */
CF_EXPORT void CFRunLoopSourceInvalidate(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceInvalidate);

/**
 * Says whether `source` has not been invalidated; false already in the `cancel` calls of CFRunLoopSourceInvalidate.
 *
 * Threads: any, signal handlers included.
 */
CF_EXPORT Boolean CFRunLoopSourceIsValid(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceIsValid);

/**
 * Copies the context of `source` into `*context`, with `info` as it was retained, also of an invalid source.
 *
 * The caller first sets `context->version` to the version of the source.
 * Ownership: `info` stays the source's.
 * Threads: any.
 * Errors: nothing is copied when the versions differ, which is logged once; a NULL `context` stops the process with one sentence.
 */
CF_EXPORT void CFRunLoopSourceGetContext(CFRunLoopSourceRef source, CFRunLoopSourceContext *context) CRL_LINK(CFRunLoopSourceGetContext);

/**
 * Marks a version-0 source, so that one of the loops that it is in performs it once, in its next pass over one of the source's modes.
 *
 * It wakes nobody: call CFRunLoopWakeUp for the loop that is to handle it. Several calls before the `perform` count as one; a call during
 * it leads to another `perform`. A source in no loop keeps its mark. A version-1 or an invalid source is left alone.
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler.
 */
CF_EXPORT void CFRunLoopSourceSignal(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceSignal);

/**
 * Says whether `source` is marked: signalled and not yet chosen to be performed.
 *
 * Threads: any.
 * Differs from Apple: Apple exports the function but declares it in no public header.
 */
CF_EXPORT Boolean CFRunLoopSourceIsSignalled(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceIsSignalled);

/* Observers */

/** What an observer carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation; what it returns is kept as the `info`. */
    void (*release)(const void *info); /**< Called once, when the observer is invalidated or freed. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CFRunLoopObserverContext;

/** An observer's callback: `activity` is the one bit that is being announced. It runs on the loop's thread. */
typedef void (*CFRunLoopObserverCallBack)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info);

/**
 * Gets the type id of observers.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopObserverGetTypeID(void) CRL_LINK(CFRunLoopObserverGetTypeID);

/**
 * Creates an observer that is in no loop yet.
 *
 * `activities` is a mask; `repeats` false invalidates the observer after its first call, whatever that announced. Observers are called
 * lowest `order` first, equal ones in the order of adding. A NULL `callout` does nothing when called; `context` may be NULL and is copied.
 * Ownership: the caller releases the observer; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFRunLoopObserverRef CFRunLoopObserverCreate(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                                       CFRunLoopObserverCallBack callout, CFRunLoopObserverContext *context)
    CRL_LINK(CFRunLoopObserverCreate) CF_RETURNS_RETAINED;

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Creates an observer that calls a block, with the parameters of CFRunLoopObserverCreate; CRLRunLoopObserverCreateWithFunction is the same
 * for compilers without blocks.
 *
 * Ownership: the caller releases the observer; the block is copied, and released when the observer is invalidated or freed.
 * Threads: any.
 * Errors: NULL when `block` is NULL or there is no memory.
 */
CF_EXPORT CFRunLoopObserverRef CFRunLoopObserverCreateWithHandler(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats,
                                                                  CFIndex order,
                                                                  void (^block)(CFRunLoopObserverRef observer, CFRunLoopActivity activity))
    CRL_LINK(CFRunLoopObserverCreateWithHandler) CF_RETURNS_RETAINED;
#endif

/**
 * Gets the mask with which `observer` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFOptionFlags CFRunLoopObserverGetActivities(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverGetActivities);

/**
 * Says whether `observer` was created to be called more than once.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopObserverDoesRepeat(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverDoesRepeat);

/**
 * Gets the order with which `observer` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopObserverGetOrder(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverGetOrder);

/**
 * Makes `observer` invalid for good: it leaves its loop, and its `info` is released once. A second call does nothing.
 *
 * Ownership: the loop's reference is given back; the caller's is not.
 * Threads: any, also in the observer's own callback; if the callback is running on another thread, that thread releases `info` after it.
 */
CF_EXPORT void CFRunLoopObserverInvalidate(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverInvalidate);

/**
 * Says whether `observer` has not been invalidated.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopObserverIsValid(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverIsValid);

/**
 * Copies the context of `observer` into `*context`; `info` is NULL when the observer is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is.
 * Ownership: `info` stays the observer's.
 * Threads: any.
 * Errors: stops the process with one sentence when `context` is NULL.
 */
CF_EXPORT void CFRunLoopObserverGetContext(CFRunLoopObserverRef observer, CFRunLoopObserverContext *context)
    CRL_LINK(CFRunLoopObserverGetContext);

/* Timers */

/** What a timer carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation and once before each callback, which gets what it returns. */
    void (*release)(const void *info); /**< Called once after each callback, and once when the timer is invalidated or freed. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CFRunLoopTimerContext;

/** A timer's callback. It runs on the loop's thread. */
typedef void (*CFRunLoopTimerCallBack)(CFRunLoopTimerRef timer, void *info);

/**
 * Gets the type id of timers.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopTimerGetTypeID(void) CRL_LINK(CFRunLoopTimerGetTypeID);

/**
 * Creates a timer that is in no loop yet.
 *
 * `fireDate` is in seconds since 2001 and is turned into an instant of the monotonic clock at once, so that later changes of the wall clock
 * do not move it; a date in the past is due as soon as a loop watches the timer. `interval` is in seconds; 0 or less makes a timer that
 * fires once and becomes invalid after its callback. A repeating timer fires at whole intervals after its first date, counted from the
 * creation if that date was past; periods that were missed are one firing. `flags` and `order` have no effect. `context` may be NULL and is
 * copied.
 * Ownership: the caller releases the timer; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory; a not-a-number `interval` makes a timer that fires once, and a positive `interval` below a
 * nanosecond is a nanosecond; each is logged once. A not-a-number `fireDate` never comes.
 * Differs from Apple: not-a-number and tiny intervals stop the process there; equal dates fire in the order of adding.
 */
CF_EXPORT CFRunLoopTimerRef CFRunLoopTimerCreate(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                 CFOptionFlags flags, CFIndex order, CFRunLoopTimerCallBack callout,
                                                 CFRunLoopTimerContext *context)
    CRL_LINK(CFRunLoopTimerCreate) CF_RETURNS_RETAINED;

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Creates a timer that calls a block, with the parameters of CFRunLoopTimerCreate; CRLRunLoopTimerCreateWithFunction is the same for
 * compilers without blocks.
 *
 * Ownership: the caller releases the timer; the block is copied, retained around each call, and released when the timer is invalidated or
 * freed.
 * Threads: any.
 * Errors: NULL when `block` is NULL or there is no memory; times as CFRunLoopTimerCreate.
 */
CF_EXPORT CFRunLoopTimerRef CFRunLoopTimerCreateWithHandler(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                            CFOptionFlags flags, CFIndex order, void (^block)(CFRunLoopTimerRef timer))
    CRL_LINK(CFRunLoopTimerCreateWithHandler) CF_RETURNS_RETAINED;
#endif

/**
 * Gets when `timer` fires next, in seconds since 2001; during its callback the date that has just fired, and 0 when it is invalid.
 *
 * Threads: any.
 */
CF_EXPORT CFAbsoluteTime CFRunLoopTimerGetNextFireDate(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetNextFireDate);

/**
 * Moves the next firing of `timer` to `fireDate`, in seconds since 2001, and counts the intervals from there.
 *
 * In the timer's own callback a date that is not later than the one being served means: fire again at once; a timer that fires once becomes
 * invalid after its callback all the same. An invalid timer is left alone.
 * Threads: any, also in the timer's own callback; a sleeping loop takes notice without being woken.
 * Errors: a date that is not a number never comes.
 * Differs from Apple: the change of a sleeping loop's timer makes no extra pass.
 */
CF_EXPORT void CFRunLoopTimerSetNextFireDate(CFRunLoopTimerRef timer, CFAbsoluteTime fireDate) CRL_LINK(CFRunLoopTimerSetNextFireDate);

/**
 * Gets the interval of `timer` in seconds; 0 when it fires once.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CFRunLoopTimerGetInterval(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetInterval);

/**
 * Says whether `timer` fires more than once.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopTimerDoesRepeat(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerDoesRepeat);

/**
 * Gets the order with which `timer` was created; it has no effect.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopTimerGetOrder(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetOrder);

/**
 * Makes `timer` invalid for good: it leaves its loop, and its `info` is released once. A second call does nothing.
 *
 * Ownership: the loop's reference is given back; the caller's is not.
 * Threads: any, also in the timer's own callback. On the loop's own thread the timer does not fire after the return; from another thread
 * one firing that had been chosen before may still run.
 */
CF_EXPORT void CFRunLoopTimerInvalidate(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerInvalidate);

/**
 * Says whether `timer` has not been invalidated; a timer that fires once is still valid during its callback.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopTimerIsValid(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerIsValid);

/**
 * Copies the context of `timer` into `*context`; `info` is NULL when the timer is invalid.
 *
 * The caller first sets `context->version` to 0, the only version there is.
 * Ownership: `info` stays the timer's.
 * Threads: any.
 * Errors: stops the process with one sentence when `context` is NULL.
 */
CF_EXPORT void CFRunLoopTimerGetContext(CFRunLoopTimerRef timer, CFRunLoopTimerContext *context) CRL_LINK(CFRunLoopTimerGetContext);

/**
 * Gets by how many seconds `timer` may fire late so as to share a wake-up with others; 0 unless it was set.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CFRunLoopTimerGetTolerance(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetTolerance);

/**
 * Allows `timer` to fire up to `tolerance` seconds late, so that the loop may wake once for several timers; later dates are not moved by
 * it.
 *
 * A negative value and not-a-number count as 0; of a repeating timer at most half of its interval is taken. The timer slack of the loop's
 * thread, prctl(2), comes on top where it is above 50 microseconds, which is what Linux gives a thread.
 * Threads: any; takes effect from the loop's next sleep on.
 * Differs from Apple: the toolchain's Linux version ignores the call.
 */
CF_EXPORT void CFRunLoopTimerSetTolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance) CRL_LINK(CFRunLoopTimerSetTolerance);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFRUNLOOP__ */
