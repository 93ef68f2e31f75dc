/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sources that tell what happens to one file or folder, as DISPATCH_SOURCE_TYPE_VNODE tells it on Apple's systems. They are in the add-on
 * library libcorerunloop-services. Trees of folders are what CoreServices/FSEvents.h is for.
 *
 * `CoreFoundation.h` does not include this header.
 */

#if !defined(CRL_FILE_SOURCE_H)
#define CRL_FILE_SOURCE_H 1

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFRunLoop.h"

CF_EXTERN_C_BEGIN

/** What happens to a file; the values may be or'ed, and are those of DISPATCH_VNODE_DELETE and its like. */
typedef CF_ENUM(CFOptionFlags, CRLFileEvents) {
    kCRLFileDeleted = 1UL << 0, /**< Its last name is gone. Nothing more is told. */
    kCRLFileWritten = 1UL << 1, /**< Bytes were written, or it was cut. A folder: what is in it came, went, or has another name. */
    kCRLFileExtended = 1UL << 2, /**< It became longer. A folder: something was moved in or out, or renamed. */
    kCRLFileAttributesChanged = 1UL << 3, /**< Its owner, rights, times or extended attributes. */
    kCRLFileLinked = 1UL << 4, /**< The number of its names changed. A folder: of the folders in it. */
    kCRLFileRenamed = 1UL << 5, /**< It has another name, or is in another folder. */
    kCRLFileRevoked = 1UL << 6 /**< Its file system was unmounted. Nothing more is told. */
};

/**
 * A file source's callback: what has happened since the last call, of the events that were asked for. It runs on the loop's thread and may
 * call any function.
 */
typedef void (*CRLFileCallBack)(CFRunLoopSourceRef source, CFOptionFlags events, void *info);

/**
 * Creates a version-1 source that tells what happens to the file or folder at `path` from now on.
 *
 * It stays with that file wherever it is moved, and does not look at what takes its name. Links are followed. `events` are those that the
 * callback is called for. `context` may be NULL and is copied. The space of a deleted file is not freed before the source is.
 * Ownership: the caller releases the source; `info` is retained as the context says.
 * Threads: any. In the child of a fork the source is invalid from its first event on.
 * Errors: NULL, and errno says why, when there is no such file, when the process may not read it, when the user has no watch or inotify
 * instance left (ENOSPC, EMFILE; /proc/sys/fs/inotify says how many there are), without /proc, or without memory. NULL and EINVAL when
 * `path` or `callout` is NULL, `events` has none of the events, or the context's version is not 0.
 */
CF_EXPORT CFRunLoopSourceRef CRLFileSourceCreateWithPath(CFAllocatorRef allocator, const char *path, CFOptionFlags events, CFIndex order,
                                                         CRLFileCallBack callout, const CRLSourceContext *context)
    CRL_LINK(CRLFileSourceCreateWithPath) CF_RETURNS_RETAINED;

/**
 * Creates a source as CRLFileSourceCreateWithPath does, of an open file or folder.
 *
 * Ownership: the descriptor stays the caller's, who may close it at any time.
 * Threads: any.
 * Errors: as of CRLFileSourceCreateWithPath; EBADF when `descriptor` is not open.
 */
CF_EXPORT CFRunLoopSourceRef CRLFileSourceCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, CFOptionFlags events,
                                                               CFIndex order, CRLFileCallBack callout, const CRLSourceContext *context)
    CRL_LINK(CRLFileSourceCreateWithDescriptor) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! CRL_FILE_SOURCE_H */
