/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Strings: sequences of UTF-16 units. Lengths, indices and ranges count units, so a character outside the Basic Multilingual Plane counts
 * two.
 *
 * An immutable string may be used by any number of threads. A mutable one may be used by one thread at a time. Any function that is given
 * NULL where it needs a string, a string of another type, or an index outside the string, stops the process with a message that names the
 * function.
 */

#if !defined(__COREFOUNDATION_CFSTRING__)
#define __COREFOUNDATION_CFSTRING__ 1

#include <stdarg.h>

#include "CFBase.h"
#include "CFArray.h"
#include "CFData.h"
#include "CFDictionary.h"

CF_EXTERN_C_BEGIN

/** The number of an encoding: a way to write strings as bytes. */
typedef UInt32 CFStringEncoding;

/** The encodings that this library knows. */
typedef CF_ENUM(CFStringEncoding, CFStringBuiltInEncodings) {
    kCFStringEncodingMacRoman = 0, /**< Mac OS Roman */
    kCFStringEncodingWindowsLatin1 = 0x0500, /**< Windows code page 1252 */
    kCFStringEncodingISOLatin1 = 0x0201, /**< ISO 8859-1 */
    kCFStringEncodingASCII = 0x0600, /**< ASCII, 0 to 127 */
    kCFStringEncodingUnicode = 0x0100, /**< The same as UTF16. */
    kCFStringEncodingNextStepLatin = 0x0B01, /**< NextStep's, with libcorerunloop-plist (CFStringEncodingExt.h) */
    kCFStringEncodingUTF8 = 0x08000100, /**< UTF-8 */
    kCFStringEncodingNonLossyASCII = 0x0BFF, /**< ASCII with escapes for all other characters: `\351`, `\u20ac`; `\\`, `\000` */
    kCFStringEncodingUTF16 = 0x0100, /**< UTF-16 in the machine's byte order, or as a byte order mark says */
    kCFStringEncodingUTF16BE = 0x10000100, /**< UTF-16, the more significant byte first */
    kCFStringEncodingUTF16LE = 0x14000100, /**< UTF-16, the less significant byte first */
    kCFStringEncodingUTF32 = 0x0c000100, /**< UTF-32 in the machine's byte order, or as a byte order mark says */
    kCFStringEncodingUTF32BE = 0x18000100, /**< UTF-32, the most significant byte first */
    kCFStringEncodingUTF32LE = 0x1c000100 /**< UTF-32, the least significant byte first */
};

/** How strings are compared and searched. */
typedef CF_OPTIONS(CFOptionFlags, CFStringCompareFlags) {
    kCFCompareCaseInsensitive = 1, /**< Upper and lower case are equal. */
    kCFCompareBackwards = 4, /**< The search begins at the end. */
    kCFCompareAnchored = 8, /**< A match must be at the start, or with kCFCompareBackwards at the end. */
    kCFCompareNumerically = 64 /**< A run of digits is compared as a number: "a2" comes before "a10". */
};

/*
 * CFSTR("text"): a constant text, at file scope too. It needs no release and is never freed.
 * A compiler with built-in constant strings creates one. Otherwise the constant is a wide literal that starts with a mark by which the
 * library recognises it. There, write characters outside ASCII as themselves or as \u escapes, not as \x escapes, and no NUL.
 */
#if defined(__cplusplus)
#define CRL_TEXT_AT(_constant) reinterpret_cast<CFStringRef>(_constant)
#else
#define CRL_TEXT_AT(_constant) ((CFStringRef)(const void *)(_constant))
#endif
#if defined(__CONSTANT_CFSTRINGS__)
#define CFSTR(_text) CRL_TEXT_AT(__builtin___CFStringMakeConstantString("" _text ""))
#elif defined(__SIZEOF_WCHAR_T__) && __SIZEOF_WCHAR_T__ == 4
#define CFSTR(_text) CRL_TEXT_AT(L"\1" _text)
#else
#define CFSTR(_text) __CFStringMakeConstantString("" _text "")
#endif

/**
 * Returns the constant string with these characters, the same object each time. It serves languages without CFSTR.
 *
 * `text` is UTF-8.
 * Ownership: the string is immortal.
 * Threads: any.
 * Errors: NULL when there is no memory or the bytes are not UTF-8.
 */
CF_EXPORT CFStringRef __CFStringMakeConstantString(const char *text) CRL_LINK(__CFStringMakeConstantString) CF_RETURNS_NOT_RETAINED;

/** Returns the type id of strings. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFStringGetTypeID(void) CRL_LINK(CFStringGetTypeID);

/**
 * Creates a string from a C string.
 *
 * `allocator` is NULL for the default. `text` ends with NUL. `encoding` says what its bytes mean.
 * Ownership: the caller releases the string; the bytes are copied.
 * Threads: any.
 * Errors: NULL when `text` is NULL, the bytes are not valid, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithCString(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding)
    CRL_LINK(CFStringCreateWithCString) CF_RETURNS_RETAINED;

/**
 * Creates a string from a C string, which it may use without copying.
 *
 * `allocator` is NULL for the default. `text` ends with NUL and is not changed while the string lives. `deallocator` frees it, NULL for the
 * default allocator, kCFAllocatorNull for none.
 * Ownership: the caller releases the string; the string owns the bytes, and frees them as soon as it does not need them.
 * Threads: any.
 * Errors: NULL when `text` is NULL, the bytes are not valid, the encoding is unknown or there is no memory; then the bytes are the
 * caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithCStringNoCopy(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding,
                                                      CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithCStringNoCopy) CF_RETURNS_RETAINED;

/**
 * Creates a string from bytes.
 *
 * `allocator` is NULL for the default. `bytes` has `count` bytes of `encoding`. `isExternalRepresentation` says that UTF-16 and UTF-32 may
 * start with a byte order mark, and have the most significant byte first without one. In UTF-8 a mark is always skipped. In ASCII, bytes
 * above 127 are read as ISO Latin 1; bytes at the end that are less than a unit of UTF-16 or UTF-32 are passed over.
 * Ownership: the caller releases the string; the bytes are copied.
 * Threads: any.
 * Errors: NULL when the bytes are not valid, `count` is negative, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                              Boolean isExternalRepresentation) CRL_LINK(CFStringCreateWithBytes) CF_RETURNS_RETAINED;

/**
 * Creates a string from UTF-16 units.
 *
 * `allocator` is NULL for the default. `characters` has `count` units.
 * Ownership: the caller releases the string; the units are copied.
 * Threads: any.
 * Errors: NULL when `count` is negative or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithCharacters(CFAllocatorRef allocator, const UniChar *characters, CFIndex count)
    CRL_LINK(CFStringCreateWithCharacters) CF_RETURNS_RETAINED;

/**
 * Creates a string from bytes, like CFStringCreateWithBytes, and may use the bytes without copying.
 *
 * `allocator` is NULL for the default. `deallocator` frees the bytes, NULL for the default allocator, kCFAllocatorNull for none.
 * Ownership: the caller releases the string; the string owns the bytes, and frees them as soon as it does not need them.
 * Threads: any.
 * Errors: like CFStringCreateWithBytes; then the bytes are the caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                                    Boolean isExternalRepresentation, CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithBytesNoCopy) CF_RETURNS_RETAINED;

/**
 * Creates a string from UTF-16 units, which it may use without copying.
 *
 * `allocator` is NULL for the default. `deallocator` frees the units, NULL for the default allocator, kCFAllocatorNull for none.
 * Ownership: the caller releases the string; the string owns the units, and frees them as soon as it does not need them.
 * Threads: any.
 * Errors: like CFStringCreateWithCharacters; then the units are the caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithCharactersNoCopy(CFAllocatorRef allocator, const UniChar *characters, CFIndex count,
                                                         CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithCharactersNoCopy) CF_RETURNS_RETAINED;

/**
 * Creates a string from a path in the form that system calls take: UTF-8.
 *
 * `allocator` is NULL for the default. `path` ends with NUL.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when `path` is NULL or no UTF-8, or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithFileSystemRepresentation(CFAllocatorRef allocator, const char *path)
    CRL_LINK(CFStringCreateWithFileSystemRepresentation) CF_RETURNS_RETAINED;

/**
 * Creates a string from a part of another.
 *
 * `allocator` is NULL for the default. `range` lies within `text`.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory; a range outside the string stops the process with a message.
 */
CF_EXPORT CFStringRef CFStringCreateWithSubstring(CFAllocatorRef allocator, CFStringRef text, CFRange range)
    CRL_LINK(CFStringCreateWithSubstring) CF_RETURNS_RETAINED;

/**
 * Creates a string from a format: printf's conversions, `%@` for any object, and `%1$@` for arguments by position.
 *
 * `allocator` is NULL for the default. `options` is not used. `%s` takes UTF-8, and reads bytes that are not valid UTF-8 as ISO Latin 1.
 * `%S` takes UTF-16 units that end with 0, and `%C` takes one unit. Widths and precisions count units, the precision of `%s` bytes.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory. An unknown conversion is copied unchanged, and `%n` writes nothing.
 * Differs from Apple: Apple leaves out the `%` of an unknown conversion, so that `100%` becomes `100`.
 */
CF_EXPORT CFStringRef CFStringCreateWithFormat(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format, ...)
    CRL_LINK(CFStringCreateWithFormat) CF_RETURNS_RETAINED;

/**
 * Creates a string like CFStringCreateWithFormat, from an argument list.
 *
 * `arguments` must match the format; its value is indeterminate afterwards.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithFormatAndArguments(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format,
                                                           va_list arguments)
    CRL_LINK(CFStringCreateWithFormatAndArguments) CF_RETURNS_RETAINED;

/**
 * Creates a string by joining the strings of an array with a separator.
 *
 * `allocator` is NULL for the default. `array` holds strings only. `separator` may be empty.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateByCombiningStrings(CFAllocatorRef allocator, CFArrayRef array, CFStringRef separator)
    CRL_LINK(CFStringCreateByCombiningStrings) CF_RETURNS_RETAINED;

/**
 * Creates an array of the parts of a string between separators. A string with n separators has n + 1 parts, some of them possibly empty.
 *
 * `allocator` is NULL for the default; an empty `separator` occurs nowhere.
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFArrayRef CFStringCreateArrayBySeparatingStrings(CFAllocatorRef allocator, CFStringRef text, CFStringRef separator)
    CRL_LINK(CFStringCreateArrayBySeparatingStrings) CF_RETURNS_RETAINED;

/**
 * Creates an immutable string with the same characters; it may be `text` itself when that is immutable too, unless kCFAllocatorNull is the
 * deallocator of its characters.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateCopy(CFAllocatorRef allocator, CFStringRef text) CRL_LINK(CFStringCreateCopy) CF_RETURNS_RETAINED;

/**
 * Creates an empty mutable string.
 *
 * `allocator` is NULL for the default. `maxLength` is a hint at its later length in units, 0 for none.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableStringRef CFStringCreateMutable(CFAllocatorRef allocator, CFIndex maxLength)
    CRL_LINK(CFStringCreateMutable) CF_RETURNS_RETAINED;

/**
 * Creates a mutable string with the same characters.
 *
 * `allocator` is NULL for the default. `maxLength` is a hint at its later length in units, 0 for none.
 * Ownership: the caller releases the copy.
 * Threads: any.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableStringRef CFStringCreateMutableCopy(CFAllocatorRef allocator, CFIndex maxLength, CFStringRef text)
    CRL_LINK(CFStringCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns a string's length in UTF-16 units. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFStringGetLength(CFStringRef text) CRL_LINK(CFStringGetLength);

/**
 * Returns one UTF-16 unit of a string.
 *
 * `index` is at least 0 and less than the length.
 * Threads: any.
 * Errors: an index outside the string stops the process with a message.
 */
CF_EXPORT UniChar CFStringGetCharacterAtIndex(CFStringRef text, CFIndex index) CRL_LINK(CFStringGetCharacterAtIndex);

/**
 * Copies UTF-16 units of a string.
 *
 * `range` lies within the string. `buffer` has room for `range.length` units.
 * Threads: any.
 * Errors: a range outside the string stops the process with a message.
 */
CF_EXPORT void CFStringGetCharacters(CFStringRef text, CFRange range, UniChar *buffer) CRL_LINK(CFStringGetCharacters);

/**
 * Writes a string as bytes, as far as they fit and can be encoded, and returns how many of its units were converted.
 *
 * `range` lies within the string. `lossByte` replaces each character that `encoding` lacks; 0 stops the conversion there.
 * `isExternalRepresentation` writes a byte order mark first in UTF-16 and UTF-32. `buffer` has `maxLength` bytes, NULL to count only.
 * `usedLength` may be NULL and gets the number of bytes.
 * Threads: any.
 * Errors: 0 for an unknown encoding; a range outside the string stops the process with a message.
 * Differs from Apple: `lossByte` replaces an unpaired surrogate in UTF-8 too.
 */
CF_EXPORT CFIndex CFStringGetBytes(CFStringRef text, CFRange range, CFStringEncoding encoding, UInt8 lossByte,
                                   Boolean isExternalRepresentation, UInt8 *buffer, CFIndex maxLength, CFIndex *usedLength)
    CRL_LINK(CFStringGetBytes);

/**
 * Copies a whole string into a buffer as a C string.
 *
 * `buffer` has `size` bytes, which include the NUL. The NUL is one byte in every encoding.
 * Threads: any.
 * Errors: false when it does not fit or the encoding cannot write it; the buffer then holds an empty string, if it has room for one.
 */
CF_EXPORT Boolean CFStringGetCString(CFStringRef text, char *buffer, CFIndex size, CFStringEncoding encoding) CRL_LINK(CFStringGetCString);

/**
 * Returns a string as a C string without copying it, where possible. It is possible for every string that has only ASCII characters, in
 * ASCII, UTF-8 and the other encodings that extend ASCII.
 * Ownership: the string owns the bytes; they are valid until it is changed or freed.
 * Threads: any.
 * Errors: NULL where it is not possible: use CFStringGetCString then.
 */
CF_EXPORT const char *CFStringGetCStringPtr(CFStringRef text, CFStringEncoding encoding) CRL_LINK(CFStringGetCStringPtr);

/**
 * Returns how many bytes a string of this length may need at most, without NUL or byte order mark.
 *
 * `length` counts UTF-16 units.
 * Threads: any, signal handlers included.
 * Errors: kCFNotFound when the number is too large, `length` is negative or the encoding is unknown.
 */
CF_EXPORT CFIndex CFStringGetMaximumSizeForEncoding(CFIndex length, CFStringEncoding encoding) CRL_LINK(CFStringGetMaximumSizeForEncoding);

/**
 * Returns a string's UTF-16 units without copying them, where possible. It is possible for most strings that have other characters than
 * ASCII.
 * Ownership: the string owns the units; they are valid until it is changed or freed.
 * Threads: any.
 * Errors: NULL where it is not possible: use CFStringGetCharacters then.
 */
CF_EXPORT const UniChar *CFStringGetCharactersPtr(CFStringRef text) CRL_LINK(CFStringGetCharactersPtr);

/**
 * Copies a string as a path for system calls: UTF-8, ended by NUL.
 *
 * `buffer` has `size` bytes, the NUL included.
 * Threads: any.
 * Errors: false when it does not fit, or cannot be written.
 */
CF_EXPORT Boolean CFStringGetFileSystemRepresentation(CFStringRef text, char *buffer, CFIndex size)
    CRL_LINK(CFStringGetFileSystemRepresentation);

/** Returns how many bytes CFStringGetFileSystemRepresentation may need at most for a string, NUL included. Threads: any. */
CF_EXPORT CFIndex CFStringGetMaximumSizeOfFileSystemRepresentation(CFStringRef text)
    CRL_LINK(CFStringGetMaximumSizeOfFileSystemRepresentation);

/** The result of CFStringConvert... and CFStringGet...Encoding when there is no encoding. */
#define kCFStringEncodingInvalidId (0xffffffffU)

/** Returns the encoding of the system's own strings: UTF-8. Threads: any, signal handlers included. */
CF_EXPORT CFStringEncoding CFStringGetSystemEncoding(void) CRL_LINK(CFStringGetSystemEncoding);

/** Returns the encoding in which a string can be read with the least work: ASCII or UTF-16. Threads: any. */
CF_EXPORT CFStringEncoding CFStringGetFastestEncoding(CFStringRef text) CRL_LINK(CFStringGetFastestEncoding);

/** Returns an encoding that writes a whole string with the fewest bytes: ASCII, ISO Latin 1, UTF-8 or UTF-16. Threads: any. */
CF_EXPORT CFStringEncoding CFStringGetSmallestEncoding(CFStringRef text) CRL_LINK(CFStringGetSmallestEncoding);

/** Returns whether the library, or an add-on library, converts an encoding. Threads: any; in signal handlers for those named here. */
CF_EXPORT Boolean CFStringIsEncodingAvailable(CFStringEncoding encoding) CRL_LINK(CFStringIsEncodingAvailable);

/**
 * Returns the name of an encoding, for people.
 * Ownership: the string is immortal.
 * Threads: any.
 * Errors: NULL for an encoding that neither this library nor an add-on library knows.
 */
CF_EXPORT CFStringRef CFStringGetNameOfEncoding(CFStringEncoding encoding) CRL_LINK(CFStringGetNameOfEncoding)
    CF_RETURNS_NOT_RETAINED;

/** Returns whether a unit is the first of the two that one character outside the Basic Multilingual Plane takes. Threads: any. */
CF_INLINE Boolean CFStringIsSurrogateHighCharacter(UniChar character) {
    return (character & 0xFC00U) == 0xD800U;
}

/** Returns whether a unit is the second of the two that one character outside the Basic Multilingual Plane takes. Threads: any. */
CF_INLINE Boolean CFStringIsSurrogateLowCharacter(UniChar character) {
    return (character & 0xFC00U) == 0xDC00U;
}

/** Returns the character that two surrogate units encode. Threads: any. */
CF_INLINE UTF32Char CFStringGetLongCharacterForSurrogatePair(UniChar surrogateHigh, UniChar surrogateLow) {
    return ((surrogateHigh & 0x3FFU) << 10) + (surrogateLow & 0x3FFU) + 0x10000U;
}

/** Writes a character as UTF-16, and tells whether it takes two units. `surrogates` has room for two. Threads: any. */
CF_INLINE Boolean CFStringGetSurrogatePairForLongCharacter(UTF32Char character, UniChar *surrogates) {
    if (character < 0x10000U) {
        surrogates[0] = character & 0xFFFFU;
        return 0;
    }
    surrogates[0] = (0xD7C0U + (character >> 10)) & 0xFFFFU;
    surrogates[1] = (0xDC00U + (character & 0x3FFU)) & 0xFFFFU;
    return 1;
}

/** A part of a string that is read unit by unit. Only the two functions below use the fields. */
typedef struct {
    UniChar buffer[64]; /**< The buffered units. */
    CFStringRef theString; /**< The string; borrowed. */
    CFRange rangeToBuffer; /**< The part that may be read. */
    CFIndex bufferedRangeStart; /**< The first unit in the buffer, counted from the start of the range. */
    CFIndex bufferedRangeEnd; /**< The index after the last buffered unit. */
} CFStringInlineBuffer;

/**
 * Prepares to read a part of a string unit by unit.
 *
 * `range` lies within `text`, which must not change or be freed meanwhile.
 * Threads: any.
 */
CF_INLINE void CFStringInitInlineBuffer(CFStringRef text, CFStringInlineBuffer *buffer, CFRange range) {
    buffer->theString = text;
    buffer->rangeToBuffer = range;
    buffer->bufferedRangeStart = 0;
    buffer->bufferedRangeEnd = 0;
}

/** Returns the unit at an index, which counts from the start of the part; 0 outside the part. Threads: one at a time for a buffer. */
CF_INLINE UniChar CFStringGetCharacterFromInlineBuffer(CFStringInlineBuffer *buffer, CFIndex index) {
    CFIndex start;
    CFIndex length;
    if (index < 0 || index >= buffer->rangeToBuffer.length) {
        return 0;
    }
    if (index < buffer->bufferedRangeStart || index >= buffer->bufferedRangeEnd) {
        /* The buffer begins a little before the index, for callers that look back. */
        start = index > 4 ? index - 4 : 0;
        length = buffer->rangeToBuffer.length - start;
        length = length < 64 ? length : 64;
        CFStringGetCharacters(buffer->theString, CFRangeMake(buffer->rangeToBuffer.location + start, length), buffer->buffer);
        buffer->bufferedRangeStart = start;
        buffer->bufferedRangeEnd = start + length;
    }
    return buffer->buffer[index - buffer->bufferedRangeStart];
}

/**
 * Compares two strings, unit by unit.
 *
 * `options` may hold kCFCompareCaseInsensitive and kCFCompareNumerically; other bits have no effect.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFComparisonResult CFStringCompare(CFStringRef text1, CFStringRef text2, CFStringCompareFlags options) CRL_LINK(CFStringCompare);

/**
 * Compares a part of a string with another string.
 *
 * `range` lies within `text1`. `options` are CFStringCompare's.
 * Threads: any.
 * Errors: a range outside the string stops the process with a message.
 */
CF_EXPORT CFComparisonResult CFStringCompareWithOptions(CFStringRef text1, CFStringRef text2, CFRange range, CFStringCompareFlags options)
    CRL_LINK(CFStringCompareWithOptions);

/**
 * Finds a string in another and returns its range, or {kCFNotFound, 0}. An empty string is found nowhere.
 *
 * `options` may hold kCFCompareCaseInsensitive, kCFCompareBackwards and kCFCompareAnchored.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFRange CFStringFind(CFStringRef text, CFStringRef wanted, CFStringCompareFlags options) CRL_LINK(CFStringFind);

/**
 * Finds a string in a part of another, and returns whether it is there.
 *
 * What of `range` is outside `text` does not count. `options` are CFStringFind's. `result` receives the range and may be NULL.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT Boolean CFStringFindWithOptions(CFStringRef text, CFStringRef wanted, CFRange range, CFStringCompareFlags options,
                                          CFRange *result) CRL_LINK(CFStringFindWithOptions);

/** Returns whether a string starts with another, which is not empty. Threads: any. Errors: NULL stops the process. */
CF_EXPORT Boolean CFStringHasPrefix(CFStringRef text, CFStringRef prefix) CRL_LINK(CFStringHasPrefix);

/** Returns whether a string ends with another, which is not empty. Threads: any. Errors: NULL stops the process. */
CF_EXPORT Boolean CFStringHasSuffix(CFStringRef text, CFStringRef suffix) CRL_LINK(CFStringHasSuffix);

/**
 * Appends a string to another.
 *
 * `text` must be mutable. `appended` may be the same string.
 * Threads: one at a time for this string.
 * Errors: an immutable string stops the process with a message. Without memory the string stays unchanged, and one line is logged.
 */
CF_EXPORT void CFStringAppend(CFMutableStringRef text, CFStringRef appended) CRL_LINK(CFStringAppend);

/**
 * Appends UTF-16 units to a string.
 *
 * `text` must be mutable. `characters` has `count` units; a `count` that is not positive adds nothing.
 * Threads: one at a time for this string.
 * Errors: an immutable string stops the process with a message. Without memory the string stays unchanged, and one line is logged.
 */
CF_EXPORT void CFStringAppendCharacters(CFMutableStringRef text, const UniChar *characters, CFIndex count)
    CRL_LINK(CFStringAppendCharacters);

/**
 * Appends a C string to a string.
 *
 * `text` must be mutable. `appended` ends with NUL. `encoding` says what its bytes mean.
 * Threads: one at a time for this string.
 * Errors: invalid bytes add nothing. An immutable string and NULL stop the process with a message. Without memory the string stays
 * unchanged, and one line is logged.
 */
CF_EXPORT void CFStringAppendCString(CFMutableStringRef text, const char *appended, CFStringEncoding encoding)
    CRL_LINK(CFStringAppendCString);

/**
 * Appends the result of CFStringCreateWithFormat to a string.
 *
 * `text` must be mutable. `options` is not used.
 * Threads: one at a time for this string.
 * Errors: an immutable string stops the process with a message. Without memory the string stays unchanged, and one line is logged.
 */
CF_EXPORT void CFStringAppendFormat(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, ...)
    CRL_LINK(CFStringAppendFormat);

/**
 * Appends the result of CFStringCreateWithFormatAndArguments to a string.
 *
 * `text` must be mutable. `options` is not used.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppendFormat.
 */
CF_EXPORT void CFStringAppendFormatAndArguments(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, va_list arguments)
    CRL_LINK(CFStringAppendFormatAndArguments);

/**
 * Inserts a string into another, before the unit at an index.
 *
 * `text` must be mutable. `index` is at least 0 and not greater than the length. `inserted` may be the same string.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend; an index outside stops the process with a message.
 */
CF_EXPORT void CFStringInsert(CFMutableStringRef text, CFIndex index, CFStringRef inserted) CRL_LINK(CFStringInsert);

/**
 * Deletes a part of a string.
 *
 * `text` must be mutable. `range` lies within it.
 * Threads: one at a time for this string.
 * Errors: an immutable string and a range outside stop the process with a message.
 */
CF_EXPORT void CFStringDelete(CFMutableStringRef text, CFRange range) CRL_LINK(CFStringDelete);

/**
 * Replaces a part of a string with another string.
 *
 * `text` must be mutable. `range` lies within it. `replacement` may be the same string.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend; a range outside stops the process with a message.
 */
CF_EXPORT void CFStringReplace(CFMutableStringRef text, CFRange range, CFStringRef replacement) CRL_LINK(CFStringReplace);

/**
 * Replaces all characters of a string with those of another.
 *
 * `text` must be mutable. `replacement` may be the same string.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend.
 */
CF_EXPORT void CFStringReplaceAll(CFMutableStringRef text, CFStringRef replacement) CRL_LINK(CFStringReplaceAll);

/**
 * Replaces each occurrence of `wanted` in a part of a string, and returns the number of replacements. With kCFCompareBackwards it begins at
 * the end. `text` must be mutable. What of `range` is outside it does not count. `options` are CFStringFind's.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend.
 */
CF_EXPORT CFIndex CFStringFindAndReplace(CFMutableStringRef text, CFStringRef wanted, CFStringRef replacement, CFRange range,
                                         CFStringCompareFlags options) CRL_LINK(CFStringFindAndReplace);

/**
 * Changes a string to `length` units: cuts it at its end, or appends the units of `padding` over and over.
 *
 * `text` must be mutable. `padding` must not be empty; NULL only shortens. `index` is the unit of `padding` that is appended first.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend; a negative length, an index outside the padding, and an empty padding where units are to be added stop the
 * process with a message.
 */
CF_EXPORT void CFStringPad(CFMutableStringRef text, CFStringRef padding, CFIndex length, CFIndex index) CRL_LINK(CFStringPad);

/**
 * Removes every occurrence of a string from both ends of another.
 *
 * `text` must be mutable.
 * Threads: one at a time for this string.
 * Errors: an immutable string stops the process with a message.
 */
CF_EXPORT void CFStringTrim(CFMutableStringRef text, CFStringRef trimmed) CRL_LINK(CFStringTrim);

/**
 * Removes white space and line ends, those of Unicode included, from both ends of a string.
 *
 * `text` must be mutable.
 * Threads: one at a time for this string.
 * Errors: an immutable string stops the process with a message.
 */
CF_EXPORT void CFStringTrimWhitespace(CFMutableStringRef text) CRL_LINK(CFStringTrimWhitespace);

#if defined(__swift__)
#define CFLocaleRef CRLLocaleRef_
#endif

CRL_REFERENCE_TYPE(__CFLocale, CFLocale);

/** The rules of a language. This library has none, so the only value is NULL. */
typedef const struct __CFLocale *CFLocaleRef;

/**
 * Converts a string's letters to lower case.
 *
 * `text` must be mutable. `locale` is NULL.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend.
 * Differs from Apple: letters that would become several, or that are outside the Basic Multilingual Plane, stay as they are.
 */
CF_EXPORT void CFStringLowercase(CFMutableStringRef text, CFLocaleRef locale) CRL_LINK(CFStringLowercase);

/**
 * Converts a string's letters to upper case.
 *
 * `text` must be mutable. `locale` is NULL.
 * Threads: one at a time for this string.
 * Errors: like CFStringAppend.
 * Differs from Apple: as CFStringLowercase.
 */
CF_EXPORT void CFStringUppercase(CFMutableStringRef text, CFLocaleRef locale) CRL_LINK(CFStringUppercase);

/**
 * Creates a string from data of another program, which may start with a byte order mark.
 *
 * `allocator` is NULL for the default. `encoding` says what the bytes mean.
 * Ownership: the caller releases the string; the bytes are copied.
 * Threads: any.
 * Errors: NULL when the bytes are not valid, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateFromExternalRepresentation(CFAllocatorRef allocator, CFDataRef data, CFStringEncoding encoding)
    CRL_LINK(CFStringCreateFromExternalRepresentation) CF_RETURNS_RETAINED;

/**
 * Creates data from a string for another program, with a byte order mark where the encoding has one.
 *
 * `allocator` is NULL for the default. `lossByte` replaces each character that `encoding` lacks; with 0 such a string is refused.
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when the string cannot be written completely, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFDataRef CFStringCreateExternalRepresentation(CFAllocatorRef allocator, CFStringRef text, CFStringEncoding encoding,
                                                         UInt8 lossByte)
    CRL_LINK(CFStringCreateExternalRepresentation) CF_RETURNS_RETAINED;

/**
 * Returns the integer at the start of a string, after any spaces.
 * Threads: any.
 * Errors: 0 when there is no number; the nearest possible number when it is too large.
 */
CF_EXPORT SInt32 CFStringGetIntValue(CFStringRef text) CRL_LINK(CFStringGetIntValue);

/**
 * Returns the decimal number at the start of a string, after any spaces. The decimal separator is a point in every locale.
 * Threads: any.
 * Errors: 0.0 when there is no number.
 */
CF_EXPORT double CFStringGetDoubleValue(CFStringRef text) CRL_LINK(CFStringGetDoubleValue);

/**
 * Writes the description of an object, or a string itself, and a new line to standard error.
 *
 * `object` is any object, or NULL.
 * Threads: any.
 */
CF_EXPORT void CFShow(CFTypeRef object) CRL_LINK(CFShow);

/**
 * Writes how a string is stored, and a new line, to standard error.
 *
 * `text` is any string, or NULL.
 * Threads: any.
 */
CF_EXPORT void CFShowStr(CFStringRef text) CRL_LINK(CFShowStr);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSTRING__ */
