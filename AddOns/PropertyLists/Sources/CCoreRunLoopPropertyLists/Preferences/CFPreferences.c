/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of preferences (CFPreferences.h). Any thread. */
#include "CoreFoundation/CFPreferences.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFPropertyList.h"
#include "Preferences/preference_search.h"
#include "Support/uncancelled.h"

static void say_no_memory(const char *function)
{
    (void)uncancelled(fprintf(stderr, "CoreRunLoop: %s: there is no memory\n", function));
}

static struct preference_domain *find_domain(CFStringRef application, CFStringRef user, CFStringRef host, const char *function)
{
    struct preference_place place;

    if (!preference_place_find(application, user, host, function, &place)) {
        return NULL;
    }
    struct preference_domain *domain = preference_domain_get(&place);
    if (!domain) {
        say_no_memory(function);
    }
    return domain;
}

/* ---- the search ---- */

struct wanted {
    CFStringRef key;
    CFTypeRef value;
};

static bool look_for_value(struct preference_domain *domain, void *context)
{
    struct wanted *wanted = context;

    wanted->value = preference_domain_copy_value(domain, wanted->key);
    return !wanted->value;
}

CFPropertyListRef CFPreferencesCopyAppValue(CFStringRef key, CFStringRef applicationID)
{
    struct wanted wanted = {preference_require_string(key, "key", __func__), NULL};

    wanted.value = preference_arguments_copy_value(key, preference_require_string(applicationID, "application", __func__));
    if (!wanted.value) {
        (void)preference_search(applicationID, __func__, look_for_value, &wanted);
    }
    return wanted.value;
}

/* Words as in any letters, or a whole number. */
static bool is_truth(CFTypeRef value, Boolean *ret_truth)
{
    static const char *const words[] = {"no", "false", "yes", "true"};
    char text[8];
    SInt64 number;

    if (CFGetTypeID(value) == CFBooleanGetTypeID()) {
        *ret_truth = CFBooleanGetValue(value);
        return true;
    }
    if (CFGetTypeID(value) == CFNumberGetTypeID()) {
        *ret_truth = CFNumberGetValue(value, kCFNumberSInt64Type, &number) && number != 0;
        return !CFNumberIsFloatType(value);
    }
    if (CFGetTypeID(value) == CFStringGetTypeID() && CFStringGetCString(value, text, sizeof text, kCFStringEncodingASCII)) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (strcasecmp(text, words[i]) == 0) {
                *ret_truth = i >= 2;
                return true;
            }
        }
    }
    return false;
}

/* Only digits, with a sign or blanks before them. */
static bool is_integer(CFTypeRef value, CFIndex *ret_integer)
{
    char text[64];
    char *end;

    if (CFGetTypeID(value) == CFNumberGetTypeID()) {
        return !CFNumberIsFloatType(value) && CFNumberGetValue(value, kCFNumberCFIndexType, ret_integer);
    }
    if (CFGetTypeID(value) != CFStringGetTypeID() || !CFStringGetCString(value, text, sizeof text, kCFStringEncodingASCII)) {
        return false;
    }
    int saved = errno;
    errno = 0;
    *ret_integer = strtol(text, &end, 10);
    bool is_whole = end > text && *end == '\0' && errno == 0;
    errno = saved;
    return is_whole;
}

Boolean CFPreferencesGetAppBooleanValue(CFStringRef key, CFStringRef applicationID, Boolean *keyExistsAndHasValidFormat)
{
    CFTypeRef value = CFPreferencesCopyAppValue(key, applicationID);
    Boolean truth = false;
    bool is_valid = value && is_truth(value, &truth);

    if (value) {
        CFRelease(value);
    }
    if (keyExistsAndHasValidFormat) {
        *keyExistsAndHasValidFormat = is_valid;
    }
    return is_valid && truth;
}

CFIndex CFPreferencesGetAppIntegerValue(CFStringRef key, CFStringRef applicationID, Boolean *keyExistsAndHasValidFormat)
{
    CFTypeRef value = CFPreferencesCopyAppValue(key, applicationID);
    CFIndex integer = 0;
    bool is_valid = value && is_integer(value, &integer);

    if (value) {
        CFRelease(value);
    }
    if (keyExistsAndHasValidFormat) {
        *keyExistsAndHasValidFormat = is_valid;
    }
    return is_valid ? integer : 0;
}

void CFPreferencesAddSuitePreferencesToApp(CFStringRef applicationID, CFStringRef suiteID)
{
    (void)preference_suite_add(applicationID, suiteID, __func__);
}

void CFPreferencesRemoveSuitePreferencesFromApp(CFStringRef applicationID, CFStringRef suiteID)
{
    preference_suite_remove(applicationID, suiteID, __func__);
}

static bool synchronize_one(struct preference_domain *domain, void *context)
{
    bool *is_done = context;

    *is_done = preference_domain_synchronize(domain) && *is_done;
    return true;
}

Boolean CFPreferencesAppSynchronize(CFStringRef applicationID)
{
    bool is_done = true;

    return preference_search(applicationID, __func__, synchronize_one, &is_done) && is_done;
}

Boolean CFPreferencesAppValueIsForced(CFStringRef key, CFStringRef applicationID)
{
    (void)preference_require_string(key, "key", __func__);
    (void)preference_require_string(applicationID, "application", __func__);
    return false;
}

/* ---- one domain ---- */

static void set_value(struct preference_domain *domain, CFTypeRef key, CFTypeRef value, const char *function)
{
    if (domain && !preference_domain_set_value(domain, preference_require_string(key, "key", function), value)) {
        (void)uncancelled(fprintf(stderr, "CoreRunLoop: %s: the value is no property list that can be kept\n", function));
    }
}

void CFPreferencesSetAppValue(CFStringRef key, CFPropertyListRef value, CFStringRef applicationID)
{
    (void)preference_require_string(key, "key", __func__);
    set_value(find_domain(applicationID, kCFPreferencesCurrentUser, kCFPreferencesAnyHost, __func__), key, value, __func__);
}

void CFPreferencesSetValue(CFStringRef key, CFPropertyListRef value, CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
{
    (void)preference_require_string(key, "key", __func__);
    set_value(find_domain(applicationID, userName, hostName, __func__), key, value, __func__);
}

CFPropertyListRef CFPreferencesCopyValue(CFStringRef key, CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
{
    (void)preference_require_string(key, "key", __func__);
    struct preference_domain *domain = find_domain(applicationID, userName, hostName, __func__);

    return domain ? preference_domain_copy_value(domain, key) : NULL;
}

CFDictionaryRef CFPreferencesCopyMultiple(CFArrayRef keysToFetch, CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
{
    struct preference_domain *domain = find_domain(applicationID, userName, hostName, __func__);
    CFDictionaryRef all = domain ? preference_domain_copy_all(domain) : NULL;

    if (!all || !keysToFetch) {
        return all ? all : CFDictionaryCreate(NULL, NULL, NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    }
    CFMutableDictionaryRef some = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    for (CFIndex i = 0; some && i < CFArrayGetCount(keysToFetch); i++) {
        CFStringRef key = preference_require_string(CFArrayGetValueAtIndex(keysToFetch, i), "key", __func__);
        const void *value = CFDictionaryGetValue(all, key);

        if (value) {
            CFDictionarySetValue(some, key, value);
        }
    }
    CFRelease(all);
    return some;
}

void CFPreferencesSetMultiple(CFDictionaryRef keysToSet, CFArrayRef keysToRemove, CFStringRef applicationID, CFStringRef userName,
                              CFStringRef hostName)
{
    struct preference_domain *domain = find_domain(applicationID, userName, hostName, __func__);
    CFIndex count = keysToSet ? CFDictionaryGetCount(keysToSet) : 0;
    const void **pairs = calloc((size_t)count * 2 + 1, sizeof *pairs);

    for (CFIndex i = 0; keysToRemove && i < CFArrayGetCount(keysToRemove); i++) {
        set_value(domain, CFArrayGetValueAtIndex(keysToRemove, i), NULL, __func__);
    }
    if (count > 0 && pairs) {
        CFDictionaryGetKeysAndValues(keysToSet, pairs, pairs + count);
        for (CFIndex i = 0; i < count; i++) {
            set_value(domain, pairs[i], pairs[count + i], __func__);
        }
    } else if (count > 0) {
        say_no_memory(__func__);
    }
    free(pairs);
}

Boolean CFPreferencesSynchronize(CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
{
    struct preference_domain *domain = find_domain(applicationID, userName, hostName, __func__);

    return domain && preference_domain_synchronize(domain);
}

/* ---- lists ---- */

CFArrayRef CFPreferencesCopyKeyList(CFStringRef applicationID, CFStringRef userName, CFStringRef hostName)
{
    CFDictionaryRef all = CFPreferencesCopyMultiple(NULL, applicationID, userName, hostName);
    CFIndex count = all ? CFDictionaryGetCount(all) : 0;
    const void **keys = count > 0 ? calloc((size_t)count, sizeof *keys) : NULL;
    CFArrayRef list = NULL;

    if (keys) {
        CFDictionaryGetKeysAndValues(all, keys, NULL);
        list = CFArrayCreate(NULL, keys, count, &kCFTypeArrayCallBacks);
    }
    free(keys);
    if (all) {
        CFRelease(all);
    }
    return list;
}

static void list_files(DIR *folder, CFMutableArrayRef list)
{
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        CFStringRef name = preference_name_create_of_file(entry->d_name);

        if (name) {
            CFArrayAppendValue(list, name);
            CFRelease(name);
        }
    }
}

CFArrayRef CFPreferencesCopyApplicationList(CFStringRef userName, CFStringRef hostName)
{
    struct preference_place place;
    char path[PATH_MAX];
    int cancel_state;

    if (!preference_place_find(kCFPreferencesAnyApplication, userName, hostName, __func__, &place) ||
        !preference_place_folder(&place, path)) {
        return NULL;
    }
    CFMutableArrayRef list = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    DIR *folder = list ? opendir(path) : NULL;
    if (folder) {
        list_files(folder, list);
        (void)closedir(folder);
    }
    (void)pthread_setcancelstate(cancel_state, NULL);
    if (list && CFArrayGetCount(list) == 0) {
        CFRelease(list);
        list = NULL;
    }
    return list;
}

/* ---- arguments ---- */

/* "-name", but not "-5", "-" or "--name". */
static bool is_key(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0' && argument[1] != '-' && !strchr(".0123456789", argument[1]);
}

/* A property list, or else the text itself, in the system's memory; NULL if it is no UTF-8. */
static CFTypeRef create_value(const char *text)
{
    CFDataRef data = CFDataCreate(kCFAllocatorSystemDefault, (const UInt8 *)text, (CFIndex)strlen(text));
    bool is_marked = text[strspn(text, " \t\n")] != '\0' && strchr("{(<\"", text[strspn(text, " \t\n")]);
    CFTypeRef value =
        data && is_marked ? CFPropertyListCreateWithData(kCFAllocatorSystemDefault, data, kCFPropertyListImmutable, NULL, NULL) : NULL;

    if (data) {
        CFRelease(data);
    }
    return value ? value : CFStringCreateWithCString(kCFAllocatorSystemDefault, text, kCFStringEncodingUTF8);
}

static void put_argument(CFMutableDictionaryRef dictionary, const char *name, const char *text)
{
    CFStringRef key = CFStringCreateWithCString(kCFAllocatorSystemDefault, name, kCFStringEncodingUTF8);
    CFTypeRef value = key ? create_value(text) : NULL;

    if (value) {
        CFDictionarySetValue(dictionary, key, value);
        CFRelease(value);
    }
    if (key) {
        CFRelease(key);
    }
}

void CRLPreferencesSetArguments(int count, char *const *arguments)
{
    CFMutableDictionaryRef dictionary =
        CFDictionaryCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    int i = 1;

    while (dictionary && i < count && strcmp(arguments[i], "--") != 0) {
        bool is_pair = is_key(arguments[i]) && i + 1 < count && strcmp(arguments[i + 1], "--") != 0 && !is_key(arguments[i + 1]);

        if (is_pair) {
            put_argument(dictionary, arguments[i] + 1, arguments[i + 1]);
        }
        i += is_pair ? 2 : 1;
    }
    preference_arguments_set(dictionary);
    if (dictionary) {
        CFRelease(dictionary);
    }
}
