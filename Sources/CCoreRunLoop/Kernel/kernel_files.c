/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on files for kernel.c's table. No state, no locks; any thread. */
#define _GNU_SOURCE
#include "Kernel/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
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

int kernel_file_access(int file)
{
    int saved = errno;
    int flags = result_of(fcntl(file, F_GETFL), saved);

    return flags < 0 ? flags : flags & O_ACCMODE;
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

/* Takes the signal that a write has raised, unless one waited before. It is this thread's, which blocks it. */
static void take_pipe_signal(const sigset_t *pipe_signal, const sigset_t *pending_before)
{
    static const struct timespec no_time = {0, 0};

    if (!sigismember(pending_before, SIGPIPE)) {
        while (uncancelled(sigtimedwait(pipe_signal, NULL, &no_time)) < 0 && errno == EINTR) {
        }
    }
}

ssize_t kernel_file_write(int file, const void *bytes, size_t size)
{
    int saved = errno;
    sigset_t pipe_signal;
    sigset_t pending;
    sigset_t before;
    ssize_t result;

    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before); /* the program keeps its action for the signal */
    (void)sigpending(&pending);
    do {
        result = (ssize_t)long_result_of(uncancelled(write(file, bytes, size)), saved);
    } while (result == -EINTR);
    if (result == -EPIPE) {
        take_pipe_signal(&pipe_signal, &pending);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return result;
}
