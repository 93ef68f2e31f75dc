/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads files of the tz database (zone_file.h). */
#define _GNU_SOURCE /* secure_getenv */
#include "Zone/zone_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/uncancelled.h"

enum { largest_zone_file = 1 << 20 };

static const char database_folder[] = "/usr/share/zoneinfo";

/* A path below the folder, of parts that are neither empty nor begin with a full stop. */
static bool is_zone_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-.";
    size_t length = strlen(name);

    if (length == 0 || length > longest_zone_name) {
        return false;
    }
    for (const char *part = name;; part++) {
        size_t part_length = strspn(part, letters);

        if (part_length == 0 || part[0] == '.') {
            return false;
        }
        part += part_length;
        if (*part != '/') {
            return *part == '\0';
        }
    }
}

static CFDataRef read_whole(int file)
{
    struct stat status;

    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > largest_zone_file) {
        return NULL;
    }
    size_t size = (size_t)status.st_size;
    UInt8 *bytes = malloc(size + 1);
    size_t used = 0;
    ssize_t got = bytes ? 1 : 0;
    while (got > 0 && used < size) {
        got = uncancelled(read(file, bytes + used, size - used));
        used += got > 0 ? (size_t)got : 0;
    }
    CFDataRef data = bytes && got >= 0 ? CFDataCreate(NULL, bytes, (CFIndex)used) : NULL;
    free(bytes);
    return data;
}

CFDataRef zone_file_copy_at(const char *path)
{
    /* A pipe without a writer, or a terminal, must not hold the caller up before it is known what the file is. */
    int file = uncancelled(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));

    if (file < 0) {
        return NULL;
    }
    CFDataRef data = read_whole(file);
    (void)uncancelled(close(file));
    return data;
}

CFDataRef zone_file_copy(const char *name)
{
    const char *folder = secure_getenv("TZDIR");
    char path[PATH_MAX];

    if (!is_zone_name(name)) {
        return NULL;
    }
    if (!folder || folder[0] != '/') {
        folder = database_folder;
    }
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < (int)sizeof path ? zone_file_copy_at(path) : NULL;
}

static bool name_in_path(const char *path, char ret_name[longest_zone_name + 1])
{
    static const char folder[] = "/zoneinfo/";
    const char *found = strstr(path, folder);

    if (!found || !is_zone_name(found + sizeof folder - 1)) {
        return false;
    }
    (void)snprintf(ret_name, longest_zone_name + 1, "%s", found + sizeof folder - 1);
    return true;
}

bool zone_file_name_at(const char *path, char ret_name[longest_zone_name + 1])
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);

    if (length <= 0) {
        return name_in_path(path, ret_name);
    }
    target[length] = '\0';
    return name_in_path(target, ret_name);
}
