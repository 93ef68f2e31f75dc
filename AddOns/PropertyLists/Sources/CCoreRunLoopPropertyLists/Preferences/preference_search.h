/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which domains the preferences of an application are searched, and the two lists that a program may make for it: arguments, and suites
 * by application. Any thread; the fork lock guards both lists. What a program has said stays until it says otherwise.
 */
#ifndef CRL_PLIST_PREFERENCE_SEARCH_H
#define CRL_PLIST_PREFERENCE_SEARCH_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Preferences/preference_domain.h"

/* Replaces the arguments by a dictionary that no code of the program is in, or by none. */
void preference_arguments_set(CFDictionaryRef arguments);
/* The value of an argument, if the application is the current one; or NULL. The caller releases it. */
CFTypeRef preference_arguments_copy_value(CFStringRef key, CFStringRef application);

/* False without memory. */
bool preference_suite_add(CFStringRef application, CFStringRef suite, const char *function);
void preference_suite_remove(CFStringRef application, CFStringRef suite, const char *function);

/* Calls `visit` with each domain in the order of the search until it returns false. False: a name is refused, or there is no memory. */
bool preference_search(CFStringRef application, const char *function, bool (*visit)(struct preference_domain *domain, void *context),
                       void *context);

#if defined(CRL_TESTING)
void preference_search_give_back(void);
#endif

#endif
