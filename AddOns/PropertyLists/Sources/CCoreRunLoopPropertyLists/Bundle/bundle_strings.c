/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of strings (bundle_strings.h). */
#include "Bundle/bundle_strings.h"

#include <stdio.h>

#include "Bundle/bundle_resources.h"
#include "File/plist_file.h"
#include "Support/uncancelled.h"

enum { most_tables_with_empty_ones = 64 };

static void release_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

/* Returns NULL without memory, and then, too, when the file could not be read now: it is tried again. */
static CFDictionaryRef read_table(const struct bundle *bundle, CFStringRef name)
{
    const struct resource resource = {name, CFSTR("strings"), NULL};
    CFArrayRef languages = bundle_copy_languages(bundle);
    struct read_fault fault = {{0}};
    CFDictionaryRef table = NULL;
    char path[PATH_MAX];
    enum plist_file_state state = plist_file_is_absent;

    if (!languages) {
        return NULL;
    }
    if (bundle_resource_find(bundle, &resource, languages, path)) {
        state = plist_file_read(path, &table, &fault);
    }
    if (fault.words[0] != '\0') {
        (void)uncancelled(fprintf(stderr, "CoreRunLoop: bundles: the file %s is not used. %s\n", path, fault.words));
    }
    if (!table && state != plist_file_is_unknown) {
        table =
            CFDictionaryCreate(kCFAllocatorSystemDefault, NULL, NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    }
    CFRelease(languages);
    return table;
}

static CFDictionaryRef copy_kept(struct bundle *bundle, CFStringRef name)
{
    int cancel_state = fork_lock_take();
    CFDictionaryRef table = bundle->tables ? CFDictionaryGetValue(bundle->tables, name) : NULL;

    table = table ? CFRetain(table) : NULL;
    fork_lock_drop(cancel_state);
    return table;
}

/* Keeps a table, unless another thread has been faster. Names may come from strangers: of empty tables only some are kept. */
static void keep(struct bundle *bundle, CFStringRef name, CFDictionaryRef table)
{
    CFMutableStringRef own = CFStringCreateMutable(kCFAllocatorSystemDefault, 0); /* no code of the program is in it */
    CFMutableDictionaryRef tables =
        CFDictionaryCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    if (own && tables) {
        CFStringAppend(own, name);
        int cancel_state = fork_lock_take();
        if (!bundle->tables) {
            bundle->tables = tables;
            tables = NULL;
        }
        if (CFDictionaryGetCount(table) > 0 || CFDictionaryGetCount(bundle->tables) < most_tables_with_empty_ones) {
            CFDictionaryAddValue(bundle->tables, own, table);
        }
        fork_lock_drop(cancel_state);
    }
    release_any(own);
    release_any(tables);
}

CFDictionaryRef bundle_strings_copy(struct bundle *bundle, CFStringRef name)
{
    CFDictionaryRef table = copy_kept(bundle, name);

    if (!table) {
        table = read_table(bundle, name);
        if (table) {
            keep(bundle, name, table);
        }
    }
    return table;
}

CFDictionaryRef bundle_strings_local_info(struct bundle *bundle)
{
    int cancel_state = fork_lock_take();
    CFDictionaryRef info = bundle->local_info;

    fork_lock_drop(cancel_state);
    if (info) {
        return info;
    }
    CFDictionaryRef table = bundle_strings_copy(bundle, CFSTR("InfoPlist"));
    if (table && CFDictionaryGetCount(table) > 0) {
        cancel_state = fork_lock_take();
        if (!bundle->local_info) {
            bundle->local_info = table;
            table = NULL;
        }
        info = bundle->local_info;
        fork_lock_drop(cancel_state);
    }
    release_any(table);
    return info;
}
