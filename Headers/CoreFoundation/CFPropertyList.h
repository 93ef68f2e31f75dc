/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Property lists: trees of strings, data, numbers, dates, truth values, arrays and dictionaries with strings as keys, and the three formats
 * in which they are kept and sent. They are in the add-on library libcorerunloop-plist.
 *
 * XML and the binary format are read and written. The old format of OpenStep, with which files of strings (`"key" = "value";`) are written,
 * is only read. Any thread may use these functions; nobody may change a tree while one of them uses it.
 *
 * A reader takes what strangers send. It allocates at most a constant times the length of the input, it refuses containers that are nested
 * more than 512 deep, and it does not expand entities that a document declares.
 */

#if !defined(__COREFOUNDATION_CFPROPERTYLIST__)
#define __COREFOUNDATION_CFPROPERTYLIST__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFError.h"
#include "CFStream.h"
#include "CFString.h"

CF_EXTERN_C_BEGIN

/** What a program may change in the tree that it gets. */
typedef CF_OPTIONS(CFOptionFlags, CFPropertyListMutabilityOptions) {
    kCFPropertyListImmutable = 0, /**< Nothing. */
    kCFPropertyListMutableContainers = 1 << 0, /**< Arrays and dictionaries. */
    kCFPropertyListMutableContainersAndLeaves = 1 << 1 /**< Also strings and data; keys stay as they are. */
};

/** The formats. */
typedef CF_ENUM(CFIndex, CFPropertyListFormat) {
    kCFPropertyListOpenStepFormat = 1, /**< `{ key = (value, <00ff>); }`, only read: strings, data, arrays and dictionaries. */
    kCFPropertyListXMLFormat_v1_0 = 100, /**< XML with Apple's document type. */
    kCFPropertyListBinaryFormat_v1_0 = 200 /**< The binary format "bplist00". */
};

/** Codes of errors in the domain kCFErrorDomainCocoa. The text under the key "NSDebugDescription" says what is wrong, and where. */
CF_ENUM(CFIndex) {
    kCFPropertyListReadCorruptError = 3840, /**< The bytes are no property list. */
    kCFPropertyListReadUnknownVersionError = 3841, /**< They are one of a version that nobody knows. Never returned. */
    kCFPropertyListReadStreamError = 3842, /**< The stream could not be read. */
    kCFPropertyListWriteStreamError = 3851 /**< The stream could not be written, or the tree is not one that the format can hold. */
};

/**
 * Returns true if the tree can be written in `format`: it has only objects of the types above, keys are strings, and no container contains
 * itself. The OpenStep format has no numbers, dates and truth values.
 *
 * Threads: any.
 * Errors: false for NULL, and when there is no memory.
 */
CF_EXPORT Boolean CFPropertyListIsValid(CFPropertyListRef plist, CFPropertyListFormat format) CRL_LINK(CFPropertyListIsValid);

/**
 * Creates a copy of a tree, with new containers all the way down.
 *
 * `allocator` is NULL for the default. `mutabilityOption` is one of CFPropertyListMutabilityOptions. A container that occurs several times
 * is one object in a copy that cannot be changed, too. In a copy that can be changed, each occurrence is an object of its own.
 * Ownership: the caller releases the copy. What cannot be changed may be the same object in both.
 * Threads: any.
 * Errors: NULL when the tree is not valid and when there is no memory.
 * Differs from Apple: NULL for a copy that can be changed and would have more than 64 MB and 64 times what it has with each container once,
 * as a short file in the binary format may stand for a million million of them.
 */
CF_EXPORT CFPropertyListRef CFPropertyListCreateDeepCopy(CFAllocatorRef allocator, CFPropertyListRef propertyList,
                                                         CFOptionFlags mutabilityOption)
    CRL_LINK(CFPropertyListCreateDeepCopy);

/**
 * Creates a tree from bytes, whose format is found by looking at them.
 *
 * `allocator` is NULL for the default. `options` is one of CFPropertyListMutabilityOptions. `*format` is set to the format if there is a
 * tree; it may be NULL. Text is read in UTF-8, and in UTF-16 and UTF-32 with a byte order mark; XML may also name US-ASCII, ISO-8859-1,
 * windows-1252 or macintosh. Blanks and comments alone are an empty dictionary in the OpenStep format.
 * Ownership: the caller releases the tree, and `*error`.
 * Threads: any.
 * Errors: NULL, with `*error` set unless `error` is NULL, when the bytes are no property list and when there is no memory.
 * Differs from Apple: an integer beyond 64 bits with a sign becomes a number of type double. A UID of a keyed archive is a dictionary
 * whose only key is "CF$UID", as XML shows it. Keys that are no strings, sets, and dates with a 13th month or a 61st minute are refused.
 */
CF_EXPORT CFPropertyListRef CFPropertyListCreateWithData(CFAllocatorRef allocator, CFDataRef data, CFOptionFlags options,
                                                         CFPropertyListFormat *format, CFErrorRef *error)
    CRL_LINK(CFPropertyListCreateWithData);

/**
 * Creates a tree from what a stream brings, as CFPropertyListCreateWithData does. It waits for the bytes.
 *
 * `stream` is open. `streamLength` is how many bytes to read, 0 for all up to the end. What comes behind them is left in the stream.
 * Ownership: the caller releases the tree, and `*error`.
 * Threads: those that may use the stream.
 * Errors: NULL, with `*error` set unless `error` is NULL; with kCFPropertyListReadStreamError when the stream is not open, fails, or ends
 * before it has brought a byte.
 */
CF_EXPORT CFPropertyListRef CFPropertyListCreateWithStream(CFAllocatorRef allocator, CFReadStreamRef stream, CFIndex streamLength,
                                                           CFOptionFlags options, CFPropertyListFormat *format, CFErrorRef *error)
    CRL_LINK(CFPropertyListCreateWithStream);

/**
 * Creates the bytes of a tree in `format`, which is XML or the binary format.
 *
 * `allocator` is NULL for the default. `options` is 0. XML has the keys of a dictionary in the order of their UTF-16 units. In the binary
 * format an object that occurs several times is referred to; a copy that is only equal is written as well.
 * Ownership: the caller releases the data, and `*error`.
 * Threads: any.
 * Errors: NULL, with `*error` set unless `error` is NULL, when the tree is not valid in that format and when there is no memory.
 * Differs from Apple: XML has U+FFFD for half of a surrogate pair, which ends the string there. A date that is no number, or beyond 2^31
 * years, is refused for XML, and so is a tree that has more than 64 MB and 64 times what it has with each container once.
 */
CF_EXPORT CFDataRef CFPropertyListCreateData(CFAllocatorRef allocator, CFPropertyListRef propertyList, CFPropertyListFormat format,
                                             CFOptionFlags options, CFErrorRef *error)
    CRL_LINK(CFPropertyListCreateData) CF_RETURNS_RETAINED;

/**
 * Writes the bytes of a tree to a stream, as CFPropertyListCreateData makes them, and waits until all are written.
 *
 * `stream` is open. `options` is 0. Returns how many bytes were written.
 * Ownership: the caller releases `*error`.
 * Threads: those that may use the stream.
 * Errors: 0, with `*error` set unless `error` is NULL, also when the stream is not open, fails or is full. Part of the bytes may have been
 * written then.
 */
CF_EXPORT CFIndex CFPropertyListWrite(CFPropertyListRef propertyList, CFWriteStreamRef stream, CFPropertyListFormat format,
                                      CFOptionFlags options, CFErrorRef *error) CRL_LINK(CFPropertyListWrite);

/**
 * Creates a tree from bytes, as CFPropertyListCreateWithData does.
 *
 * Ownership: the caller releases the tree, and `*errorString`.
 * Threads: any.
 * Errors: NULL, with a sentence in `*errorString` unless it is NULL.
 */
CF_EXPORT CFPropertyListRef CFPropertyListCreateFromXMLData(CFAllocatorRef allocator, CFDataRef xmlData, CFOptionFlags mutabilityOption,
                                                            CFStringRef *errorString)
    CRL_LINK(CFPropertyListCreateFromXMLData);

/**
 * Creates the bytes of a tree in XML.
 *
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL when the tree is not valid and when there is no memory.
 */
CF_EXPORT CFDataRef CFPropertyListCreateXMLData(CFAllocatorRef allocator, CFPropertyListRef propertyList)
    CRL_LINK(CFPropertyListCreateXMLData) CF_RETURNS_RETAINED;

/**
 * Creates a tree from a stream, as CFPropertyListCreateWithStream does.
 *
 * Ownership: the caller releases the tree, and `*errorString`.
 * Threads: those that may use the stream.
 * Errors: NULL, with a sentence in `*errorString` unless it is NULL.
 */
CF_EXPORT CFPropertyListRef CFPropertyListCreateFromStream(CFAllocatorRef allocator, CFReadStreamRef stream, CFIndex streamLength,
                                                           CFOptionFlags mutabilityOption, CFPropertyListFormat *format,
                                                           CFStringRef *errorString)
    CRL_LINK(CFPropertyListCreateFromStream);

/**
 * Writes a tree to a stream, as CFPropertyListWrite does.
 *
 * Ownership: the caller releases `*errorString`.
 * Threads: those that may use the stream.
 * Errors: 0, with a sentence in `*errorString` unless it is NULL.
 */
CF_EXPORT CFIndex CFPropertyListWriteToStream(CFPropertyListRef propertyList, CFWriteStreamRef stream, CFPropertyListFormat format,
                                              CFStringRef *errorString) CRL_LINK(CFPropertyListWriteToStream);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFPROPERTYLIST__ */
