/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of bundles: making them, and what they are (CFBundle.h). Any thread. */
#include "CoreFoundation/CFBundle.h"

#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "Bundle/bundle.h"
#include "Bundle/bundle_strings.h"
#include "Bundle/bundle_version.h"
#include "Bundle/main_bundle.h"
#include "File/plist_file.h"

static CFBundleRef public_bundle(struct bundle *bundle)
{
    return (CFBundleRef)(void *)bundle;
}

/* ---- making ---- */

CFBundleRef CFBundleGetMainBundle(void)
{
    return public_bundle(main_bundle_get());
}

CFBundleRef CFBundleCreate(CFAllocatorRef allocator, CFURLRef bundleURL)
{
    char path[PATH_MAX];

    return bundle_path_of_url(bundleURL, path) ? public_bundle(bundle_find_or_create(allocator, path)) : NULL;
}

static bool has_type(const char *name, const char *type)
{
    const char *dot = strrchr(name, '.');

    return name[0] != '.' && (type[0] == '\0' || (dot && strcmp(dot + 1, type) == 0));
}

static void append_bundles(CFMutableArrayRef bundles, CFAllocatorRef allocator, const char *path, const char *type)
{
    char inner[PATH_MAX];
    DIR *folder = opendir(path);

    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (has_type(entry->d_name, type) && bundle_path_join(path, entry->d_name, inner)) {
            struct bundle *bundle = bundle_find_or_create(allocator, inner);

            if (bundle) {
                CFArrayAppendValue(bundles, bundle);
                CFRelease(bundle);
            }
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
}

CFArrayRef CFBundleCreateBundlesFromDirectory(CFAllocatorRef allocator, CFURLRef directoryURL, CFStringRef bundleType)
{
    char path[PATH_MAX];
    char type[NAME_MAX + 1] = "";
    int cancel_state;
    bool has_path =
        bundle_path_of_url(directoryURL, path) && (!bundleType || CFStringGetFileSystemRepresentation(bundleType, type, sizeof type));
    CFMutableArrayRef bundles = has_path ? CFArrayCreateMutable(allocator, 0, &kCFTypeArrayCallBacks) : NULL;

    if (bundles) {
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        append_bundles(bundles, allocator, path, type);
        (void)pthread_setcancelstate(cancel_state, NULL);
    }
    return bundles;
}

CFBundleRef CFBundleGetBundleWithIdentifier(CFStringRef bundleID)
{
    (void)main_bundle_get(); /* so that it is among them */
    return bundleID ? public_bundle(bundle_find_identified(bundleID)) : NULL;
}

CFArrayRef CFBundleGetAllBundles(void)
{
    (void)main_bundle_get();
    return bundle_list();
}

/* ---- its folder ---- */

static CFURLRef copy_part(CFBundleRef bundle, enum bundle_part part, const char *function)
{
    const struct bundle *own = bundle_require(bundle, function);
    char path[PATH_MAX];

    return bundle_layout_path(own->layout, own->root, part, path) ? bundle_url_create(path, true) : NULL;
}

CFURLRef CFBundleCopyBundleURL(CFBundleRef bundle)
{
    return bundle_url_create(bundle_require(bundle, __func__)->root, true);
}

CFURLRef CFBundleCopySupportFilesDirectoryURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_support, __func__);
}

CFURLRef CFBundleCopyResourcesDirectoryURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_resources, __func__);
}

CFURLRef CFBundleCopyPrivateFrameworksURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_private_frameworks, __func__);
}

CFURLRef CFBundleCopySharedFrameworksURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_shared_frameworks, __func__);
}

CFURLRef CFBundleCopySharedSupportURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_shared_support, __func__);
}

CFURLRef CFBundleCopyBuiltInPlugInsURL(CFBundleRef bundle)
{
    return copy_part(bundle, bundle_plug_ins, __func__);
}

/* ---- its information ---- */

CFDictionaryRef CFBundleGetInfoDictionary(CFBundleRef bundle)
{
    return bundle_require(bundle, __func__)->info;
}

CFDictionaryRef CFBundleGetLocalInfoDictionary(CFBundleRef bundle)
{
    return bundle_strings_local_info(bundle_require(bundle, __func__));
}

CFTypeRef CFBundleGetValueForInfoDictionaryKey(CFBundleRef bundle, CFStringRef key)
{
    struct bundle *own = bundle_require(bundle, __func__);
    CFDictionaryRef local = key ? bundle_strings_local_info(own) : NULL;
    CFTypeRef value = local ? CFDictionaryGetValue(local, key) : NULL;

    return value || !key ? value : CFDictionaryGetValue(own->info, key);
}

CFStringRef CFBundleGetIdentifier(CFBundleRef bundle)
{
    return bundle_info_string(bundle_require(bundle, __func__), kCFBundleIdentifierKey);
}

UInt32 CFBundleGetVersionNumber(CFBundleRef bundle)
{
    return bundle_require(bundle, __func__)->version;
}

CFStringRef CFBundleGetDevelopmentRegion(CFBundleRef bundle)
{
    return bundle_info_string(bundle_require(bundle, __func__), kCFBundleDevelopmentRegionKey);
}

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path);

    return length > strlen(ending) && strcmp(path + length - strlen(ending), ending) == 0;
}

/* Returns whether the bundle says what it is, in Info.plist or by its folder's name. */
static bool get_package_info(const struct bundle *bundle, UInt32 *packageType, UInt32 *packageCreator)
{
    UInt32 type = 'B' << 24 | 'N' << 16 | 'D' << 8 | 'L';
    UInt32 creator = '?' << 24 | '?' << 16 | '?' << 8 | '?';
    bool is_said = bundle_code_parse(CFDictionaryGetValue(bundle->info, CFSTR("CFBundlePackageType")), &type);

    bool has_creator = bundle_code_parse(CFDictionaryGetValue(bundle->info, CFSTR("CFBundleSignature")), &creator);
    if (!is_said && has_ending(bundle->root, ".app")) {
        type = 'A' << 24 | 'P' << 16 | 'P' << 8 | 'L';
        is_said = true;
    } else if (!is_said && has_ending(bundle->root, ".framework")) {
        type = 'F' << 24 | 'M' << 16 | 'W' << 8 | 'K';
        is_said = true;
    }
    if (packageType) {
        *packageType = type;
    }
    if (packageCreator) {
        *packageCreator = creator;
    }
    return is_said || has_creator;
}

void CFBundleGetPackageInfo(CFBundleRef bundle, UInt32 *packageType, UInt32 *packageCreator)
{
    (void)get_package_info(bundle_require(bundle, __func__), packageType, packageCreator);
}

Boolean CFBundleGetPackageInfoInDirectory(CFURLRef url, UInt32 *packageType, UInt32 *packageCreator)
{
    char path[PATH_MAX];
    struct bundle *bundle = bundle_path_of_url(url, path) ? bundle_create(NULL, path) : NULL;
    bool is_said = bundle && get_package_info(bundle, packageType, packageCreator);

    if (bundle) {
        CFRelease(bundle);
    }
    return is_said;
}

CFDictionaryRef CFBundleCopyInfoDictionaryForURL(CFURLRef url)
{
    struct read_fault fault = {{0}};
    CFDictionaryRef info = NULL;
    char path[PATH_MAX];
    char file[PATH_MAX];

    if (!bundle_path_of_url(url, path) || !bundle_folder_exists(path)) {
        return NULL;
    }
    if (bundle_layout_path(bundle_layout_find(path), path, bundle_info, file)) {
        (void)plist_file_read(file, &info, &fault);
    }
    return info ? info : CFDictionaryCreate(NULL, NULL, NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

CFDictionaryRef CFBundleCopyInfoDictionaryInDirectory(CFURLRef bundleURL)
{
    CFDictionaryRef info = CFBundleCopyInfoDictionaryForURL(bundleURL);

    return info ? info : CFDictionaryCreate(NULL, NULL, NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}
