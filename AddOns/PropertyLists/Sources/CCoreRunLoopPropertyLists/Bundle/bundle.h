/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles: folders with Info.plist, resources and a program or library. A bundle reads its Info.plist once, when it is made; all else is
 * looked for when it is asked for. The bundles that a program has made stay, one for each path: so what the calls lend stays, too.
 *
 * Any thread. The fork lock guards the list and what a bundle keeps of its files; the program's code never runs under it.
 */
#ifndef CRL_PLIST_BUNDLE_H
#define CRL_PLIST_BUNDLE_H

#include "plist_link_names.h"

#include "Bundle/bundle_layout.h"
#include "CRLAddOn.h"
#include "CoreFoundation/CFBundle.h"
#include "CoreFoundation/CoreFoundation.h"
#include "fork_lock.h"

struct bundle {
    CRLObjectHeader header;
    char *root; /* its folder, absolute, without a slash at the end; constant, as all but what is guarded */
    enum bundle_layout layout;
    CFDictionaryRef info; /* of its Info.plist, and the number of its version if it has one */
    UInt32 version;
    CFDictionaryRef local_info GUARDED_BY(the_fork_lock); /* or NULL: none, or not read */
    CFMutableDictionaryRef tables GUARDED_BY(the_fork_lock); /* of strings, by name; NULL before the first */
    void *handle GUARDED_BY(the_fork_lock); /* of dlopen, or NULL */
};

/* Stops the process with a message for what is no bundle. */
struct bundle *bundle_require(CFBundleRef bundle, const char *function);

/* Makes a bundle that is in no list. NULL: there is no such folder, or no memory. */
struct bundle *bundle_create(CFAllocatorRef allocator, const char *root);
/* The bundle of the list with this folder, which the caller releases: it is made and listed if it is not there. NULL as above. */
struct bundle *bundle_find_or_create(CFAllocatorRef allocator, const char *root);

/* Of the list: the newest one of an identifier, borrowed; or NULL. */
struct bundle *bundle_find_identified(CFStringRef identifier);
/* All of the list, in the order in which they came, borrowed for good. NULL without memory. */
CFArrayRef bundle_list(void);

/* The value of its Info.plist if it is a string, borrowed; or NULL. */
CFStringRef bundle_info_string(const struct bundle *bundle, CFStringRef key);
/* The value as a plain name of a file. */
bool bundle_info_name(const struct bundle *bundle, CFStringRef key, char ret_name[NAME_MAX + 1]);

/* The absolute path of a URL, without a slash at the end. */
bool bundle_path_of_url(CFURLRef url, char ret_path[PATH_MAX]);
/* NULL without memory. The caller releases it. */
CFURLRef bundle_url_create(const char *path, bool is_folder);

#if defined(CRL_TESTING)
void bundles_give_back(void);
#endif

#endif
