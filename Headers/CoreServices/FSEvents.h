/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * File system events: what happens in whole trees of folders. It is in the add-on library libcorerunloop-services.
 *
 * A stream watches folders and all that is in them, by inotify: each folder takes one of the user's watches, and a stream two of his
 * instances (/proc/sys/fs/inotify). Folders that come are watched, and what happened in them before is told. Links are not followed, but
 * for the given paths themselves. A folder that the process may not read is passed over. A path that is not there, or is a file, is watched
 * all the same: the program hears when it comes.
 *
 * A path in an event begins as the program gave it, and one that was relative with the program's folder at the creation. Without
 * kFSEventStreamCreateFlagFileEvents it is that of a folder, with "/" at its end, in which something happened. With the flag it is that of
 * the file or folder itself. Several events of a path are told as one, with the flags of all. A folder that was moved or renamed is told
 * alone (kFSEventStreamEventFlagItemRenamed), with its old and its new path, and what is in it is not. As flags add up, a program looks at
 * what is there now. Without the flag a new folder has an event of its own besides that of the folder around it; one that was moved in has
 * kFSEventStreamEventFlagMustScanSubDirs then.
 *
 * What could not be followed is told as kFSEventStreamEventFlagMustScanSubDirs: the kernel's queue was full, or there was no memory (the
 * path is one of those given), or the user has no watch left for a folder (the path is the folder around it; later changes in that folder
 * are not seen, and a line on standard error says so once).
 *
 * Linux keeps no history. A stream that begins with an older event tells kFSEventStreamEventFlagMustScanSubDirs for each of its paths, and
 * then kFSEventStreamEventFlagHistoryDone. It does not say who changed something either, so kFSEventStreamCreateFlagIgnoreSelf and MarkSelf
 * have no effect. Changes that other machines make in a network file system are not seen.
 *
 * Ids of events are the microseconds since 1970, or later when many came at once. So they grow over all streams of a process, and from one
 * process to the next while nobody sets the clock back.
 *
 * Functions may be called on any thread, and not from signal handlers. A `streamRef` that is NULL stops the process with a message that
 * names the function. In the child of a fork a stream of its parent does nothing.
 */

#if !defined(__FSEVENTS__)
#define __FSEVENTS__ 1

#include <stddef.h>
#include <sys/types.h>

#include "../CoreFoundation/CFArray.h"
#include "../CoreFoundation/CFBase.h"
#include "../CoreFoundation/CFDate.h"
#include "../CoreFoundation/CFRunLoop.h"
#include "../CoreFoundation/CFString.h"
#include "../CoreFoundation/CFUUID.h"

CF_EXTERN_C_BEGIN

/** Flags for FSEventStreamCreate. */
typedef UInt32 FSEventStreamCreateFlags;

/** The flags of creation. */
enum {
    kFSEventStreamCreateFlagNone = 0x00000000, /**< None. */
    kFSEventStreamCreateFlagUseCFTypes = 0x00000001, /**< The callback gets a CFArray of CFStrings, not C strings. */
    kFSEventStreamCreateFlagNoDefer = 0x00000002, /**< After a quiet time the first event is told at once. */
    kFSEventStreamCreateFlagWatchRoot = 0x00000004, /**< kFSEventStreamEventFlagRootChanged is told. */
    kFSEventStreamCreateFlagIgnoreSelf = 0x00000008, /**< No effect here. */
    kFSEventStreamCreateFlagFileEvents = 0x00000010, /**< Events of files, not of folders. */
    kFSEventStreamCreateFlagMarkSelf = 0x00000020, /**< No effect here. */
    kFSEventStreamCreateFlagUseExtendedData = 0x00000040, /**< With UseCFTypes: the array holds CFDictionaries with the keys below. */
    kFSEventStreamCreateFlagFullHistory = 0x00000080 /**< No effect here. */
};

/** The key of the path, a CFString. */
#define kFSEventStreamEventExtendedDataPathKey CFSTR("path")
/** The key of the inode's number, a CFNumber. The old and the new path of a move have the same; where the file is gone it is missing. */
#define kFSEventStreamEventExtendedFileIDKey CFSTR("fileID")
/** The key of a document's id; there is none here. */
#define kFSEventStreamEventExtendedDocIDKey CFSTR("docID")

/** Flags of an event. */
typedef UInt32 FSEventStreamEventFlags;

/** The flags of events. */
enum {
    kFSEventStreamEventFlagNone = 0x00000000, /**< Something happened in the folder. */
    kFSEventStreamEventFlagMustScanSubDirs = 0x00000001, /**< Something may have happened in the folder and in any below it. */
    kFSEventStreamEventFlagUserDropped = 0x00000002, /**< With the first: there was no memory, or no watch. */
    kFSEventStreamEventFlagKernelDropped = 0x00000004, /**< With the first: the kernel's queue was full. */
    kFSEventStreamEventFlagEventIdsWrapped = 0x00000008, /**< Never told here. */
    kFSEventStreamEventFlagHistoryDone = 0x00000010, /**< What follows is new. */
    kFSEventStreamEventFlagRootChanged = 0x00000020, /**< The given path is gone, came, or stands for another file. The id is 0. */
    kFSEventStreamEventFlagMount = 0x00000040, /**< A file system was mounted at this path. */
    kFSEventStreamEventFlagUnmount = 0x00000080, /**< The file system at this path was unmounted. */
    kFSEventStreamEventFlagItemCreated = 0x00000100, /**< It was created, or has a new name. */
    kFSEventStreamEventFlagItemRemoved = 0x00000200, /**< It was removed. */
    kFSEventStreamEventFlagItemInodeMetaMod = 0x00000400, /**< Its owner, rights, times, extended attributes or link count changed. */
    kFSEventStreamEventFlagItemRenamed = 0x00000800, /**< It was moved from here, or to here. */
    kFSEventStreamEventFlagItemModified = 0x00001000, /**< Its bytes changed. */
    kFSEventStreamEventFlagItemFinderInfoMod = 0x00002000, /**< Never told here. */
    kFSEventStreamEventFlagItemChangeOwner = 0x00004000, /**< Never told here: see InodeMetaMod. */
    kFSEventStreamEventFlagItemXattrMod = 0x00008000, /**< Never told here: see InodeMetaMod. */
    kFSEventStreamEventFlagItemIsFile = 0x00010000, /**< It is neither folder nor link, or was gone before it was looked at. */
    kFSEventStreamEventFlagItemIsDir = 0x00020000, /**< It is a folder. */
    kFSEventStreamEventFlagItemIsSymlink = 0x00040000, /**< It is a symbolic link. */
    kFSEventStreamEventFlagOwnEvent = 0x00080000, /**< Never told here. */
    kFSEventStreamEventFlagItemIsHardlink = 0x00100000, /**< It is a file with several names. */
    kFSEventStreamEventFlagItemIsLastHardlink = 0x00200000, /**< Never told here. */
    kFSEventStreamEventFlagItemCloned = 0x00400000 /**< Never told here. */
};

/** The id of an event. */
typedef UInt64 FSEventStreamEventId;

/** As `sinceWhen`: from the start of the stream on. */
#define kFSEventStreamEventIdSinceNow ((FSEventStreamEventId)0xFFFFFFFFFFFFFFFFULL)

/** A stream of events. It is not a CF object: FSEventStreamRetain and FSEventStreamRelease count its references. */
typedef struct __FSEventStream *FSEventStreamRef;

/** A stream that is not changed. */
typedef const struct __FSEventStream *ConstFSEventStreamRef;

/** The data of a stream's callback. Any function may be NULL. */
struct FSEventStreamContext {
    CFIndex version; /**< 0. */
    void *info; /**< A pointer of the program's; passed to the callback. */
    CFAllocatorRetainCallBack retain; /**< Called once at creation; its result becomes the `info`. */
    CFAllocatorReleaseCallBack release; /**< Called once, when the stream is freed. */
    CFAllocatorCopyDescriptionCallBack copyDescription; /**< Returns a string for FSEventStreamCopyDescription, which releases it. */
};

/** The data of a stream's callback. */
typedef struct FSEventStreamContext FSEventStreamContext;

/**
 * A stream's callback. `eventPaths` are `numEvents` C strings (`char **`), or a CFArray as the flags of creation say. A path that is no
 * UTF-8 is no CFString: there MustScanSubDirs is told for the folder above it whose path is one.
 *
 * Ownership: all is the stream's, until the callback returns.
 * Threads: the loop's or the queue's, or that of FSEventStreamFlushSync; one call at a time. It may stop, invalidate and release the
 * stream, and run the loop.
 */
typedef void (*FSEventStreamCallback)(ConstFSEventStreamRef streamRef, void *clientCallBackInfo, size_t numEvents, void *eventPaths,
                                      const FSEventStreamEventFlags *eventFlags, const FSEventStreamEventId *eventIds);

/**
 * Creates a stream for the folders of `pathsToWatch`, CFStrings. Relative ones begin at the folder that is the current one now.
 *
 * `latency` is how many seconds events wait for others, to be told together; below 0 is 0. `context` may be NULL and is copied.
 * Ownership: the caller stops, invalidates and releases the stream.
 * Threads: any.
 * Errors: NULL when `callback` is NULL, when `pathsToWatch` is empty or holds what is no path, when the context's version is not 0, or when
 * no descriptor or memory is left.
 */
CF_EXPORT FSEventStreamRef FSEventStreamCreate(CFAllocatorRef allocator, FSEventStreamCallback callback, FSEventStreamContext *context,
                                               CFArrayRef pathsToWatch, FSEventStreamEventId sinceWhen, CFTimeInterval latency,
                                               FSEventStreamCreateFlags flags) CRL_LINK(FSEventStreamCreate);

/**
 * Creates a stream for folders of a device; paths are relative to where it is mounted, those of events too. "" is all of it.
 *
 * Ownership, threads: as FSEventStreamCreate.
 * Threads: any.
 * Errors: as FSEventStreamCreate, and NULL when the device is not mounted.
 */
CF_EXPORT FSEventStreamRef FSEventStreamCreateRelativeToDevice(CFAllocatorRef allocator, FSEventStreamCallback callback,
                                                               FSEventStreamContext *context, dev_t deviceToWatch,
                                                               CFArrayRef pathsToWatchRelativeToDevice, FSEventStreamEventId sinceWhen,
                                                               CFTimeInterval latency, FSEventStreamCreateFlags flags)
    CRL_LINK(FSEventStreamCreateRelativeToDevice);

/**
 * Returns the highest id that was told, before that the `sinceWhen` of the creation.
 *
 * Threads: any; the callback's events count.
 */
CF_EXPORT FSEventStreamEventId FSEventStreamGetLatestEventId(ConstFSEventStreamRef streamRef) CRL_LINK(FSEventStreamGetLatestEventId);

/**
 * Returns the device of FSEventStreamCreateRelativeToDevice; else 0.
 *
 * Threads: any.
 */
CF_EXPORT dev_t FSEventStreamGetDeviceBeingWatched(ConstFSEventStreamRef streamRef) CRL_LINK(FSEventStreamGetDeviceBeingWatched);

/**
 * Returns the paths that the stream was created with.
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 */
CF_EXPORT CFArrayRef FSEventStreamCopyPathsBeingWatched(ConstFSEventStreamRef streamRef)
    CRL_LINK(FSEventStreamCopyPathsBeingWatched) CF_RETURNS_RETAINED;

/**
 * Returns the id of the last event of this process, or one for this moment.
 *
 * Threads: any.
 */
CF_EXPORT FSEventStreamEventId FSEventsGetCurrentEventId(void) CRL_LINK(FSEventsGetCurrentEventId);

/**
 * Returns NULL: no device has a history here, whose ids the UUID would name.
 *
 * Threads: any.
 */
CF_EXPORT CFUUIDRef FSEventsCopyUUIDForDevice(dev_t dev) CRL_LINK(FSEventsCopyUUIDForDevice) CF_RETURNS_RETAINED;

/**
 * Returns an id below those of all events after `time`.
 *
 * Threads: any.
 * Errors: 0 for a time before 1970, or that is no number.
 */
CF_EXPORT FSEventStreamEventId FSEventsGetLastEventIdForDeviceBeforeTime(dev_t dev, CFAbsoluteTime time)
    CRL_LINK(FSEventsGetLastEventIdForDeviceBeforeTime);

/**
 * Returns false: there is no history to purge.
 *
 * Threads: any.
 */
CF_EXPORT Boolean FSEventsPurgeEventsForDeviceUpToEventId(dev_t dev, FSEventStreamEventId eventId)
    CRL_LINK(FSEventsPurgeEventsForDeviceUpToEventId);

/**
 * Adds a reference.
 *
 * Threads: any.
 */
CF_EXPORT void FSEventStreamRetain(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamRetain);

/**
 * Gives a reference back. A stream that is in a loop or a queue lives until it is invalidated.
 *
 * Threads: any.
 */
CF_EXPORT void FSEventStreamRelease(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamRelease);

/**
 * Has the stream tell its events on a loop in a mode, besides those that it has.
 *
 * Threads: any.
 * Errors: ignored on an invalid stream, and on one that has a queue.
 */
CF_EXPORT void FSEventStreamScheduleWithRunLoop(FSEventStreamRef streamRef, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(FSEventStreamScheduleWithRunLoop);

/**
 * Takes the stream out of a mode.
 *
 * Threads: any.
 */
CF_EXPORT void FSEventStreamUnscheduleFromRunLoop(FSEventStreamRef streamRef, CFRunLoopRef runLoop, CFStringRef runLoopMode)
    CRL_LINK(FSEventStreamUnscheduleFromRunLoop);

/**
 * Has the stream tell its events on a queue of libdispatch (a `dispatch_queue_t`); NULL takes it from its queue.
 *
 * Threads: any.
 * Errors: ignored on an invalid stream, on one that is in a loop, and without libdispatch or memory: FSEventStreamStart is false then.
 */
CF_EXPORT void FSEventStreamSetDispatchQueue(FSEventStreamRef streamRef, void *q) CRL_LINK(FSEventStreamSetDispatchQueue);

/**
 * Stops the stream, and takes it out of all loops and its queue. It cannot be used again.
 *
 * Threads: any. On the thread of the loop no callback comes after the return.
 */
CF_EXPORT void FSEventStreamInvalidate(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamInvalidate);

/**
 * Begins to watch. All that happens after the return is told. With many folders it takes some microseconds for each.
 *
 * A stream that was stopped tells kFSEventStreamEventFlagMustScanSubDirs for what happened in between.
 * Threads: any.
 * Errors: false when the stream is in no loop and no queue, is started, or is invalid, when the user has no inotify instance left, or
 * without memory.
 */
CF_EXPORT Boolean FSEventStreamStart(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamStart);

/**
 * Has the events that have happened told without latency. Returns the id of the last one, or 0 if there is none.
 *
 * Threads: any.
 */
CF_EXPORT FSEventStreamEventId FSEventStreamFlushAsync(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamFlushAsync);

/**
 * Tells the events that have happened before it returns, on the calling thread. If another thread is telling, it waits for that one.
 *
 * Threads: any; in the callback it does nothing.
 */
CF_EXPORT void FSEventStreamFlushSync(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamFlushSync);

/**
 * Ends watching. What has not been told is dropped.
 *
 * Threads: any. A callback that another thread has begun may still be running.
 */
CF_EXPORT void FSEventStreamStop(FSEventStreamRef streamRef) CRL_LINK(FSEventStreamStop);

/**
 * Writes the stream's description on standard error.
 *
 * Threads: any.
 */
CF_EXPORT void FSEventStreamShow(ConstFSEventStreamRef streamRef) CRL_LINK(FSEventStreamShow);

/**
 * Returns a text about the stream, for people.
 *
 * Ownership: the caller releases it.
 * Threads: any.
 * Errors: NULL without memory.
 */
CF_EXPORT CFStringRef FSEventStreamCopyDescription(ConstFSEventStreamRef streamRef)
    CRL_LINK(FSEventStreamCopyDescription) CF_RETURNS_RETAINED;

/**
 * Sets at most eight folders of which nothing is told, and which are not watched, from the next start on.
 *
 * Threads: any.
 * Errors: false for more, for what is no path, for a stream that is started, and without memory; nothing is changed then.
 */
CF_EXPORT Boolean FSEventStreamSetExclusionPaths(FSEventStreamRef streamRef, CFArrayRef pathsToExclude)
    CRL_LINK(FSEventStreamSetExclusionPaths);

CF_EXTERN_C_END

#endif /* ! __FSEVENTS__ */
