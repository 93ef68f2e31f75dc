/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is opened and locked as one step, where there is no libbsd. */
#ifndef CRL_WITHOUT_BSD_LIBUTIL_H
#define CRL_WITHOUT_BSD_LIBUTIL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the file of that descriptor is still the one that has the name. */
static inline bool without_bsd_has_name(int file, int directory, const char *path)
{
    struct stat opened, named;

    return fstatat(directory, path, &named, 0) == 0 && fstat(file, &opened) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* With O_NONBLOCK it fails with EWOULDBLOCK if somebody else has the lock. */
static inline int without_bsd_flopenat(int directory, const char *path, int flags, mode_t mode)
{
    for (;;) {
        int file = openat(directory, path, flags & ~O_TRUNC, mode);
        int error;

        if (file < 0) {
            return -1;
        }
        error = flock(file, flags & O_NONBLOCK ? LOCK_EX | LOCK_NB : LOCK_EX) < 0 ? errno : 0;
        if (error == 0 && without_bsd_has_name(file, directory, path)) {
            if (!(flags & O_TRUNC) || ftruncate(file, 0) == 0) {
                return file;
            }
            error = errno;
        }
        (void)close(file); /* without an error: somebody has removed or replaced it between the two calls */
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
}

#define flopenat without_bsd_flopenat

#endif
