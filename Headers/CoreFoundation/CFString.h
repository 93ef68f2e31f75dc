/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Texts: sequences of UTF-16 units. Lengths, indices and ranges count units, so a character outside the Basic Multilingual Plane counts
 * two.
 *
 * A text that cannot be changed may be used by any number of threads. One that can may be used by one thread at a time.
 * Any function that is given NULL where it needs a text, a text of another type, or an index outside the text, stops the process with a
 * sentence that names the function.
 */

#if !defined(__COREFOUNDATION_CFSTRING__)
#define __COREFOUNDATION_CFSTRING__ 1

#include <stdarg.h>

#include "CFBase.h"
#include "CFArray.h"
#include "CFData.h"
#include "CFDictionary.h"

CF_EXTERN_C_BEGIN

/** The number of a way to write text as bytes. */
typedef UInt32 CFStringEncoding;

/** The encodings that this library knows. */
typedef CF_ENUM(CFStringEncoding, CFStringBuiltInEncodings) {
    kCFStringEncodingMacRoman = 0, /**< Mac OS Roman */
    kCFStringEncodingWindowsLatin1 = 0x0500, /**< Windows code page 1252 */
    kCFStringEncodingISOLatin1 = 0x0201, /**< ISO 8859-1 */
    kCFStringEncodingASCII = 0x0600, /**< ASCII, 0 to 127 */
    kCFStringEncodingUnicode = 0x0100, /**< the same as UTF16 */
    kCFStringEncodingUTF8 = 0x08000100, /**< UTF-8 */
    kCFStringEncodingNonLossyASCII = 0x0BFF, /**< ASCII with escapes for everything else: `\351`, `\u20ac`, `\\` */
    kCFStringEncodingUTF16 = 0x0100, /**< UTF-16 in the machine's byte order, or as a byte order mark says */
    kCFStringEncodingUTF16BE = 0x10000100, /**< UTF-16, the more significant byte first */
    kCFStringEncodingUTF16LE = 0x14000100, /**< UTF-16, the less significant byte first */
    kCFStringEncodingUTF32 = 0x0c000100, /**< UTF-32 in the machine's byte order, or as a byte order mark says */
    kCFStringEncodingUTF32BE = 0x18000100, /**< UTF-32, the most significant byte first */
    kCFStringEncodingUTF32LE = 0x1c000100 /**< UTF-32, the least significant byte first */
};

/** How texts are compared and searched. */
typedef CF_OPTIONS(CFOptionFlags, CFStringCompareFlags) {
    kCFCompareCaseInsensitive = 1, /**< capital and small letters are the same */
    kCFCompareBackwards = 4, /**< searches from the end */
    kCFCompareAnchored = 8, /**< finds only at the start, or with kCFCompareBackwards at the end */
    kCFCompareNumerically = 64 /**< digits in a row are compared as a number: "a2" comes before "a10" */
};

/*
 * CFSTR("text"): a constant text, at file scope too. It needs no release and is never freed.
 * The compiler that knows such constants makes one. Otherwise the constant is a wide literal that starts with a mark by which the library
 * knows it; there, write other characters than ASCII as themselves or as \u escapes, not as \x escapes, and no NUL.
 */
#if defined(__CONSTANT_CFSTRINGS__)
#define CFSTR(_text) ((CFStringRef)__builtin___CFStringMakeConstantString("" _text ""))
#elif defined(__SIZEOF_WCHAR_T__) && __SIZEOF_WCHAR_T__ == 4
#define CFSTR(_text) ((CFStringRef)(const void *)(L"\1" _text))
#else
#define CFSTR(_text) __CFStringMakeConstantString("" _text "")
#endif

/**
 * Returns the constant text with these characters, the same one each time; for languages that have no CFSTR.
 * `text` is UTF-8.
 * Ownership: the text is immortal.
 * Threads: any thread.
 * Errors: NULL when there is no memory or the bytes are not UTF-8.
 */
CF_EXPORT CFStringRef __CFStringMakeConstantString(const char *text) CRL_LINK(__CFStringMakeConstantString) CF_RETURNS_NOT_RETAINED;

/** Returns the type number of texts. Threads: any thread, signal handlers included. */
CF_EXPORT CFTypeID CFStringGetTypeID(void) CRL_LINK(CFStringGetTypeID);

/**
 * Makes a text of a C string.
 * `allocator` is NULL for the default; `text` ends with NUL; `encoding` says what its bytes mean.
 * Ownership: the caller releases the text; the bytes are copied.
 * Threads: any thread.
 * Errors: NULL when `text` is NULL, the bytes are not valid, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithCString(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding)
    CRL_LINK(CFStringCreateWithCString) CF_RETURNS_RETAINED;

/**
 * Makes a text of a C string that it may use in place.
 * `allocator` is NULL for the default; `text` ends with NUL and is not changed while the text lives; `deallocator` frees it, NULL for the
 * default allocator, kCFAllocatorNull when nobody shall.
 * Ownership: the caller releases the text; the bytes are the text's, and are freed as soon as it does not need them.
 * Threads: any thread.
 * Errors: NULL when `text` is NULL, the bytes are not valid, the encoding is unknown or there is no memory; then the bytes are the
 * caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithCStringNoCopy(CFAllocatorRef allocator, const char *text, CFStringEncoding encoding,
                                                      CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithCStringNoCopy) CF_RETURNS_RETAINED;

/**
 * Makes a text of bytes.
 * `allocator` is NULL for the default; `bytes` has `count` bytes of `encoding`; `isExternalRepresentation` says that UTF-16 and UTF-32 may
 * start with a byte order mark, and that UTF-16 without one has the more significant byte first. In UTF-8 a mark is always skipped.
 * Ownership: the caller releases the text; the bytes are copied.
 * Threads: any thread.
 * Errors: NULL when the bytes are not valid, `count` is negative, the encoding is unknown or there is no memory.
 * Differs from Apple: bytes above 127 are not valid ASCII, and an odd byte at the end is not valid UTF-16.
 */
CF_EXPORT CFStringRef CFStringCreateWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                              Boolean isExternalRepresentation) CRL_LINK(CFStringCreateWithBytes) CF_RETURNS_RETAINED;

/**
 * Makes a text of UTF-16 units.
 * `allocator` is NULL for the default; `characters` has `count` units.
 * Ownership: the caller releases the text; the units are copied.
 * Threads: any thread.
 * Errors: NULL when `count` is negative or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithCharacters(CFAllocatorRef allocator, const UniChar *characters, CFIndex count)
    CRL_LINK(CFStringCreateWithCharacters) CF_RETURNS_RETAINED;

/**
 * Makes a text of a part of another.
 * `allocator` is NULL for the default; `range` lies within `text`.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory; a range outside the text stops the process with a sentence.
 */
CF_EXPORT CFStringRef CFStringCreateWithSubstring(CFAllocatorRef allocator, CFStringRef text, CFRange range)
    CRL_LINK(CFStringCreateWithSubstring) CF_RETURNS_RETAINED;

/**
 * Makes a text by a format: printf's conversions, `%@` for any object, and `%1$@` for arguments by position.
 * `allocator` is NULL for the default; `options` is not used; `%s` takes UTF-8, and what is not valid UTF-8 as ISO Latin 1; `%S` takes
 * UTF-16 units that end with 0; `%C` takes one unit; widths and precisions count units, the precision of `%s` bytes.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory; a conversion that is not known is copied as it stands; `%n` writes nothing.
 */
CF_EXPORT CFStringRef CFStringCreateWithFormat(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format, ...)
    CRL_LINK(CFStringCreateWithFormat) CF_RETURNS_RETAINED;

/**
 * Makes a text as CFStringCreateWithFormat does, of an argument list.
 * `arguments` fits the format and is used up.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithFormatAndArguments(CFAllocatorRef allocator, CFDictionaryRef options, CFStringRef format,
                                                           va_list arguments)
    CRL_LINK(CFStringCreateWithFormatAndArguments) CF_RETURNS_RETAINED;

/**
 * Makes a text of texts with another between each two of them.
 * `allocator` is NULL for the default; `array` holds texts only; `separator` may be empty.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateByCombiningStrings(CFAllocatorRef allocator, CFArrayRef array, CFStringRef separator)
    CRL_LINK(CFStringCreateByCombiningStrings) CF_RETURNS_RETAINED;

/**
 * Makes an array of the parts of a text that stand between separators; n separators make n + 1 parts, some of which may be empty.
 * `allocator` is NULL for the default; an empty `separator` occurs nowhere.
 * Ownership: the caller releases the array.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFArrayRef CFStringCreateArrayBySeparatingStrings(CFAllocatorRef allocator, CFStringRef text, CFStringRef separator)
    CRL_LINK(CFStringCreateArrayBySeparatingStrings) CF_RETURNS_RETAINED;

/**
 * Makes a text with the same characters that cannot be changed; it may be `text` itself when that cannot be changed either.
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the copy.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateCopy(CFAllocatorRef allocator, CFStringRef text) CRL_LINK(CFStringCreateCopy) CF_RETURNS_RETAINED;

/**
 * Makes an empty text that can be changed.
 * `allocator` is NULL for the default; `maxLength` is a hint at its later length in units, 0 for none.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableStringRef CFStringCreateMutable(CFAllocatorRef allocator, CFIndex maxLength)
    CRL_LINK(CFStringCreateMutable) CF_RETURNS_RETAINED;

/**
 * Makes a text with the same characters that can be changed.
 * `allocator` is NULL for the default; `maxLength` is a hint at its later length in units, 0 for none.
 * Ownership: the caller releases the copy.
 * Threads: any thread.
 * Errors: NULL when there is no memory.
 */
CF_EXPORT CFMutableStringRef CFStringCreateMutableCopy(CFAllocatorRef allocator, CFIndex maxLength, CFStringRef text)
    CRL_LINK(CFStringCreateMutableCopy) CF_RETURNS_RETAINED;

/** Returns a text's length in UTF-16 units. Threads: any thread. Errors: NULL stops the process with a sentence. */
CF_EXPORT CFIndex CFStringGetLength(CFStringRef text) CRL_LINK(CFStringGetLength);

/**
 * Returns one UTF-16 unit of a text.
 * `index` is at least 0 and less than the length.
 * Threads: any thread.
 * Errors: an index outside the text stops the process with a sentence.
 */
CF_EXPORT UniChar CFStringGetCharacterAtIndex(CFStringRef text, CFIndex index) CRL_LINK(CFStringGetCharacterAtIndex);

/**
 * Copies UTF-16 units of a text.
 * `range` lies within the text; `buffer` has room for `range.length` units.
 * Threads: any thread.
 * Errors: a range outside the text stops the process with a sentence.
 */
CF_EXPORT void CFStringGetCharacters(CFStringRef text, CFRange range, UniChar *buffer) CRL_LINK(CFStringGetCharacters);

/**
 * Writes a text as bytes, as far as they fit and can be written, and returns how many of its units that were.
 * `range` lies within the text; `lossByte` replaces what `encoding` does not have, 0 to stop there; `isExternalRepresentation` writes a
 * byte order mark first in UTF-16 and UTF-32; `buffer` has `maxLength` bytes, NULL to count only; `usedLength` may be NULL and gets the
 * number of bytes.
 * Threads: any thread.
 * Errors: 0 for an unknown encoding; a range outside the text stops the process with a sentence.
 * Differs from Apple: `lossByte` replaces an unpaired surrogate in UTF-8 too.
 */
CF_EXPORT CFIndex CFStringGetBytes(CFStringRef text, CFRange range, CFStringEncoding encoding, UInt8 lossByte,
                                   Boolean isExternalRepresentation, UInt8 *buffer, CFIndex maxLength, CFIndex *usedLength)
    CRL_LINK(CFStringGetBytes);

/**
 * Copies a whole text as a C string.
 * `buffer` has `size` bytes, the NUL included, which is one byte in every encoding.
 * Threads: any thread.
 * Errors: false when it does not fit or the encoding cannot write it; the buffer then holds an empty string, if it has room for one.
 */
CF_EXPORT Boolean CFStringGetCString(CFStringRef text, char *buffer, CFIndex size, CFStringEncoding encoding) CRL_LINK(CFStringGetCString);

/**
 * Returns a text as a C string without copying it, where that is possible; it is for every text of ASCII characters only, in UTF-8, ASCII
 * and the encodings that extend ASCII.
 * Ownership: the bytes are the text's and live as long as it does unchanged.
 * Threads: any thread.
 * Errors: NULL where it is not possible; use CFStringGetCString then.
 */
CF_EXPORT const char *CFStringGetCStringPtr(CFStringRef text, CFStringEncoding encoding) CRL_LINK(CFStringGetCStringPtr);

/**
 * Returns how many bytes a text of this length may need at most, without NUL or byte order mark.
 * `length` counts UTF-16 units.
 * Threads: any thread, signal handlers included.
 * Errors: kCFNotFound when the number is too large, `length` is negative or the encoding is unknown.
 */
CF_EXPORT CFIndex CFStringGetMaximumSizeForEncoding(CFIndex length, CFStringEncoding encoding) CRL_LINK(CFStringGetMaximumSizeForEncoding);

/**
 * Compares two texts, unit by unit.
 * `options` may hold kCFCompareCaseInsensitive and kCFCompareNumerically; other bits have no effect.
 * Threads: any thread.
 * Errors: NULL stops the process with a sentence.
 */
CF_EXPORT CFComparisonResult CFStringCompare(CFStringRef text1, CFStringRef text2, CFStringCompareFlags options) CRL_LINK(CFStringCompare);

/**
 * Compares a part of a text with another text.
 * `range` lies within `text1`; `options` are CFStringCompare's.
 * Threads: any thread.
 * Errors: a range outside the text stops the process with a sentence.
 */
CF_EXPORT CFComparisonResult CFStringCompareWithOptions(CFStringRef text1, CFStringRef text2, CFRange range, CFStringCompareFlags options)
    CRL_LINK(CFStringCompareWithOptions);

/**
 * Finds a text in another, and returns where it is, or {kCFNotFound, 0}; an empty text is found nowhere.
 * `options` may hold kCFCompareCaseInsensitive, kCFCompareBackwards and kCFCompareAnchored.
 * Threads: any thread.
 * Errors: NULL stops the process with a sentence.
 */
CF_EXPORT CFRange CFStringFind(CFStringRef text, CFStringRef wanted, CFStringCompareFlags options) CRL_LINK(CFStringFind);

/** Tells whether a text starts with another, which is not empty. Threads: any thread. Errors: NULL stops the process. */
CF_EXPORT Boolean CFStringHasPrefix(CFStringRef text, CFStringRef prefix) CRL_LINK(CFStringHasPrefix);

/** Tells whether a text ends with another, which is not empty. Threads: any thread. Errors: NULL stops the process. */
CF_EXPORT Boolean CFStringHasSuffix(CFStringRef text, CFStringRef suffix) CRL_LINK(CFStringHasSuffix);

/**
 * Adds a text at the end of another.
 * `text` can be changed; `appended` may be the same text.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed stops the process with a sentence; without memory the text stays as it is, and that is logged once.
 */
CF_EXPORT void CFStringAppend(CFMutableStringRef text, CFStringRef appended) CRL_LINK(CFStringAppend);

/**
 * Adds UTF-16 units at the end of a text.
 * `text` can be changed; `characters` has `count` units; a `count` that is not positive adds nothing.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed stops the process with a sentence; without memory the text stays as it is, and that is logged once.
 */
CF_EXPORT void CFStringAppendCharacters(CFMutableStringRef text, const UniChar *characters, CFIndex count)
    CRL_LINK(CFStringAppendCharacters);

/**
 * Adds a C string at the end of a text.
 * `text` can be changed; `appended` ends with NUL; `encoding` says what its bytes mean.
 * Threads: one at a time for this text.
 * Errors: bytes that are not valid add nothing; a text that cannot be changed, and NULL, stop the process with a sentence; without memory
 * the text stays as it is, and that is logged once.
 */
CF_EXPORT void CFStringAppendCString(CFMutableStringRef text, const char *appended, CFStringEncoding encoding)
    CRL_LINK(CFStringAppendCString);

/**
 * Adds at the end of a text what CFStringCreateWithFormat would make.
 * `text` can be changed; `options` is not used.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed stops the process with a sentence; without memory the text stays as it is, and that is logged once.
 */
CF_EXPORT void CFStringAppendFormat(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, ...)
    CRL_LINK(CFStringAppendFormat);

/**
 * Makes a text of data that came from outside, and may start with a byte order mark.
 * `allocator` is NULL for the default; `encoding` says what the bytes mean.
 * Ownership: the caller releases the text; the bytes are copied.
 * Threads: any thread.
 * Errors: NULL when the bytes are not valid, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateFromExternalRepresentation(CFAllocatorRef allocator, CFDataRef data, CFStringEncoding encoding)
    CRL_LINK(CFStringCreateFromExternalRepresentation) CF_RETURNS_RETAINED;

/**
 * Makes data of a text, for the outside, with a byte order mark where the encoding has one.
 * `allocator` is NULL for the default; `lossByte` replaces what `encoding` does not have, 0 to refuse it.
 * Ownership: the caller releases the data.
 * Threads: any thread.
 * Errors: NULL when the text cannot be written completely, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFDataRef CFStringCreateExternalRepresentation(CFAllocatorRef allocator, CFStringRef text, CFStringEncoding encoding,
                                                         UInt8 lossByte)
    CRL_LINK(CFStringCreateExternalRepresentation) CF_RETURNS_RETAINED;

/**
 * Returns the whole number that a text starts with, behind spaces.
 * Threads: any thread.
 * Errors: 0 when there is none; the nearest possible number when it is too large.
 */
CF_EXPORT SInt32 CFStringGetIntValue(CFStringRef text) CRL_LINK(CFStringGetIntValue);

/**
 * Returns the decimal number that a text starts with, behind spaces, with a point whatever the locale.
 * Threads: any thread.
 * Errors: 0.0 when there is none.
 */
CF_EXPORT double CFStringGetDoubleValue(CFStringRef text) CRL_LINK(CFStringGetDoubleValue);

/**
 * Writes the description of an object, or a text itself, and a new line to standard error.
 * `object` is any object, or NULL.
 * Threads: any thread.
 */
CF_EXPORT void CFShow(CFTypeRef object) CRL_LINK(CFShow);

/**
 * Writes how a text is stored, and a new line, to standard error.
 * `text` is any text, or NULL.
 * Threads: any thread.
 */
CF_EXPORT void CFShowStr(CFStringRef text) CRL_LINK(CFShowStr);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSTRING__ */
