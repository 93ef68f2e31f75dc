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
    kCFStringEncodingNonLossyASCII = 0x0BFF, /**< ASCII with escapes for all that is not: `\351`, `\u20ac`; `\\`, `\000` */
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
 * start with a byte order mark, and have the most significant byte first without one. In UTF-8 a mark is always skipped.
 * In ASCII, bytes above 127 are read as ISO Latin 1; bytes at the end that are less than a unit of UTF-16 or UTF-32 are passed over.
 * Ownership: the caller releases the text; the bytes are copied.
 * Threads: any thread.
 * Errors: NULL when the bytes are not valid, `count` is negative, the encoding is unknown or there is no memory.
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
 * Makes a text of bytes that it may use in place, as CFStringCreateWithBytes does.
 * `allocator` is NULL for the default; `deallocator` frees the bytes, NULL for the default allocator, kCFAllocatorNull when nobody shall.
 * Ownership: the caller releases the text; the bytes are the text's, and are freed as soon as it does not need them.
 * Threads: any thread.
 * Errors: as CFStringCreateWithBytes's; then the bytes are the caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithBytesNoCopy(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding,
                                                    Boolean isExternalRepresentation, CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithBytesNoCopy) CF_RETURNS_RETAINED;

/**
 * Makes a text of UTF-16 units that it may use in place.
 * `allocator` is NULL for the default; `deallocator` frees the units, NULL for the default allocator, kCFAllocatorNull when nobody shall.
 * Ownership: the caller releases the text; the units are the text's, and are freed as soon as it does not need them.
 * Threads: any thread.
 * Errors: as CFStringCreateWithCharacters's; then the units are the caller's.
 */
CF_EXPORT CFStringRef CFStringCreateWithCharactersNoCopy(CFAllocatorRef allocator, const UniChar *characters, CFIndex count,
                                                         CFAllocatorRef deallocator)
    CRL_LINK(CFStringCreateWithCharactersNoCopy) CF_RETURNS_RETAINED;

/**
 * Makes a text of a path as system calls take it: UTF-8.
 * `allocator` is NULL for the default; `path` ends with NUL.
 * Ownership: the caller releases the text.
 * Threads: any thread.
 * Errors: NULL when `path` is NULL or no UTF-8, or there is no memory.
 */
CF_EXPORT CFStringRef CFStringCreateWithFileSystemRepresentation(CFAllocatorRef allocator, const char *path)
    CRL_LINK(CFStringCreateWithFileSystemRepresentation) CF_RETURNS_RETAINED;

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
 * Differs from Apple: there the `%` of such a conversion is left out, and `100%` becomes `100`.
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
 * Makes a text with the same characters that cannot be changed; it may be `text` itself when that cannot be changed either, unless
 * kCFAllocatorNull is the deallocator of its characters.
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
 * Returns a text's UTF-16 units without copying them, where that is possible; it is for most texts with other characters than ASCII.
 * Ownership: the units are the text's and live as long as it does unchanged.
 * Threads: any thread.
 * Errors: NULL where it is not possible; use CFStringGetCharacters then.
 */
CF_EXPORT const UniChar *CFStringGetCharactersPtr(CFStringRef text) CRL_LINK(CFStringGetCharactersPtr);

/**
 * Copies a text as a path for system calls: UTF-8, ended by NUL.
 * `buffer` has `size` bytes, the NUL included.
 * Threads: any thread.
 * Errors: false when it does not fit, or cannot be written.
 */
CF_EXPORT Boolean CFStringGetFileSystemRepresentation(CFStringRef text, char *buffer, CFIndex size)
    CRL_LINK(CFStringGetFileSystemRepresentation);

/** Returns how many bytes CFStringGetFileSystemRepresentation may need at most for a text, NUL included. Threads: any thread. */
CF_EXPORT CFIndex CFStringGetMaximumSizeOfFileSystemRepresentation(CFStringRef text)
    CRL_LINK(CFStringGetMaximumSizeOfFileSystemRepresentation);

/** What CFStringConvert... and CFStringGet...Encoding return where there is no encoding. */
#define kCFStringEncodingInvalidId (0xffffffffU)

/** Returns the encoding of the system's own texts: UTF-8. Threads: any thread, signal handlers included. */
CF_EXPORT CFStringEncoding CFStringGetSystemEncoding(void) CRL_LINK(CFStringGetSystemEncoding);

/** Returns the encoding in which a text can be read with the least work: ASCII or UTF-16. Threads: any thread. */
CF_EXPORT CFStringEncoding CFStringGetFastestEncoding(CFStringRef text) CRL_LINK(CFStringGetFastestEncoding);

/** Returns an encoding that writes a whole text with the fewest bytes: ASCII, ISO Latin 1, UTF-8 or UTF-16. Threads: any thread. */
CF_EXPORT CFStringEncoding CFStringGetSmallestEncoding(CFStringRef text) CRL_LINK(CFStringGetSmallestEncoding);

/** Tells whether this library knows an encoding. Threads: any thread, signal handlers included. */
CF_EXPORT Boolean CFStringIsEncodingAvailable(CFStringEncoding encoding) CRL_LINK(CFStringIsEncodingAvailable);

/**
 * Returns the name of an encoding, for people.
 * Ownership: the text is immortal.
 * Threads: any thread.
 * Errors: NULL for an encoding that this library does not know.
 */
CF_EXPORT CFStringRef CFStringGetNameOfEncoding(CFStringEncoding encoding) CRL_LINK(CFStringGetNameOfEncoding)
    CF_RETURNS_NOT_RETAINED;

/** Tells whether a unit is the first of the two that one character outside the Basic Multilingual Plane takes. Threads: any. */
CF_INLINE Boolean CFStringIsSurrogateHighCharacter(UniChar character) {
    return (character & 0xFC00U) == 0xD800U;
}

/** Tells whether a unit is the second of the two that one character outside the Basic Multilingual Plane takes. Threads: any. */
CF_INLINE Boolean CFStringIsSurrogateLowCharacter(UniChar character) {
    return (character & 0xFC00U) == 0xDC00U;
}

/** Returns the character that two units are. Threads: any. */
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
    surrogates[1] = (0xDC00U | (character & 0x3FFU)) & 0xFFFFU;
    return 1;
}

/** A part of a text that is read unit by unit; the fields are for the two functions below. */
typedef struct {
    UniChar buffer[64]; /**< some of the units */
    CFStringRef theString; /**< borrowed */
    CFRange rangeToBuffer; /**< what may be read */
    CFIndex bufferedRangeStart; /**< the first unit in the buffer, counted from the start of the range */
    CFIndex bufferedRangeEnd; /**< behind the last one */
} CFStringInlineBuffer;

/**
 * Prepares to read a part of a text unit by unit.
 * `range` lies within `text`, which must not change or be freed meanwhile.
 * Threads: any thread.
 */
CF_INLINE void CFStringInitInlineBuffer(CFStringRef text, CFStringInlineBuffer *buffer, CFRange range) {
    buffer->theString = text;
    buffer->rangeToBuffer = range;
    buffer->bufferedRangeStart = 0;
    buffer->bufferedRangeEnd = 0;
}

/** Returns the unit at an index that counts from the start of the part; 0 outside the part. Threads: one at a time for a buffer. */
CF_INLINE UniChar CFStringGetCharacterFromInlineBuffer(CFStringInlineBuffer *buffer, CFIndex index) {
    CFIndex start;
    CFIndex length;
    if (index < 0 || index >= buffer->rangeToBuffer.length) {
        return 0;
    }
    if (index < buffer->bufferedRangeStart || index >= buffer->bufferedRangeEnd) {
        /* A little before the index, for readers who look back. */
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

/**
 * Finds a text in a part of another, and tells whether it is there.
 * `range` lies within `text`; `options` are CFStringFind's; `result` may be NULL and gets where it is.
 * Threads: any thread.
 * Errors: a range outside the text stops the process with a sentence.
 */
CF_EXPORT Boolean CFStringFindWithOptions(CFStringRef text, CFStringRef wanted, CFRange range, CFStringCompareFlags options,
                                          CFRange *result) CRL_LINK(CFStringFindWithOptions);

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
 * Adds at the end of a text what CFStringCreateWithFormatAndArguments would make.
 * `text` can be changed; `options` is not used.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppendFormat's.
 */
CF_EXPORT void CFStringAppendFormatAndArguments(CFMutableStringRef text, CFDictionaryRef options, CFStringRef format, va_list arguments)
    CRL_LINK(CFStringAppendFormatAndArguments);

/**
 * Puts a text into another, in front of the unit at an index.
 * `text` can be changed; `index` is at least 0 and not greater than the length; `inserted` may be the same text.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's; an index outside stops the process with a sentence.
 */
CF_EXPORT void CFStringInsert(CFMutableStringRef text, CFIndex index, CFStringRef inserted) CRL_LINK(CFStringInsert);

/**
 * Takes a part out of a text.
 * `text` can be changed; `range` lies within it.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed and a range outside stop the process with a sentence.
 */
CF_EXPORT void CFStringDelete(CFMutableStringRef text, CFRange range) CRL_LINK(CFStringDelete);

/**
 * Puts a text in the place of a part of another.
 * `text` can be changed; `range` lies within it; `replacement` may be the same text.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's; a range outside stops the process with a sentence.
 */
CF_EXPORT void CFStringReplace(CFMutableStringRef text, CFRange range, CFStringRef replacement) CRL_LINK(CFStringReplace);

/**
 * Puts a text in the place of all of another.
 * `text` can be changed; `replacement` may be the same text.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's.
 */
CF_EXPORT void CFStringReplaceAll(CFMutableStringRef text, CFStringRef replacement) CRL_LINK(CFStringReplaceAll);

/**
 * Replaces each place in a part of a text where another stands, from the start or with kCFCompareBackwards from the end, and counts them.
 * `text` can be changed; `range` lies within it; `options` are CFStringFind's.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's; a range outside stops the process with a sentence.
 */
CF_EXPORT CFIndex CFStringFindAndReplace(CFMutableStringRef text, CFStringRef wanted, CFStringRef replacement, CFRange range,
                                         CFStringCompareFlags options) CRL_LINK(CFStringFindAndReplace);

/**
 * Makes a text as long as is asked for: takes units away at its end, or adds those of another, over and over.
 * `text` can be changed; `padding` is not empty, and NULL to shorten only; `index` is that of the first unit of it that is added.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's; a negative length, an index outside the padding, and an empty padding where units are to be added stop the
 * process with a sentence.
 */
CF_EXPORT void CFStringPad(CFMutableStringRef text, CFStringRef padding, CFIndex length, CFIndex index) CRL_LINK(CFStringPad);

/**
 * Takes a text away from both ends of another, as often as it stands there.
 * `text` can be changed.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed stops the process with a sentence.
 */
CF_EXPORT void CFStringTrim(CFMutableStringRef text, CFStringRef trimmed) CRL_LINK(CFStringTrim);

/**
 * Takes spaces and line ends, Unicode's too, away from both ends of a text.
 * `text` can be changed.
 * Threads: one at a time for this text.
 * Errors: a text that cannot be changed stops the process with a sentence.
 */
CF_EXPORT void CFStringTrimWhitespace(CFMutableStringRef text) CRL_LINK(CFStringTrimWhitespace);

#if defined(__swift__)
#define CFLocaleRef CRLLocaleRef_
#endif

CRL_REFERENCE_TYPE(__CFLocale, CFLocale);

/** The rules of a language; there are none here, so that the only value is NULL. */
typedef const struct __CFLocale *CFLocaleRef;

/**
 * Makes small letters of a text's capital ones.
 * `text` can be changed; `locale` is NULL.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's.
 * Differs from Apple: letters that would become several, or that are outside the Basic Multilingual Plane, stay as they are.
 */
CF_EXPORT void CFStringLowercase(CFMutableStringRef text, CFLocaleRef locale) CRL_LINK(CFStringLowercase);

/**
 * Makes capital letters of a text's small ones.
 * `text` can be changed; `locale` is NULL.
 * Threads: one at a time for this text.
 * Errors: as CFStringAppend's.
 * Differs from Apple: as CFStringLowercase.
 */
CF_EXPORT void CFStringUppercase(CFMutableStringRef text, CFLocaleRef locale) CRL_LINK(CFStringUppercase);

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
