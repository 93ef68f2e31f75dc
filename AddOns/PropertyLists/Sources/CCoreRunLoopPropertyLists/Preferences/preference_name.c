/* SPDX-License-Identifier: Apache-2.0 */
/* The files of preferences (preference_name.h). */
#define _GNU_SOURCE /* secure_getenv, program_invocation_short_name */
#include "Preferences/preference_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Bundle/main_bundle.h"
#include "CoreFoundation/CFPreferences.h"
#include "Support/uncancelled.h"

static const char any_application[] = ".GlobalPreferences";
static const char file_suffix[] = ".plist";

const CFStringRef kCFPreferencesAnyApplication = CFSTR("kCFPreferencesAnyApplication");
const CFStringRef kCFPreferencesCurrentApplication = CFSTR("kCFPreferencesCurrentApplication");
const CFStringRef kCFPreferencesAnyHost = CFSTR("kCFPreferencesAnyHost");
const CFStringRef kCFPreferencesCurrentHost = CFSTR("kCFPreferencesCurrentHost");
const CFStringRef kCFPreferencesAnyUser = CFSTR("kCFPreferencesAnyUser");
const CFStringRef kCFPreferencesCurrentUser = CFSTR("kCFPreferencesCurrentUser");

CFStringRef preference_require_string(CFTypeRef object, const char *noun, const char *function)
{
    if (!object || CFGetTypeID(object) != CFStringGetTypeID()) {
        (void)fprintf(stderr, "CoreRunLoop: %s: the %s is %s\n", function, noun, object ? "no string" : "NULL");
        abort();
    }
    return object;
}

/* ---- names ---- */

/* One part of a path that neither hides a file nor has control characters in it. */
static bool is_name(const char *bytes)
{
    if (bytes[0] == '\0' || bytes[0] == '.') {
        return false;
    }
    for (; *bytes; bytes++) {
        if (*bytes == '/' || (*bytes >= 0 && *bytes < ' ') || *bytes == 0x7F) {
            return false;
        }
    }
    return true;
}

/* A string with a NUL in it is no name, though its beginning may be one. */
static bool get_name(CFStringRef string, char bytes[preference_name_max + 1])
{
    CFIndex length = CFStringGetLength(string);
    CFIndex used = 0;

    if (CFStringGetBytes(string, CFRangeMake(0, length), kCFStringEncodingUTF8, 0, false, (UInt8 *)bytes, preference_name_max, &used) !=
        length) {
        return false;
    }
    bytes[used] = '\0';
    return strlen(bytes) == (size_t)used && is_name(bytes);
}

static bool get_application(CFStringRef string, char bytes[preference_name_max + 1])
{
    if (CFEqual(string, kCFPreferencesAnyApplication)) {
        (void)snprintf(bytes, preference_name_max + 1, "%s", any_application);
        return true;
    }
    if (!CFEqual(string, kCFPreferencesCurrentApplication)) {
        return get_name(string, bytes);
    }
    CFStringRef identifier = main_bundle_copy_identifier();
    bool is_identified = identifier && get_name(identifier, bytes);
    if (identifier) {
        CFRelease(identifier);
    }
    if (!is_identified) {
        (void)snprintf(bytes, preference_name_max + 1, "%s", program_invocation_short_name);
    }
    return is_name(bytes);
}

static bool get_host(CFStringRef string, char bytes[preference_name_max + 1])
{
    if (CFEqual(string, kCFPreferencesAnyHost)) {
        bytes[0] = '\0';
        return true;
    }
    if (!CFEqual(string, kCFPreferencesCurrentHost)) {
        return get_name(string, bytes);
    }
    return gethostname(bytes, preference_name_max) == 0 && is_name(bytes);
}

static bool is_refused(CFStringRef name, const char *noun, const char *function)
{
    char bytes[100] = "which is too long";

    (void)CFStringGetCString(name, bytes, sizeof bytes, kCFStringEncodingASCII);
    for (char *byte = bytes; *byte; byte++) {
        *byte = *byte < ' ' || *byte == 0x7F ? '?' : *byte;
    }
    (void)uncancelled(fprintf(stderr, "CoreRunLoop: %s: there are no preferences of the %s '%s'\n", function, noun, bytes));
    return false;
}

bool preference_place_find(CFStringRef application, CFStringRef user, CFStringRef host, const char *function,
                           struct preference_place *ret_place)
{
    (void)preference_require_string(application, "application", function);
    (void)preference_require_string(user, "user", function);
    (void)preference_require_string(host, "host", function);
    memset(ret_place, 0, sizeof *ret_place);
    ret_place->is_of_any_user = CFEqual(user, kCFPreferencesAnyUser);
    if (!ret_place->is_of_any_user && !CFEqual(user, kCFPreferencesCurrentUser)) {
        return is_refused(user, "user", function);
    }
    if (!get_host(host, ret_place->host)) {
        return is_refused(host, "host", function);
    }
    return get_application(application, ret_place->application) || is_refused(application, "application", function);
}

bool preference_place_is_same(const struct preference_place *one, const struct preference_place *other)
{
    return one->is_of_any_user == other->is_of_any_user && strcmp(one->application, other->application) == 0 &&
           strcmp(one->host, other->host) == 0;
}

/* ---- files ---- */

/* The first folder of a variable of the XDG base directories, which has to be an absolute path. */
static bool get_folder(const char *variable, char path[PATH_MAX])
{
    const char *value = secure_getenv(variable);
    size_t length = value ? strcspn(value, strcmp(variable, "XDG_CONFIG_DIRS") == 0 ? ":" : "") : 0;

    if (length == 0 || value[0] != '/' || length >= PATH_MAX) {
        return false;
    }
    memcpy(path, value, length);
    path[length] = '\0';
    return true;
}

static bool append(char path[PATH_MAX], const char *part1, const char *part2, const char *part3)
{
    size_t length = strlen(path);
    int count = snprintf(path + length, PATH_MAX - length, "%s%s%s", part1, part2, part3);

    return count >= 0 && (size_t)count < PATH_MAX - length;
}

bool preference_place_folder(const struct preference_place *place, char path[PATH_MAX])
{
    if (place->is_of_any_user) {
        if (!get_folder("XDG_CONFIG_DIRS", path)) {
            (void)snprintf(path, PATH_MAX, "/etc/xdg");
        }
    } else if (!get_folder("XDG_CONFIG_HOME", path) && !(get_folder("HOME", path) && append(path, "/.config", "", ""))) {
        return false;
    }
    return place->host[0] == '\0' ? append(path, "/", "", "") : append(path, "/ByHost/", place->host, "/");
}

bool preference_place_file(const struct preference_place *place, const char *prefix, const char *suffix, char path[PATH_MAX])
{
    return preference_place_folder(place, path) && append(path, prefix, place->application, file_suffix) && append(path, suffix, "", "");
}

CFStringRef preference_name_create_of_file(const char *name)
{
    size_t length = strlen(name);
    size_t suffix_length = sizeof file_suffix - 1;

    if (length <= suffix_length || strcmp(name + length - suffix_length, file_suffix) != 0) {
        return NULL;
    }
    length -= suffix_length;
    if (length == sizeof any_application - 1 && memcmp(name, any_application, length) == 0) {
        return CFRetain(kCFPreferencesAnyApplication);
    }
    return is_name(name) && length <= preference_name_max
               ? CFStringCreateWithBytes(kCFAllocatorSystemDefault, (const UInt8 *)name, (CFIndex)length, kCFStringEncodingUTF8, false)
               : NULL;
}
