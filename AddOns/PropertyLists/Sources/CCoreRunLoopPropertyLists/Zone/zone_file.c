/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads files of the tz database (zone_file.h). */
#define _GNU_SOURCE /* secure_getenv */
#include "Zone/zone_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "File/whole_file.h"

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

CFDataRef zone_file_copy_at(const char *path)
{
    struct byte_buffer buffer = {0};
    CFDataRef data =
        whole_file_read(path, largest_zone_file, &buffer) == 0 ? CFDataCreate(NULL, buffer.bytes, (CFIndex)buffer.count) : NULL;

    byte_buffer_free(&buffer);
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
