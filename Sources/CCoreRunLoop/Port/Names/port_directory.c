/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and checking the directory of names; see port_directory.h. */
#include "Port/Names/port_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Wire/port_log.h"

static const char own_leaf[] = "corerunloop.v1";

static struct port_directory *current; /* holds no reference: cleared when the last one is released */

enum { others_may_write = S_IWGRP | S_IWOTH, others_may_anything = S_IRWXG | S_IRWXO };

/*
 * Returns 0 and a NULL text if the directory can be used. Otherwise returns -EACCES if something is wrong with it, or the errno of asking,
 * and the reason in `ret_text`.
 */
static int reason_unusable(int descriptor, mode_t forbidden, const char **ret_text)
{
    struct stat status;
    int result = kernel_ports.file_status(descriptor, &status);

    if (result < 0) {
        *ret_text = port_error_text(result);
        return result;
    }
    if (!S_ISDIR(status.st_mode)) {
        *ret_text = "it is no directory";
    } else if (status.st_uid != kernel_ports.effective_uid()) {
        *ret_text = "it belongs to another user";
    } else {
        *ret_text = status.st_mode & forbidden ? "others have access to it" : NULL;
    }
    return *ret_text ? -EACCES : 0;
}

static void strip_slashes(char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/') {
        path[--length] = '\0';
    }
}

/* Opens `leaf` in `parent`, and makes it if it is not there. Only this user gets access. */
static int open_private(int parent, const char *leaf, const char **ret_objection)
{
    int descriptor = kernel_ports.directory_open(parent, leaf);
    int result;

    if (descriptor == -ENOENT) {
        result = kernel_ports.directory_make(parent, leaf);
        descriptor = result < 0 && result != -EEXIST ? result : kernel_ports.directory_open(parent, leaf);
    }
    if (descriptor < 0) {
        *ret_objection = descriptor == -ENOTDIR || descriptor == -ELOOP ? "it is no directory" : port_error_text(descriptor);
        return descriptor;
    }
    result = reason_unusable(descriptor, others_may_anything, ret_objection);
    if (result < 0) {
        (void)kernel.close(descriptor);
        return result;
    }
    return descriptor;
}

/* Uses a directory of the user's that exists already: the directory of names goes into it. */
static int open_base(const char *path)
{
    int descriptor = kernel_ports.directory_open(AT_FDCWD, path);
    const char *text;
    int result = descriptor < 0 ? descriptor : reason_unusable(descriptor, others_may_write, &text);

    if (descriptor >= 0 && result < 0) {
        (void)kernel.close(descriptor);
    }
    return result < 0 ? result : descriptor;
}

/* Uses a directory for everybody: a directory of this user's own goes into it. */
static int open_shared_base(char *path, size_t size, const char **ret_objection)
{
    const char *shared = kernel_ports.environment("TMPDIR");
    struct stat status;
    char leaf[48];
    int parent;
    int descriptor = -EACCES;

    shared = shared && shared[0] == '/' ? shared : "/tmp";
    if (strlen(shared) >= size - sizeof leaf) {
        *ret_objection = "its path is too long";
        return -ENAMETOOLONG;
    }
    (void)snprintf(path, size, "%s", shared);
    strip_slashes(path);
    (void)snprintf(leaf, sizeof leaf, "corerunloop-%u", (unsigned)kernel_ports.effective_uid());
    parent = kernel_ports.directory_open(AT_FDCWD, path);
    (void)snprintf(path + strlen(path), size - strlen(path), "/%s", leaf);
    if (parent < 0) {
        *ret_objection = port_error_text(parent);
        return parent;
    }
    if (kernel_ports.file_status(parent, &status) < 0 || ((status.st_mode & others_may_write) && !(status.st_mode & S_ISVTX))) {
        *ret_objection = "anybody may remove it: the directory it is in is not sticky";
    } else {
        descriptor = open_private(parent, leaf, ret_objection);
    }
    (void)kernel.close(parent);
    return descriptor;
}

/*
 * True for an error that says nothing about the directory. Trying the next candidate would lead to another place than other processes use.
 */
static bool is_passing(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EINTR;
}

/* Uses the directory that the setting names, and no other: its peers use it, too. */
static int open_base_of_setting(const char *setting, char *path, size_t size, const char **ret_objection)
{
    int descriptor;
    int result;

    (void)snprintf(path, size, "%s", setting);
    if (setting[0] != '/' || strlen(setting) >= size - sizeof own_leaf - 1) {
        *ret_objection = "CORERUNLOOP_PORTS is no absolute path, or too long";
        return -EINVAL;
    }
    strip_slashes(path);
    descriptor = kernel_ports.directory_open(AT_FDCWD, path);
    if (descriptor < 0) {
        *ret_objection = port_error_text(descriptor);
        return descriptor;
    }
    result = reason_unusable(descriptor, others_may_write, ret_objection);
    if (result < 0) {
        (void)kernel.close(descriptor);
    }
    return result < 0 ? result : descriptor;
}

/* Tries the bases in turn, and uses the first that can be used. `ret_advice` gets what to do if none can. */
static int find_base(char *path, size_t size, const char **ret_objection, const char **ret_advice)
{
    const char *setting = kernel_ports.environment("CORERUNLOOP_PORTS");
    const char *runtime = kernel_ports.environment("XDG_RUNTIME_DIR");
    int descriptor;

    *ret_objection = NULL;
    *ret_advice = "";
    if (setting && setting[0] != '\0') {
        return open_base_of_setting(setting, path, size, ret_objection);
    }
    if (runtime && runtime[0] == '/' && strlen(runtime) < size - sizeof own_leaf - 1) {
        (void)snprintf(path, size, "%s", runtime);
        strip_slashes(path);
        descriptor = open_base(path);
        if (descriptor >= 0 || is_passing(descriptor)) {
            return descriptor;
        }
    }
    (void)snprintf(path, size, "/run/user/%u", (unsigned)kernel_ports.effective_uid());
    descriptor = open_base(path);
    if (descriptor >= 0 || is_passing(descriptor)) {
        return descriptor;
    }
    *ret_advice = ". There is no XDG_RUNTIME_DIR: name a directory of this user's by that, or by CORERUNLOOP_PORTS";
    return open_shared_base(path, size - sizeof own_leaf - 1, ret_objection);
}

static struct port_directory *make_directory(int descriptor, const char *path)
{
    struct port_directory *directory = calloc(1, sizeof *directory);
    struct stat status;

    if (!directory || kernel_ports.file_status(descriptor, &status) < 0) {
        free(directory);
        (void)kernel.close(descriptor);
        return NULL;
    }
    directory->descriptor = descriptor;
    directory->references = 1;
    directory->device = status.st_dev;
    directory->inode = status.st_ino;
    (void)snprintf(directory->path, sizeof directory->path, "%s", path);
    return directory;
}

/* True if the directory is still the one under its path, and others have no access to it. */
static bool still_stands(const struct port_directory *directory)
{
    struct stat status;
    const char *text;

    return kernel_ports.path_status(AT_FDCWD, directory->path, &status) == 0 && status.st_dev == directory->device &&
           status.st_ino == directory->inode && reason_unusable(directory->descriptor, others_may_anything, &text) == 0;
}

struct port_directory *port_directory_open(const char *function)
{
    char path[PATH_MAX];
    const char *why = NULL;
    const char *advice;
    int base;
    int descriptor = -EACCES;

    if (current && still_stands(current)) {
        current->references++;
        return current;
    }
    base = find_base(path, sizeof path, &why, &advice);
    if (base >= 0) {
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", own_leaf);
        descriptor = open_private(base, own_leaf, &why);
        (void)kernel.close(base);
    } else if (is_passing(base)) {
        descriptor = base;
    }
    if (descriptor < 0) {
        port_log(function, "the directory %.200s cannot be used: %s%s", path, why ? why : port_error_text(descriptor), advice);
        return NULL;
    }
    current = make_directory(descriptor, path);
    return current;
}

void port_directory_release(struct port_directory *directory)
{
    if (--directory->references > 0) {
        return;
    }
    if (current == directory) {
        current = NULL;
    }
    (void)kernel.close(directory->descriptor);
    free(directory);
}

void port_directory_path(const struct port_directory *directory, const char *leaf, char *ret_path, size_t size)
{
    struct stat status;

    (void)snprintf(ret_path, size, "/proc/self/fd/%d", directory->descriptor);
    /* Without /proc the plain path is used, if it is short enough. */
    if (kernel_ports.path_status(AT_FDCWD, "/proc/self/fd", &status) == 0) {
        (void)snprintf(ret_path + strlen(ret_path), size - strlen(ret_path), "/%s", leaf);
    } else {
        (void)snprintf(ret_path, size, "%s/%s", directory->path, leaf);
    }
}
