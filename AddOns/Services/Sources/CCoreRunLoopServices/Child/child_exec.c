/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See child_exec.h. All functions but child_exec_start run in the child.
 *
 * The child's table of descriptors is its own. What it has to keep is copied out of the way of the numbers that are wanted, then copied to
 * these, and all others get close-on-exec.
 */
#define _GNU_SOURCE
#include "Child/child_exec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Child/child_kernel.h"

enum { kernel_signal_count = 64, kernel_signal_bytes = 8 };

/* A step of the child: 0, or an errno. */
typedef int child_step(struct child_plan *plan);

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static int enter_group(struct child_plan *plan)
{
    if (plan->starts_session) {
        return error_of(syscall(SYS_setsid));
    }
    return plan->group == 0 ? 0 : error_of(syscall(SYS_setpgid, 0, plan->group > 0 ? plan->group : 0));
}

/* No handler must run once signals come again. SIGKILL and SIGSTOP refuse. All fields zero is SIG_DFL, whatever their order. */
static void reset_signals(void)
{
    static const unsigned long defaults[8];

    for (int number = 1; number <= kernel_signal_count; number++) {
        (void)syscall(SYS_rt_sigaction, number, defaults, NULL, (size_t)kernel_signal_bytes);
    }
}

static int enter_folder(struct child_plan *plan)
{
    return plan->folder ? error_of(syscall(SYS_chdir, plan->folder)) : 0;
}

/* ---- descriptors ---- */

/* Returns the descriptor, or a copy of it under a number that the child does not want. Copies in between are closed by exec. */
static int move_aside(const struct child_plan *plan, int descriptor)
{
    int from = 0;

    while (descriptor >= 0 && child_plan_has(plan, descriptor)) {
        descriptor = (int)syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, from);
        from = descriptor + 1;
    }
    return descriptor;
}

/* `names` are entries of /proc/self/fd. */
static void close_listed(const struct child_plan *plan, const char *names, long size)
{
    enum { place_of_length = 16, place_of_name = 19 }; /* of struct linux_dirent64 */

    for (long at = 0; at < size;) {
        unsigned short length;
        long number = 0;

        memcpy(&length, names + at + place_of_length, sizeof length);
        for (const char *digit = names + at + place_of_name; *digit; digit++) {
            number = *digit >= '0' && *digit <= '9' ? number * 10 + (*digit - '0') : INT_MAX; /* "." and ".." */
        }
        if (!child_plan_has(plan, (int)number)) {
            (void)syscall(SYS_fcntl, (int)number, F_SETFD, FD_CLOEXEC);
        }
        at += length;
    }
}

/* For kernels before Linux 5.11. */
static int close_one_by_one(const struct child_plan *plan)
{
    _Alignas(8) char names[1024];
    int folder = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long size;

    if (folder < 0) {
        return errno;
    }
    do {
        size = syscall(SYS_getdents64, folder, names, sizeof names);
        close_listed(plan, names, size);
    } while (size > 0);
    return error_of(size);
}

/* Has exec close all that the child does not want. */
static int close_others(const struct child_plan *plan)
{
    unsigned first = 0;

    for (size_t i = 0; i <= plan->slot_count; i++) {
        unsigned end = i < plan->slot_count ? (unsigned)plan->slots[i].number : UINT_MAX;

        if (end > first && child_kernel.close_on_exec(first, end - 1) < 0) {
            return close_one_by_one(plan);
        }
        first = end + 1;
    }
    return 0;
}

static int place_descriptors(struct child_plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        plan->slots[i].moved = move_aside(plan, plan->slots[i].source);
        if (plan->slots[i].moved < 0) {
            return errno;
        }
    }
    for (size_t i = 0; i < plan->slot_count; i++) {
        if (syscall(SYS_dup3, plan->slots[i].moved, plan->slots[i].number, 0) < 0) {
            return errno;
        }
    }
    return close_others(plan);
}

static int set_limits(struct child_plan *plan)
{
    for (size_t i = 0; i < plan->limit_count; i++) {
        const uint64_t pair[2] = {plan->limits[i].limit.rlim_cur, plan->limits[i].limit.rlim_max};

        if (syscall(SYS_prlimit64, 0, plan->limits[i].resource, pair, NULL) < 0) {
            return errno;
        }
    }
    return 0;
}

/* ---- the program ---- */

/* As execvp goes on to the next folder. */
static bool may_be_elsewhere(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

/* Returns the error that says most: one that was not allowed is there. */
static int execute(struct child_plan *plan)
{
    int error = ENOENT;

    for (size_t i = 0; plan->files[i]; i++) {
        (void)syscall(SYS_execve, plan->files[i], plan->arguments, plan->environment);
        if (!may_be_elsewhere(errno)) {
            return errno;
        }
        error = errno == EACCES ? EACCES : error == EACCES ? error : errno;
    }
    return error;
}

/* ---- both processes ---- */

static const struct {
    CRLChildStep step;
    child_step *take;
} steps[] = {
    {kCRLChildStepGroup, enter_group},
    {kCRLChildStepFolder, enter_folder},
    {kCRLChildStepDescriptors, place_descriptors},
    {kCRLChildStepLimits, set_limits},
};

static _Noreturn void become(struct child_plan *plan)
{
    static const uint64_t no_signals;
    CRLChildError failure = {kCRLChildStepExecute, 0};

    plan->is_shared = true;
    reset_signals();
    plan->report = move_aside(plan, plan->report);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && failure.error == 0; i++) {
        failure.error = steps[i].take(plan);
        failure.step = failure.error ? steps[i].step : kCRLChildStepExecute;
    }
    if (failure.error == 0) {
        (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, (size_t)kernel_signal_bytes);
        failure.error = execute(plan);
    }
    plan->failure.step = failure.step;
    plan->failure.error = failure.error;
    (void)syscall(SYS_write, plan->report, &failure, sizeof failure);
    for (;;) {
        (void)syscall(SYS_exit_group, 127);
    }
}

/* A copy of the number is needed, as the child moves its own in the memory that both have. */
pid_t child_exec_start(struct child_plan *plan)
{
    int saved = errno;
    int report = plan->report;
    sigset_t all;
    sigset_t before;
    pid_t pid;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0) {
        become(plan);
    }
    pid = pid < 0 ? -errno : pid;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    plan->report = report;
    errno = saved;
    return pid;
}
