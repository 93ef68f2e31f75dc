/* SPDX-License-Identifier: Apache-2.0 */
/* See file_kernel.h. No state, no locks; any thread. */
#define _GNU_SOURCE
#include "File/file_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "Support/uncancelled.h"

/* The call's result or negative errno, tried again as long as a signal interrupts it. errno is left as it was. */
#define uninterrupted(call)                              \
    __extension__({                                      \
        int saved = errno;                               \
        int64_t tried;                                   \
        do {                                             \
            tried = uncancelled(call);                   \
            tried = tried < 0 ? -(int64_t)errno : tried; \
        } while (tried == -EINTR);                       \
        errno = saved;                                   \
        tried;                                           \
    })

static int close_file(int file)
{
    int saved = errno;
    int result = uncancelled(close(file)) < 0 && errno != EINTR ? -errno : 0; /* Linux has closed it whatever it says */

    errno = saved;
    return result;
}

static int open_file(const char *path, int flags)
{
    enum { everybody = 0666 };
    int low = (int)uninterrupted(open(path, flags | O_CLOEXEC, everybody));
    int file = low;

    if (low >= 0 && low <= STDERR_FILENO) { /* nobody takes it for a standard stream that the program has closed */
        file = (int)uninterrupted(fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
        (void)close_file(low);
    }
    return file == -EINVAL && low >= 0 ? -EMFILE : file; /* the limit is below the standard streams */
}

static int64_t seek_file(int file, int64_t offset)
{
    return uninterrupted(lseek(file, offset, SEEK_SET));
}

static ssize_t read_file(int file, void *bytes, size_t size)
{
    return uninterrupted(read(file, bytes, size));
}

/*
 * A pipe that nobody reads raises SIGPIPE, and a file at the process's limit (RLIMIT_FSIZE) SIGXFSZ. Both are blocked on the pool's
 * threads, and taken back on the program's.
 */
static ssize_t write_file(int file, const void *bytes, size_t size)
{
    const struct timespec at_once = {0, 0};
    sigset_t raised;
    sigset_t waiting;
    sigset_t blocked;
    ssize_t result;
    int own;

    (void)sigemptyset(&raised);
    (void)sigaddset(&raised, SIGPIPE);
    (void)sigaddset(&raised, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &raised, &blocked);
    (void)sigpending(&waiting);
    result = uninterrupted(write(file, bytes, size));
    own = result == -EPIPE ? SIGPIPE : result == -EFBIG ? SIGXFSZ : 0;
    if (own != 0 && !sigismember(&waiting, own)) {
        (void)sigemptyset(&raised);
        (void)sigaddset(&raised, own);
        (void)uninterrupted(sigtimedwait(&raised, NULL, &at_once));
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    return result;
}

/* A pipe, and a device that keeps nothing, cannot be synced, and have nothing to be. */
static int sync_file(int file)
{
    int result = (int)uninterrupted(fsync(file));

    return result == -EINVAL ? 0 : result;
}

struct file_kernel file_kernel = {
    .open = open_file,
    .seek = seek_file,
    .read = read_file,
    .write = write_file,
    .sync = sync_file,
    .close = close_file,
};
