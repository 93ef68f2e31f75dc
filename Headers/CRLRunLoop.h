/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Functions that Apple's run loop does not have: a loop hosted by another loop, waits that stay awake, functions in the place of blocks,
 * sources for signals and for child processes, streams of descriptors, and the names of Cocoa's modes.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with a message
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
#include "CoreFoundation/CFStream.h"
#include "CoreFoundation/CFString.h"

/** The version of these headers. */
#define CRL_VERSION_STRING "0.3.0"

CF_EXTERN_C_BEGIN

/* Modes */

/** Cocoa's name of kCFRunLoopDefaultMode. */
#define NSDefaultRunLoopMode kCFRunLoopDefaultMode

/** Cocoa's name of kCFRunLoopCommonModes. */
#define NSRunLoopCommonModes kCFRunLoopCommonModes

/** Cocoa's mode for waiting for a reply. Nothing is in it unless the program adds it. Its string is its own name. */
CF_EXPORT const CFRunLoopMode NSConnectionReplyMode CRL_LINK(NSConnectionReplyMode);

/** Cocoa's mode for modal panels. Nothing is in it unless the program adds it. Its string is its own name. */
CF_EXPORT const CFRunLoopMode NSModalPanelRunLoopMode CRL_LINK(NSModalPanelRunLoopMode);

/** Cocoa's mode for tracking the mouse. Nothing is in it unless the program adds it. Its string is its own name. */
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
 * A Prepare and the next Dispatch are one pass, and all passes up to Leave are one run. Observers, the current mode, CFRunLoopIsWaiting and
 * CFRunLoopStop behave as in CFRunLoopRunInMode without a time limit. Callbacks, and the host between its calls, may run the loop
 * themselves. Such a run is nested in the hosted one, and its callbacks cannot call the host's functions. Objects given to CFAutorelease
 * are released at the end of Dispatch and of Leave, unless the hosted run is itself nested.
 */

/**
 * Returns a descriptor for poll, epoll or another loop. It becomes readable when CRLRunLoopDispatch has something to do.
 *
 * The descriptor stays the same as long as the loop lives. The host must not read it, and must poll it level-triggered. In the child of a
 * fork, the host closes the descriptor and asks for the child's own; that one also covers everything that was added before the fork. A
 * program that closes all descriptors, as daemons do, closes this one too, and must ask again before it next waits. A host that asks before
 * each wait need not know.
 * Ownership: the loop owns the descriptor, and closes it when its thread ends.
 * Threads: the loop's own.
 * Errors: -1 when no descriptor can be created, or when the caller is another thread. A later call tries again.
 */
CF_EXPORT int CRLRunLoopGetDescriptor(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetDescriptor);

/**
 * Does the part of a pass before the sleep: announces BeforeTimers and BeforeSources, runs blocks and signalled version-0 sources, and
 * announces BeforeWaiting unless a source was handled.
 *
 * The first call of a run announces Entry before that. A call without a dispatch since the last call leaves the prepared pass unchanged and
 * returns true.
 * Ownership: the mode is kept until CRLRunLoopLeave; later calls must name the same mode.
 * Threads: the loop's own.
 * Errors: false, without any announcement, in three cases. The mode is empty or cannot be run, for which CFRunLoopRunInMode would return
 * Finished. The mode is not that of the hosted run. The caller is another thread, a callback of the hosted run, or a callback of a run
 * nested in it. False after Entry when an observer of Entry stopped the run. In each case CRLRunLoopLeave ends a run that has begun.
 */
CF_EXPORT Boolean CRLRunLoopPrepare(CFRunLoopRef rl, CFRunLoopMode mode) CRL_LINK(CRLRunLoopPrepare);

/**
 * Returns in how many nanoseconds the host must call CRLRunLoopDispatch at the latest: 0 for at once, -1 for no limit.
 *
 * With -1 the loop has nothing to wait for but the descriptor. A host that waits for the descriptor without this limit is still woken in
 * time by it.
 * Threads: the loop's own, between CRLRunLoopPrepare and CRLRunLoopDispatch.
 * Errors: -1 when no pass is prepared, or when the caller is another thread or a callback.
 */
CF_EXPORT int64_t CRLRunLoopGetTimeout(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetTimeout);

/**
 * Does the part of a pass after the sleep: announces AfterWaiting if BeforeWaiting was announced, handles due timers, or one ready source,
 * or the main queue, and then runs queued blocks.
 *
 * It returns 0 when the run goes on. It returns kCFRunLoopRunStopped or kCFRunLoopRunFinished when the run is over and the host must call
 * CRLRunLoopLeave. It may be called before anything is ready; such a pass handles nothing.
 * Threads: the loop's own.
 * Errors: 0, and nothing happens, when no pass is prepared, or when the caller is another thread or a callback.
 */
CF_EXPORT CFRunLoopRunResult CRLRunLoopDispatch(CFRunLoopRef rl) CRL_LINK(CRLRunLoopDispatch);

/**
 * Ends a hosted run: announces Exit and restores the loop's state from before the run. Without a hosted run it does nothing.
 *
 * Threads: the loop's own. It does nothing in a callback of the hosted run or of a run nested in it.
 */
CF_EXPORT void CRLRunLoopLeave(CFRunLoopRef rl) CRL_LINK(CRLRunLoopLeave);

/* Waiting awake */

/**
 * Sets for how many seconds each wait of the loop stays awake, looking for work, before it sleeps. The default 0 sleeps at once.
 *
 * It is for a program that would rather spend a processor than the time in which the kernel wakes a thread. That takes some microseconds,
 * and often tens on virtual machines. While the loop is awake, others wake it without a system call, and it sees ready work within a
 * microsecond or two. Between its looks it yields the processor to other threads, but the time is charged to it as work. A wait that lasts
 * longer sleeps for the rest. Timers, time limits and the reasons to end a wait stay the same. A hosted loop is not affected, because its
 * host waits. The interval should be longer than the usual time until the awaited event. A message to another process and back takes some
 * 10 µs if both are awake.
 * Threads: any; takes effect from the loop's next wait on.
 * Errors: a negative number and not-a-number count as 0; more than sixteen years count as sixteen.
 */
CF_EXPORT void CRLRunLoopSetBusyWait(CFRunLoopRef rl, CFTimeInterval seconds) CRL_LINK(CRLRunLoopSetBusyWait);

/**
 * Returns for how many seconds each wait of the loop stays awake before it sleeps.
 *
 * Threads: any.
 */
CF_EXPORT CFTimeInterval CRLRunLoopGetBusyWait(CFRunLoopRef rl) CRL_LINK(CRLRunLoopGetBusyWait);

/* Stalls */

/** A stall: for how long a loop has called the program without a sleep, and what its thread does. It is valid during the callback. */
typedef struct {
    CFIndex version; /**< 0. */
    CFRunLoopRef loop; /**< The loop; not NULL. */
    CFRunLoopMode mode; /**< The mode of the innermost run when the stall was noticed. NULL: no run. */
    Boolean isOver; /**< False: the thread is stuck. True: the same stall is over. All but `duration` and `text` is as before. */
    CFTimeInterval duration; /**< Seconds since the first callout after the last sleep. */
    CFIndex callouts; /**< How many callouts had begun in that time. */
    const void *function; /**< The program's function that had not returned, the innermost of several. NULL: the loop was between two. */
    CFTimeInterval functionDuration; /**< Seconds since it was called, or since the last sleep of a run inside it. */
    CFIndex frameCount; /**< How many `frames` there are. */
    const void *const *frames; /**< Addresses in the functions that were active, the innermost first. */
    const char *text; /**< All this as lines of text, with the names of functions as far as the dynamic linker knows them. */
} CRLStall;

/**
 * Hears of a stall, on a thread of the library's own that has all signals blocked. It may call any function, and take its time; meanwhile
 * other stalls wait or are only counted.
 */
typedef void (*CRLStallCallBack)(const CRLStall *stall, void *info);

/**
 * Calls `callback` whenever callouts of the loop last longer than `seconds` without a sleep, and again when that stall is over.
 *
 * A stall begins with the first callout after a sleep, and ends with the next sleep or with the outermost run. The first call comes while
 * the thread is stuck, and brings its backtrace. A sleep of a run inside a callout ends a stall as well. With `CORERUNLOOP_STALL=0.25` in
 * the environment of an unchanged program all its loops are watched so, and each report is printed on standard error. This function
 * replaces that for one loop. With 0 `seconds`, or a negative number or not-a-number, the loop is not watched. A NULL `callback` prints.
 * The first loop that is watched has the library begin a thread, and take SIGURG if it has no handler yet. A timer sends this
 * signal to a stuck thread, where it may end calls such as poll and nanosleep early with EINTR. Four system calls at each sleep that
 * callouts precede set that timer and silence it. A program that takes the signal after that, or blocks it in a thread with a loop, is told
 * by one line that stalls are not told meanwhile. From a program that has only reset its signals, or ignores them,
 * the library takes SIGURG back.
 * Ownership: `release`, if not NULL, is called with `info` exactly once: when the function is called again, when the loop's thread ends, or
 * at once if the request is refused. It is not called during a call of `callback`. It may be called on the library's thread.
 * Threads: any; takes effect with the loop's next callout. The child of a fork watches the same loop.
 * Errors: false when there is no memory, no thread or no signal. That the thread can have no timer is one line on standard error.
 * Differs from Apple: Apple's loop has no such function.
 */
CF_EXPORT Boolean CRLRunLoopSetStallHandler(CFRunLoopRef rl, CFTimeInterval seconds, CRLStallCallBack callback, void *info,
                                            void (*release)(void *info))
    CRL_LINK(CRLRunLoopSetStallHandler);

/* Statistics */

/** What a loop has done since it is counted. All but `queued` only grow. */
typedef struct {
    CFIndex version; /**< 0, which the caller sets. */
    uint64_t passes; /**< Passes that have begun. */
    uint64_t sleeps; /**< Sleeps that have begun. */
    uint64_t callouts; /**< Callouts that have begun: of sources, timers, observers, blocks and ports. */
    uint64_t timers; /**< Timers that were fired. */
    CFTimeInterval busy; /**< Seconds awake in runs, up to now. */
    CFTimeInterval longest; /**< Seconds that the longest callout took; one that has not ended does not count. */
    const void *longestFunction; /**< The program's function of that callout. NULL: none has ended. */
    CFTimeInterval late; /**< The sum of the seconds by which fired timers were late. */
    CFTimeInterval latest; /**< The most seconds by which a fired timer was late. */
    CFIndex queued; /**< Blocks that waited when the last pass began. */
} CRLStatistics;

/**
 * Begins to count what all loops of this process do. It goes on until the process ends.
 *
 * A loop is counted from its next pass on, up to 64 at once, at some 50 ns a callout. With `CORERUNLOOP_STATISTICS=1` in the environment
 * they are counted from the beginning, and `runloop top` shows them, too. The child of a fork goes on from 0.
 * Threads: any.
 * Differs from Apple: Apple's loop has no such function.
 */
CF_EXPORT void CRLStatisticsStart(void) CRL_LINK(CRLStatisticsStart);

/**
 * Tells what the loop has done since it is counted. It takes no time of the loop's.
 *
 * Two calls tell what was done in between: the share of the time that the loop was busy is the difference of `busy` by that of the clock.
 * A monitor asks now and then, here for the text format of Prometheus:
 *
 *     CRLStatistics counted = {.version = 0};
 *     if (CRLRunLoopGetStatistics(CFRunLoopGetMain(), &counted))
 *         dprintf(client, "loop_busy_seconds_total %.9f\nloop_passes_total %" PRIu64 "\n", counted.busy, counted.passes);
 *
 * Threads: any.
 * Errors: false when the loop is not counted, when its thread has ended, or when the version is not 0. Nothing is written then.
 * Differs from Apple: Apple's loop has no such function.
 */
CF_EXPORT Boolean CRLRunLoopGetStatistics(CFRunLoopRef rl, CRLStatistics *statistics) CRL_LINK(CRLRunLoopGetStatistics);

/* Functions in the place of blocks */

/**
 * Queues a call of `function` with `info`, as CFRunLoopPerformBlock queues a block. The two share one queue.
 *
 * `mode` is a mode's name, or a CFArray or CFSet of names. The call does not wake the loop.
 * Ownership: `release`, if not NULL, is called with `info` exactly once: after the function has run, when the loop is taken down before
 * that, or at once when the request is ignored.
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
 * Errors: NULL when `function` is NULL or there is no memory. `release` is not called then.
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
 * Errors: NULL when `function` is NULL or there is no memory. `release` is not called then. Times are handled as by CFRunLoopTimerCreate.
 */
CF_EXPORT CFRunLoopTimerRef CRLRunLoopTimerCreateWithFunction(CFAllocatorRef allocator, CFAbsoluteTime fireDate, CFTimeInterval interval,
                                                              CFOptionFlags flags, CFIndex order,
                                                              void (*function)(CFRunLoopTimerRef timer, void *info), void *info,
                                                              void (*release)(void *info))
    CRL_LINK(CRLRunLoopTimerCreateWithFunction) CF_RETURNS_RETAINED;

/* Sources for signals and child processes */

/** The data of a signal or child source's callback. Any function may be NULL. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    const void *(*retain)(const void *info); /**< Called once at creation; its result becomes the `info`. */
    void (*release)(const void *info); /**< Called once, when the source is freed. */
    CFStringRef (*copyDescription)(const void *info); /**< Returns a string for CFCopyDescription, which releases it. */
} CRLSourceContext;

/** A signal source's callback: one call for each signal that the kernel reports. It runs on the loop's thread and may call any function. */
typedef void (*CRLSignalCallBack)(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info);

/**
 * A child source's callback. `waitStatus` is the status of waitpid, for WIFEXITED and the other macros; -1 when someone else reaped the
 * child.
 */
typedef void (*CRLChildCallBack)(CFRunLoopSourceRef source, pid_t pid, int waitStatus, void *info);

/**
 * Creates a version-1 source that calls `callout` in the loop when the process, or the loop's thread, receives signal `signalNumber`.
 *
 * The call blocks the signal in the calling thread, because only a blocked signal waits to be read. A thread that does not block it, as one
 * that was started before, is interrupted once: a handler that this call installs makes it block the signal from then on, and sends the
 * signal to the process again, with its sender. So the source receives it wherever it arrives. The handler takes the place of the default
 * action and of SIG_IGN. A handler of the program's own stays: the threads that do not block the signal call that, and the source does not
 * hear of it. The same holds for SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT, and for an ignored SIGCHLD. When no source
 * of the signal is left, it does again what it did before, but stays blocked in the threads that block it. The kernel merges equal signals
 * that wait. A pass handles at most one signal. `context` may be NULL and is copied.
 * Ownership: the caller releases the source; `info` is retained as the context says.
 * Threads: any; a loop on another thread reads signals sent to the process or to that thread.
 * Errors: NULL when `signalNumber` is no signal or cannot be blocked (SIGKILL, SIGSTOP), when `callout` is NULL, when the context's version
 * is not 0, or when no descriptor or memory is left.
 */
CF_EXPORT CFRunLoopSourceRef CRLSignalSourceCreate(CFAllocatorRef allocator, int signalNumber, CFIndex order, CRLSignalCallBack callout,
                                                   const CRLSourceContext *context)
    CRL_LINK(CRLSignalSourceCreate) CF_RETURNS_RETAINED;

/**
 * Creates a version-1 source that waits for the end of the child process `pid` and reaps it. It then calls `callout` once with the wait
 * status, and is invalid.
 *
 * A child that has already ended counts too, as long as nobody has reaped it. The program must not reap it by other means, and must not
 * ignore SIGCHLD. `context` may be NULL and is copied.
 * Ownership: the caller releases the source; `info` is retained as the context says. A source that is invalidated earlier leaves the child
 * to the program.
 * Threads: any.
 * Where there are no process descriptors, as before Linux 5.3 or under a filter of system calls, a thread waits for the child.
 * Errors: NULL when `pid` is no child that is still to be reaped, when `callout` is NULL, when the context's version is not 0, or when no
 * descriptor, memory or thread is left.
 */
CF_EXPORT CFRunLoopSourceRef CRLChildSourceCreate(CFAllocatorRef allocator, pid_t pid, CFIndex order, CRLChildCallBack callout,
                                                  const CRLSourceContext *context)
    CRL_LINK(CRLChildSourceCreate) CF_RETURNS_RETAINED;

/* Streams of descriptors */

/**
 * Creates a stream that reads a descriptor: the end of a pipe, such as a child's output, a terminal, or what else can be read. Of sockets,
 * CFStreamCreatePairWithSocket makes better ones.
 *
 * The end comes when nobody has the other end open to write any more. The descriptor stays in its mode (O_NONBLOCK), which belongs to all
 * processes that have it. So a read may wait, although there were bytes, if another one takes them from a descriptor that waits.
 * Ownership: the caller releases the stream. With `closesDescriptor` the descriptor is the stream's: closing the stream, or its last
 * release, closes it. Without, it has to stay open until the stream is closed.
 * Threads: any.
 * Errors: NULL when there is no memory; then the descriptor is the caller's. Opening fails with EBADF if it is not open for reading.
 */
CF_EXPORT CFReadStreamRef CRLReadStreamCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, Boolean closesDescriptor)
    CRL_LINK(CRLReadStreamCreateWithDescriptor) CF_RETURNS_RETAINED;

/**
 * Creates a stream that writes a descriptor, as CRLReadStreamCreateWithDescriptor reads one.
 *
 * A write takes at most PIPE_BUF bytes (4096), for which a pipe has room when kCFStreamEventCanAcceptBytes is told. Nobody who reads any
 * more is the error EPIPE, without SIGPIPE. Closing is what ends the bytes for the reader.
 * Ownership: as of CRLReadStreamCreateWithDescriptor.
 * Threads: any.
 * Errors: as of CRLReadStreamCreateWithDescriptor, for writing.
 */
CF_EXPORT CFWriteStreamRef CRLWriteStreamCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, Boolean closesDescriptor)
    CRL_LINK(CRLWriteStreamCreateWithDescriptor) CF_RETURNS_RETAINED;

/* Limits of message ports */

/**
 * Sets how many messages of one sending process the queue of the local port `local` holds before senders wait. The default is 5.
 *
 * `messages` is 1 to 4096. The kernel's limit on the whole queue (net.unix.max_dgram_qlen) applies too. Processes that are already
 * connected learn the new limit with their next confirmation.
 * Threads: any.
 * Errors: a number outside the range is moved to its nearest end; ignored for a port that is remote or invalid.
 */
CF_EXPORT void CRLMessagePortSetQueueLimit(CFMessagePortRef local, CFIndex messages) CRL_LINK(CRLMessagePortSetQueueLimit);

/**
 * Sets how many bytes of messages the local port `local` holds in memory at once, while its callbacks run. The default is 256 MiB.
 *
 * A message that would exceed the budget is dropped: its sender gets kCFMessagePortTransportError at once, and one line is logged.
 * Threads: any.
 * Errors: a negative number counts as 0; ignored for a port that is remote or invalid.
 */
CF_EXPORT void CRLMessagePortSetMemoryBudget(CFMessagePortRef local, CFIndex bytes) CRL_LINK(CRLMessagePortSetMemoryBudget);

CF_EXTERN_C_END

#endif /* ! CRL_RUN_LOOP_H */
