/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on files for kernel.c's table. No state, no locks; any thread. */
#define _GNU_SOURCE
#include "Kernel/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

int kernel_path_open(const char *path, int flags)
{
    const mode_t everybody = 0666;
    int saved = errno;
    int result;

    do {
        result = result_of(uncancelled(open(path, flags | O_CLOEXEC, everybody)), saved);
    } while (result == -EINTR);
    return result >= 0 ? kernel_above_streams(result) : result;
}

bool kernel_file_is_regular(int file)
{
    struct stat status;
    int saved = errno;

    return result_of(fstat(file, &status), saved) == 0 && S_ISREG(status.st_mode);
}

int64_t kernel_file_seek(int file, int64_t offset, int whence)
{
    int saved = errno;

    return long_result_of(lseek(file, offset, whence), saved);
}

ssize_t kernel_file_read(int file, void *bytes, size_t size)
{
    int saved = errno;
    ssize_t result;

    do {
        result = (ssize_t)long_result_of(uncancelled(read(file, bytes, size)), saved);
    } while (result == -EINTR);
    return result;
}

ssize_t kernel_file_write(int file, const void *bytes, size_t size)
{
    int saved = errno;
    ssize_t result;

    do {
        result = (ssize_t)long_result_of(uncancelled(write(file, bytes, size)), saved);
    } while (result == -EINTR);
    return result;
}
