/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Run loops: loops, modes, sources, timers, observers and queued blocks.
 *
 * Each thread has one loop. A loop runs in one mode at a time. A mode is a name with the sources, timers and observers added under it. A
 * pass over a mode has a fixed order (docs/order.md). Mode names are compared as strings. `kCFRunLoopCommonModes` stands for every mode of
 * the loop's common set wherever a mode is expected, except as the mode to run.
 *
 * No lock is held while a callback runs, so a callback may call any function of this header, for this loop or another.
 *
 * A loop, source, observer or timer that is NULL, or an object of another type, stops the process with a message that names the function.
 * With a mode that is NULL or not a string, a call does nothing and logs that once. Every other bad value has the effect that the
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

/** A thread's run loop. The first CFRunLoopGetCurrent of a thread creates it, and the thread's end takes it down. */
typedef struct __CFRunLoop *CFRunLoopRef;

/** An object whose `perform` the loop calls: for version 0 after CFRunLoopSourceSignal, for version 1 when its descriptor is readable. */
typedef struct __CFRunLoopSource *CFRunLoopSourceRef;

/** A callback at chosen points of each pass. */
typedef struct __CFRunLoopObserver *CFRunLoopObserverRef;

/** A callback at an instant, or at every interval after it. */
typedef struct __CFRunLoopTimer *CFRunLoopTimerRef;

/** The name of a mode. Any string can be one; equal strings name the same mode. */
typedef CFStringRef CFRunLoopMode CF_EXTENSIBLE_STRING_ENUM;

/** The reason why a run ended. */
typedef CF_ENUM(SInt32, CFRunLoopRunResult) {
    kCFRunLoopRunFinished = 1, /**< The mode has no source, timer or block left to wait for. */
    kCFRunLoopRunStopped = 2, /**< CFRunLoopStop was called. */
    kCFRunLoopRunTimedOut = 3, /**< The given time has passed. */
    kCFRunLoopRunHandledSource = 4 /**< A source was handled and the run was to return after one. */
};

/** The points of a pass at which observers are called. The creator of an observer passes a mask of them; a callback gets exactly one. */
typedef CF_OPTIONS(CFOptionFlags, CFRunLoopActivity) {
    kCFRunLoopEntry = (1UL << 0), /**< The run begins; announced once, before the first pass. */
    kCFRunLoopBeforeTimers = (1UL << 1), /**< A pass begins. Timers are handled at its end; announced whether or not there is one. */
    kCFRunLoopBeforeSources = (1UL << 2), /**< Blocks and version-0 sources come next; announced whether or not there are any. */
    kCFRunLoopBeforeWaiting = (1UL << 5), /**< The thread is about to sleep. */
    kCFRunLoopAfterWaiting = (1UL << 6), /**< The thread has woken, and has not yet handled what woke it. */
    kCFRunLoopExit = (1UL << 7), /**< The run is over; announced once, after the last pass. */
    kCFRunLoopAllActivities = 0x0FFFFFFFU /**< All activities, and all that later versions add. */
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
/* Swift also gets Darwin's spellings `.defaultMode` and `.commonModes`, where a mode is a CFString. */
CF_EXPORT const CFRunLoopMode CRLDefaultModeMember CRL_LINK(kCFRunLoopDefaultMode) __attribute__((swift_name("CFString.defaultMode")));
CF_EXPORT const CFRunLoopMode CRLCommonModesMember CRL_LINK(kCFRunLoopCommonModes) __attribute__((swift_name("CFString.commonModes")));
#endif

/* Run loops */

/**
 * Returns the type id of run loops.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopGetTypeID(void) CRL_LINK(CFRunLoopGetTypeID);

/**
 * Returns the calling thread's run loop, and creates it if the thread has none yet.
 *
 * Every call on one thread returns the same loop.
 * Ownership: the reference is borrowed and valid as long as the thread lives. Retain the loop to keep it longer.
 * Threads: any, but not in a signal handler.
 * Errors: stops the process with a message when there is no memory for the loop.
 */
CF_EXPORT CFRunLoopRef CFRunLoopGetCurrent(void) CRL_LINK(CFRunLoopGetCurrent) CF_RETURNS_NOT_RETAINED;

/**
 * Returns the main thread's run loop, and creates it if it does not exist yet.
 *
 * Ownership: the reference is borrowed; the main loop lives as long as the process.
 * Threads: any, also before the main thread has used its loop.
 * Errors: stops the process with a message when there is no memory for the loop.
 */
CF_EXPORT CFRunLoopRef CFRunLoopGetMain(void) CRL_LINK(CFRunLoopGetMain) CF_RETURNS_NOT_RETAINED;

/**
 * Copies the name of the mode in which `rl` runs. In nested runs it is the mode of the innermost one.
 *
 * Ownership: the caller releases the name. The result is NULL when the loop is not running.
 * Threads: any. On other threads than the loop's, the answer may be out of date when it is returned.
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
 * Makes `mode` one of the common modes of `rl` permanently, and adds every item of the common set to it.
 *
 * A mode that is already common, `kCFRunLoopCommonModes` itself and NULL are ignored.
 * Ownership: the name is copied.
 * Threads: any; `schedule` of the added sources is called on the calling thread.
 * Differs from Apple: `kCFRunLoopCommonModes` as the mode is ignored. The Swift toolchain's code recurses without end.
 */
CF_EXPORT void CFRunLoopAddCommonMode(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddCommonMode);

/**
 * Returns the earliest next fire date of the timers in `mode` of `rl`, in seconds since 2001.
 *
 * The result is 0 when the mode is unknown, is NULL or has no timers. It is past only if a timer is due.
 * Threads: any.
 */
CF_EXPORT CFAbsoluteTime CFRunLoopGetNextTimerFireDate(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CFRunLoopGetNextTimerFireDate);

/**
 * Runs the calling thread's loop in the default mode until it is stopped or the mode has nothing left to wait for.
 *
 * Threads: any, for its own loop; runs may be nested.
 * Differs from Apple: without the dispatch library in the process the main loop, too, returns when its default mode is empty. If it is
 * empty from the beginning, a line on standard error says so once.
 */
CF_EXPORT void CFRunLoopRun(void) CRL_LINK(CFRunLoopRun);

/**
 * Runs the calling thread's loop in `mode` for at most `seconds`, and returns why it ended.
 *
 * The time limit starts after the observers of kCFRunLoopEntry have been called. 0 or less makes one pass without sleeping; more than
 * 504,911,232 (16 years) means no limit. With `returnAfterSourceHandled` the run ends after the first source it handled. Timers, blocks and
 * observers do not count as sources. When several reasons hold at the end of a pass, the first of this list is returned: HandledSource,
 * TimedOut, Stopped, Finished. A mode that is empty or does not exist, NULL, and `kCFRunLoopCommonModes` return Finished at once, and no
 * observer is called.
 * Threads: any, for its own loop; runs may be nested, in any mode.
 * Errors: not-a-number as `seconds` counts as 0. That, and a NULL mode, are each logged once.
 * Differs from Apple: there not-a-number means no limit. The limit here needs no helper thread and no timer descriptor.
 */
CF_EXPORT CFRunLoopRunResult CFRunLoopRunInMode(CFRunLoopMode mode, CFTimeInterval seconds, Boolean returnAfterSourceHandled)
    CRL_LINK(CFRunLoopRunInMode);

/**
 * Returns whether the thread of `rl` sleeps in its loop. It is true also just before and just after the sleep.
 *
 * Threads: any, signal handlers included.
 */
CF_EXPORT Boolean CFRunLoopIsWaiting(CFRunLoopRef rl) CRL_LINK(CFRunLoopIsWaiting);

/**
 * Makes `rl` do another pass: a sleeping loop wakes, and a loop that is about to sleep does not sleep.
 *
 * Several calls before the loop wakes count as one. A call has no effect while the loop is not running, or between its sleep and its next
 * pass, because the next pass looks at everything anyway.
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler; no system call when the loop is awake or already woken.
 */
CF_EXPORT void CFRunLoopWakeUp(CFRunLoopRef rl) CRL_LINK(CFRunLoopWakeUp);

/**
 * Ends the innermost run of `rl` at the end of its current pass, and wakes the loop for that.
 *
 * A loop that is not running is left alone.
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler.
 */
CF_EXPORT void CFRunLoopStop(CFRunLoopRef rl) CRL_LINK(CFRunLoopStop);

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Queues `block` for `rl`, which runs it once, when it next runs in one of the modes given.
 *
 * Blocks run in the order in which they were queued. `mode` is a mode's name, or a CFArray or CFSet of names; modes that do not exist are
 * created. The call does not wake the loop: call CFRunLoopWakeUp if it may be asleep. A block that is queued while another block runs waits
 * for the next time that the pass runs blocks.
 * Ownership: the block is copied, and released after it has run or when the loop is taken down.
 * Threads: any.
 * Errors: a NULL block, a NULL `mode` and one of another type are ignored.
 */
CF_EXPORT void CFRunLoopPerformBlock(CFRunLoopRef rl, CFTypeRef mode, void (^block)(void)) CRL_LINK(CFRunLoopPerformBlock);
#endif

/**
 * Returns whether `source`, or one equal to it, is in `mode` of `rl`. For `kCFRunLoopCommonModes`, returns whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopContainsSource);

/**
 * Adds `source` to `mode` of `rl` and calls its `schedule` once for each mode that it joins, before returning.
 *
 * Nothing happens when the source or one equal to it is already in the mode, or when the source is invalid. Two sources with the same
 * `perform` and a NULL `info` are equal. A version-0 source that was already signalled stays signalled. The call does not wake the loop.
 * Ownership: the loop retains the source until it is removed or invalidated, or the loop's thread ends.
 * Threads: any; `schedule` and `getPort` are called on the calling thread.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored. Nothing is added when there is no memory, which is logged once.
 */
CF_EXPORT void CFRunLoopAddSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddSource);

/**
 * Removes `source` from `mode` of `rl` and calls its `cancel` once for each mode that it leaves, before returning.
 *
 * A source that is removed from one common mode by that mode's name stays in the common set. The source stays valid, and stays signalled if
 * it was.
 * Ownership: the loop's reference is given back.
 * Threads: any; `cancel` is called on the calling thread.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveSource(CFRunLoopRef rl, CFRunLoopSourceRef source, CFRunLoopMode mode) CRL_LINK(CFRunLoopRemoveSource);

/**
 * Returns whether `observer` is in `mode` of `rl`. For `kCFRunLoopCommonModes`, returns whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode)
    CRL_LINK(CFRunLoopContainsObserver);

/**
 * Adds `observer` to `mode` of `rl`. It is called from the next notification on.
 *
 * An observer is in at most one loop, in any number of its modes. The call does nothing for an observer that is in another loop, is already
 * in the mode, or is invalid.
 * Ownership: the loop retains the observer until it is removed or invalidated, or the loop's thread ends.
 * Threads: any.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored. Nothing is added when there is no memory, which is logged once.
 */
CF_EXPORT void CFRunLoopAddObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddObserver);

/**
 * Removes `observer` from `mode` of `rl`. An observer that has left its last mode may join another loop.
 *
 * Ownership: the loop's reference is given back.
 * Threads: any.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveObserver(CFRunLoopRef rl, CFRunLoopObserverRef observer, CFRunLoopMode mode)
    CRL_LINK(CFRunLoopRemoveObserver);

/**
 * Returns whether `timer` is in `mode` of `rl`. For `kCFRunLoopCommonModes`, returns whether it is in the common set.
 *
 * Threads: any.
 * Errors: false when `mode` is NULL.
 */
CF_EXPORT Boolean CFRunLoopContainsTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopContainsTimer);

/**
 * Adds `timer` to `mode` of `rl`. A loop that sleeps in that mode wakes in time for the timer; no CFRunLoopWakeUp is needed.
 *
 * A timer is in at most one loop, in any number of its modes. The call does nothing for a timer that is in another loop, is already in the
 * mode, or is invalid.
 * Ownership: the loop retains the timer until it is removed or invalidated, or the loop's thread ends.
 * Threads: any.
 * Errors: a NULL `mode`, and a loop whose thread has ended, are ignored. Nothing is added when there is no memory, which is logged once.
 */
CF_EXPORT void CFRunLoopAddTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopAddTimer);

/**
 * Removes `timer` from `mode` of `rl`. The timer stays valid and keeps its fire date.
 *
 * A timer that has left its last mode may join another loop.
 * Ownership: the loop's reference is given back.
 * Threads: any.
 * Errors: a NULL `mode` is ignored.
 */
CF_EXPORT void CFRunLoopRemoveTimer(CFRunLoopRef rl, CFRunLoopTimerRef timer, CFRunLoopMode mode) CRL_LINK(CFRunLoopRemoveTimer);

/* Sources */

/** The functions of a version-0 source, which CFRunLoopSourceSignal signals. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to every function below. */
    const void *(*retain)(const void *info); /**< Called once at creation; its result becomes the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed; not by CFRunLoopSourceInvalidate. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
    Boolean (*equal)(const void *info1, const void *info2); /**< Returns whether the infos are equal; NULL compares pointers. */
    CFHashCode (*hash)(const void *info); /**< Returns equal values for equal infos; NULL uses the pointer. */
    void (*schedule)(void *info, CFRunLoopRef rl, CFRunLoopMode mode); /**< Called on the adding thread when the source joined a mode. */
    void (*cancel)(void *info, CFRunLoopRef rl, CFRunLoopMode mode); /**< Called on the removing thread when the source left a mode. */
    void (*perform)(void *info); /**< Does the source's work, on the loop's thread. */
} CFRunLoopSourceContext;

/** A file descriptor. Apple's type of this name is a Mach port. */
typedef int __CFPort;

/**
 * The functions of a version-1 source, which performs when its descriptor is readable. Any function may be NULL.
 *
 * The loop itself reads the 8 bytes of an eventfd or timerfd, once for each `perform`. It reads nothing from any other descriptor:
 * `perform` does that, and is called again as long as there is something to read. A pass handles at most one version-1 source.
 * Differs from Apple: `getPort` returns a descriptor and `perform` has one parameter. Apple's `getPort` returns a Mach port, and its
 * `perform` gets a message.
 */
typedef struct {
    CFIndex version; /**< 1. */
    void *info; /**< A pointer of the program's; passed to every function below. */
    const void *(*retain)(const void *info); /**< Called once at creation; its result becomes the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed; not by CFRunLoopSourceInvalidate. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
    Boolean (*equal)(const void *info1, const void *info2); /**< Returns whether the infos are equal; NULL compares pointers. */
    CFHashCode (*hash)(const void *info); /**< Returns equal values for equal infos; NULL uses the pointer. */
    __CFPort (*getPort)(void *info); /**< Returns the descriptor to watch, the same while the source is in a loop; -1 for none. */
    void (*perform)(void *info); /**< Does the source's work, on the loop's thread. */
} CFRunLoopSourceContext1;

/**
 * Returns the type id of sources.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopSourceGetTypeID(void) CRL_LINK(CFRunLoopSourceGetTypeID);

/**
 * Creates a source that is in no loop yet.
 *
 * `order` decides which of several signalled sources is performed first: the source with the lowest order, and among equal orders the
 * source that was signalled first. `context` is a CFRunLoopSourceContext, or a CFRunLoopSourceContext1 whose `version` is 1; it is copied.
 * Ownership: the caller releases the source. Loops to which it is added retain it. `info` is retained as the context says.
 * Threads: any; `retain` is called on the calling thread.
 * Errors: NULL when there is no memory. NULL also when `context->version` is neither 0 nor 1, which is logged once. A NULL `context` stops
 * the process with a message.
 */
CF_EXPORT CFRunLoopSourceRef CFRunLoopSourceCreate(CFAllocatorRef allocator, CFIndex order, CFRunLoopSourceContext *context)
    CRL_LINK(CFRunLoopSourceCreate) CF_RETURNS_RETAINED;

/**
 * Returns the order with which `source` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopSourceGetOrder(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceGetOrder);

/**
 * Makes `source` invalid permanently. It is no longer signalled and leaves every mode of every loop, with one call of `cancel` for each
 * mode.
 *
 * A second call does nothing. `info` is not released before the source is freed.
 * Ownership: the loops' references are given back; the caller's is not.
 * Threads: any, also in the source's own callbacks; `cancel` is called on the calling thread. On the loop's own thread no callback of the
 * source starts after the return. After a call from another thread, one `perform` that had already been chosen may still run.
 */
CF_EXPORT void CFRunLoopSourceInvalidate(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceInvalidate);

/**
 * Returns whether `source` has not been invalidated. It is false already in the `cancel` calls of CFRunLoopSourceInvalidate.
 *
 * Threads: any, signal handlers included.
 */
CF_EXPORT Boolean CFRunLoopSourceIsValid(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceIsValid);

/**
 * Copies the context of `source` into `*context`, with `info` as it was retained. This works also for an invalid source.
 *
 * The caller first sets `context->version` to the version of the source.
 * Ownership: `info` stays the source's.
 * Threads: any.
 * Errors: nothing is copied when the versions differ, which is logged once. A NULL `context` stops the process with a message.
 */
CF_EXPORT void CFRunLoopSourceGetContext(CFRunLoopSourceRef source, CFRunLoopSourceContext *context) CRL_LINK(CFRunLoopSourceGetContext);

/**
 * Signals a version-0 source: one of its loops performs it once, in its next pass over one of the source's modes.
 *
 * The call does not wake a loop: call CFRunLoopWakeUp for the loop that is to handle the source. Several calls before the `perform` count
 * as one; a call during it leads to another `perform`. A source in no loop stays signalled. A version-1 source and an invalid source are
 * left alone.
 * Threads: any, signal handlers included.
 * Differs from Apple: safe in a signal handler.
 */
CF_EXPORT void CFRunLoopSourceSignal(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceSignal);

/**
 * Returns whether `source` is signalled and has not yet been chosen to be performed.
 *
 * Threads: any.
 * Differs from Apple: Apple exports the function but declares it in no public header.
 */
CF_EXPORT Boolean CFRunLoopSourceIsSignalled(CFRunLoopSourceRef source) CRL_LINK(CFRunLoopSourceIsSignalled);

/* Observers */

/** The data of an observer's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation; its result becomes the `info`. */
    void (*release)(const void *info); /**< Called once, when the observer is invalidated or freed. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFRunLoopObserverContext;

/** An observer's callback. `activity` is the one activity that is being announced. It runs on the loop's thread. */
typedef void (*CFRunLoopObserverCallBack)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info);

/**
 * Returns the type id of observers.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopObserverGetTypeID(void) CRL_LINK(CFRunLoopObserverGetTypeID);

/**
 * Creates an observer that is in no loop yet.
 *
 * `activities` is a mask. With `repeats` false the observer becomes invalid after its first call, whatever the activity was. Observers are
 * called by ascending `order`, and equal ones in the order of adding. A NULL `callout` makes an observer that does nothing. `context` may
 * be NULL and is copied.
 * Ownership: the caller releases the observer; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFRunLoopObserverRef CFRunLoopObserverCreate(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats, CFIndex order,
                                                       CFRunLoopObserverCallBack callout, CFRunLoopObserverContext *context)
    CRL_LINK(CFRunLoopObserverCreate) CF_RETURNS_RETAINED;

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Creates an observer that calls a block, with the parameters of CFRunLoopObserverCreate.
 *
 * CRLRunLoopObserverCreateWithFunction does the same for compilers without blocks.
 * Ownership: the caller releases the observer. The block is copied, and released when the observer is invalidated or freed.
 * Threads: any.
 * Errors: NULL when `block` is NULL or there is no memory.
 */
CF_EXPORT CFRunLoopObserverRef CFRunLoopObserverCreateWithHandler(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats,
                                                                  CFIndex order,
                                                                  void (^block)(CFRunLoopObserverRef observer, CFRunLoopActivity activity))
    CRL_LINK(CFRunLoopObserverCreateWithHandler) CF_RETURNS_RETAINED;
#endif

/**
 * Returns the mask with which `observer` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFOptionFlags CFRunLoopObserverGetActivities(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverGetActivities);

/**
 * Returns whether `observer` was created to be called more than once.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopObserverDoesRepeat(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverDoesRepeat);

/**
 * Returns the order with which `observer` was created.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopObserverGetOrder(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverGetOrder);

/**
 * Makes `observer` invalid permanently: it leaves its loop, and its `info` is released once. A second call does nothing.
 *
 * Ownership: the loop's reference is given back; the caller's is not.
 * Threads: any, also in the observer's own callback. If the callback is running on another thread, that thread releases `info` after it.
 */
CF_EXPORT void CFRunLoopObserverInvalidate(CFRunLoopObserverRef observer) CRL_LINK(CFRunLoopObserverInvalidate);

/**
 * Returns whether `observer` has not been invalidated.
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
 * Errors: stops the process with a message when `context` is NULL.
 */
CF_EXPORT void CFRunLoopObserverGetContext(CFRunLoopObserverRef observer, CFRunLoopObserverContext *context)
    CRL_LINK(CFRunLoopObserverGetContext);

/* Timers */

/** The data of a timer's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation and once before each callback, which gets the result. */
    void (*release)(const void *info); /**< Called after each callback if there is a `retain`, and once at its invalidation or end. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CFRunLoopTimerContext;

/** A timer's callback. It runs on the loop's thread. */
typedef void (*CFRunLoopTimerCallBack)(CFRunLoopTimerRef timer, void *info);

/**
 * Returns the type id of timers.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CFRunLoopTimerGetTypeID(void) CRL_LINK(CFRunLoopTimerGetTypeID);

/**
 * Creates a timer that is in no loop yet.
 *
 * `fireDate` is in seconds since 2001. It is converted at once to an instant of a clock that nobody can set, so later changes of the wall
 * clock do not move it. That clock goes on while the system is suspended: a timer whose date has passed meanwhile is due at once, and a
 * loop that sleeps for more than five seconds notices that the system resumes. A date in the past is due as soon as a loop watches the
 * timer. `interval` is in seconds; 0 or less makes a timer that fires once and becomes invalid after its callback. A repeating timer fires
 * at whole intervals after its first date, or after its creation if that date was past. Missed periods count as one firing. `flags` and
 * `order` have no effect. `context` may be NULL and is copied.
 * Ownership: the caller releases the timer; `info` is retained as the context says.
 * Threads: any.
 * Errors: NULL when there is no memory. A not-a-number `interval` makes a timer that fires once, and a positive `interval` below a
 * nanosecond counts as a nanosecond; each is logged once. A not-a-number `fireDate` never comes.
 * Differs from Apple: there a not-a-number interval stops the process, and the time of a suspension does not count. In the Swift
 * toolchain's code a tiny interval stops it, too, and equal dates fire in any order; here they fire in the order of adding.
 */
CF_EXPORT CFRunLoopTimerRef CFRunLoopTimerCreate(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                 CFOptionFlags flags, CFIndex order, CFRunLoopTimerCallBack callout,
                                                 CFRunLoopTimerContext *context)
    CRL_LINK(CFRunLoopTimerCreate) CF_RETURNS_RETAINED;

#if defined(__BLOCKS__) && __BLOCKS__
/**
 * Creates a timer that calls a block, with the parameters of CFRunLoopTimerCreate.
 *
 * CRLRunLoopTimerCreateWithFunction does the same for compilers without blocks.
 * Ownership: the caller releases the timer. The block is copied, retained around each call, and released when the timer is invalidated or
 * freed.
 * Threads: any.
 * Errors: NULL when `block` is NULL or there is no memory. Times are handled as by CFRunLoopTimerCreate.
 */
CF_EXPORT CFRunLoopTimerRef CFRunLoopTimerCreateWithHandler(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                            CFOptionFlags flags, CFIndex order, void (^block)(CFRunLoopTimerRef timer))
    CRL_LINK(CFRunLoopTimerCreateWithHandler) CF_RETURNS_RETAINED;
#endif

/**
 * Returns the next fire date of `timer`, in seconds since 2001.
 *
 * During the timer's callback it is the date that has just fired. It is 0 when the timer is invalid, and past only if the timer is due:
 * once the wall clock has been set forward past the date, it is the one that the wall clock will show when the timer fires.
 * Threads: any.
 */
CF_EXPORT CFAbsoluteTime CFRunLoopTimerGetNextFireDate(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetNextFireDate);

/**
 * Moves the next firing of `timer` to `fireDate`, in seconds since 2001, and counts the intervals from there.
 *
 * In the timer's own callback, a date that is not later than the date being served makes the timer fire again at once. A timer that fires
 * once becomes invalid after its callback all the same. An invalid timer is left alone.
 * Threads: any, also in the timer's own callback. A sleeping loop takes notice without CFRunLoopWakeUp.
 * Errors: a date that is not a number never comes.
 * Differs from Apple: changing a timer of a sleeping loop makes no extra pass.
 */
CF_EXPORT void CFRunLoopTimerSetNextFireDate(CFRunLoopTimerRef timer, CFAbsoluteTime fireDate) CRL_LINK(CFRunLoopTimerSetNextFireDate);

/**
 * Returns the interval of `timer` in seconds; 0 when it fires once.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CFRunLoopTimerGetInterval(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetInterval);

/**
 * Returns whether `timer` fires more than once.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CFRunLoopTimerDoesRepeat(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerDoesRepeat);

/**
 * Returns the order with which `timer` was created; it has no effect.
 *
 * Threads: any.
 */
CF_EXPORT CFIndex CFRunLoopTimerGetOrder(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetOrder);

/**
 * Makes `timer` invalid permanently: it leaves its loop, and its `info` is released once. A second call does nothing.
 *
 * Ownership: the loop's reference is given back; the caller's is not.
 * Threads: any, also in the timer's own callback. On the loop's own thread the timer does not fire after the return. After a call from
 * another thread, one firing that had already been chosen may still run.
 */
CF_EXPORT void CFRunLoopTimerInvalidate(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerInvalidate);

/**
 * Returns whether `timer` has not been invalidated. A timer that fires once is still valid during its callback.
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
 * Errors: stops the process with a message when `context` is NULL.
 */
CF_EXPORT void CFRunLoopTimerGetContext(CFRunLoopTimerRef timer, CFRunLoopTimerContext *context) CRL_LINK(CFRunLoopTimerGetContext);

/**
 * Returns by how many seconds `timer` may fire late to share a wake-up with other timers; 0 unless it was set.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CFRunLoopTimerGetTolerance(CFRunLoopTimerRef timer) CRL_LINK(CFRunLoopTimerGetTolerance);

/**
 * Allows `timer` to fire up to `tolerance` seconds late, so that the loop may wake once for several timers. Later fire dates do not move.
 *
 * A negative value and not-a-number count as 0. For a repeating timer at most half of its interval counts. The timer slack of the loop's
 * thread, prctl(2), is added where it is above 50 microseconds, Linux's default for a thread.
 * Threads: any; takes effect from the loop's next sleep on.
 * Differs from Apple: the Swift toolchain's Core Foundation for Linux ignores the call.
 */
CF_EXPORT void CFRunLoopTimerSetTolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance) CRL_LINK(CFRunLoopTimerSetTolerance);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFRUNLOOP__ */
