/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The little of Apple's CoreServices that the Threading Programming Guide uses: tasks of Multiprocessing Services, which are threads.
 */

#if !defined(__CORESERVICES__)
#define __CORESERVICES__ 1

#include "../CoreFoundation/CoreFoundation.h"

#if !defined(nil)
#define nil NULL
#endif

CF_EXTERN_C_BEGIN

/** Options for MPCreateTask; there are none here. */
typedef OptionBits MPTaskOptions;

/**
 * A task. The pointer is not one: it holds a small number, unique in the process, that is never used twice, so that printing it with `%d`
 * or `%p` tells tasks apart.
 */
typedef struct OpaqueMPTaskID *MPTaskID;

/** A notification queue. There are none here, so the only value is NULL. */
typedef struct OpaqueMPQueueID *MPQueueID;

/** What a task runs; its result is discarded. */
typedef OSStatus (*TaskProc)(void *parameter);

/** Results of the functions below, besides noErr. */
enum {
    paramErr = -50, /**< A parameter has no meaning here. */
    kMPInsufficientResourcesErr = -29298 /**< No thread could be made. */
};

/**
 * Starts a thread that calls `entryPoint` with `parameter` and ends when that returns.
 *
 * `stackSize` is in bytes, and 0 stands for the system's usual size; less than 64 KiB, or than the smallest stack that the system allows,
 * is raised to the larger of the two, and the size is rounded up to whole pages. The termination parameters belong to `notifyQueue` and are
 * ignored, as are `options`. The task's number is stored in `*task` before the task starts; `task` may be NULL.
 * Ownership: nothing is kept; `parameter` is handed to the task.
 * Threads: any.
 * Errors: returns paramErr when `entryPoint` is NULL or `notifyQueue` is not; kMPInsufficientResourcesErr when there is no memory or no
 * thread for the task. `*task` is untouched then.
 * Differs from Apple: there are no queues; a stack below 64 KiB is raised.
 */
CF_EXPORT OSStatus MPCreateTask(TaskProc entryPoint, void *parameter, ByteCount stackSize, MPQueueID notifyQueue,
                                void *terminationParameter1, void *terminationParameter2, MPTaskOptions options, MPTaskID *task)
    CRL_LINK(MPCreateTask);

/**
 * Ends the calling thread; its run loop is taken down as at every thread's end. `status` is discarded.
 *
 * Threads: a task's own; on a thread that is not a task it does the same, and on the main thread the process lives on until its other
 * threads end. Not in a callback of a run loop, as what the loop holds for that callback would not be given back.
 */
CF_EXPORT void MPExit(OSStatus status) CRL_LINK(MPExit) __attribute__((noreturn));

/**
 * Gets the number of the calling task; a thread that is no task, as the main thread, gets a number of its own with its first call.
 *
 * Threads: any.
 */
CF_EXPORT MPTaskID MPCurrentTaskID(void) CRL_LINK(MPCurrentTaskID);

CF_EXTERN_C_END

#endif /* ! __CORESERVICES__ */
