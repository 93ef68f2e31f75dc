/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The part of Apple's CoreServices that is here: CFNetwork, FSEvents, and the tasks of Multiprocessing Services, which are threads, as the
 * Threading Programming Guide uses them.
 */

#if !defined(__CORESERVICES__)
#define __CORESERVICES__ 1

#include "../CFNetwork/CFNetwork.h"
#include "../CoreFoundation/CoreFoundation.h"
#include "FSEvents.h"

#if !defined(nil)
#define nil NULL
#endif

CF_EXTERN_C_BEGIN

/** Options for MPCreateTask; there are none here. */
typedef OptionBits MPTaskOptions;

/**
 * The id of a task. The value is not an address: it holds a small number that is unique in the process and never reused, so printing it
 * with `%d` or `%p` tells tasks apart.
 */
typedef struct OpaqueMPTaskID *MPTaskID;

/** A notification queue. There are none here, so the only value is NULL. */
typedef struct OpaqueMPQueueID *MPQueueID;

/** The function of a task; its result is discarded. */
typedef OSStatus (*TaskProc)(void *parameter);

/** Results of the functions below, besides noErr. */
enum {
    paramErr = -50, /**< A parameter has an invalid value. */
    kMPInsufficientResourcesErr = -29298 /**< No thread could be created. */
};

/**
 * Starts a thread that calls `entryPoint` with `parameter` and ends when that returns.
 *
 * `stackSize` is in bytes; 0 means the system's default. A smaller size than 64 KiB, or than the system's smallest stack, is raised to the
 * larger of the two, and the size is rounded up to whole pages. The termination parameters belong to `notifyQueue` and are ignored, as are
 * `options`. The task's id is stored in `*task` before the task starts; `task` may be NULL.
 * Ownership: nothing is kept; `parameter` is passed to the task.
 * Threads: any.
 * Errors: paramErr when `entryPoint` is NULL or `notifyQueue` is not; kMPInsufficientResourcesErr when there is no memory or no thread for
 * the task. `*task` is unchanged then.
 * Differs from Apple: there are no queues; a stack below 64 KiB is raised.
 */
CF_EXPORT OSStatus MPCreateTask(TaskProc entryPoint, void *parameter, ByteCount stackSize, MPQueueID notifyQueue,
                                void *terminationParameter1, void *terminationParameter2, MPTaskOptions options, MPTaskID *task)
    CRL_LINK(MPCreateTask);

/**
 * Ends the calling thread. Its run loop is taken down as at every thread's end. `status` is discarded.
 *
 * Threads: a task's own. It does the same on a thread that is not a task; on the main thread, the process lives on until its other threads
 * end. It must not be called in a callback of a run loop, because the loop would not give back the references that it holds for that
 * callback.
 */
CF_EXPORT void MPExit(OSStatus status) CRL_LINK(MPExit) __attribute__((noreturn));

/**
 * Returns the id of the calling task. A thread that is not a task, such as the main thread, gets an id of its own with its first call.
 *
 * Threads: any.
 */
CF_EXPORT MPTaskID MPCurrentTaskID(void) CRL_LINK(MPCurrentTaskID);

CF_EXTERN_C_END

#endif /* ! __CORESERVICES__ */
