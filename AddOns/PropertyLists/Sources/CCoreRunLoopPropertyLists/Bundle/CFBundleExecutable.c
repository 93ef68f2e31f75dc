/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of bundles: their programs and libraries (CFBundle.h). Any thread; no lock is held while code of a library runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "Bundle/bundle.h"
#include "Bundle/main_bundle.h"
#include "Format/plist_error.h"
#include "Support/uncancelled.h"

/* Foundation's codes in kCFErrorDomainCocoa. */
enum { error_no_file = 4, error_not_loadable = 3584, error_other_machine = 3585, error_not_loaded = 3587 };

static bool is_main(const struct bundle *bundle)
{
    return bundle == main_bundle_get();
}

/* That of Info.plist, or else of the name of the bundle's folder without its ending. */
static bool find_executable(const struct bundle *bundle, char ret_path[PATH_MAX])
{
    char name[NAME_MAX + 1];

    if (bundle_info_name(bundle, kCFBundleExecutableKey, name)) {
        return bundle_layout_executable(bundle->layout, bundle->root, name, ret_path);
    }
    const char *slash = strrchr(bundle->root, '/');
    const char *leaf = slash ? slash + 1 : bundle->root;
    const char *dot = strrchr(leaf, '.');
    size_t length = dot ? (size_t)(dot - leaf) : strlen(leaf);
    if (length == 0 || length > NAME_MAX) {
        return false;
    }
    memcpy(name, leaf, length);
    name[length] = '\0';
    return bundle_layout_executable(bundle->layout, bundle->root, name, ret_path);
}

CFURLRef CFBundleCopyExecutableURL(CFBundleRef bundle)
{
    const struct bundle *own = bundle_require(bundle, __func__);
    char path[PATH_MAX];
    bool is_found = is_main(own) ? main_bundle_find_program(path) : find_executable(own, path);

    return is_found ? bundle_url_create(path, false) : NULL;
}

CFURLRef CFBundleCopyAuxiliaryExecutableURL(CFBundleRef bundle, CFStringRef executableName)
{
    const struct bundle *own = bundle_require(bundle, __func__);
    char name[NAME_MAX + 1];
    char path[PATH_MAX];

    return executableName && CFStringGetFileSystemRepresentation(executableName, name, sizeof name) &&
                   bundle_layout_executable(own->layout, own->root, name, path)
               ? bundle_url_create(path, false)
               : NULL;
}

/* ---- whether it can be loaded ---- */

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of the file in which this code is */

/* A shared library or a program that is one, for this machine. Returns an error's code, or 0. */
static CFIndex judge_file(const char *path)
{
    ElfW(Ehdr) header;
    int file = uncancelled(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    ssize_t count = file >= 0 ? uncancelled(read(file, &header, sizeof header)) : -1;

    if (file < 0) {
        return error_no_file;
    }
    (void)uncancelled(close(file));
    if (count != (ssize_t)sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return error_not_loadable;
    }
    if (memcmp(header.e_ident, __ehdr_start.e_ident, EI_VERSION) != 0 || header.e_machine != __ehdr_start.e_machine) {
        return error_other_machine;
    }
    return header.e_type == ET_DYN ? 0 : error_not_loadable;
}

static bool set_error(CFErrorRef *error, CFIndex code, const char *path, const char *words)
{
    struct read_fault fault = {{0}};

    (void)read_fault_set(&fault, "%s%s%s", path, path[0] != '\0' ? ": " : "", words);
    plist_error_set(error, code, &fault, NULL);
    return false;
}

static bool preflight(const struct bundle *bundle, char ret_path[PATH_MAX], CFErrorRef *error)
{
    if (!find_executable(bundle, ret_path)) {
        return set_error(error, error_no_file, bundle->root, "The bundle has no program or library");
    }
    switch (judge_file(ret_path)) {
    case 0:
        return true;
    case error_other_machine:
        return set_error(error, error_other_machine, ret_path, "It is for another machine");
    case error_no_file:
        return set_error(error, error_no_file, ret_path, "It cannot be opened");
    default:
        return set_error(error, error_not_loadable, ret_path, "It is no library");
    }
}

Boolean CFBundlePreflightExecutable(CFBundleRef bundle, CFErrorRef *error)
{
    const struct bundle *own = bundle_require(bundle, __func__);
    char path[PATH_MAX];

    return CFBundleIsExecutableLoaded(bundle) || preflight(own, path, error);
}

/* ---- loading ---- */

static void *get_handle(struct bundle *bundle)
{
    int cancel_state = fork_lock_take();
    void *handle = bundle->handle;

    fork_lock_drop(cancel_state);
    return handle;
}

/* Sets the handle, and returns what was there. If `only_first`, what is there stays, and the new one is returned. */
static void *change_handle(struct bundle *bundle, void *handle, bool only_first)
{
    int cancel_state = fork_lock_take();
    void *before = bundle->handle;

    if (only_first && before) {
        before = handle;
    } else {
        bundle->handle = handle;
    }
    fork_lock_drop(cancel_state);
    return before;
}

/* The constructors and destructors of a library run here. */
EXCLUDES(the_fork_lock) static void *load(struct bundle *bundle, CFErrorRef *error)
{
    void *handle = get_handle(bundle);
    char path[PATH_MAX] = "";

    if (handle) {
        return handle;
    }
    if (is_main(bundle)) {
        handle = dlopen(NULL, RTLD_LAZY);
    } else if (preflight(bundle, path, error)) {
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    } else {
        return NULL;
    }
    if (!handle) {
        const char *words = dlerror();
        (void)set_error(error, error_not_loaded, "", words ? words : "It was not loaded");
        return NULL;
    }
    void *extra = change_handle(bundle, handle, true);
    if (extra) {
        (void)dlclose(extra);
    }
    return get_handle(bundle);
}

Boolean CFBundleLoadExecutableAndReturnError(CFBundleRef bundle, CFErrorRef *error)
{
    return load(bundle_require(bundle, __func__), error) != NULL;
}

Boolean CFBundleLoadExecutable(CFBundleRef bundle)
{
    return load(bundle_require(bundle, __func__), NULL) != NULL;
}

Boolean CFBundleIsExecutableLoaded(CFBundleRef bundle)
{
    struct bundle *own = bundle_require(bundle, __func__);

    return is_main(own) || get_handle(own) != NULL;
}

void CFBundleUnloadExecutable(CFBundleRef bundle)
{
    void *handle = change_handle(bundle_require(bundle, __func__), NULL, false);

    if (handle) {
        (void)dlclose(handle);
    }
}

/* ---- symbols ---- */

static void *find_symbol(struct bundle *bundle, CFStringRef name)
{
    char text[1024];
    void *handle = name && CFStringGetCString(name, text, sizeof text, kCFStringEncodingUTF8) ? load(bundle, NULL) : NULL;

    return handle ? dlsym(handle, text) : NULL;
}

static void find_symbols(struct bundle *bundle, CFArrayRef names, void *table[])
{
    for (CFIndex i = 0; names && i < CFArrayGetCount(names); i++) {
        table[i] = find_symbol(bundle, CFArrayGetValueAtIndex(names, i));
    }
}

void *CFBundleGetFunctionPointerForName(CFBundleRef bundle, CFStringRef functionName)
{
    return find_symbol(bundle_require(bundle, __func__), functionName);
}

void CFBundleGetFunctionPointersForNames(CFBundleRef bundle, CFArrayRef functionNames, void *ftbl[])
{
    find_symbols(bundle_require(bundle, __func__), functionNames, ftbl);
}

void *CFBundleGetDataPointerForName(CFBundleRef bundle, CFStringRef symbolName)
{
    return find_symbol(bundle_require(bundle, __func__), symbolName);
}

void CFBundleGetDataPointersForNames(CFBundleRef bundle, CFArrayRef symbolNames, void *stbl[])
{
    find_symbols(bundle_require(bundle, __func__), symbolNames, stbl);
}
