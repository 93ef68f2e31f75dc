/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What CoreRunLoop has and Apple's run loop has not: a loop hosted by another loop, waits that stay awake, functions where Apple takes
 * blocks, sources for signals and for child processes, and the Cocoa modes' names.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with one sentence
 * that names the function.
 */

#if !defined(CRL_RUN_LOOP_H)
#define CRL_RUN_LOOP_H 1

#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFString.h"

/** The version of these headers. */
#define CRL_VERSION_STRING "0.1.0"

CF_EXTERN_C_BEGIN

/* Modes */

/** Cocoa's mode for waiting for a reply; nothing is in it unless the program adds it. Its string is its own name. */
CF_EXPORT const CFRunLoopMode NSConnectionReplyMode CRL_LINK(NSConnectionReplyMode);

/** Cocoa's mode for modal panels; nothing is in it unless the program adds it. Its string is its own name. */
CF_EXPORT const CFRunLoopMode NSModalPanelRunLoopMode CRL_LINK(NSModalPanelRunLoopMode);

/** Cocoa's mode for tracking the mouse; nothing is in it unless the program adds it. Its string is its own name. */
CF_EXPORT const CFRunLoopMode NSEventTrackingRunLoopMode CRL_LINK(NSEventTrackingRunLoopMode);

/*
 * Hosting: another loop (GLib, libuv, epoll, a game's) does the waiting.
 *
 * The host's cycle, on the loop's own thread:
 *
 *     while (CRLRunLoopPrepare(loop, mode)) {
 *         poll(CRLRunLoopGetDescriptor(loop), CRLRunLoopGetTimeout(loop));   and whatever else the host waits for
 *         if (CRLRunLoopDispatch(loop) != 0) break;
 *     }
 *     CRLRunLoopLeave(loop);
 *
 * One Prepare and the Dispatch that follows are one pass, and all passes up to Leave are one run: observers, the current mode,
 * CFRunLoopIsWaiting and CFRunLoopStop behave as in CFRunLoopRunInMode without a time limit. Callbacks, and the host between its calls, may
 * run the loop themselves; such a run is nested in the hosted one, and its callbacks cannot call the host's functions. What CFAutorelease
 * was given goes at the end of Dispatch and of Leave, unless the hosted run is itself nested.
 */

/**
 * Gets a descriptor that becomes readable when CRLRunLoopDispatch has something to do, for poll, epoll or another loop.
 *
 * It stays the same as long as the loop lives. The child of a fork closes it and has to ask for its own; that one tells of what was there
 * before, too. A program that closes all descriptors, as daemons do, closes this one with them, and has to ask again before it next waits;
 * a host that asks each time need not know. The host must not read it, and must poll it level-triggered.
 * Ownership: the loop's, which closes it when its thread ends.
 * Threads: the loop's own.
 * Errors: -1 when no descriptor can be made, or when the caller is another thread; a later call tries again.
 */
CF_EXPORT int CRLRunLoopGetDescriptor(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetDescriptor);

/**
 * Does the part of a pass that comes before the sleep: sends BeforeTimers and BeforeSources, runs blocks and marked version-0 sources, and,
 * unless a source was handled, sends BeforeWaiting.
 *
 * The first call of a run sends Entry before that. A call without a dispatch since the last one leaves the prepared pass as it is and
 * returns true.
 * Ownership: the mode is kept until CRLRunLoopLeave; later calls name the same mode.
 * Threads: the loop's own.
 * Errors: false, and nothing is sent, when the mode is empty or cannot be run, which CFRunLoopRunInMode would report as Finished, when it
 * is another mode than that of the hosted run, or when the caller is another thread, a callback of the hosted run or one of a run nested in
 * it; false after Entry when that stopped the run. In either case CRLRunLoopLeave ends a run that has begun.
 */
CF_EXPORT Boolean CRLRunLoopPrepare(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CRLRunLoopPrepare);

/**
 * Gets how many nanoseconds from now the prepared loop wants CRLRunLoopDispatch at the latest: 0 at once, -1 when it has nothing to wait
 * for but the descriptor.
 *
 * A host that waits for the descriptor without this limit is woken by it all the same.
 * Threads: the loop's own, between CRLRunLoopPrepare and CRLRunLoopDispatch.
 * Errors: -1 when no pass is prepared, or when the caller is another thread or a callback.
 */
CF_EXPORT int64_t CRLRunLoopGetTimeout(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetTimeout);

/**
 * Does the part of a pass that comes after the sleep: sends AfterWaiting if BeforeWaiting was sent, and handles due timers, or one ready
 * source, or the main queue, and then queued blocks.
 *
 * It returns 0 when the run goes on, kCFRunLoopRunStopped or kCFRunLoopRunFinished when it is over and CRLRunLoopLeave comes next. It may
 * be called before anything is ready: such a pass handles nothing.
 * Threads: the loop's own.
 * Errors: 0, and nothing happens, when no pass is prepared, or when the caller is another thread or a callback.
 */
CF_EXPORT CFRunLoopRunResult CRLRunLoopDispatch(CFRunLoopRef rl) CRL_LINK(CRLRunLoopDispatch);

/**
 * Ends a hosted run: sends Exit and makes the loop what it was before; without a hosted run it does nothing.
 *
 * Threads: the loop's own, and not in a callback of the hosted run or of one nested in it, where it does nothing.
 */
CF_EXPORT void CRLRunLoopLeave(CFRunLoopRef rl) CRL_LINK(CRLRunLoopLeave);

/* Waiting awake */

/**
 * Sets for how many seconds each wait of the loop stays awake, looking for something to do, before it sleeps. 0, as it is at first, is not
 * at all.
 *
 * For a program that would rather give a processor than the time that the kernel takes to wake a thread, which is some microseconds, and on
 * virtual machines often tens: while the loop is awake others wake it without a system call, and what is ready it sees within a microsecond
 * or two. Between its looks it gives the processor to other threads that want it, but the time is charged to it as work. A wait that lasts
 * longer than this sleeps for the rest. Timers, time limits, and what ends a wait are as they are without. A hosted loop is not concerned:
 * its host waits. It has to be longer than what the program waits for usually takes; a message to another process and back takes some 10 µs
 * if both are awake.
 * Threads: any; it counts from the loop's next wait on.
 * Errors: a negative number and one that is not a number count as 0; one of more than sixteen years counts as sixteen.
 */
CF_EXPORT void CRLRunLoopSetBusyWait(CFRunLoopRef rl, CFTimeInterval seconds) CRL_LINK(CRLRunLoopSetBusyWait);

/**
 * Gets for how many seconds each wait of the loop stays awake before it sleeps. 0 also if it does so by what it finds.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CRLRunLoopGetBusyWait(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetBusyWait);

/**
 * Has the loop stay awake as by CRLRunLoopSetBusyWait, but only while its waits are short: when the last four were not longer than this,
 * and ended because something came. It takes the place of what was set by CRLRunLoopSetBusyWait, and the other way round; 0 is neither.
 *
 * A wait that ends with a timer or the run's limit ends that, and the next ones sleep at once. So does one that is longer, unless four
 * short ones for it have been awake before, and a look that takes longer than 20 µs: others want the processor. Each time that this
 * happens, it takes twice as many short waits to begin again, up to 128, and four after one that was awake and short. So a loop that has
 * little to do costs no more than without, and one that is asked something again and again, by one that waits for the answer, is not put
 * to sleep in between. A tenth of a millisecond is a good choice: waking a thread takes some microseconds, on virtual machines often
 * tens. Waits that took less than two microseconds count as none.
 * Threads: any; it counts from the loop's next wait on.
 * Errors: as for CRLRunLoopSetBusyWait.
 */
CF_EXPORT void CRLRunLoopSetAdaptiveBusyWait(CFRunLoopRef rl, CFTimeInterval seconds) CRL_LINK(CRLRunLoopSetAdaptiveBusyWait);

/**
 * Gets what CRLRunLoopSetAdaptiveBusyWait has set; 0 if it did not, or if CRLRunLoopSetBusyWait came after it.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CRLRunLoopGetAdaptiveBusyWait(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetAdaptiveBusyWait);

/* Functions in the place of blocks */

/**
 * Queues a call of `function` with `info`, as CFRunLoopPerformBlock queues a block; the two share one queue.
 *
 * `mode` is a mode's name, or a CFArray or CFSet of names. The loop is not woken.
 * Ownership: `release`, if not NULL, is called with `info` exactly once: after the function, or when the loop is taken down before, or at
 * once when the request is ignored.
 * Threads: any; `function` runs on the loop's thread.
 * Errors: a NULL `function`, a NULL `mode` and one of another type are ignored.
 */
CF_EXPORT void CRLRunLoopPerformFunction(CFRunLoopRef rl, CFTypeRef mode, void (*function)(void *info), void *info,
                                         void (*release)(void *info))
    CRL_LINK(CRLRunLoopPerformFunction);

/**
 * Creates an observer that calls `function`, as CFRunLoopObserverCreateWithHandler creates one that calls a block.
 *
 * Ownership: the caller releases the observer. `release`, if not NULL, is called with `info` exactly once, when the observer is invalidated
 * or freed, but not during a call of the function.
 * Threads: any; `function` runs on the loop's thread.
 * Errors: NULL when `function` is NULL or there is no memory; then `release` is not called.
 */
CF_EXPORT CFRunLoopObserverRef CRLRunLoopObserverCreateWithFunction(CFAllocatorRef allocator, CFOptionFlags activities, Boolean repeats,
        CFIndex order, void (*function)(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info), void *info,
        void (*release)(void *info))
    CRL_LINK(CRLRunLoopObserverCreateWithFunction) CF_RETURNS_RETAINED;

/**
 * Creates a timer that calls `function`, as CFRunLoopTimerCreateWithHandler creates one that calls a block.
 *
 * Ownership: the caller releases the timer. `release`, if not NULL, is called with `info` exactly once, when the timer is invalidated or
 * freed, but not during a call of the function.
 * Threads: any; `function` runs on the loop's thread.
 * Errors: NULL when `function` is NULL or there is no memory; then `release` is not called. Times as CFRunLoopTimerCreate.
 */
CF_EXPORT CFRunLoopTimerRef CRLRunLoopTimerCreateWithFunction(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                              CFOptionFlags flags, CFIndex order,
                                                              void (*function)(CFRunLoopTimerRef timer, void *info), void *info,
                                                              void (*release)(void *info))
    CRL_LINK(CRLRunLoopTimerCreateWithFunction) CF_RETURNS_RETAINED;

/* Sources for signals and child processes */

/** What a signal or child source carries for its callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< The program's own; given to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation; what it returns is kept as the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed. */
    CFStringRef (*copyDescription)(const void *info); /**< A text for CFCopyDescription, which releases it. */
} CRLSourceContext;

/** A signal source's callback: one call for each signal that the kernel reports. It runs on the loop's thread and may call anything. */
typedef void (*CRLSignalCallBack)(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info);

/** A child source's callback: `waitStatus` is waitpid's, for WIFEXITED and its siblings; -1 when someone else has reaped the child. */
typedef void (*CRLChildCallBack)(CFRunLoopSourceRef source, pid_t pid, int waitStatus, void *info);

/**
 * Creates a version-1 source that calls `callout` in the loop when the process, or the calling thread's loop, receives signal
 * `signalNumber`.
 *
 * The signal is blocked in the calling thread, for a blocked signal waits to be read here instead of interrupting. It must be blocked in
 * every thread of the process, so create the source before the others start, which then inherit it, or block it there; a thread that does
 * not block it may be interrupted instead. It stays blocked when the source is gone. The kernel merges equal signals that wait. At most one
 * signal is handled in a pass. `context` may be NULL and is copied.
 * Ownership: the caller releases the source; `info` is retained as the context says.
 * Threads: any; a loop on another thread reads signals sent to the process or to that thread.
 * Errors: NULL when `signalNumber` is no signal or cannot be blocked (SIGKILL, SIGSTOP), `callout` is NULL, the context's version is not 0,
 * or no descriptor or memory is left.
 */
CF_EXPORT CFRunLoopSourceRef CRLSignalSourceCreate(CFAllocatorRef allocator, int signalNumber, CFIndex order, CRLSignalCallBack callout,
                                                   const CRLSourceContext *context)
    CRL_LINK(CRLSignalSourceCreate) CF_RETURNS_RETAINED;

/**
 * Creates a version-1 source that waits for the end of the child process `pid`, reaps it, calls `callout` once with its wait status, and is
 * then invalid.
 *
 * A child that has ended already counts, as long as nobody has reaped it. The program must not reap it by other means, and must not ignore
 * SIGCHLD. `context` may be NULL and is copied.
 * Ownership: the caller releases the source; `info` is retained as the context says. A source that is invalidated before leaves the child
 * to the program.
 * Threads: any.
 * Errors: NULL when `pid` is no child that is still to be reaped, `callout` is NULL, the context's version is not 0, the kernel has no
 * process descriptors (older than Linux 5.3), or no descriptor or memory is left.
 */
CF_EXPORT CFRunLoopSourceRef CRLChildSourceCreate(CFAllocatorRef allocator, pid_t pid, CFIndex order, CRLChildCallBack callout,
                                                  const CRLSourceContext *context)
    CRL_LINK(CRLChildSourceCreate) CF_RETURNS_RETAINED;

/* Limits of message ports */

/**
 * Sets how many messages the queue of the local port `local` holds from one sending process before senders have to wait; 5 at first.
 *
 * `messages` is 1 to 4096. The kernel's own limit on the whole queue (net.unix.max_dgram_qlen) stands behind it. Processes that are already
 * connected are told with the next confirmation that they get.
 * Threads: any.
 * Errors: a number outside the range is brought into it; ignored for a port that is remote or invalid.
 */
CF_EXPORT void CRLMessagePortSetQueueLimit(CFMessagePortRef local, CFIndex messages) CRL_LINK(CRLMessagePortSetQueueLimit);

/**
 * Sets how many bytes of messages the local port `local` holds in memory at once, while its callbacks run; 256 MiB at first.
 *
 * A message that would go beyond it is dropped: its sender gets kCFMessagePortTransportError at once, and one line is logged.
 * Threads: any.
 * Errors: a negative number counts as 0; ignored for a port that is remote or invalid.
 */
CF_EXPORT void CRLMessagePortSetMemoryBudget(CFMessagePortRef local, CFIndex bytes) CRL_LINK(CRLMessagePortSetMemoryBudget);

CF_EXTERN_C_END

#endif /* ! CRL_RUN_LOOP_H */
