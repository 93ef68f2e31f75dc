/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Errors: a domain, a code whose meaning the domain gives, and a dictionary of texts and other facts about the failure.
 *
 * An error cannot be changed. Any thread may use these functions and objects.
 */

#if !defined(__COREFOUNDATION_CFERROR__)
#define __COREFOUNDATION_CFERROR__ 1

#include "CFBase.h"
#include "CFDictionary.h"
#include "CFString.h"

#if defined(__swift__)
#define CFErrorRef CRLErrorRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFError, CFError);

/** An error. Errors are equal when their domains, codes and user infos are. */
typedef struct __CFError *CFErrorRef;

/** The name of a domain. Programs name domains of their own in reverse DNS form, such as "org.example.server". */
typedef CFStringRef CFErrorDomain;

/** The domain of `errno`, "NSPOSIXErrorDomain". An error in it has the system's text for its code as its failure reason. */
CF_EXPORT const CFErrorDomain kCFErrorDomainPOSIX CRL_LINK(kCFErrorDomainPOSIX);
/** The domain of results of type OSStatus, "NSOSStatusErrorDomain". The codes of TLS (CFNetwork/CFSocketStream.h) have a failure reason. */
CF_EXPORT const CFErrorDomain kCFErrorDomainOSStatus CRL_LINK(kCFErrorDomainOSStatus);
/** The domain of results of Mach's calls, "NSMachErrorDomain". */
CF_EXPORT const CFErrorDomain kCFErrorDomainMach CRL_LINK(kCFErrorDomainMach);
/** The domain of Foundation's errors, "NSCocoaErrorDomain". */
CF_EXPORT const CFErrorDomain kCFErrorDomainCocoa CRL_LINK(kCFErrorDomainCocoa);

/** Key of a text that says in sentences for users what failed and why, "NSLocalizedDescription". */
CF_EXPORT const CFStringRef kCFErrorLocalizedDescriptionKey CRL_LINK(kCFErrorLocalizedDescriptionKey);
/** Key of a text that says in a sentence for users what failed, "NSLocalizedFailure". */
CF_EXPORT const CFStringRef kCFErrorLocalizedFailureKey CRL_LINK(kCFErrorLocalizedFailureKey);
/** Key of a text that says in a sentence for users why it failed, "NSLocalizedFailureReason". */
CF_EXPORT const CFStringRef kCFErrorLocalizedFailureReasonKey CRL_LINK(kCFErrorLocalizedFailureReasonKey);
/** Key of a text that says in a sentence for users what they can do, "NSLocalizedRecoverySuggestion". */
CF_EXPORT const CFStringRef kCFErrorLocalizedRecoverySuggestionKey CRL_LINK(kCFErrorLocalizedRecoverySuggestionKey);
/** Key of a text for developers that says what the code means, "NSDescription". */
CF_EXPORT const CFStringRef kCFErrorDescriptionKey CRL_LINK(kCFErrorDescriptionKey);
/** Key of the error that caused this one, "NSUnderlyingError". */
CF_EXPORT const CFStringRef kCFErrorUnderlyingErrorKey CRL_LINK(kCFErrorUnderlyingErrorKey);
/** Key of the URL that the failure is about, "NSURL". */
CF_EXPORT const CFStringRef kCFErrorURLKey CRL_LINK(kCFErrorURLKey);
/** Key of the path, a string, that the failure is about, "NSFilePath". */
CF_EXPORT const CFStringRef kCFErrorFilePathKey CRL_LINK(kCFErrorFilePathKey);

/** Returns the type id of errors. Threads: any, signal handlers included. */
CF_EXPORT CFTypeID CFErrorGetTypeID(void) CRL_LINK(CFErrorGetTypeID);

/**
 * Creates an error.
 *
 * `allocator` is NULL for the default. `code` is any number. `userInfo` is copied, NULL for an empty one; its keys are strings.
 * Ownership: the caller releases the error, which retains the domain and the values of its user info.
 * Threads: any.
 * Errors: NULL when there is no memory. A NULL `domain` stops the process with a message.
 */
CF_EXPORT CFErrorRef CFErrorCreate(CFAllocatorRef allocator, CFErrorDomain domain, CFIndex code, CFDictionaryRef userInfo)
    CRL_LINK(CFErrorCreate) CF_RETURNS_RETAINED;

/**
 * Creates an error whose user info is made of keys and values.
 *
 * `allocator` is NULL for the default. `code` is any number. `userInfoKeys` are `numUserInfoValues` strings, and `userInfoValues` the
 * objects that belong to them; both may be NULL when there are none.
 * Ownership: the caller releases the error, which retains the domain and the values, and copies the keys.
 * Threads: any.
 * Errors: NULL when there is no memory. A NULL `domain` stops the process with a message.
 */
CF_EXPORT CFErrorRef CFErrorCreateWithUserInfoKeysAndValues(CFAllocatorRef allocator, CFErrorDomain domain, CFIndex code,
                                                            const void *const *userInfoKeys, const void *const *userInfoValues,
                                                            CFIndex numUserInfoValues)
    CRL_LINK(CFErrorCreateWithUserInfoKeysAndValues) CF_RETURNS_RETAINED;

/**
 * Returns the domain of an error.
 *
 * Ownership: the string is borrowed from the error.
 * Threads: any.
 * Errors: NULL stops the process with a message.
 */
CF_EXPORT CFErrorDomain CFErrorGetDomain(CFErrorRef error) CRL_LINK(CFErrorGetDomain) CF_RETURNS_NOT_RETAINED;

/** Returns the code of an error. It has a meaning only within its domain. Threads: any. Errors: NULL stops the process with a message. */
CF_EXPORT CFIndex CFErrorGetCode(CFErrorRef error) CRL_LINK(CFErrorGetCode);

/**
 * Returns the user info of an error, which is never NULL.
 *
 * Ownership: the caller releases the dictionary.
 * Threads: any.
 * Errors: a NULL `error` stops the process with a message.
 */
CF_EXPORT CFDictionaryRef CFErrorCopyUserInfo(CFErrorRef error) CRL_LINK(CFErrorCopyUserInfo) CF_RETURNS_RETAINED;

/**
 * Creates a description of an error for users.
 *
 * The first of these is taken for which the user info has the texts: the description; the failure, and the reason behind it; a general
 * sentence and the reason; a general sentence with the domain, the code and the text for developers.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no memory. A NULL `error` stops the process with a message.
 * Differs from Apple: all is in English. The toolchain has no words for codes.
 */
CF_EXPORT CFStringRef CFErrorCopyDescription(CFErrorRef error) CRL_LINK(CFErrorCopyDescription) CF_RETURNS_RETAINED;

/**
 * Returns why something failed: the text of kCFErrorLocalizedFailureReasonKey, or the words for the code.
 *
 * There are words for the codes of kCFErrorDomainPOSIX, which are the system's, for those of TLS in kCFErrorDomainOSStatus, and for those
 * of getaddrinfo in "kCFErrorDomainCFNetwork". All are in English.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no such text or no memory. A NULL `error` stops the process with a message.
 */
CF_EXPORT CFStringRef CFErrorCopyFailureReason(CFErrorRef error) CRL_LINK(CFErrorCopyFailureReason) CF_RETURNS_RETAINED;

/**
 * Returns what the user can do: the text of kCFErrorLocalizedRecoverySuggestionKey.
 *
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when there is no such text. A NULL `error` stops the process with a message.
 */
CF_EXPORT CFStringRef CFErrorCopyRecoverySuggestion(CFErrorRef error) CRL_LINK(CFErrorCopyRecoverySuggestion) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFERROR__ */
