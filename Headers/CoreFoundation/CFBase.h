/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Base types, the macros of every other header, and the operations that all objects have.
 *
 * Ownership follows Apple's naming rule throughout: a function with Create or Copy in its name returns a reference that the caller must
 * release with one CFRelease; a function with Get in its name returns a borrowed reference.
 */

#if !defined(__COREFOUNDATION_CFBASE__)
#define __COREFOUNDATION_CFBASE__ 1

#include <stddef.h>
#include <stdint.h>
#if !defined(__cplusplus)
#include <stdbool.h>
#endif

#include "CFAvailability.h"

/*
 * Link names. Every public function and constant is declared with CRL_LINK(name), which gives it the symbol `crl_name`. The source keeps
 * Apple's spelling, and the linker never confuses a symbol with the one of the same name that Foundation exports. CRL_PLAIN_NAMES is
 * defined for the variant of the library whose symbols are Apple's plain names (docs/symbols.md).
 */
#if defined(CRL_PLAIN_NAMES)
#define CRL_LINK(_name)
#else
#define CRL_LINK(_name) __asm__("crl_" #_name)
#endif

#if defined(__cplusplus)
#define CF_EXTERN_C_BEGIN extern "C" {
#define CF_EXTERN_C_END }
#define CF_EXPORT extern __attribute__((visibility("default")))
#else
#define CF_EXTERN_C_BEGIN
#define CF_EXTERN_C_END
#define CF_EXPORT extern __attribute__((visibility("default")))
#endif
#if !defined(CF_INLINE)
#define CF_INLINE static __inline__
#endif

#if !defined(TRUE)
#define TRUE 1
#endif
#if !defined(FALSE)
#define FALSE 0
#endif

/* C sources for Apple's systems write nil for NULL. C++ sources may use the name for something else. */
#if !defined(__cplusplus) && !defined(nil)
#define nil NULL
#endif

/* Apple's compilers and clang define one of these for the byte order; gcc does not. */
#if !defined(__LITTLE_ENDIAN__) && !defined(__BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define __BIG_ENDIAN__ 1
#else
#define __LITTLE_ENDIAN__ 1
#endif
#endif

#if !defined(__clang__)
#if !defined(_Nullable)
#define _Nullable
#endif
#if !defined(_Nonnull)
#define _Nonnull
#endif
#if !defined(_Null_unspecified)
#define _Null_unspecified
#endif
#endif

/* Annotations for reference counting. Clang's analyzer checks them, and Swift's ARC follows them. */
#if defined(__swift__)
#define CF_RETURNS_RETAINED __attribute__((swift_attr("returns_retained")))
#define CF_RETURNS_NOT_RETAINED __attribute__((swift_attr("returns_unretained")))
#elif __has_attribute(cf_returns_retained)
#define CF_RETURNS_RETAINED __attribute__((cf_returns_retained))
#define CF_RETURNS_NOT_RETAINED __attribute__((cf_returns_not_retained))
#else
#define CF_RETURNS_RETAINED
#define CF_RETURNS_NOT_RETAINED
#endif
#if __has_attribute(cf_consumed)
#define CF_RELEASES_ARGUMENT __attribute__((cf_consumed))
#define CF_CONSUMED __attribute__((cf_consumed))
#else
#define CF_RELEASES_ARGUMENT
#define CF_CONSUMED
#endif
#if __has_attribute(noescape)
#define CF_NOESCAPE __attribute__((noescape))
#else
#define CF_NOESCAPE
#endif
#define CF_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define CF_FORMAT_FUNCTION(_format, _arguments)
#define CF_FORMAT_ARGUMENT(_argument)
#define CF_IMPLICIT_BRIDGING_ENABLED
#define CF_IMPLICIT_BRIDGING_DISABLED
#define CF_ASSUME_NONNULL_BEGIN
#define CF_ASSUME_NONNULL_END
#define CF_BRIDGED_TYPE(_type)
#define CF_BRIDGED_MUTABLE_TYPE(_type)
#define CF_RELATED_TYPE(_type, _class, _init)
#define CF_REFINED_FOR_SWIFT
#define CF_SWIFT_NAME(_name) /* Apple's; this library's own names use CRL_SWIFT_NAME */
#define CF_SWIFT_UNAVAILABLE(_message)
#define CF_AUTOMATED_REFCOUNT_UNAVAILABLE
#define CF_NO_TAIL_CALL

/*
 * Reference types in Swift. On Linux, Swift's importer treats a typedef with one of Apple's names as a native Swift class, and would count
 * references in a layout that these objects do not have. Each type therefore needs these lines, as in CFRunLoop.h:
 *
 *     #if defined(__swift__)
 *     #define CFRunLoopRef CRLRunLoopRef_          the importer does not know this name; the mutable ...Refs need it too
 *     #endif
 *     CRL_REFERENCE_TYPE(__CFRunLoop, CFRunLoop);  declares the struct's tag: once, opaque, never completed in a public header
 *     typedef struct __CFRunLoop *CFRunLoopRef;    `const struct` where Apple's is, and for mutable twins the same tag without it
 *     CRL_REFERENCE_ALIAS(__CFString, CFMutableString);  for mutable twins: the same class by a second name
 *
 * Swift then sees a class CFRunLoop, with CFRunLoopRef as another name, and ARC counts it with CFRetain and CFRelease. Functions that
 * return one use CF_RETURNS_RETAINED or CF_RETURNS_NOT_RETAINED. In Swift a mutable type and its immutable twin are one class.
 */
#if defined(__swift__)
#define CRL_REFERENCE_TYPE(_tag, _name)                                                                                              \
    struct __attribute__((swift_name(#_name), swift_attr("import_reference"), swift_attr("retain:CRLRetain" #_name),                 \
                          swift_attr("release:CRLRelease" #_name), swift_attr("@Sendable"))) _tag;                                   \
    static __inline__ void CRLRetain##_name(struct _tag *object) { (void)crl_swift_retain(object); }                                 \
    static __inline__ void CRLRelease##_name(struct _tag *object) { crl_swift_release(object); }                                     \
    static __inline__ bool CRLEqual##_name(struct _tag *one, struct _tag *other) CRL_SWIFT_NAME(CFEqual(_:_:)) {                     \
        return crl_swift_equal(one, other);                                                                                          \
    }                                                                                                                                \
    static __inline__ unsigned long CRLHash##_name(struct _tag *object) CRL_SWIFT_NAME(CFHash(_:)) {                                 \
        return crl_swift_hash(object);                                                                                               \
    }                                                                                                                                \
    static __inline__ unsigned long CRLGetTypeIDOf##_name(struct _tag *object) CRL_SWIFT_NAME(CFGetTypeID(_:)) {                     \
        return crl_swift_type(object);                                                                                               \
    }                                                                                                                                \
    typedef struct _tag *CRL##_name##Reference __attribute__((swift_name(#_name "Ref")))
#define CRL_REFERENCE_ALIAS(_tag, _name)                                                 \
    typedef struct _tag *CRL##_name##Object __attribute__((swift_name(#_name)));         \
    typedef struct _tag *CRL##_name##Reference __attribute__((swift_name(#_name "Ref")))
#define CRL_SWIFT_NAME(_name) __attribute__((swift_name(#_name)))
/* Other names of CFRetain and CFRelease, which the macro needs before their declarations. */
extern const void *crl_swift_retain(const void *object) CRL_LINK(CFRetain);
extern void crl_swift_release(const void *object) CRL_LINK(CFRelease);
/* Functions on any object take a raw pointer in Swift. The macro adds an overload for each class. */
extern bool crl_swift_equal(const void *object1, const void *object2) CRL_LINK(CFEqual);
extern unsigned long crl_swift_hash(const void *object) CRL_LINK(CFHash);
extern unsigned long crl_swift_type(const void *object) CRL_LINK(CFGetTypeID);
/* A reference to any object is a raw pointer in Swift, because the importer would turn Apple's name into AnyObject. */
#define CFTypeRef CRLTypeRef_
#define CFPropertyListRef CRLPropertyListRef_
typedef const void *CRLTypeReference __attribute__((swift_name("CFTypeRef")));
#else
#define CRL_REFERENCE_TYPE(_tag, _name) struct _tag
#define CRL_REFERENCE_ALIAS(_tag, _name) struct _tag
#define CRL_SWIFT_NAME(_name)
#endif

CF_EXTERN_C_BEGIN

#if defined(__cplusplus)
typedef bool Boolean;
#else
/** A truth value: exactly `_Bool`, so that assigning any nonzero value gives 1. Apple's type is an unsigned char of the same size. */
__extension__ typedef _Bool Boolean;
#endif

/** An unsigned byte. */
typedef unsigned char UInt8;
/** A signed byte. */
typedef signed char SInt8;
/** An unsigned integer of 16 bits. */
typedef unsigned short UInt16;
/** A signed integer of 16 bits. */
typedef signed short SInt16;
/** An unsigned integer of 32 bits. */
typedef unsigned int UInt32;
/** A signed integer of 32 bits. */
typedef signed int SInt32;
/** An unsigned integer of 64 bits: `unsigned long long`, so that formats written for Apple's systems (`%llu`) fit. */
__extension__ typedef unsigned long long UInt64;
/** A signed integer of 64 bits: `long long`, so that formats written for Apple's systems (`%lld`) fit. */
__extension__ typedef signed long long SInt64;
/** A floating-point number of 32 bits. */
typedef float Float32;
/** A floating-point number of 64 bits. */
typedef double Float64;
/** One UTF-16 unit. String lengths and ranges count these units. */
typedef UInt16 UniChar;
/** A number of UTF-16 units. */
typedef unsigned long UniCharCount;
/** One byte of UTF-8. */
typedef UInt8 UTF8Char;
/** One UTF-16 unit. */
typedef UInt16 UTF16Char;
/** One UTF-32 unit: a whole character. */
typedef UInt32 UTF32Char;
/** An error number of the older interfaces; 0 is success. */
typedef SInt16 OSErr;
/** A result code; 0 is success. */
typedef SInt32 OSStatus;
/** The result code of success. */
enum { noErr = 0 };
/** A number of bytes. */
typedef unsigned long ByteCount;
/** A distance in bytes. */
typedef unsigned long ByteOffset;
/** A number of things. */
typedef unsigned long ItemCount;
/** A set of option bits. */
typedef UInt32 OptionBits;
/** A number for a country. */
typedef SInt16 RegionCode;
/** A number for a language. */
typedef SInt16 LangCode;
/** A number for a script. */
typedef SInt16 ScriptCode;
/** A code of four characters. */
typedef UInt32 FourCharCode;
/** A type named by four characters. */
typedef FourCharCode OSType;
/** A byte. */
typedef UInt8 Byte;
/** A signed byte. */
typedef SInt8 SignedByte;
/** A string of at most 255 bytes with its length in the first byte. */
typedef unsigned char Str255[256];
/** A borrowed Str255. */
typedef const unsigned char *ConstStr255Param;
/** A string with its length in the first byte. */
typedef unsigned char *StringPtr;
/** A borrowed string with its length in the first byte. */
typedef const unsigned char *ConstStringPtr;

/** A number of elements, an index, or a size in bytes. */
typedef signed long CFIndex;
/** A set of option bits. */
typedef unsigned long CFOptionFlags;
/** The number of a type of objects; valid in this process only. */
typedef unsigned long CFTypeID;
/** A hash value; valid in this process only. */
typedef unsigned long CFHashCode;
/** A reference to an object of any type. */
typedef const void *CFTypeRef;
/** A reference to an object that a property list can hold: string, data, number, date, truth value, array or dictionary. */
typedef CFTypeRef CFPropertyListRef;

/** The index that means "not found". */
enum { kCFNotFound = -1 };

/** A range of indices. */
typedef struct {
    CFIndex location; /**< The first index. */
    CFIndex length; /**< The number of indices. */
} CFRange;

/** Creates a range from its first index and its length. */
CF_INLINE CFRange CFRangeMake(CFIndex location, CFIndex length) {
    CFRange range;
    range.location = location;
    range.length = length;
    return range;
}

/** The order of two values. */
typedef CF_ENUM(CFIndex, CFComparisonResult) {
    kCFCompareLessThan = -1, /**< The first value comes before the second. */
    kCFCompareEqualTo = 0, /**< Neither value comes before the other. */
    kCFCompareGreaterThan = 1 /**< The first value comes after the second. */
};

/** A function that returns the order of two values. `context` is the pointer that the caller passed with the function. */
typedef CFComparisonResult (*CFComparatorFunction)(const void *value1, const void *value2, void *context);

/** The version number of Core Foundation in Mac OS X 10.0; the macros after it are for later releases. */
#define kCFCoreFoundationVersionNumber10_0 196.40
#define kCFCoreFoundationVersionNumber10_1 226.00
#define kCFCoreFoundationVersionNumber10_2 263.00
#define kCFCoreFoundationVersionNumber10_3 299.00
#define kCFCoreFoundationVersionNumber10_4 368.00
#define kCFCoreFoundationVersionNumber10_5 476.00
#define kCFCoreFoundationVersionNumber10_6 550.00
#define kCFCoreFoundationVersionNumber10_7 635.00
#define kCFCoreFoundationVersionNumber10_8 744.00
#define kCFCoreFoundationVersionNumber10_9 855.11
#define kCFCoreFoundationVersionNumber10_10 1151.16
#define kCFCoreFoundationVersionNumber10_11 1253.00

/**
 * The version number of the Core Foundation whose interface this library follows: that of OS X 10.11.
 * Differs from Apple: the number says which functions a program can expect, not which release is installed.
 */
CF_EXPORT const double kCFCoreFoundationVersionNumber CRL_LINK(kCFCoreFoundationVersionNumber);

/**
 * Adds a reference to an object and returns the object.
 *
 * `object` is any object. Constants and literals have no reference count. A block is copied, and the result is the copy: it is another
 * block if `object` was on the stack.
 * Ownership: the caller gets one more reference, and must give it back with one CFRelease.
 * Threads: any, signal handlers included if nobody can be freeing the object at the time.
 * Errors: NULL stops the process with a message. So does an object that has been freed, where that can still be detected.
 */
CF_EXPORT CFTypeRef CFRetain(CFTypeRef object) CRL_LINK(CFRetain);

/**
 * Gives back a reference to an object, and frees the object if it was the last reference.
 *
 * `object` is any object, or a block; constants and literals are never freed.
 * Ownership: takes one reference from the caller.
 * Threads: any; the object's release callbacks run on it.
 * Errors: NULL stops the process with a message. So does one release too many, where it can be detected.
 */
CF_EXPORT void CFRelease(CFTypeRef object) CRL_LINK(CFRelease);

/* The reference types that every header needs. Each other type is declared in the header of its functions. */
#if defined(__swift__)
#define CFAllocatorRef CRLAllocatorRef_
#define CFNullRef CRLNullRef_
#define CFStringRef CRLStringRef_
#define CFMutableStringRef CRLMutableStringRef_
#endif

CRL_REFERENCE_TYPE(__CFAllocator, CFAllocator);
CRL_REFERENCE_TYPE(__CFNull, CFNull);
CRL_REFERENCE_TYPE(__CFString, CFString);
CRL_REFERENCE_ALIAS(__CFString, CFMutableString);

/** A source of memory. */
typedef const struct __CFAllocator *CFAllocatorRef;
/** The object that stands for "nothing" in a collection. */
typedef const struct __CFNull *CFNullRef;
/** A string (CFString.h). */
typedef const struct __CFString *CFStringRef;
/** A mutable string (CFString.h). */
typedef struct __CFString *CFMutableStringRef;

/**
 * Gives the caller's reference to an object back later, at the end of a run-loop pass.
 *
 * `object` is any object.
 * Ownership: takes one reference; the object lives at least until the calling thread's outermost run-loop pass ends or the thread exits,
 * whichever comes first.
 * Threads: any; the pool is the thread's own. A main thread that runs no loop keeps its objects until the process ends.
 * Errors: NULL stops the process with a message. Without memory for the pool the object is never freed, and one line is logged.
 * Differs from Apple: only the run loop and the thread's exit drain the pool. There are no nested pools.
 */
CF_EXPORT CFTypeRef CFAutorelease(CFTypeRef object) CRL_LINK(CFAutorelease);

/**
 * Returns how many references an object has, for debugging.
 *
 * `object` is any object; for constants and literals the count is LONG_MAX.
 * Threads: any; the value may be out of date when it is returned.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFIndex CFGetRetainCount(CFTypeRef object) CRL_LINK(CFGetRetainCount);

/**
 * Returns the type id of an object, to compare with the result of a Get...TypeID function.
 *
 * `object` is any object.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFTypeID CFGetTypeID(CFTypeRef object) CRL_LINK(CFGetTypeID);

/**
 * Returns the name of a type, such as "CFArray".
 *
 * `type_id` is the number of a type.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL for a number that no type has.
 */
CF_EXPORT CFStringRef CFCopyTypeIDDescription(CFTypeID type_id) CRL_LINK(CFCopyTypeIDDescription) CF_RETURNS_RETAINED;

/**
 * Returns whether two objects are the same or, where their type compares values, have equal values.
 *
 * Two different collections that are in more than 1024 others are taken for unequal.
 *
 * `object1` and `object2` are any objects; objects of different types are never equal.
 * Threads: any, as long as no other changes the objects.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT Boolean CFEqual(CFTypeRef object1, CFTypeRef object2) CRL_LINK(CFEqual);

/**
 * Returns a hash value of an object. Objects that are equal by CFEqual have equal hash values.
 *
 * `object` is any object.
 * Threads: any, as long as no other changes the object.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFHashCode CFHash(CFTypeRef object) CRL_LINK(CFHash);

/**
 * Creates a description of an object, for debugging. Its form may change from release to release.
 *
 * The description of a run loop has a line for each mode and for each item in it. That of another object of a loop has one line, unless
 * the context's own description has more. Contexts are asked for theirs without a lock held.
 *
 * `object` is any object, or NULL.
 * Ownership: the caller releases the string.
 * Threads: any, as long as no other changes the object.
 * Errors: NULL for a NULL object, and when there is no memory.
 */
CF_EXPORT CFStringRef CFCopyDescription(CFTypeRef object) CRL_LINK(CFCopyDescription) CF_RETURNS_RETAINED;

/**
 * Returns the allocator that provided an object's memory.
 *
 * `object` is any object, or NULL. Constants and literals return the system's allocator.
 * Ownership: the allocator is borrowed from the object.
 * Threads: any.
 */
CF_EXPORT CFAllocatorRef CFGetAllocator(CFTypeRef object) CRL_LINK(CFGetAllocator) CF_RETURNS_NOT_RETAINED;

/**
 * Returns its argument. Apple's function had an effect under garbage collection.
 *
 * `object` is any object, or NULL.
 * Threads: any, signal handlers included.
 */
CF_EXPORT CFTypeRef CFMakeCollectable(CFTypeRef object) CRL_LINK(CFMakeCollectable);

/** A function that adds a reference to an allocator's info pointer and returns it. */
typedef const void *(*CFAllocatorRetainCallBack)(const void *info);
/** A function that gives back a reference to an allocator's info pointer. */
typedef void (*CFAllocatorReleaseCallBack)(const void *info);
/** A function that describes an allocator's info pointer; the caller releases the string. */
typedef CFStringRef (*CFAllocatorCopyDescriptionCallBack)(const void *info);
/** A function that returns at least `size` bytes, aligned for every type, or NULL. */
typedef void *(*CFAllocatorAllocateCallBack)(CFIndex size, CFOptionFlags hint, void *info);
/** A function that changes the size of a block and returns its new address, or NULL with the block unchanged. */
typedef void *(*CFAllocatorReallocateCallBack)(void *block, CFIndex newSize, CFOptionFlags hint, void *info);
/** A function that takes a block back. */
typedef void (*CFAllocatorDeallocateCallBack)(void *block, void *info);
/** A function that returns how many bytes a block of `size` bytes would really have. */
typedef CFIndex (*CFAllocatorPreferredSizeCallBack)(CFIndex size, CFOptionFlags hint, void *info);

/** The functions of an allocator that the program provides. Any pointer may be NULL; without `allocate` the allocator never has memory. */
typedef struct {
    CFIndex version; /**< 0. */
    void *info; /**< Passed to every function. */
    CFAllocatorRetainCallBack retain; /**< Called once, when the allocator is created. */
    CFAllocatorReleaseCallBack release; /**< Called once, when the allocator is freed. */
    CFAllocatorCopyDescriptionCallBack copyDescription; /**< Used by CFCopyDescription. */
    CFAllocatorAllocateCallBack allocate; /**< Returns new memory, aligned to 16 bytes. */
    CFAllocatorReallocateCallBack reallocate; /**< Changes the size of a block. */
    CFAllocatorDeallocateCallBack deallocate; /**< Takes a block back. */
    CFAllocatorPreferredSizeCallBack preferredSize; /**< Returns the real size of a block. */
} CFAllocatorContext;

/** NULL, which stands for the calling thread's default allocator in every function that takes an allocator. */
CF_EXPORT const CFAllocatorRef kCFAllocatorDefault CRL_LINK(kCFAllocatorDefault);
/** The system's allocator: malloc. */
CF_EXPORT const CFAllocatorRef kCFAllocatorSystemDefault CRL_LINK(kCFAllocatorSystemDefault);
/** Malloc, realloc and free. */
CF_EXPORT const CFAllocatorRef kCFAllocatorMalloc CRL_LINK(kCFAllocatorMalloc);
/** Equal to kCFAllocatorMalloc, because there are no zones here. */
CF_EXPORT const CFAllocatorRef kCFAllocatorMallocZone CRL_LINK(kCFAllocatorMallocZone);
/** An allocator that never has memory and frees nothing. It is the deallocator for bytes that somebody else owns. */
CF_EXPORT const CFAllocatorRef kCFAllocatorNull CRL_LINK(kCFAllocatorNull);
/** An argument for CFAllocatorCreate only: the new allocator's own memory comes from its own context. */
CF_EXPORT const CFAllocatorRef kCFAllocatorUseContext CRL_LINK(kCFAllocatorUseContext);

/** Returns the type id of allocators. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFAllocatorGetTypeID(void) CRL_LINK(CFAllocatorGetTypeID);

/**
 * Returns the calling thread's default allocator; the system's allocator until CFAllocatorSetDefault has been called.
 * Ownership: the allocator is borrowed; a default allocator is never freed.
 * Threads: any; each has its own default.
 */
CF_EXPORT CFAllocatorRef CFAllocatorGetDefault(void) CRL_LINK(CFAllocatorGetDefault) CF_RETURNS_NOT_RETAINED;

/**
 * Sets the calling thread's default allocator.
 *
 * `allocator` is the new default; NULL and kCFAllocatorUseContext are ignored.
 * Ownership: the allocator is retained forever.
 * Threads: any; each has its own default.
 */
CF_EXPORT void CFAllocatorSetDefault(CFAllocatorRef allocator) CRL_LINK(CFAllocatorSetDefault);

/**
 * Creates an allocator from functions of the program.
 *
 * `allocator` is where the new object's memory comes from, NULL for the default, kCFAllocatorUseContext for the new allocator itself.
 * `context` is copied.
 * Ownership: the caller releases the allocator; its info is retained by `context->retain` now and released with the allocator.
 * Threads: any.
 * Errors: NULL when there is no memory; a NULL context stops the process with a message.
 */
CF_EXPORT CFAllocatorRef CFAllocatorCreate(CFAllocatorRef allocator, CFAllocatorContext *context)
    CRL_LINK(CFAllocatorCreate) CF_RETURNS_RETAINED;

/**
 * Allocates memory, which is not zeroed.
 *
 * `allocator` is NULL for the default. `size` is in bytes. `hint` is 0.
 * Ownership: the caller gives the block back with CFAllocatorDeallocate and the same allocator.
 * Threads: any.
 * Errors: NULL when there is no memory and when `size` is not positive.
 */
CF_EXPORT void *CFAllocatorAllocate(CFAllocatorRef allocator, CFIndex size, CFOptionFlags hint) CRL_LINK(CFAllocatorAllocate);

/**
 * Changes the size of a block, and returns its new address.
 *
 * `allocator` is the block's, NULL for the default. `block` is NULL to get a new one. `newSize` is in bytes; 0 gives the block back. `hint`
 * is 0.
 * Ownership: the caller owns the returned block instead of the old one.
 * Threads: any.
 * Errors: NULL with the block unchanged when there is no memory, the allocator cannot reallocate or `newSize` is negative; NULL when the
 * block was given back.
 */
CF_EXPORT void *CFAllocatorReallocate(CFAllocatorRef allocator, void *block, CFIndex newSize, CFOptionFlags hint)
    CRL_LINK(CFAllocatorReallocate);

/**
 * Gives a block back to its allocator.
 *
 * `allocator` is the block's, NULL for the default. `block` may be NULL.
 * Ownership: takes the block.
 * Threads: any.
 */
CF_EXPORT void CFAllocatorDeallocate(CFAllocatorRef allocator, void *block) CRL_LINK(CFAllocatorDeallocate);

/**
 * Returns how many bytes a block of `size` bytes would really have; never fewer than `size`.
 *
 * `allocator` is NULL for the default. `hint` is 0.
 * Threads: any.
 */
CF_EXPORT CFIndex CFAllocatorGetPreferredSizeForSize(CFAllocatorRef allocator, CFIndex size, CFOptionFlags hint)
    CRL_LINK(CFAllocatorGetPreferredSizeForSize);

/**
 * Copies the context of an allocator into `*context`.
 *
 * `allocator` is NULL for the default. `context` is filled in.
 * Ownership: the info pointer is borrowed.
 * Threads: any.
 * Errors: a NULL context stops the process with a message.
 */
CF_EXPORT void CFAllocatorGetContext(CFAllocatorRef allocator, CFAllocatorContext *context) CRL_LINK(CFAllocatorGetContext);

/** The object that stands for "nothing" in a collection. It is immortal. */
CF_EXPORT const CFNullRef kCFNull CRL_LINK(kCFNull);

/** Returns the type id of kCFNull. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFNullGetTypeID(void) CRL_LINK(CFNullGetTypeID);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFBASE__ */
