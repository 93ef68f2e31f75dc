/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for resources (bundle_resources.h). */
#include "Bundle/bundle_resources.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Bundle/language.h"
#include "Bundle/main_bundle.h"

static const char folder_suffix[] = ".lproj";

/* ---- folders ---- */

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

struct name_list {
    char **names;
    size_t count;
    size_t capacity;
    bool lacks_memory;
};

static void name_list_free(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
    }
    free(list->names);
}

static void name_list_add(struct name_list *list, const char *name)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        char **names = realloc(list->names, capacity * sizeof *names);

        if (!names) {
            list->lacks_memory = true;
            return;
        }
        list->names = names;
        list->capacity = capacity;
    }
    list->names[list->count] = strdup(name);
    list->lacks_memory = list->lacks_memory || !list->names[list->count];
    list->count += list->names[list->count] != NULL;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t suffix_length = strlen(suffix);

    return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

/* The names in a folder that end so, sorted. A folder that is not there has none. False without memory. */
static bool list_folder(const char *path, const char *suffix, struct name_list *ret_list)
{
    int cancel_state;

    *ret_list = (struct name_list){0};
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry && !ret_list->lacks_memory; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && ends_with(entry->d_name, suffix)) {
            name_list_add(ret_list, entry->d_name);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
    (void)pthread_setcancelstate(cancel_state, NULL);
    if (ret_list->count > 1) {
        qsort(ret_list->names, ret_list->count, sizeof *ret_list->names, compare_names);
    }
    return !ret_list->lacks_memory;
}

/* ---- languages ---- */

static bool contains(CFArrayRef array, CFTypeRef value)
{
    return CFArrayContainsValue(array, CFRangeMake(0, CFArrayGetCount(array)), value);
}

static void append_new(CFMutableArrayRef array, CFTypeRef value)
{
    if (value && !contains(array, value)) {
        CFArrayAppendValue(array, value);
    }
}

/* Each of them once. Info.plist may name so many that a search of the array for each of them would not end. */
struct localizations {
    CFMutableArrayRef array;
    CFMutableSetRef set;
};

static void append_localization(const struct localizations *localizations, CFTypeRef name)
{
    if (name && !CFSetContainsValue(localizations->set, name)) {
        CFSetAddValue(localizations->set, name);
        CFArrayAppendValue(localizations->array, name);
    }
}

static void append_named(const struct localizations *localizations, const struct bundle *bundle)
{
    CFTypeRef named = CFDictionaryGetValue(bundle->info, kCFBundleLocalizationsKey);
    CFIndex count = named && CFGetTypeID(named) == CFArrayGetTypeID() ? CFArrayGetCount(named) : 0;

    for (CFIndex i = 0; i < count; i++) {
        CFTypeRef name = CFArrayGetValueAtIndex(named, i);

        append_localization(localizations, CFGetTypeID(name) == CFStringGetTypeID() ? name : NULL);
    }
}

static void append_listed(const struct localizations *localizations, const struct bundle *bundle)
{
    struct name_list list = {0};
    char path[PATH_MAX];

    if (bundle_layout_path(bundle->layout, bundle->root, bundle_resources, path) && list_folder(path, folder_suffix, &list)) {
        for (size_t i = 0; i < list.count; i++) {
            size_t length = strlen(list.names[i]) - strlen(folder_suffix);
            CFStringRef name = CFStringCreateWithBytes(NULL, (const UInt8 *)list.names[i], (CFIndex)length, kCFStringEncodingUTF8, false);

            append_localization(localizations, name);
            if (name) {
                CFRelease(name);
            }
        }
    }
    name_list_free(&list);
}

CFMutableArrayRef bundle_copy_localizations(const struct bundle *bundle)
{
    struct localizations localizations = {CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks),
                                          CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks)};

    if (localizations.array && localizations.set) {
        append_listed(&localizations, bundle);
        append_named(&localizations, bundle);
    } else if (localizations.array) {
        CFRelease(localizations.array);
        localizations.array = NULL;
    }
    if (localizations.set) {
        CFRelease(localizations.set);
    }
    return localizations.array;
}

/* What the main bundle shows to the user, other bundles show as well, unless it wants them to go their own way. */
static CFArrayRef copy_wanted(const struct bundle *bundle)
{
    CFArrayRef wanted = language_copy_wanted();
    const struct bundle *main = main_bundle_get();
    CFTypeRef is_mixed = main ? CFDictionaryGetValue(main->info, CFSTR("CFBundleAllowMixedLocalizations")) : NULL;

    if (!main || main == bundle || !wanted || is_mixed == kCFBooleanTrue) {
        return wanted;
    }
    CFMutableArrayRef there = bundle_copy_localizations(main);
    CFMutableArrayRef chosen = there ? language_choose(there, wanted) : NULL;
    bool is_bound = chosen && CFArrayGetCount(there) > 0;
    if (is_bound) {
        append_new(chosen, bundle_info_string(main, kCFBundleDevelopmentRegionKey));
        CFRelease(wanted);
        wanted = CFRetain(chosen);
    }
    if (there) {
        CFRelease(there);
    }
    if (chosen) {
        CFRelease(chosen);
    }
    return wanted;
}

CFMutableArrayRef bundle_copy_languages(const struct bundle *bundle)
{
    CFMutableArrayRef there = bundle_copy_localizations(bundle);
    CFArrayRef wanted = there ? copy_wanted(bundle) : NULL;
    CFMutableArrayRef chosen = wanted ? language_choose(there, wanted) : NULL;
    CFStringRef region = bundle_info_string(bundle, kCFBundleDevelopmentRegionKey);

    if (chosen) {
        append_new(chosen, contains(there, CFSTR("Base")) ? CFSTR("Base") : NULL);
        if (region) {
            CFArrayRef regions = CFArrayCreate(NULL, (const void **)&region, 1, &kCFTypeArrayCallBacks);
            CFMutableArrayRef own = regions ? language_choose(there, regions) : NULL;

            append_new(chosen, own && CFArrayGetCount(own) > 0 ? CFArrayGetValueAtIndex(own, 0) : NULL);
            if (own) {
                CFRelease(own);
            }
            if (regions) {
                CFRelease(regions);
            }
        }
        append_new(chosen, CFArrayGetCount(chosen) == 0 && CFArrayGetCount(there) > 0 ? CFArrayGetValueAtIndex(there, 0) : NULL);
    }
    if (wanted) {
        CFRelease(wanted);
    }
    if (there) {
        CFRelease(there);
    }
    return chosen;
}

/* ---- resources ---- */

/* A path that stays below where it begins; "" for NULL. */
static bool get_path(CFStringRef string, char ret_path[PATH_MAX])
{
    ret_path[0] = '\0';
    if (!string || CFStringGetLength(string) == 0) {
        return true;
    }
    if (!CFStringGetFileSystemRepresentation(string, ret_path, PATH_MAX) || ret_path[0] == '/') {
        return false;
    }
    for (const char *part = ret_path;;) {
        size_t length = strcspn(part, "/");

        if (length == 2 && memcmp(part, "..", 2) == 0) {
            return false;
        }
        if (part[length] == '\0') {
            return true;
        }
        part += length + 1;
    }
}

/* ".txt" of "txt" and of ".txt". */
static bool get_suffix(CFStringRef type, char ret_suffix[NAME_MAX + 1])
{
    char text[NAME_MAX + 1] = "";

    if (type && CFStringGetLength(type) > 0 && (!CFStringGetFileSystemRepresentation(type, text, NAME_MAX) || strchr(text, '/'))) {
        return false;
    }
    (void)snprintf(ret_suffix, NAME_MAX + 1, "%s%.*s", text[0] == '\0' || text[0] == '.' ? "" : ".", NAME_MAX - 1, text);
    return true;
}

/* The folder of the resources, or that of a language in it, with what is asked for in it. */
static bool get_folder(const struct bundle *bundle, CFTypeRef language, CFStringRef folder, char ret_path[PATH_MAX])
{
    char resources[PATH_MAX];
    char inner[PATH_MAX];
    char name[NAME_MAX + 1] = "";

    if (!bundle_layout_path(bundle->layout, bundle->root, bundle_resources, resources) || !get_path(folder, inner)) {
        return false;
    }
    if (language) {
        if (CFGetTypeID(language) != CFStringGetTypeID() || !CFStringGetFileSystemRepresentation(language, name, NAME_MAX - 8) ||
            !bundle_name_is_plain(name)) {
            return false;
        }
        memcpy(name + strlen(name), folder_suffix, sizeof folder_suffix);
    }
    char base[PATH_MAX];
    return bundle_path_join(resources, name, base) && bundle_path_join(base, inner, ret_path);
}

static bool find_in(const char *folder, const char *name, const char *suffix, char ret_path[PATH_MAX])
{
    struct name_list list = {0};
    char leaf[PATH_MAX + NAME_MAX];

    if (name) {
        (void)snprintf(leaf, sizeof leaf, "%s%s", name, suffix);
        return bundle_path_join(folder, leaf, ret_path) && access(ret_path, F_OK) == 0;
    }
    bool is_found = list_folder(folder, suffix, &list) && list.count > 0 && bundle_path_join(folder, list.names[0], ret_path);
    name_list_free(&list);
    return is_found;
}

bool bundle_resource_find(const struct bundle *bundle, const struct resource *resource, CFArrayRef languages, char ret_path[PATH_MAX])
{
    char suffix[NAME_MAX + 1];
    char name[PATH_MAX];
    char folder[PATH_MAX];
    bool has_name = resource->name && CFStringGetLength(resource->name) > 0;
    bool is_found = false;

    if (!get_suffix(resource->type, suffix) || !get_path(resource->name, name)) {
        return false;
    }
    for (CFIndex i = -1; !is_found && i < CFArrayGetCount(languages); i++) {
        is_found = get_folder(bundle, i < 0 ? NULL : CFArrayGetValueAtIndex(languages, i), resource->folder, folder) &&
                   find_in(folder, has_name ? name : NULL, suffix, ret_path);
    }
    return is_found;
}

/* False without memory. */
static bool append_urls(CFMutableArrayRef urls, const char *folder, const char *suffix)
{
    struct name_list list = {0};
    char path[PATH_MAX];
    bool is_done = list_folder(folder, suffix, &list);

    for (size_t i = 0; is_done && i < list.count; i++) {
        if (bundle_path_join(folder, list.names[i], path)) {
            CFURLRef url = bundle_url_create(path, bundle_folder_exists(path));

            is_done = url;
            if (url) {
                CFArrayAppendValue(urls, url);
                CFRelease(url);
            }
        }
    }
    name_list_free(&list);
    return is_done;
}

CFMutableArrayRef bundle_resource_copy_all(const struct bundle *bundle, const struct resource *resource, CFArrayRef languages)
{
    CFMutableArrayRef urls = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    char suffix[NAME_MAX + 1];
    char folder[PATH_MAX];
    bool is_done = urls;

    if (!urls || !get_suffix(resource->type, suffix)) {
        return urls;
    }
    for (CFIndex i = -1; is_done && i < CFArrayGetCount(languages); i++) {
        if (get_folder(bundle, i < 0 ? NULL : CFArrayGetValueAtIndex(languages, i), resource->folder, folder)) {
            is_done = append_urls(urls, folder, suffix);
        }
    }
    if (!is_done) {
        CFRelease(urls);
    }
    return is_done ? urls : NULL;
}
