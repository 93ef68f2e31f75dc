/* SPDX-License-Identifier: Apache-2.0 */
/* See child_kernel.h. No state, no locks; any thread. */
#define _GNU_SOURCE
#include "Child/child_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Child/child_exec.h"
#include "Support/uncancelled.h"

enum { by_process_descriptor = 3 /* P_PIDFD */, process_descriptor_open = 434, process_descriptor_signal = 424, close_numbers = 436 };
static const unsigned close_at_exec = 4; /* CLOSE_RANGE_CLOEXEC */

/* `saved` is errno from before the call. */
static int result_of(long result, int saved)
{
    int error = errno;

    errno = saved;
    return result < 0 ? -error : (int)result;
}

static void close_descriptor(int descriptor)
{
    int saved = errno;

    (void)uncancelled(close(descriptor));
    errno = saved;
}

/* ---- descriptors ---- */

/* Returns the descriptor, or in its place one that is no standard stream's. */
static int above_streams(int descriptor)
{
    int moved;

    if (descriptor < 0 || descriptor > STDERR_FILENO) {
        return descriptor;
    }
    moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_descriptor(descriptor);
    return moved;
}

static int pipe_create(int ret_ends[2], int without_wait)
{
    int saved = errno;
    int ends[2];
    int result = result_of(pipe2(ends, O_CLOEXEC), saved);

    if (result < 0) {
        return result;
    }
    for (int i = 0; i < 2; i++) {
        ret_ends[i] = above_streams(ends[i]);
        result = result < 0 ? result : result_of(ret_ends[i], saved);
    }
    if (result >= 0 && without_wait != pipe_waits) {
        (void)fcntl(ret_ends[without_wait], F_SETFL, O_NONBLOCK);
    }
    for (int i = 0; i < 2 && result < 0; i++) {
        if (ret_ends[i] >= 0) {
            close_descriptor(ret_ends[i]);
        }
    }
    return result < 0 ? result : 0;
}

static int null_open(void)
{
    int saved = errno;

    return result_of(above_streams(uncancelled(open("/dev/null", O_RDWR | O_CLOEXEC))), saved);
}

static ssize_t report_read(int descriptor, void *bytes, size_t size)
{
    int saved = errno;
    int result;

    do {
        result = result_of(uncancelled(read(descriptor, bytes, size)), saved);
    } while (result == -EINTR);
    return result;
}

static int event_create(bool is_posted)
{
    int saved = errno;

    return result_of(eventfd(is_posted, EFD_CLOEXEC | EFD_NONBLOCK), saved);
}

static int event_copy(int event)
{
    int saved = errno;

    return result_of(fcntl(event, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved);
}

static void event_post(int event)
{
    int saved = errno;

    (void)eventfd_write(event, 1);
    errno = saved;
}

static int close_on_exec(unsigned first, unsigned last)
{
    int saved = errno;

    return result_of(syscall(close_numbers, first, last, close_at_exec), saved);
}

/* ---- processes ---- */

static int process_open(pid_t pid)
{
    int saved = errno;

    return result_of(syscall(process_descriptor_open, pid, 0), saved);
}

static int status_of(const siginfo_t *info)
{
    enum { code_shift = 8, code_mask = 0xff, core_flag = 0x80 };

    if (info->si_code == CLD_EXITED) {
        return (info->si_status & code_mask) << code_shift;
    }
    return info->si_status | (info->si_code == CLD_DUMPED ? core_flag : 0);
}

/* The C library's waitid does not tell what the child used. */
static int process_look(pid_t pid, int process, enum child_look look, CRLChildEnd *ret_end)
{
    int saved = errno;
    int options = WEXITED | WNOHANG | (look == child_look_keeps ? WNOWAIT : 0);
    siginfo_t info;
    int result;

    memset(&info, 0, sizeof info);
    *ret_end = (CRLChildEnd){.waitStatus = -1};
    result = process < 0 ? -EINVAL : result_of(syscall(SYS_waitid, by_process_descriptor, process, &info, options, &ret_end->usage), saved);
    if (result == -EINVAL) { /* Linux 5.3 has such descriptors, and does not know them here */
        result = result_of(syscall(SYS_waitid, P_PID, pid, &info, options, &ret_end->usage), saved);
    }
    if (result < 0 || info.si_pid == 0) {
        return result;
    }
    ret_end->waitStatus = status_of(&info);
    return 1;
}

static int process_await(pid_t pid)
{
    int saved = errno;
    siginfo_t info;
    int result;

    do {
        result = result_of(uncancelled(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)), saved);
    } while (result == -EINTR);
    return result;
}

static int process_signal(pid_t pid, int process, int number)
{
    int saved = errno;

    return result_of(process >= 0 ? syscall(process_descriptor_signal, process, number, NULL, 0) : kill(pid, number), saved);
}

static int group_signal(pid_t group, int number)
{
    int saved = errno;

    return result_of(kill(-group, number), saved);
}

/* ---- threads ---- */

static int thread_start(void *(*function)(void *info), void *info)
{
    enum { stack_bytes = 64 * 1024 };
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int error;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN > stack_bytes ? (size_t)PTHREAD_STACK_MIN : (size_t)stack_bytes);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, function, info);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return -error;
}

struct child_kernel child_kernel = {
    .pipe_create = pipe_create,
    .null_open = null_open,
    .close = close_descriptor,
    .start = child_exec_start,
    .report_read = report_read,
    .process_open = process_open,
    .process_look = process_look,
    .process_await = process_await,
    .process_signal = process_signal,
    .group_signal = group_signal,
    .event_create = event_create,
    .event_copy = event_copy,
    .event_post = event_post,
    .thread_start = thread_start,
    .close_on_exec = close_on_exec,
};
