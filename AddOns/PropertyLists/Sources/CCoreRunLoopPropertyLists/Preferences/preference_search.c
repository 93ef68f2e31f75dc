/* SPDX-License-Identifier: Apache-2.0 */
/* The search for preferences of an application (preference_search.h). */
#include "Preferences/preference_search.h"

#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFPreferences.h"

/* A suite of an application, the one that was added last first. */
struct suite {
    struct suite *next;
    char application[preference_name_max + 1]; /* constant, as all but `next` */
    char name[preference_name_max + 1];
};

static CFDictionaryRef arguments GUARDED_BY(the_fork_lock);
static struct suite *suites GUARDED_BY(the_fork_lock);

/* ---- arguments ---- */

void preference_arguments_set(CFDictionaryRef dictionary)
{
    CFDictionaryRef kept = dictionary ? CFRetain(dictionary) : NULL;
    int cancel_state = fork_lock_take();
    CFDictionaryRef before = arguments;

    arguments = kept;
    fork_lock_drop(cancel_state);
    if (before) {
        CFRelease(before);
    }
}

static bool get_application(CFStringRef application, const char *function, char ret_name[preference_name_max + 1])
{
    struct preference_place place;
    bool is_found = preference_place_find(application, kCFPreferencesAnyUser, kCFPreferencesAnyHost, function, &place);

    memcpy(ret_name, place.application, preference_name_max + 1);
    return is_found;
}

CFTypeRef preference_arguments_copy_value(CFStringRef key, CFStringRef application)
{
    char current[preference_name_max + 1];
    char asked[preference_name_max + 1];
    int cancel_state = fork_lock_take();
    CFTypeRef value = arguments ? CFDictionaryGetValue(arguments, key) : NULL;

    value = value ? CFRetain(value) : NULL;
    fork_lock_drop(cancel_state);
    if (value && !CFEqual(application, kCFPreferencesCurrentApplication) &&
        !(get_application(application, "CFPreferencesCopyAppValue", asked) &&
          get_application(kCFPreferencesCurrentApplication, "CFPreferencesCopyAppValue", current) && strcmp(asked, current) == 0)) {
        CFRelease(value);
        value = NULL;
    }
    return value;
}

/* ---- suites ---- */

/* The link that leads to a suite, or the last one. */
REQUIRES(the_fork_lock) static struct suite **find_suite(const struct suite *suite)
{
    struct suite **link = &suites;

    while (*link && (strcmp((*link)->application, suite->application) != 0 || strcmp((*link)->name, suite->name) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

/* Takes the suite out of the list. The caller frees it; it may be NULL. */
static struct suite *take_suite(const struct suite *suite)
{
    int cancel_state = fork_lock_take();
    struct suite **link = find_suite(suite);
    struct suite *found = *link;

    if (found) {
        *link = found->next;
    }
    fork_lock_drop(cancel_state);
    return found;
}

static bool name_suite(struct suite *suite, CFStringRef application, CFStringRef name, const char *function)
{
    return get_application(application, function, suite->application) && get_application(name, function, suite->name);
}

bool preference_suite_add(CFStringRef application, CFStringRef name, const char *function)
{
    struct suite *suite = calloc(1, sizeof *suite);

    if (!suite || !name_suite(suite, application, name, function)) {
        free(suite);
        return false;
    }
    free(take_suite(suite));
    int cancel_state = fork_lock_take();
    suite->next = suites;
    suites = suite;
    fork_lock_drop(cancel_state);
    return true;
}

void preference_suite_remove(CFStringRef application, CFStringRef name, const char *function)
{
    struct suite suite = {NULL, "", ""};

    if (name_suite(&suite, application, name, function)) {
        free(take_suite(&suite));
    }
}

/* The suites of an application as strings, in an array that the caller releases. */
static CFMutableArrayRef copy_suites(const char *application)
{
    CFMutableArrayRef names = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    int cancel_state = fork_lock_take();

    for (struct suite *suite = suites; names && suite; suite = suite->next) {
        CFStringRef name = strcmp(suite->application, application) == 0
                               ? CFStringCreateWithCString(kCFAllocatorSystemDefault, suite->name, kCFStringEncodingUTF8)
                               : NULL;

        if (name) {
            CFArrayAppendValue(names, name);
            CFRelease(name);
        }
    }
    fork_lock_drop(cancel_state);
    return names;
}

/* ---- the search ---- */

/* The applications whose preferences are searched: its own, its suites, and those of any application. */
static CFMutableArrayRef copy_applications(CFStringRef application, const char *function)
{
    char name[preference_name_max + 1];
    CFMutableArrayRef names = get_application(application, function, name) ? copy_suites(name) : NULL;

    if (names) {
        CFArrayInsertValueAtIndex(names, 0, application);
        if (!CFEqual(application, kCFPreferencesAnyApplication)) {
            CFArrayAppendValue(names, kCFPreferencesAnyApplication);
        }
    }
    return names;
}

bool preference_search(CFStringRef application, const char *function, bool (*visit)(struct preference_domain *domain, void *context),
                       void *context)
{
    CFStringRef users[] = {kCFPreferencesCurrentUser, kCFPreferencesAnyUser};
    CFStringRef hosts[] = {kCFPreferencesCurrentHost, kCFPreferencesAnyHost};
    CFMutableArrayRef applications = copy_applications(application, function);
    bool goes_on = true;
    bool is_done = applications;

    for (int user = 0; user < 2; user++) {
        for (CFIndex i = 0; goes_on && is_done && i < CFArrayGetCount(applications); i++) {
            for (int host = 0; goes_on && is_done && host < 2; host++) {
                struct preference_place place;
                struct preference_domain *domain = NULL;

                if (preference_place_find(CFArrayGetValueAtIndex(applications, i), users[user], hosts[host], function, &place)) {
                    domain = preference_domain_get(&place);
                }
                is_done = domain;
                goes_on = domain && visit(domain, context);
            }
        }
    }
    if (applications) {
        CFRelease(applications);
    }
    return is_done;
}

#if defined(CRL_TESTING)
void preference_search_give_back(void)
{
    int cancel_state = fork_lock_take();
    struct suite *suite = suites;

    suites = NULL;
    fork_lock_drop(cancel_state);
    while (suite) {
        struct suite *next = suite->next;

        free(suite);
        suite = next;
    }
    preference_arguments_set(NULL);
}
#endif
