/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What add-on libraries give to the core: types of objects, kinds of streams, and encodings of strings. Programs do not need this header.
 */

#if !defined(CRL_ADD_ON_H)
#define CRL_ADD_ON_H 1

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFStream.h"
#include "CoreFoundation/CFString.h"

CF_EXTERN_C_BEGIN

/** What every object begins with. A type's own fields come behind it; only the core uses these. */
typedef struct {
    const void *isa; /**< The type. */
    UInt32 info; /**< Flags. */
    UInt32 count; /**< References. */
} CRLObjectHeader;

/** The functions of a type. Each pointer but `name` may be NULL: then objects are equal to themselves only, and hash by their address. */
typedef struct {
    CFIndex version; /**< 0 */
    const char *name; /**< As "CFTimeZone". */
    /** The last reference is gone: gives back what the object holds, not its own memory. */
    void (*finalize)(CFTypeRef object);
    /** Both are of this type, and not the same. */
    Boolean (*equal)(CFTypeRef one, CFTypeRef other);
    CFHashCode (*hash)(CFTypeRef object);
    /** For CFCopyDescription. */
    CFStringRef (*copyDescription)(CFTypeRef object);
} CRLTypeFunctions;

/**
 * Registers a type and returns its id. `functions` are copied; the name must stay.
 *
 * Threads: any. Once for each type of a library.
 * Errors: 0 when there is no room for a type: there may be 32 in a process.
 */
CF_EXPORT CFTypeID CRLTypeRegister(const CRLTypeFunctions *functions) CRL_LINK(CRLTypeRegister);

/**
 * Creates an object of a registered type, of `size` bytes that begin with a CRLObjectHeader. The rest is zero.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the object.
 * Threads: any.
 * Errors: NULL without memory, for a type that is not registered, or a size below that of the header.
 */
CF_EXPORT void *CRLTypeCreateObject(CFAllocatorRef allocator, CFTypeID type, CFIndex size) CRL_LINK(CRLTypeCreateObject);

/**
 * The functions of a stream whose bytes an add-on library moves. Each is called without a lock, on the thread that uses the stream or runs
 * its loop, and by one thread at a time. A result below 0 is a negative errno, with which the stream fails. No
 * pointer is NULL, but for one of `read` and `write`.
 */
typedef struct {
    CFIndex version; /**< 0 */
    /**
     * Opens: 0, or a negative errno. -EINPROGRESS: it is called again after CRLStreamTellState, and when somebody asks for the status. If
     * `waits`, it waits for the outcome.
     */
    int (*open)(void *info, Boolean waits);
    /** Waits for bytes, and returns how many it has put; 0 at the end. The stream is a read stream. */
    CFIndex (*read)(void *info, UInt8 *bytes, CFIndex size);
    /** Waits for room, and returns how many bytes it has taken. The stream is a write stream. */
    CFIndex (*write)(void *info, const UInt8 *bytes, CFIndex size);
    /**
     * The last reference to the stream is gone. Once this returns, the add-on does not name the stream any more: it waits for its threads
     * that are in CRLStreamTellState.
     */
    void (*forget)(void *info);
    /** The stream is closed. Once, if `open` was called; behind `forget` for a stream that was not closed before. */
    void (*close)(void *info);
    /** Frees `info`. The last call. */
    void (*finalize)(void *info);
    /** As CFReadStreamCopyProperty. */
    CFTypeRef (*copyProperty)(void *info, CFStringRef name);
    /** As CFReadStreamSetProperty. */
    Boolean (*setProperty)(void *info, CFStringRef name, CFTypeRef value);
} CRLStreamFunctions;

/**
 * Creates a stream by its functions, which are not copied: a CFReadStreamRef if there is `read`, otherwise a CFWriteStreamRef.
 *
 * Ownership: the caller releases the stream. `info` is the add-on's, which frees it in `finalize`.
 * Threads: any.
 * Errors: NULL without memory. `info` stays as it is then.
 */
CF_EXPORT CFTypeRef CRLStreamCreate(CFAllocatorRef allocator, const CRLStreamFunctions *functions, void *info) CRL_LINK(CRLStreamCreate);

/**
 * Notes what holds of the stream now: kCFStreamEventHasBytesAvailable or kCFStreamEventCanAcceptBytes; kCFStreamEventEndEncountered; a
 * negative errno, with which the stream fails; or 0, if reading or writing would wait. The end and a failure stay. 0 at first.
 *
 * What a call of the stream's functions changes is only noted; another change is told as well, by CRLStreamTellState.
 * Threads: any, until `forget` returns; with a lock of the add-on's, by which one call comes after the other.
 */
CF_EXPORT void CRLStreamSetState(CFTypeRef stream, CFIndex state) CRL_LINK(CRLStreamSetState);

/**
 * Has whoever waits for the stream's events look, without a reference to it.
 *
 * Threads: any, until `forget` returns, with no lock held.
 */
CF_EXPORT void CRLStreamTellState(CFTypeRef stream) CRL_LINK(CRLStreamTellState);

/** The functions for encodings that the core does not know. Each is called without a lock, on any thread. */
typedef struct {
    CFIndex version; /**< 0 */
    /** Returns the most bytes that a UTF-16 unit may need, what comes before the first and behind the last one included; 0: unknown. */
    CFIndex (*bytesPerUnit)(CFStringEncoding encoding);
    /** Returns how many units the bytes make, and the units in a block for free(); kCFNotFound for invalid bytes and without memory. */
    CFIndex (*decode)(CFStringEncoding encoding, const UInt8 *bytes, CFIndex count, UniChar **units);
    /** Like CFStringGetBytes; `used` is never NULL. */
    CFIndex (*encode)(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 lossByte, UInt8 *buffer, CFIndex size,
                      CFIndex *used);
    /** Returns the name for people, which is immortal, or NULL. */
    CFStringRef (*name)(CFStringEncoding encoding);
} CRLStringEncodings;

/**
 * Installs the functions for all strings of the process. The table is not copied, and must stay. Only the first call counts.
 *
 * Threads: any.
 */
CF_EXPORT void CRLStringSetEncodings(const CRLStringEncodings *encodings) CRL_LINK(CRLStringSetEncodings);

CF_EXTERN_C_END

#endif /* ! CRL_ADD_ON_H */
