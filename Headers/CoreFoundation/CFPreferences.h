/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Preferences: settings of programs, kept in files of property lists. They are in the add-on library libcorerunloop-plist.
 *
 * A domain is named by an application, a user and a host, and has one file. Those of the current user are below `$XDG_CONFIG_HOME`, or
 * `~/.config`: `APPLICATION.plist` for any host and `ByHost/HOST/APPLICATION.plist` for one; any application is `.GlobalPreferences`.
 * Those of any user are below the first folder of `$XDG_CONFIG_DIRS`, or `/etc/xdg`. A program with privileges of a file (set-user-ID)
 * has none of the current user.
 *
 * A program sees a file as it was when a domain was first used or last synchronized, and over it what it has set since. Synchronizing
 * writes only the keys that this process has changed over what the file holds by then, so processes do not lose each other's. No daemon
 * tells programs of changes: they see them when they synchronize. Any thread may use these functions, also in the child of a fork.
 *
 * An application's identifier is a part of a path: 1 to 200 bytes of UTF-8, without slash and control character, and no full stop at the
 * beginning. A line on stderr says that another one is refused; it has no values and keeps none. So it is with a user's name: only the two
 * constants are known.
 *
 * A file that is no property list of a dictionary, is not regular or has more than 64 MiB counts as empty, with a line on stderr. When it
 * is to be written, it is kept under the name with `.damaged-1`, `-2` ... behind it. One that cannot be read is never overwritten. A link
 * to such a dictionary stays, and the file that it leads to is written. A link to anything else is itself kept so, and replaced.
 */

#if !defined(__COREFOUNDATION_CFPREFERENCES__)
#define __COREFOUNDATION_CFPREFERENCES__ 1

#include "CFArray.h"
#include "CFBase.h"
#include "CFDictionary.h"
#include "CFPropertyList.h"
#include "CFString.h"

CF_EXTERN_C_BEGIN

/** Names the preferences of all applications. */
CF_EXPORT const CFStringRef kCFPreferencesAnyApplication CRL_LINK(kCFPreferencesAnyApplication);
/** Names the main bundle's identifier, or else the name of the program's file. */
CF_EXPORT const CFStringRef kCFPreferencesCurrentApplication CRL_LINK(kCFPreferencesCurrentApplication);
/** Names preferences for all hosts. */
CF_EXPORT const CFStringRef kCFPreferencesAnyHost CRL_LINK(kCFPreferencesAnyHost);
/** Names this host, as gethostname does. */
CF_EXPORT const CFStringRef kCFPreferencesCurrentHost CRL_LINK(kCFPreferencesCurrentHost);
/** Names preferences for all users. */
CF_EXPORT const CFStringRef kCFPreferencesAnyUser CRL_LINK(kCFPreferencesAnyUser);
/** Names the user of the process. */
CF_EXPORT const CFStringRef kCFPreferencesCurrentUser CRL_LINK(kCFPreferencesCurrentUser);

/**
 * Searches for the value of a key, first in the arguments (CRLPreferencesSetArguments), then in these domains of the current user, and
 * then in the same ones of any user: the application's for this host and for any host; those of its suites, the one that was added last
 * first; those of any application.
 *
 * Ownership: the caller releases the value, which is a copy of what was set.
 * Threads: any.
 * Errors: NULL when there is no value, and when there is no memory. NULL for the key or the application stops the process with a message.
 */
CF_EXPORT CFPropertyListRef CFPreferencesCopyAppValue(CFStringRef key, CFStringRef applicationID) CRL_LINK(CFPreferencesCopyAppValue);

/**
 * Searches for a truth value: a Boolean, an integer, which is false if it is 0, or the words yes, true, no and false in any letters.
 *
 * `*keyExistsAndHasValidFormat` is set to whether there is such a value; it may be NULL.
 * Threads: any.
 * Errors: false when there is none.
 */
CF_EXPORT Boolean CFPreferencesGetAppBooleanValue(CFStringRef key, CFStringRef applicationID, Boolean *keyExistsAndHasValidFormat)
    CRL_LINK(CFPreferencesGetAppBooleanValue);

/**
 * Searches for an integer: a number that is one, or a string of digits.
 *
 * `*keyExistsAndHasValidFormat` is set to whether there is such a value; it may be NULL.
 * Threads: any.
 * Errors: 0 when there is none, and when it does not fit.
 */
CF_EXPORT CFIndex CFPreferencesGetAppIntegerValue(CFStringRef key, CFStringRef applicationID, Boolean *keyExistsAndHasValidFormat)
    CRL_LINK(CFPreferencesGetAppIntegerValue);

/**
 * Sets a value in the application's domain of the current user for any host, as CFPreferencesSetValue does. Threads: any.
 */
CF_EXPORT void CFPreferencesSetAppValue(CFStringRef key, CFPropertyListRef value, CFStringRef applicationID)
    CRL_LINK(CFPreferencesSetAppValue);

/** Adds the preferences of another application to the search for those of one, before the suites that are there. Threads: any. */
CF_EXPORT void CFPreferencesAddSuitePreferencesToApp(CFStringRef applicationID, CFStringRef suiteID)
    CRL_LINK(CFPreferencesAddSuitePreferencesToApp);

/** Takes a suite out of the search. Threads: any. */
CF_EXPORT void CFPreferencesRemoveSuitePreferencesFromApp(CFStringRef applicationID, CFStringRef suiteID)
    CRL_LINK(CFPreferencesRemoveSuitePreferencesFromApp);

/**
 * Synchronizes all domains that are searched for an application, as CFPreferencesSynchronize does.
 *
 * Threads: any.
 * Errors: false when one of them could not be written; the others have been.
 */
CF_EXPORT Boolean CFPreferencesAppSynchronize(CFStringRef applicationID) CRL_LINK(CFPreferencesAppSynchronize);

/** Returns whether an administrator has set a value that the program cannot change: always false here. Threads: any. */
CF_EXPORT Boolean CFPreferencesAppValueIsForced(CFStringRef key, CFStringRef applicationID) CRL_LINK(CFPreferencesAppValueIsForced);

/**
 * Returns the value that a key has in one domain.
 *
 * Ownership: the caller releases the value.
 * Threads: any.
 * Errors: NULL when there is no value, and when there is no memory.
 */
CF_EXPORT CFPropertyListRef CFPreferencesCopyValue(CFStringRef key, CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
    CRL_LINK(CFPreferencesCopyValue);

/**
 * Returns the values of several keys in one domain; those without a value are missing.
 *
 * `keysToFetch` is NULL for all keys.
 * Ownership: the caller releases the dictionary.
 * Threads: any.
 * Errors: NULL only when there is no memory.
 */
CF_EXPORT CFDictionaryRef CFPreferencesCopyMultiple(CFArrayRef keysToFetch, CFStringRef applicationID, CFStringRef userName,
                                                    CFStringRef hostName) CRL_LINK(CFPreferencesCopyMultiple) CF_RETURNS_RETAINED;

/**
 * Sets the value of a key in one domain for this process; CFPreferencesSynchronize writes it.
 *
 * `value` is copied; NULL removes the key.
 * Threads: any.
 * Errors: a line on stderr, and no change, when the value is no property list, is nested more than 511 deep, or when there is no memory.
 */
CF_EXPORT void CFPreferencesSetValue(CFStringRef key, CFPropertyListRef value, CFStringRef applicationID, CFStringRef userName,
                                     CFStringRef hostName) CRL_LINK(CFPreferencesSetValue);

/** Removes several keys and then sets others, as CFPreferencesSetValue does with each. Either list may be NULL. Threads: any. */
CF_EXPORT void CFPreferencesSetMultiple(CFDictionaryRef keysToSet, CFArrayRef keysToRemove, CFStringRef applicationID, CFStringRef userName,
                                        CFStringRef hostName) CRL_LINK(CFPreferencesSetMultiple);

/**
 * Writes what this process has changed in one domain, and reads what others have written.
 *
 * The file is replaced at once: whoever reads it sees the old one or the new one, after a crash as well. It is only open to its user, or
 * has the permissions that it had. Processes that do so at the same time wait for each other; the lock is the file
 * `.APPLICATION.plist.lock`. The new one is `APPLICATION.plist.new` until then; what a process that was
 * killed has left there is written anew.
 * Threads: any.
 * Errors: false, with a line on stderr, when the file could not be written. Nothing is lost, and the next call tries again.
 */
CF_EXPORT Boolean CFPreferencesSynchronize(CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
    CRL_LINK(CFPreferencesSynchronize);

/**
 * Returns the applications that have a file of preferences of this user and host, in no order.
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL when there is none.
 */
CF_EXPORT CFArrayRef CFPreferencesCopyApplicationList(CFStringRef userName, CFStringRef hostName) CRL_LINK(CFPreferencesCopyApplicationList)
    CF_RETURNS_RETAINED;

/**
 * Returns the keys that have a value in one domain, in no order.
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL when there is none.
 */
CF_EXPORT CFArrayRef CFPreferencesCopyKeyList(CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
    CRL_LINK(CFPreferencesCopyKeyList) CF_RETURNS_RETAINED;

/**
 * Makes arguments of the program preferences of the current application, before all others and never written: `-key value`.
 *
 * `arguments` are those of main, `count` of them, the first of which is passed over. A value that begins as a property list does, with
 * `{`, `(`, `<` or `"`, is read as one if it can be; another is a string. What does not fit into pairs is passed over, and `--` ends them.
 * A later call replaces the arguments.
 * Threads: any.
 */
CF_EXPORT void CRLPreferencesSetArguments(int count, char *const *arguments) CRL_LINK(CRLPreferencesSetArguments);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFPREFERENCES__ */
