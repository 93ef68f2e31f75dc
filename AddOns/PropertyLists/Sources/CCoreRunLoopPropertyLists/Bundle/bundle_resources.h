/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the resources of a bundle, in the order of its languages. Any thread; nothing is kept. */
#ifndef CRL_PLIST_BUNDLE_RESOURCES_H
#define CRL_PLIST_BUNDLE_RESOURCES_H

#include "plist_link_names.h"

#include "Bundle/bundle.h"

/* The names of its folders `*.lproj`, sorted, and those that Info.plist names. NULL without memory. The caller releases it. */
CFMutableArrayRef bundle_copy_localizations(const struct bundle *bundle);

/*
 * The names of its localizations in which resources are looked for: those that the user wants, as the main bundle has them; "Base"; and
 * that of its developers. NULL without memory. The caller releases it.
 */
CFMutableArrayRef bundle_copy_languages(const struct bundle *bundle);

/* What is looked for. */
struct resource {
    CFStringRef name; /* without its type; NULL for any */
    CFStringRef type; /* with a full stop or without; NULL for none, or with any name for any */
    CFStringRef folder; /* in the resources, or NULL */
};

/* The first file, of the resources for all languages or else of the languages. False: there is none. */
bool bundle_resource_find(const struct bundle *bundle, const struct resource *resource, CFArrayRef languages, char ret_path[PATH_MAX]);
/* The URLs of all files of a type. NULL without memory. The caller releases it. */
CFMutableArrayRef bundle_resource_copy_all(const struct bundle *bundle, const struct resource *resource, CFArrayRef languages);

#endif
