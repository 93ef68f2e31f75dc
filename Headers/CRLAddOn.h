/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What add-on libraries give to the core: types of objects, and encodings of strings. Programs do not need this header.
 */

#if !defined(CRL_ADD_ON_H)
#define CRL_ADD_ON_H 1

#include "CoreFoundation/CFBase.h"
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
