/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles and their list (bundle.h). */
#include "Bundle/bundle.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Bundle/bundle_version.h"
#include "File/plist_file.h"
#include "Support/uncancelled.h"

const CFStringRef kCFBundleInfoDictionaryVersionKey = CFSTR("CFBundleInfoDictionaryVersion");
const CFStringRef kCFBundleExecutableKey = CFSTR("CFBundleExecutable");
const CFStringRef kCFBundleIdentifierKey = CFSTR("CFBundleIdentifier");
const CFStringRef kCFBundleVersionKey = CFSTR("CFBundleVersion");
const CFStringRef kCFBundleDevelopmentRegionKey = CFSTR("CFBundleDevelopmentRegion");
const CFStringRef kCFBundleNameKey = CFSTR("CFBundleName");
const CFStringRef kCFBundleLocalizationsKey = CFSTR("CFBundleLocalizations");

static _Atomic CFTypeID bundle_type;
static CFMutableArrayRef listed GUARDED_BY(the_fork_lock); /* NULL before the first bundle */
static CFMutableArrayRef lent GUARDED_BY(the_fork_lock); /* the arrays that bundle_list has lent, the last one of which may be valid */

static void release_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

/* ---- the type ---- */

static void finalize(CFTypeRef object)
{
    struct bundle *bundle = (struct bundle *)(uintptr_t)object;
    int cancel_state = fork_lock_take();
    CFTypeRef local_info = bundle->local_info;
    CFTypeRef tables = bundle->tables;
    void *handle = bundle->handle;

    fork_lock_drop(cancel_state);
    free(bundle->root);
    release_any(bundle->info);
    release_any(local_info);
    release_any(tables);
    if (handle) {
        (void)dlclose(handle);
    }
}

static CFStringRef copy_description(CFTypeRef object)
{
    const struct bundle *bundle = object;

    return CFStringCreateWithFormat(NULL, NULL, CFSTR("CFBundle %p <%s>"), object, bundle->root[0] != '\0' ? bundle->root : "/");
}

CFTypeID CFBundleGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "CFBundle", .finalize = finalize, .copyDescription = copy_description};
    CFTypeID type = atomic_load_explicit(&bundle_type, memory_order_acquire);

    if (type == 0) {
        CFTypeID registered = CRLTypeRegister(&functions);

        /* Of two threads one registers in vain, which costs a place among the types. */
        if (atomic_compare_exchange_strong_explicit(&bundle_type, &type, registered, memory_order_acq_rel, memory_order_acquire)) {
            type = registered;
        }
    }
    return type;
}

struct bundle *bundle_require(CFBundleRef bundle, const char *function)
{
    if (!bundle || CFGetTypeID(bundle) != CFBundleGetTypeID()) {
        (void)fprintf(stderr, "CoreRunLoop: %s: the bundle is %s\n", function, bundle ? "another object" : "NULL");
        abort();
    }
    return (struct bundle *)(void *)bundle;
}

/* ---- paths ---- */

bool bundle_path_of_url(CFURLRef url, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    char folder[PATH_MAX];

    if (!url || !CFURLGetFileSystemRepresentation(url, true, (UInt8 *)path, sizeof path) || path[0] == '\0') {
        return false;
    }
    if (path[0] == '/') {
        memcpy(ret_path, path, sizeof path);
    } else if (!getcwd(folder, sizeof folder) || !bundle_path_join(folder, path, ret_path)) {
        return false;
    }
    for (size_t length = strlen(ret_path); length > 0 && ret_path[length - 1] == '/'; length--) {
        ret_path[length - 1] = '\0';
    }
    return true;
}

CFURLRef bundle_url_create(const char *path, bool is_folder)
{
    const char *whole = path[0] != '\0' ? path : "/";

    return CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)whole, (CFIndex)strlen(whole), is_folder);
}

/* ---- Info.plist ---- */

/*
 * A line on stderr says that the file is damaged, or may not be read; then nothing is in it. NULL: it could not be read now, for lack of
 * memory or descriptors.
 */
static CFDictionaryRef read_info(const struct bundle *bundle)
{
    struct read_fault fault = {{0}};
    CFDictionaryRef info = NULL;
    char path[PATH_MAX];
    bool has_path = bundle_layout_path(bundle->layout, bundle->root, bundle_info, path);
    enum plist_file_state state = has_path ? plist_file_read(path, &info, &fault) : plist_file_is_absent;

    if (state == plist_file_is_damaged || state == plist_file_is_unknown) {
        (void)uncancelled(fprintf(stderr, "CoreRunLoop: bundles: the file %s is not used. %s\n", path, fault.words));
    }
    if (state == plist_file_is_unknown && access(path, R_OK) == 0) {
        return NULL;
    }
    return info ? info : CFDictionaryCreate(NULL, NULL, NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

/* Adds the number of the version, as Core Foundation does. Takes the dictionary. */
static CFDictionaryRef add_version(CFDictionaryRef info, UInt32 *ret_version)
{
    CFTypeRef text = info ? CFDictionaryGetValue(info, kCFBundleVersionKey) : NULL;
    SInt32 number = (SInt32)bundle_version_parse(text);
    CFMutableDictionaryRef more = text ? CFDictionaryCreateMutableCopy(NULL, 0, info) : NULL;
    CFNumberRef value = more ? CFNumberCreate(NULL, kCFNumberSInt32Type, &number) : NULL;
    CFDictionaryRef all = NULL;

    *ret_version = (UInt32)number;
    if (!text) {
        return info;
    }
    if (value) {
        CFDictionarySetValue(more, CFSTR("CFBundleNumericVersion"), value);
        all = CFDictionaryCreateCopy(NULL, more);
    }
    release_any(value);
    release_any(more);
    CFRelease(info);
    return all;
}

CFStringRef bundle_info_string(const struct bundle *bundle, CFStringRef key)
{
    CFTypeRef value = CFDictionaryGetValue(bundle->info, key);

    return value && CFGetTypeID(value) == CFStringGetTypeID() ? value : NULL;
}

bool bundle_info_name(const struct bundle *bundle, CFStringRef key, char ret_name[NAME_MAX + 1])
{
    CFStringRef value = bundle_info_string(bundle, key);

    return value && CFStringGetFileSystemRepresentation(value, ret_name, NAME_MAX + 1) && bundle_name_is_plain(ret_name);
}

/* ---- making ---- */

struct bundle *bundle_create(CFAllocatorRef allocator, const char *root)
{
    struct bundle *bundle =
        bundle_folder_exists(root[0] != '\0' ? root : "/") ? CRLTypeCreateObject(allocator, CFBundleGetTypeID(), sizeof *bundle) : NULL;

    if (!bundle) {
        return NULL;
    }
    bundle->root = strdup(root);
    bundle->layout = bundle_layout_find(root);
    bundle->info = bundle->root ? add_version(read_info(bundle), &bundle->version) : NULL;
    if (!bundle->info) {
        CFRelease(bundle);
        return NULL;
    }
    return bundle;
}

REQUIRES(the_fork_lock) static struct bundle *find_listed(const char *root)
{
    CFIndex count = listed ? CFArrayGetCount(listed) : 0;

    for (CFIndex i = 0; i < count; i++) {
        struct bundle *bundle = (struct bundle *)(uintptr_t)CFArrayGetValueAtIndex(listed, i);

        if (strcmp(bundle->root, root) == 0) {
            return bundle;
        }
    }
    return NULL;
}

/* Returns the bundle of the list, with a reference for the caller. Puts the new one there if there is none, which it borrows. */
static struct bundle *put_into_list(struct bundle *made, const char *root)
{
    CFMutableArrayRef list = made ? CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks) : NULL;
    int cancel_state = fork_lock_take();
    struct bundle *bundle = find_listed(root);

    if (!bundle && made && (listed || list)) {
        if (!listed) {
            listed = list;
            list = NULL;
        }
        CFIndex count = CFArrayGetCount(listed);
        CFArrayAppendValue(listed, made);
        bundle = CFArrayGetCount(listed) > count ? made : NULL;
    }
    if (bundle) {
        (void)CFRetain(bundle);
    }
    fork_lock_drop(cancel_state);
    release_any(list);
    return bundle;
}

struct bundle *bundle_find_or_create(CFAllocatorRef allocator, const char *root)
{
    struct bundle *bundle = bundle_folder_exists(root[0] != '\0' ? root : "/") ? put_into_list(NULL, root) : NULL;

    if (!bundle) {
        struct bundle *made = bundle_create(allocator, root);

        bundle = made ? put_into_list(made, root) : NULL;
        release_any(made);
    }
    return bundle;
}

struct bundle *bundle_find_identified(CFStringRef identifier)
{
    struct bundle *found = NULL;
    int cancel_state = fork_lock_take();
    CFIndex count = listed ? CFArrayGetCount(listed) : 0;

    for (CFIndex i = 0; i < count; i++) {
        struct bundle *bundle = (struct bundle *)(uintptr_t)CFArrayGetValueAtIndex(listed, i);
        CFStringRef its = bundle_info_string(bundle, kCFBundleIdentifierKey);

        if (its && CFEqual(its, identifier) && (!found || bundle->version >= found->version)) {
            found = bundle;
        }
    }
    fork_lock_drop(cancel_state);
    return found;
}

CFArrayRef bundle_list(void)
{
    CFMutableArrayRef arrays = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    int cancel_state = fork_lock_take();
    CFIndex count = lent ? CFArrayGetCount(lent) : 0;
    CFArrayRef last = count > 0 ? CFArrayGetValueAtIndex(lent, count - 1) : NULL;

    if (listed && arrays && (!last || CFArrayGetCount(last) != CFArrayGetCount(listed))) {
        last = CFArrayCreateCopy(kCFAllocatorSystemDefault, listed);
        if (!lent) {
            lent = arrays;
            arrays = NULL;
        }
        if (last) {
            CFArrayAppendValue(lent, last);
            CFRelease(last);
            last = CFArrayGetCount(lent) > count ? last : NULL;
        }
    }
    fork_lock_drop(cancel_state);
    release_any(arrays);
    return last;
}

#if defined(CRL_TESTING)
void bundles_give_back(void)
{
    int cancel_state = fork_lock_take();
    CFTypeRef arrays = lent;
    CFTypeRef list = listed;

    lent = NULL;
    listed = NULL;
    fork_lock_drop(cancel_state);
    release_any(arrays);
    release_any(list);
}
#endif
