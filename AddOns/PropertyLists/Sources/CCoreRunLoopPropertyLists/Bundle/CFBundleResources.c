/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of bundles: resources, strings and localizations (CFBundle.h). Any thread. */
#include "Bundle/bundle.h"
#include "Bundle/bundle_resources.h"
#include "Bundle/bundle_strings.h"
#include "Bundle/language.h"
#include "Bundle/main_bundle.h"

/* The one language that is asked for, or else the bundle's. */
static CFArrayRef copy_languages(const struct bundle *bundle, CFStringRef localization)
{
    return localization ? CFArrayCreate(NULL, (const void **)&localization, 1, &kCFTypeArrayCallBacks) : bundle_copy_languages(bundle);
}

static CFURLRef copy_url(const struct bundle *bundle, const struct resource *resource, CFStringRef localization)
{
    CFArrayRef languages = copy_languages(bundle, localization);
    char path[PATH_MAX];
    bool is_found = languages && bundle_resource_find(bundle, resource, languages, path);

    if (languages) {
        CFRelease(languages);
    }
    return is_found ? bundle_url_create(path, bundle_folder_exists(path)) : NULL;
}

static CFArrayRef copy_urls(const struct bundle *bundle, CFStringRef type, CFStringRef folder, CFStringRef localization)
{
    const struct resource resource = {NULL, type, folder};
    CFArrayRef languages = copy_languages(bundle, localization);
    CFArrayRef urls = languages ? bundle_resource_copy_all(bundle, &resource, languages) : NULL;

    if (languages) {
        CFRelease(languages);
    }
    return urls;
}

CFURLRef CFBundleCopyResourceURL(CFBundleRef bundle, CFStringRef resourceName, CFStringRef resourceType, CFStringRef subDirName)
{
    const struct resource resource = {resourceName, resourceType, subDirName};

    return copy_url(bundle_require(bundle, __func__), &resource, NULL);
}

CFURLRef CFBundleCopyResourceURLForLocalization(CFBundleRef bundle, CFStringRef resourceName, CFStringRef resourceType,
                                                CFStringRef subDirName, CFStringRef localizationName)
{
    const struct resource resource = {resourceName, resourceType, subDirName};

    return copy_url(bundle_require(bundle, __func__), &resource, localizationName);
}

CFArrayRef CFBundleCopyResourceURLsOfType(CFBundleRef bundle, CFStringRef resourceType, CFStringRef subDirName)
{
    return copy_urls(bundle_require(bundle, __func__), resourceType, subDirName, NULL);
}

CFArrayRef CFBundleCopyResourceURLsOfTypeForLocalization(CFBundleRef bundle, CFStringRef resourceType, CFStringRef subDirName,
                                                         CFStringRef localizationName)
{
    return copy_urls(bundle_require(bundle, __func__), resourceType, subDirName, localizationName);
}

/* A bundle that is in no list, or NULL. */
static struct bundle *create_at(CFURLRef url)
{
    char path[PATH_MAX];

    return bundle_path_of_url(url, path) ? bundle_create(NULL, path) : NULL;
}

CFURLRef CFBundleCopyResourceURLInDirectory(CFURLRef bundleURL, CFStringRef resourceName, CFStringRef resourceType, CFStringRef subDirName)
{
    const struct resource resource = {resourceName, resourceType, subDirName};
    struct bundle *bundle = create_at(bundleURL);
    CFURLRef url = bundle ? copy_url(bundle, &resource, NULL) : NULL;

    if (bundle) {
        CFRelease(bundle);
    }
    return url;
}

CFArrayRef CFBundleCopyResourceURLsOfTypeInDirectory(CFURLRef bundleURL, CFStringRef resourceType, CFStringRef subDirName)
{
    struct bundle *bundle = create_at(bundleURL);
    CFArrayRef urls = bundle ? copy_urls(bundle, resourceType, subDirName, NULL) : NULL;

    if (bundle) {
        CFRelease(bundle);
    }
    return urls;
}

/* ---- strings ---- */

CFStringRef CFBundleCopyLocalizedString(CFBundleRef bundle, CFStringRef key, CFStringRef value, CFStringRef tableName)
{
    struct bundle *own = bundle_require(bundle, __func__);
    bool has_name = tableName && CFStringGetLength(tableName) > 0;
    CFDictionaryRef table = key ? bundle_strings_copy(own, has_name ? tableName : CFSTR("Localizable")) : NULL;
    CFTypeRef found = table ? CFDictionaryGetValue(table, key) : NULL;

    if (!found || CFGetTypeID(found) != CFStringGetTypeID()) {
        found = value && (!key || CFStringGetLength(value) > 0) ? value : key;
    }
    if (found) {
        (void)CFRetain(found);
    }
    if (table) {
        CFRelease(table);
    }
    return found;
}

/* ---- localizations ---- */

CFArrayRef CFBundleCopyBundleLocalizations(CFBundleRef bundle)
{
    return bundle_copy_localizations(bundle_require(bundle, __func__));
}

CFArrayRef CFBundleCopyLocalizationsForURL(CFURLRef url)
{
    struct bundle *bundle = create_at(url);
    CFArrayRef names = bundle ? bundle_copy_localizations(bundle) : NULL;

    if (bundle) {
        CFRelease(bundle);
    }
    return names;
}

/* If none fits: `other` if it is there, or else the first one, or else "en". Takes the array, which may be NULL. */
static CFArrayRef choose(CFArrayRef there, CFArrayRef wanted, CFStringRef other)
{
    CFMutableArrayRef chosen = wanted ? language_choose(there, wanted) : NULL;
    CFIndex count = CFArrayGetCount(there);

    if (chosen && CFArrayGetCount(chosen) == 0) {
        bool is_there = other && CFArrayContainsValue(there, CFRangeMake(0, count), other);

        CFArrayAppendValue(chosen, is_there ? other : count > 0 ? CFArrayGetValueAtIndex(there, 0) : CFSTR("en"));
    }
    if (wanted) {
        CFRelease(wanted);
    }
    return chosen;
}

CFArrayRef CFBundleCopyPreferredLocalizationsFromArray(CFArrayRef locArray)
{
    const struct bundle *bundle = main_bundle_get();

    return locArray ? choose(locArray, language_copy_wanted(), bundle ? bundle_info_string(bundle, kCFBundleDevelopmentRegionKey) : NULL)
                    : NULL;
}

CFArrayRef CFBundleCopyLocalizationsForPreferences(CFArrayRef locArray, CFArrayRef prefArray)
{
    return locArray ? choose(locArray, prefArray ? CFRetain(prefArray) : language_copy_wanted(), NULL) : NULL;
}
