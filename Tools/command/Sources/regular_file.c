/* SPDX-License-Identifier: Apache-2.0 */
/* See regular_file.h. */
#define _GNU_SOURCE
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int refuse(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return -1;
}

/* Looks before it opens, because opening a device may do something, and again after that, because the name may have got another file. */
int regular_file_open(const char *path, struct stat *ret_status, const char **ret_reason)
{
    static const char is_other[] = "this is no regular file";
    int file;

    if (stat(path, ret_status) != 0) {
        return refuse(ret_reason, strerror(errno));
    }
    if (!S_ISREG(ret_status->st_mode)) {
        return refuse(ret_reason, is_other);
    }
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        return refuse(ret_reason, strerror(errno));
    }
    if (fstat(file, ret_status) != 0 || !S_ISREG(ret_status->st_mode)) {
        (void)close(file);
        return refuse(ret_reason, is_other);
    }
    return file;
}

size_t regular_file_copy(int file, uint64_t at, void *ret_bytes, size_t size)
{
    size_t done = 0;

    while (done < size && at <= (uint64_t)INT64_MAX - size) {
        ssize_t count = pread(file, (char *)ret_bytes + done, size - done, (off_t)(at + done));

        if (count == 0 || (count < 0 && errno != EINTR)) {
            break;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return done;
}

uint64_t regular_file_skip(int file, uint64_t at)
{
    off_t data = at <= INT64_MAX ? lseek(file, (off_t)at, SEEK_DATA) : -1;

    return data >= 0 ? (uint64_t)data : errno == ENXIO ? INT64_MAX : at;
}
