/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files (whole_file.h). */
#include "File/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/uncancelled.h"

/* One byte more than the size is asked for: so a file that grows meanwhile is known (EAGAIN). */
static int read_open(int file, size_t limit, struct byte_buffer *buffer)
{
    struct stat status;
    ssize_t count = 1;

    if (fstat(file, &status) != 0) {
        return errno;
    }
    if (!S_ISREG(status.st_mode)) {
        return EINVAL;
    }
    if (status.st_size < 0 || (uint64_t)status.st_size > limit) {
        return EFBIG;
    }
    size_t size = (size_t)status.st_size + 1;
    uint8_t *bytes = byte_buffer_reserve(buffer, size);
    while (bytes && count > 0 && buffer->count < size) {
        count = uncancelled(read(file, bytes + buffer->count, size - buffer->count));
        buffer->count += count > 0 ? (size_t)count : 0;
    }
    if (!bytes) {
        return ENOMEM;
    }
    return count < 0 ? errno : buffer->count == size ? EAGAIN : 0;
}

int whole_file_read(const char *path, size_t limit, struct byte_buffer *buffer)
{
    /* A pipe without a writer, or a terminal, must not hold the caller up before it is known what the file is. */
    int file = uncancelled(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));

    if (file < 0) {
        return errno == ENXIO ? EINVAL : errno; /* a socket */
    }
    int error = read_open(file, limit, buffer);
    (void)uncancelled(close(file));
    return error;
}
