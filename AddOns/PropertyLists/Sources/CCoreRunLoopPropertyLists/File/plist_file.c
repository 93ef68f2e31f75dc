/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes files of property lists (plist_file.h). */
#define _GNU_SOURCE /* realpath, fchmod */
#include "File/plist_file.h"

#include <bsd/libutil.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CoreFoundation/CFPropertyList.h"
#include "File/whole_file.h"
#include "Support/uncancelled.h"
#include "Tree/tree_check.h"

enum { names_aside = 100 }; /* that are tried */

static bool set_system_fault(struct read_fault *fault, const char *step, int error)
{
    char words[100];

    return read_fault_set(fault, "%s: %s", step, strerror_r(error, words, sizeof words));
}

/* ---- reading ---- */

static enum plist_file_state judge_error(int error, struct read_fault *fault)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return plist_file_is_absent;
    case EINVAL:
        (void)read_fault_set(fault, "It is no regular file");
        return plist_file_is_damaged;
    case EFBIG:
        (void)read_fault_set(fault, "It has more than %d bytes", plist_file_limit);
        return plist_file_is_damaged;
    default:
        (void)set_system_fault(fault, "It cannot be read", error);
        return plist_file_is_unknown;
    }
}

/* Takes the tree and the words, both of which are missing without memory. */
static enum plist_file_state judge_tree(CFTypeRef tree, CFStringRef words, CFDictionaryRef *ret_dictionary, struct read_fault *fault)
{
    char bytes[sizeof fault->words] = "";
    CFTypeRef object;
    bool is_dictionary = tree && CFGetTypeID(tree) == CFDictionaryGetTypeID();
    enum tree_fault found = is_dictionary ? tree_check(tree, kCFPropertyListBinaryFormat_v1_0, &object, NULL) : tree_has_foreign;

    if (found == tree_is_valid) {
        *ret_dictionary = tree;
        return plist_file_is_read;
    }
    if (found == tree_is_unchecked) {
        (void)read_fault_set_no_memory(fault);
        CFRelease(tree);
        return plist_file_is_unknown;
    }
    if (tree) {
        (void)read_fault_set(fault, "It is no dictionary of what property lists hold");
        CFRelease(tree);
        return plist_file_is_damaged;
    }
    if (words) {
        (void)CFStringGetCString(words, bytes, sizeof bytes, kCFStringEncodingUTF8);
        CFRelease(words);
    }
    (void)read_fault_set_no_memory(fault);
    bool is_unknown = bytes[0] == '\0' || strcmp(bytes, fault->words) == 0;
    if (!is_unknown) {
        fault->words[0] = '\0';
        (void)read_fault_set(fault, "%s", bytes);
    }
    return is_unknown ? plist_file_is_unknown : plist_file_is_damaged;
}

enum plist_file_state plist_file_read(const char *path, CFDictionaryRef *ret_dictionary, struct read_fault *fault)
{
    struct byte_buffer buffer = {0};
    int error = whole_file_read(path, plist_file_limit, &buffer);
    enum plist_file_state state = plist_file_is_unknown;

    *ret_dictionary = NULL;
    if (error != 0) {
        state = judge_error(error, fault);
    } else {
        CFDataRef data = CFDataCreateWithBytesNoCopy(kCFAllocatorSystemDefault, buffer.bytes, (CFIndex)buffer.count, kCFAllocatorNull);
        CFStringRef words = NULL;

        if (data) {
            CFTypeRef tree = CFPropertyListCreateFromXMLData(kCFAllocatorSystemDefault, data, kCFPropertyListImmutable, &words);
            state = judge_tree(tree, words, ret_dictionary, fault);
            CFRelease(data);
        } else {
            (void)read_fault_set_no_memory(fault);
        }
    }
    byte_buffer_free(&buffer);
    return state;
}

/* ---- writing ---- */

int plist_file_take_lock(const char *path)
{
    int file = -1;

    do {
        file = uncancelled(flopenat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
    } while (file < 0 && errno == EINTR);
    return file;
}

/* A child of a fork may have the descriptor as well. */
void plist_file_drop_lock(int file)
{
    (void)flock(file, LOCK_UN);
    (void)uncancelled(close(file));
}

static bool write_all(int file, CFDataRef data, struct read_fault *fault)
{
    const UInt8 *bytes = CFDataGetBytePtr(data);
    size_t left = (size_t)CFDataGetLength(data);

    while (left > 0) {
        ssize_t count = uncancelled(write(file, bytes, left));

        if (count < 0 && errno != EINTR) {
            return set_system_fault(fault, "It cannot be written", errno);
        }
        bytes += count > 0 ? count : 0;
        left -= count > 0 ? (size_t)count : 0;
    }
    return uncancelled(fsync(file)) == 0 || set_system_fault(fault, "It cannot be kept", errno);
}

/* The folder remembers the new name once it is synchronized, too. Not all file systems can do so. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) : 0;

    (void)snprintf(folder, sizeof folder, "%.*s/", length, path);
    int file = uncancelled(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file >= 0) {
        (void)uncancelled(fsync(file));
        (void)uncancelled(close(file));
    }
}

/* Gives the file a second name that nobody has. */
static bool keep_aside(const char *path, struct read_fault *fault)
{
    char aside[PATH_MAX];

    for (int i = 1; i <= names_aside; i++) {
        int length = snprintf(aside, sizeof aside, "%s.damaged-%d", path, i);

        if (length < 0 || length >= (int)sizeof aside) {
            return read_fault_set(fault, "Its name is too long for a copy beside it");
        }
        if (link(path, aside) == 0) {
            (void)uncancelled(fprintf(stderr, "CoreRunLoop: preferences: what was in %s is kept as %s\n", path, aside));
            return true;
        }
        if (errno != EEXIST) {
            return set_system_fault(fault, "It cannot be kept aside", errno);
        }
    }
    return read_fault_set(fault, "There are %d files beside it that were damaged before", names_aside);
}

/* Empties it. A link that somebody has made to another file leaves that as it is. */
static bool begin_fresh(int file, const char *path, mode_t mode, struct read_fault *fault)
{
    struct stat status;

    if (fstat(file, &status) != 0) {
        return set_system_fault(fault, "It cannot be written", errno);
    }
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1) {
        return read_fault_set(fault, "What is to become it is another file");
    }
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        mode = status.st_mode & 0777;
    }
    return (ftruncate(file, 0) == 0 && fchmod(file, mode) == 0) || set_system_fault(fault, "It cannot be written", errno);
}

/* The lock of the new file is held until the file has its name: others would empty it meanwhile. */
static bool replace(const char *path, CFDataRef data, mode_t mode, bool is_kept_aside, struct read_fault *fault)
{
    char fresh[PATH_MAX];
    int length = snprintf(fresh, sizeof fresh, "%s.new", path);
    int file = length > 0 && length < (int)sizeof fresh ? plist_file_take_lock(fresh) : -1;

    if (file < 0) {
        return set_system_fault(fault, "A new file cannot be made beside it", length < (int)sizeof fresh ? errno : ENAMETOOLONG);
    }
    bool is_done = begin_fresh(file, path, mode, fault) && write_all(file, data, fault) && (!is_kept_aside || keep_aside(path, fault));
    if (is_done && rename(fresh, path) != 0) {
        is_done = set_system_fault(fault, "It cannot be replaced", errno);
    }
    if (is_done) {
        sync_folder(path);
    } else {
        (void)unlink(fresh);
    }
    plist_file_drop_lock(file);
    return is_done;
}

bool plist_file_write(const char *path, CFDictionaryRef dictionary, mode_t mode, bool is_kept_aside, struct read_fault *fault)
{
    /*
     * A link stays; what it leads to is replaced. One that leads to nothing is replaced itself, and so is one that leads to no property
     * list, as that is not ours: a device, which many keep settings away with, or a file of the system.
     */
    char *target = is_kept_aside ? NULL : realpath(path, NULL);
    int error = target || is_kept_aside ? 0 : errno;
    CFDataRef data = CFPropertyListCreateData(kCFAllocatorSystemDefault, dictionary, kCFPropertyListXMLFormat_v1_0, 0, NULL);

    if (!data) { /* there may be a date that XML cannot hold */
        data = CFPropertyListCreateData(kCFAllocatorSystemDefault, dictionary, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    }
    bool is_done = error == 0 || error == ENOENT || set_system_fault(fault, "Its place cannot be found", error);
    is_done = is_done &&
              (data ? CFDataGetLength(data) <= plist_file_limit || read_fault_set(fault, "There are more than %d bytes", plist_file_limit)
                    : read_fault_set_no_memory(fault));
    is_done = is_done && replace(target ? target : path, data, mode, is_kept_aside, fault);
    if (data) {
        CFRelease(data);
    }
    free(target);
    return is_done;
}
