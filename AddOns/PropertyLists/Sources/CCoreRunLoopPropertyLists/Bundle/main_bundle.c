/* SPDX-License-Identifier: Apache-2.0 */
/* The main bundle (main_bundle.h), which the fork lock guards. */
#include "Bundle/main_bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static struct bundle *main_bundle GUARDED_BY(the_fork_lock);

/* ---- where it is ---- */

bool main_bundle_find_program(char ret_path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);

    if (length > 0) {
        ret_path[length] = '\0';
        return ret_path[0] == '/';
    }
    const char *started = (const char *)getauxval(AT_EXECFN); /* NOLINT(performance-no-int-to-ptr): the kernel passes it so */
    return started && realpath(started, ret_path);
}

/* Cuts the last part off. Returns it, or NULL at the root. */
static const char *cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash) {
        return NULL;
    }
    *slash = '\0';
    return slash + 1;
}

static bool has_info(const char *folder)
{
    char path[PATH_MAX];

    return bundle_layout_path(bundle_layout_find(folder), folder, bundle_info, path) && access(path, F_OK) == 0;
}

/* PREFIX/share/NAME.resources, PREFIX/lib/NAME or PREFIX/share/NAME: the first one with Info.plist, or else the first one. */
static bool find_installed(const char *prefix, const char *name, char ret_root[PATH_MAX])
{
    static const char *const places[][2] = {{"share", ".resources"}, {"lib", ""}, {"share", ""}};
    char path[PATH_MAX];
    bool is_found = false;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int length = snprintf(path, sizeof path, "%s/%s/%s%s", prefix, places[i][0], name, places[i][1]);

        if (length < 0 || length >= (int)sizeof path || !bundle_folder_exists(path)) {
            continue;
        }
        bool is_bundle = has_info(path);
        if (is_bundle || !is_found) {
            memcpy(ret_root, path, sizeof path);
            is_found = true;
        }
        if (is_bundle) {
            break;
        }
    }
    return is_found;
}

bool main_bundle_find_root(const char *program, char ret_root[PATH_MAX])
{
    char folder[PATH_MAX];
    char prefix[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s", program);
    const char *name = length > 0 && length < (int)sizeof folder ? cut_last(folder) : NULL;

    if (!name) {
        return false;
    }
    length = snprintf(ret_root, PATH_MAX, "%s/%s.resources", folder, name);
    if (length < PATH_MAX && bundle_folder_exists(ret_root)) {
        return true;
    }
    memcpy(prefix, folder, sizeof folder);
    const char *last = cut_last(prefix);
    if (last && (strcmp(last, "Linux") == 0 || strcmp(last, "MacOS") == 0)) {
        memcpy(ret_root, prefix, sizeof prefix);
        const char *contents = cut_last(ret_root);
        if (contents && strcmp(contents, "Contents") == 0) {
            return true;
        }
    }
    if (last && (strcmp(last, "bin") == 0 || strcmp(last, "sbin") == 0 || strcmp(last, "libexec") == 0) &&
        find_installed(prefix, name, ret_root)) {
        return true;
    }
    memcpy(ret_root, folder, sizeof folder);
    return true;
}

/* ---- the bundle ---- */

struct bundle *main_bundle_get(void)
{
    char program[PATH_MAX];
    char root[PATH_MAX];
    int cancel_state = fork_lock_take();
    struct bundle *bundle = main_bundle;

    fork_lock_drop(cancel_state);
    if (bundle || !main_bundle_find_program(program) || !main_bundle_find_root(program, root)) {
        return bundle;
    }
    struct bundle *made = bundle_find_or_create(NULL, root);
    cancel_state = fork_lock_take();
    if (!main_bundle) {
        main_bundle = made;
        made = NULL;
    }
    bundle = main_bundle;
    fork_lock_drop(cancel_state);
    if (made) {
        CFRelease(made);
    }
    return bundle;
}

CFStringRef main_bundle_copy_identifier(void)
{
    struct bundle *bundle = main_bundle_get();
    CFStringRef identifier = bundle ? bundle_info_string(bundle, kCFBundleIdentifierKey) : NULL;

    return identifier ? CFRetain(identifier) : NULL;
}

#if defined(CRL_TESTING)
void main_bundle_give_back(void)
{
    int cancel_state = fork_lock_take();
    struct bundle *bundle = main_bundle;

    main_bundle = NULL;
    fork_lock_drop(cancel_state);
    if (bundle) {
        CFRelease(bundle);
    }
}
#endif
