/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * URLs after RFC 3986: made of strings, bytes and file system paths, resolved against a base, and taken apart.
 *
 * A URL has a string and possibly a base. The functions for its parts look at the string alone. Only the scheme, the net location with its
 * parts, and the query come from the base where the string leaves them out, as RFC 3986 says. A URL whose scheme is not followed by a
 * slash, such as "mailto:a@b", cannot be decomposed: it has a scheme and a resource specifier and no other part.
 *
 * URLs cannot be changed. Any thread may use these functions and objects. NULL in place of a URL stops the process with a message.
 */

#if !defined(__COREFOUNDATION_CFURL__)
#define __COREFOUNDATION_CFURL__ 1

#include "CFBase.h"
#include "CFData.h"
#include "CFString.h"

#if defined(__swift__)
#define CFURLRef CRLURLRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFURL, CFURL);

/** A URL. URLs are equal when their strings are, byte by byte, and their bases are. */
typedef const struct __CFURL *CFURLRef;

/** The ways to write paths. Only POSIX paths are known here; functions with another style return NULL. */
typedef CF_ENUM(CFIndex, CFURLPathStyle) {
    kCFURLPOSIXPathStyle = 0, /**< slashes between components */
    kCFURLHFSPathStyle = 1, /**< colons between components; not known here */
    kCFURLWindowsPathStyle = 2 /**< backslashes between components; not known here */
};

/** The parts of a URL that CFURLGetByteRangeForComponent finds. */
typedef CF_ENUM(CFIndex, CFURLComponentType) {
    kCFURLComponentScheme = 1, /**< "http" */
    kCFURLComponentNetLocation = 2, /**< "user:password@host:80" */
    kCFURLComponentPath = 3, /**< "/a/b" */
    kCFURLComponentResourceSpecifier = 4, /**< what follows the path, or the scheme if the URL cannot be decomposed */
    kCFURLComponentUser = 5, /**< "user" */
    kCFURLComponentPassword = 6, /**< "password" */
    kCFURLComponentUserInfo = 7, /**< "user:password" */
    kCFURLComponentHost = 8, /**< "host" */
    kCFURLComponentPort = 9, /**< "80" */
    kCFURLComponentParameterString = 10, /**< always missing: parameters belong to the path */
    kCFURLComponentQuery = 11, /**< what follows the question mark */
    kCFURLComponentFragment = 12 /**< what follows the number sign */
};

/** Returns the type id of URLs. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFURLGetTypeID(void) CRL_LINK(CFURLGetTypeID);

/**
 * Creates a URL from a string.
 *
 * `allocator` is NULL for the default. Brackets outside of a host, and at signs in a user name, are escaped. `baseURL` is NULL for none;
 * it is not kept when the string has a scheme.
 * Ownership: the caller releases the URL, which retains its base.
 * Threads: any.
 * Errors: NULL when the string has a character that RFC 3986 does not allow, a second number sign or a `%` without two hexadecimal digits,
 * and when there is no memory. A NULL `text` stops the process with a message.
 */
CF_EXPORT CFURLRef CFURLCreateWithString(CFAllocatorRef allocator, CFStringRef text, CFURLRef baseURL)
    CRL_LINK(CFURLCreateWithString) CF_RETURNS_RETAINED;

/**
 * Creates a URL from bytes. What RFC 3986 does not allow is escaped.
 *
 * `allocator` is NULL for the default. `bytes` has `length` bytes of `encoding`. Escapes of the URL are read and written in that encoding,
 * too, or in UTF-8 where it does not extend ASCII. `baseURL` is NULL for none.
 * Ownership: the caller releases the URL, which retains its base.
 * Threads: any.
 * Errors: NULL when the bytes are not valid, the encoding is unknown or there is no memory.
 */
CF_EXPORT CFURLRef CFURLCreateWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding,
                                        CFURLRef baseURL) CRL_LINK(CFURLCreateWithBytes) CF_RETURNS_RETAINED;

/**
 * Creates a URL from bytes like CFURLCreateWithBytes, and resolves it against a base.
 *
 * `useCompatibilityMode` is not used.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: like CFURLCreateWithBytes.
 * Differs from Apple: dot segments above the root are always removed, as RFC 3986 says. Apple's keeps them outside of compatibility mode.
 */
CF_EXPORT CFURLRef CFURLCreateAbsoluteURLWithBytes(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex length, CFStringEncoding encoding,
                                                   CFURLRef baseURL, Boolean useCompatibilityMode)
    CRL_LINK(CFURLCreateAbsoluteURLWithBytes) CF_RETURNS_RETAINED;

/**
 * Creates data with the bytes of a URL's string.
 *
 * `allocator` is NULL for the default. `escapeWhitespace` is not used: a URL here never contains white space that is not escaped.
 * Ownership: the caller releases the data.
 * Threads: any.
 * Errors: NULL for an unknown encoding, and when there is no memory.
 */
CF_EXPORT CFDataRef CFURLCreateData(CFAllocatorRef allocator, CFURLRef url, CFStringEncoding encoding, Boolean escapeWhitespace)
    CRL_LINK(CFURLCreateData) CF_RETURNS_RETAINED;

/**
 * Creates a file URL from a path. A relative path has the current directory as its base.
 *
 * `allocator` is NULL for the default. `pathStyle` is kCFURLPOSIXPathStyle. With `isDirectory` the URL's path ends with a slash, without it
 * it does not, unless it is the root.
 * Ownership: the caller releases the URL.
 * Threads: any. The current directory is the process's.
 * Errors: NULL for an empty path, a path with a NUL or half a surrogate pair, or another style, and when there is no memory.
 * Differs from Apple: a relative path whose first component has a colon begins with "./", so that its string is not taken for a scheme.
 */
CF_EXPORT CFURLRef CFURLCreateWithFileSystemPath(CFAllocatorRef allocator, CFStringRef filePath, CFURLPathStyle pathStyle,
                                                 Boolean isDirectory) CRL_LINK(CFURLCreateWithFileSystemPath) CF_RETURNS_RETAINED;

/**
 * Creates a file URL like CFURLCreateWithFileSystemPath from a path that is relative to a base.
 *
 * `baseURL` is NULL for the current directory, and is not kept when the path is absolute.
 * Ownership: the caller releases the URL, which retains its base.
 * Threads: any.
 * Errors: like CFURLCreateWithFileSystemPath.
 */
CF_EXPORT CFURLRef CFURLCreateWithFileSystemPathRelativeToBase(CFAllocatorRef allocator, CFStringRef filePath, CFURLPathStyle pathStyle,
                                                               Boolean isDirectory, CFURLRef baseURL)
    CRL_LINK(CFURLCreateWithFileSystemPathRelativeToBase) CF_RETURNS_RETAINED;

/**
 * Creates a file URL from a path in the form that system calls take. Its bytes need not be text.
 *
 * `allocator` is NULL for the default. `buffer` has `bufferLength` bytes, without a NUL at the end. `isDirectory` is as in
 * CFURLCreateWithFileSystemPath.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL for an empty path or one with a NUL, and when there is no memory.
 */
CF_EXPORT CFURLRef CFURLCreateFromFileSystemRepresentation(CFAllocatorRef allocator, const UInt8 *buffer, CFIndex bufferLength,
                                                           Boolean isDirectory)
    CRL_LINK(CFURLCreateFromFileSystemRepresentation) CF_RETURNS_RETAINED;

/**
 * Creates a file URL like CFURLCreateFromFileSystemRepresentation from a path that is relative to a base.
 *
 * `baseURL` is NULL for the current directory, and is not kept when the path is absolute.
 * Ownership: the caller releases the URL, which retains its base.
 * Threads: any.
 * Errors: like CFURLCreateFromFileSystemRepresentation.
 */
CF_EXPORT CFURLRef CFURLCreateFromFileSystemRepresentationRelativeToBase(CFAllocatorRef allocator, const UInt8 *buffer,
                                                                         CFIndex bufferLength, Boolean isDirectory, CFURLRef baseURL)
    CRL_LINK(CFURLCreateFromFileSystemRepresentationRelativeToBase) CF_RETURNS_RETAINED;

/**
 * Writes a URL's path into a buffer in the form that system calls take, with a NUL at the end and without the escapes.
 *
 * With `resolveAgainstBase` the URL is resolved first. `buffer` has `maxBufferLength` bytes. A slash at the end is left out.
 * Threads: any.
 * Errors: false when it does not fit, when the URL has no path, and when the path has an escaped NUL, which would cut it short.
 * Differs from Apple: the escapes may be any bytes, as file names on Linux are.
 */
CF_EXPORT Boolean CFURLGetFileSystemRepresentation(CFURLRef url, Boolean resolveAgainstBase, UInt8 *buffer, CFIndex maxBufferLength)
    CRL_LINK(CFURLGetFileSystemRepresentation);

/**
 * Returns a URL resolved against its base after RFC 3986, or the URL itself if it has no base.
 *
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when there is no memory.
 * Differs from Apple: dot segments above the root are removed.
 */
CF_EXPORT CFURLRef CFURLCopyAbsoluteURL(CFURLRef url) CRL_LINK(CFURLCopyAbsoluteURL) CF_RETURNS_RETAINED;

/**
 * Returns the string of a URL, without its base.
 *
 * Ownership: the string is borrowed from the URL.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFStringRef CFURLGetString(CFURLRef url) CRL_LINK(CFURLGetString) CF_RETURNS_NOT_RETAINED;

/**
 * Returns the base of a URL, resolved, or NULL if it has none.
 *
 * Ownership: the base is borrowed from the URL.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFURLRef CFURLGetBaseURL(CFURLRef url) CRL_LINK(CFURLGetBaseURL) CF_RETURNS_NOT_RETAINED;

/** Returns whether a URL has parts besides its scheme. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT Boolean CFURLCanBeDecomposed(CFURLRef url) CRL_LINK(CFURLCanBeDecomposed);

/**
 * Returns the scheme of a URL or its base, as it is written, such as "http".
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyScheme(CFURLRef url) CRL_LINK(CFURLCopyScheme) CF_RETURNS_RETAINED;

/**
 * Returns the net location of a URL or its base with its escapes: "user:password@host:80".
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none or it is empty, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyNetLocation(CFURLRef url) CRL_LINK(CFURLCopyNetLocation) CF_RETURNS_RETAINED;

/**
 * Returns the path of a URL's string with its escapes and its first slash. It is empty for "http://host".
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when the URL has neither a path nor a net location, or cannot be decomposed, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyPath(CFURLRef url) CRL_LINK(CFURLCopyPath) CF_RETURNS_RETAINED;

/**
 * Returns the path of a URL's string with its escapes and without its first slash.
 *
 * `isAbsolute` may be NULL and tells whether that slash was there.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when the path is missing or empty, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyStrictPath(CFURLRef url, Boolean *isAbsolute) CRL_LINK(CFURLCopyStrictPath) CF_RETURNS_RETAINED;

/**
 * Returns the path of a URL's string without escapes and without a slash at the end. It is not resolved against the base.
 *
 * `pathStyle` is kCFURLPOSIXPathStyle.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no path, when its escapes are not valid text, for another style, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyFileSystemPath(CFURLRef url, CFURLPathStyle pathStyle)
    CRL_LINK(CFURLCopyFileSystemPath) CF_RETURNS_RETAINED;

/**
 * Returns whether a URL's path is a directory by its form: it ends with a slash, or its last component is "." or "..".
 * Threads: any. Errors: NULL stops the process with a message.
 */
CF_EXPORT Boolean CFURLHasDirectoryPath(CFURLRef url) CRL_LINK(CFURLHasDirectoryPath);

/**
 * Returns what follows the path: the query and the fragment with their separators. For a URL that cannot be decomposed it is all that
 * follows the scheme and its colon.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is nothing, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyResourceSpecifier(CFURLRef url) CRL_LINK(CFURLCopyResourceSpecifier) CF_RETURNS_RETAINED;

/**
 * Returns the host of a URL or its base without escapes, and without the brackets around an IPv6 address.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none or it is empty, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyHostName(CFURLRef url) CRL_LINK(CFURLCopyHostName) CF_RETURNS_RETAINED;

/**
 * Returns the port of a URL or its base.
 *
 * Threads: any.
 * Errors: -1 when there is none or it is no number. The largest SInt32 stands for larger numbers, which are no ports.
 */
CF_EXPORT SInt32 CFURLGetPortNumber(CFURLRef url) CRL_LINK(CFURLGetPortNumber);

/**
 * Returns the user name of a URL or its base without escapes.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyUserName(CFURLRef url) CRL_LINK(CFURLCopyUserName) CF_RETURNS_RETAINED;

/**
 * Returns the password of a URL or its base without escapes.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyPassword(CFURLRef url) CRL_LINK(CFURLCopyPassword) CF_RETURNS_RETAINED;

/**
 * Returns NULL: parameters belong to the path, as they do for Apple since macOS 10.15.
 *
 * `charactersToLeaveEscaped` is not used.
 * Ownership: there is nothing to release.
 * Threads: any.
 */
CF_EXPORT CFStringRef CFURLCopyParameterString(CFURLRef url, CFStringRef charactersToLeaveEscaped)
    CRL_LINK(CFURLCopyParameterString) CF_RETURNS_RETAINED;

/**
 * Returns the query of a URL, or of its base if the URL has neither a path nor a query.
 *
 * `charactersToLeaveEscaped` is NULL to leave every escape as it is, or has the characters whose escapes stay. With an empty string none
 * do.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyQueryString(CFURLRef url, CFStringRef charactersToLeaveEscaped)
    CRL_LINK(CFURLCopyQueryString) CF_RETURNS_RETAINED;

/**
 * Returns the fragment of a URL's string.
 *
 * `charactersToLeaveEscaped` is as in CFURLCopyQueryString.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is none, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyFragment(CFURLRef url, CFStringRef charactersToLeaveEscaped) CRL_LINK(CFURLCopyFragment) CF_RETURNS_RETAINED;

/**
 * Returns the last component of a URL's path without escapes. It is "/" for the root, and empty where there is no path.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyLastPathComponent(CFURLRef url) CRL_LINK(CFURLCopyLastPathComponent) CF_RETURNS_RETAINED;

/**
 * Returns what follows the last dot in the last component of a URL's path. A dot at the beginning of the component does not count.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no extension or it contains a space, when its escapes are not valid text, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCopyPathExtension(CFURLRef url) CRL_LINK(CFURLCopyPathExtension) CF_RETURNS_RETAINED;

/**
 * Creates a URL with one more component, or several with slashes between them, at the end of the path. Query and fragment stay.
 *
 * `allocator` is NULL for the default. `pathComponent` is escaped. With `isDirectory` the path ends with a slash.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when the URL has no path or cannot be decomposed, and when there is no memory. A NULL `pathComponent` stops the process with
 * a message.
 * Differs from Apple: a component that begins with a slash does not double a slash at the end of the path.
 */
CF_EXPORT CFURLRef CFURLCreateCopyAppendingPathComponent(CFAllocatorRef allocator, CFURLRef url, CFStringRef pathComponent,
                                                         Boolean isDirectory)
    CRL_LINK(CFURLCreateCopyAppendingPathComponent) CF_RETURNS_RETAINED;

/**
 * Creates a URL without the last component of the path. The path ends with a slash then. "../" is added to a path that ends with a dot
 * segment, and to the root.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when the URL has no path or cannot be decomposed, and when there is no memory.
 */
CF_EXPORT CFURLRef CFURLCreateCopyDeletingLastPathComponent(CFAllocatorRef allocator, CFURLRef url)
    CRL_LINK(CFURLCreateCopyDeletingLastPathComponent) CF_RETURNS_RETAINED;

/**
 * Creates a URL with a dot and an extension at the end of the last component of the path.
 *
 * `allocator` is NULL for the default. `extension` is escaped.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL for an extension that is empty or has a slash or a space, when the path has no last component, and when there is no memory.
 */
CF_EXPORT CFURLRef CFURLCreateCopyAppendingPathExtension(CFAllocatorRef allocator, CFURLRef url, CFStringRef extension)
    CRL_LINK(CFURLCreateCopyAppendingPathExtension) CF_RETURNS_RETAINED;

/**
 * Creates a URL without the extension of the last component of the path, if it has one.
 *
 * `allocator` is NULL for the default.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when the URL has no path or cannot be decomposed, and when there is no memory.
 */
CF_EXPORT CFURLRef CFURLCreateCopyDeletingPathExtension(CFAllocatorRef allocator, CFURLRef url)
    CRL_LINK(CFURLCreateCopyDeletingPathExtension) CF_RETURNS_RETAINED;

/**
 * Copies the bytes that a URL was made of, and returns how many they are. Those of CFURLCreateWithBytes are in its encoding, and in ASCII
 * like the URL's string where that does not extend ASCII.
 *
 * `buffer` has `bufferLength` bytes, NULL to count only. No NUL is written.
 * Threads: any.
 * Errors: -1 when they do not fit; then nothing is written.
 */
CF_EXPORT CFIndex CFURLGetBytes(CFURLRef url, UInt8 *buffer, CFIndex bufferLength) CRL_LINK(CFURLGetBytes);

/**
 * Returns where in the bytes of CFURLGetBytes a part stands.
 *
 * `rangeIncludingSeparators` may be NULL. It gets the part with all that stands between it and its neighbours; for a missing part it
 * gets the place where the part would stand, with a length of 0.
 * Threads: any.
 * Errors: a location of kCFNotFound when the part is missing.
 */
CF_EXPORT CFRange CFURLGetByteRangeForComponent(CFURLRef url, CFURLComponentType component, CFRange *rangeIncludingSeparators)
    CRL_LINK(CFURLGetByteRangeForComponent);

/**
 * Creates a string with escapes replaced by the characters of their UTF-8.
 *
 * `allocator` is NULL for the default. `charactersToLeaveEscaped` is NULL to replace nothing, or has the characters whose escapes stay.
 * With an empty string none do.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when a `%` is not followed by two hexadecimal digits, when the escaped bytes are not UTF-8, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCreateStringByReplacingPercentEscapes(CFAllocatorRef allocator, CFStringRef text,
                                                                 CFStringRef charactersToLeaveEscaped)
    CRL_LINK(CFURLCreateStringByReplacingPercentEscapes) CF_RETURNS_RETAINED;

/**
 * Creates a string like CFURLCreateStringByReplacingPercentEscapes, with escaped bytes of another encoding.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: like CFURLCreateStringByReplacingPercentEscapes, and NULL for an unknown encoding.
 */
CF_EXPORT CFStringRef CFURLCreateStringByReplacingPercentEscapesUsingEncoding(CFAllocatorRef allocator, CFStringRef text,
                                                                              CFStringRef charactersToLeaveEscaped,
                                                                              CFStringEncoding encoding)
    CRL_LINK(CFURLCreateStringByReplacingPercentEscapesUsingEncoding) CF_RETURNS_RETAINED;

/**
 * Creates a string with the characters escaped that may not stand in a URL.
 *
 * `allocator` is NULL for the default. `charactersToLeaveUnescaped` has characters to leave as they are, NULL for none.
 * `legalURLCharactersToBeEscaped` has characters to escape although they may stand in a URL, NULL for none. `%` is always escaped unless it
 * is one of those to leave. `encoding` is that of the escaped bytes.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when the encoding lacks a character or is unknown, and when there is no memory.
 */
CF_EXPORT CFStringRef CFURLCreateStringByAddingPercentEscapes(CFAllocatorRef allocator, CFStringRef text,
                                                              CFStringRef charactersToLeaveUnescaped,
                                                              CFStringRef legalURLCharactersToBeEscaped, CFStringEncoding encoding)
    CRL_LINK(CFURLCreateStringByAddingPercentEscapes) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFURL__ */
