/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Child processes: a program is started with the arguments, the folder, the descriptors and the limits that are asked for, and with nothing
 * else. Its output and input are streams, and its end is told in a loop. They are in the add-on library libcorerunloop-services.
 *
 * `CoreFoundation.h` does not include this header. An object argument that is NULL, or of another type, stops the process with a message
 * that names the function. A child that was made otherwise has CRLChildSourceCreate (CRLRunLoop.h).
 */

#if !defined(CRL_CHILD_H)
#define CRL_CHILD_H 1

#include <sys/resource.h>
#include <sys/types.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFDate.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFStream.h"

#if defined(__swift__)
#define CRLChildRef CRLChildRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CRLChild, CRLChild);

/** A child process. */
typedef struct __CRLChild *CRLChildRef;

/** What stands behind a descriptor of a child. */
typedef CF_ENUM(UInt32, CRLChildDescriptorKind) {
    kCRLChildNothing = 0, /**< /dev/null. */
    kCRLChildGiven = 1, /**< The file of the program's `descriptor`, which the program keeps. */
    kCRLChildSame = 2, /**< What the child has as `descriptor`: with number 2 and descriptor 1 it is 2>&1. */
    kCRLChildWrites = 3, /**< A pipe that the child writes: CRLChildCopyReadStream reads it. */
    kCRLChildReads = 4 /**< A pipe that the child reads: CRLChildCopyWriteStream writes it. */
};

/** A descriptor of a child. */
typedef struct {
    int number; /**< The child's number for it. */
    CRLChildDescriptorKind kind; /**< What it is. */
    int descriptor; /**< Of kCRLChildGiven and kCRLChildSame. */
} CRLChildDescriptor;

/** A limit of a child. */
typedef struct {
    int resource; /**< RLIMIT_CPU or another one. */
    struct rlimit limit; /**< Both limits. */
} CRLChildLimit;

/** How a child is started. All texts and lists may go after CRLChildCreate. What is 0 or NULL takes the place that the comment says. */
typedef struct {
    CFIndex version; /**< 0. */
    /** The file: a path, from `folder` on if it is relative; without a slash it is looked for in the program's PATH. NULL: arguments[0]. */
    const char *file;
    const char *const *arguments; /**< Ends with NULL. The first is the name that the child sees. */
    const char *const *environment; /**< NAME=VALUE, ends with NULL. NULL: the program's. */
    const char *folder; /**< Where the child begins. NULL: where the program is. */
    const CRLChildDescriptor *descriptors; /**< Each number once. 0, 1 and 2 are /dev/null if they are not here; no other is open. */
    CFIndex descriptorCount; /**< How many. */
    const CRLChildLimit *limits; /**< Others are the program's. */
    CFIndex limitCount; /**< How many. */
    pid_t group; /**< The process group that it joins. -1: a new one, whose number is the child's. 0: the program's. */
    Boolean startsSession; /**< It leads a session, and so a group, of its own, without a terminal. Then `group` is 0 or -1. */
} CRLChildSpecification;

/** What could not be done. */
typedef CF_ENUM(UInt32, CRLChildStep) {
    kCRLChildStepSpecification = 0, /**< What was asked for makes no sense: EINVAL. */
    kCRLChildStepProcess = 1, /**< Memory, pipes, or the process. */
    kCRLChildStepGroup = 2, /**< Its group or session. */
    kCRLChildStepFolder = 3, /**< Going to the folder. */
    kCRLChildStepDescriptors = 4, /**< A descriptor; or the others cannot be closed. */
    kCRLChildStepLimits = 5, /**< A limit. */
    kCRLChildStepExecute = 6 /**< The file is not there, is no program, or may not be executed. */
};

/** Why there is no child. */
typedef struct {
    CRLChildStep step; /**< What could not be done. */
    int error; /**< The errno. */
} CRLChildError;

/** How a child ended, and what it used. */
typedef struct {
    CFIndex version; /**< 0. */
    /** The status of waitpid, for WIFEXITED and the other macros. -1: nobody knows, as the program ignores SIGCHLD or has waited itself. In
     * the child of a fork all that its parent has started counts as ended, with -1. */
    int waitStatus;
    struct rusage usage; /**< Of the child and of those that it has waited for; zeros if the status is -1. */
} CRLChildEnd;

/** Tells the end of a child, once, on the loop's thread. `end` is valid until it returns. It may call any function. */
typedef void (*CRLChildEndCallBack)(CRLChildRef child, const CRLChildEnd *end, void *info);

/**
 * Returns the type id of children.
 *
 * Threads: any.
 */
CF_EXPORT CFTypeID CRLChildGetTypeID(void) CRL_LINK(CRLChildGetTypeID);

/**
 * Starts a child, and returns once its program runs.
 *
 * The child has no blocked and no ignored signals. It shares the program's memory until then (vfork), so that a large program starts it as
 * fast as a small one; meanwhile the calling thread waits, as for a file on a slow disk. Handlers of pthread_atfork are not called.
 * `callout` and `context` may be NULL; `info` is released with the child. Nothing waits for the child unless it is scheduled.
 * Ownership: the caller releases the child. One that is released before its end goes on, and the library reaps it.
 * Threads: any.
 * Errors: NULL, with `*error` unless that is NULL. The specification may be refused by EINVAL: no arguments, a number twice or below 0, a
 * kind that there is not, kCRLChildSame of a number that is not in the list or is itself one. A script without #! is ENOEXEC.
 */
CF_EXPORT CRLChildRef CRLChildCreate(CFAllocatorRef allocator, const CRLChildSpecification *specification, CRLChildEndCallBack callout,
                                     const CRLSourceContext *context, CRLChildError *error) CRL_LINK(CRLChildCreate) CF_RETURNS_RETAINED;

/**
 * Returns the number of the process. Once the end was told, the system may give it to another one.
 *
 * Threads: any.
 */
CF_EXPORT pid_t CRLChildGetProcessIdentifier(CRLChildRef child) CRL_LINK(CRLChildGetProcessIdentifier);

/**
 * Returns the stream that reads what the child writes to a descriptor of the kind kCRLChildWrites; always the same one. It is not open.
 *
 * It ends when nobody can write to the pipe any more. That may be before the child ends, or after it, as long as a child of the child has
 * the pipe. A child that writes when the stream is closed gets SIGPIPE.
 * Ownership: the caller releases it once the stream has ended. No loop keeps it, and the child does only until it is freed, which may be
 * when its end was told: what nobody has read then is lost.
 * Threads: any.
 * Errors: NULL for another kind, for a number that is not the child's, after CRLChildTakeDescriptor, and without memory.
 */
CF_EXPORT CFReadStreamRef CRLChildCopyReadStream(CRLChildRef child, int number) CRL_LINK(CRLChildCopyReadStream) CF_RETURNS_RETAINED;

/**
 * Returns the stream that writes what the child reads, as CRLChildCopyReadStream, for kCRLChildReads. Closing it ends the child's input.
 *
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: as CRLChildCopyReadStream. A child that reads no more is the stream's error EPIPE.
 */
CF_EXPORT CFWriteStreamRef CRLChildCopyWriteStream(CRLChildRef child, int number) CRL_LINK(CRLChildCopyWriteStream) CF_RETURNS_RETAINED;

/**
 * Returns the program's end of a pipe, for a program that wants no stream. It is non-blocking and closes on exec.
 *
 * Ownership: the caller closes it.
 * Threads: any.
 * Errors: -1 for a number without a pipe, and when the end was taken already, or has its stream.
 */
CF_EXPORT int CRLChildTakeDescriptor(CRLChildRef child, int number) CRL_LINK(CRLChildTakeDescriptor);

/**
 * Has the end of the child told in a mode of a loop; kCFRunLoopCommonModes is one. A child that has ended already counts.
 *
 * A scheduled child keeps the loop's run alive, and itself, until the end was told.
 * Threads: any. Let the thread of the loop end only after the end was told, or after CRLChildUnscheduleFromRunLoop: else the child is lost.
 * Errors: false when it is scheduled on another loop, and without memory or descriptors. True, and nothing happens, after the end was told.
 */
CF_EXPORT Boolean CRLChildScheduleWithRunLoop(CRLChildRef child, CFRunLoopRef loop, CFRunLoopMode mode)
    CRL_LINK(CRLChildScheduleWithRunLoop);

/**
 * Ends that for one mode. Without a mode left, the child may be scheduled on another loop.
 *
 * Threads: any.
 */
CF_EXPORT void CRLChildUnscheduleFromRunLoop(CRLChildRef child, CFRunLoopRef loop, CFRunLoopMode mode)
    CRL_LINK(CRLChildUnscheduleFromRunLoop);

/**
 * Returns whether the child has ended, told or not, and how. `end` may be NULL. Nothing waits.
 *
 * Threads: any.
 */
CF_EXPORT Boolean CRLChildGetEnd(CRLChildRef child, CRLChildEnd *end) CRL_LINK(CRLChildGetEnd);

/**
 * Sends a signal to the child, or to its whole group if it has one of its own. No other process can be hit, whatever has the number by now.
 *
 * Threads: any.
 * Errors: false when the child has ended, when it has no group of its own, or for a number that is no signal.
 */
CF_EXPORT Boolean CRLChildKill(CRLChildRef child, int signalNumber, Boolean wholeGroup) CRL_LINK(CRLChildKill);

/**
 * Asks the child to end by SIGTERM, and ends it by SIGKILL if it still runs `grace` seconds later.
 *
 * SIGKILL comes from the loop on which the child is scheduled, now or later; at once when `grace` is not above 0 or no memory is left. With
 * `wholeGroup` both go to the group; what is left of it when the child itself ends is killed then. A second call may shorten the time.
 * Threads: any.
 * Errors: as CRLChildKill.
 */
CF_EXPORT Boolean CRLChildTerminate(CRLChildRef child, CFTimeInterval grace, Boolean wholeGroup) CRL_LINK(CRLChildTerminate);

CF_EXTERN_C_END

#endif /* ! CRL_CHILD_H */
