/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that threads leave unblocked; see kernel_signals.h. */
#define _GNU_SOURCE
#include "Kernel/kernel_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"

static _Atomic unsigned sources_of[NSIG]; /* sources that wait for each signal */
static atomic_bool was_ignored[NSIG]; /* the action before the handler's: SIG_IGN, not the default one */

/* Makes the calling thread block the signal, also after the handler has returned, when the kernel restores the mask of the context. */
static void block_for_good(int number, ucontext_t *context)
{
    sigset_t set;

    (void)sigaddset(&context->uc_sigmask, number);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* for tools that call the handler later, outside of its context */
}

static void stand_in(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    if (atomic_load_explicit(&sources_of[number], memory_order_acquire) > 0) {
        block_for_good(number, context);
        if (syscall(SYS_rt_sigqueueinfo, getpid(), number, info) < 0) {
            (void)kill(getpid(), number); /* the kernel has no room for what the sender said */
        }
    } else if (!atomic_load_explicit(&was_ignored[number], memory_order_acquire)) {
        struct sigaction action = {.sa_handler = SIG_DFL};

        (void)sigaction(number, &action, NULL);
        (void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number); /* comes when the handler returns */
    }
    errno = saved;
}

static bool is_a_threads_own(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP || number == SIGSYS ||
           number == SIGABRT;
}

void kernel_signal_expect(int number)
{
    int saved = errno;
    struct sigaction old;
    struct sigaction action = {.sa_sigaction = stand_in, .sa_flags = SA_SIGINFO | SA_RESTART};
    bool is_ignored;

    atomic_fetch_add_explicit(&sources_of[number], 1, memory_order_acq_rel);
    if (is_a_threads_own(number) || sigaction(number, NULL, &old) < 0) {
        errno = saved;
        return;
    }
    is_ignored = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_IGN;
    if ((is_ignored && number != SIGCHLD) || (!(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)) {
        atomic_store_explicit(&was_ignored[number], is_ignored, memory_order_release);
        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(number, &action, NULL);
    }
    errno = saved;
}

void kernel_signal_unexpect(int number)
{
    atomic_fetch_sub_explicit(&sources_of[number], 1, memory_order_acq_rel);
}

static int start_thread(void *(*function)(void *info), void *info, const char *name)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    int result;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread has its creator's mask from its first instruction on */
    result = pthread_create(&thread, NULL, function, info);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0) {
        (void)pthread_setname_np(thread, name);
        (void)pthread_detach(thread); /* last: a detached thread that has ended is no longer there to be named */
    }
    return -result;
}

int kernel_thread_start(void *(*function)(void *info), const char *name)
{
    return start_thread(function, NULL, name);
}

struct awaited_process {
    pid_t pid;
    int writer;
};

static void *await_process(void *info)
{
    struct awaited_process *awaited = info;
    siginfo_t unused;

    while (waitid(P_PID, (id_t)awaited->pid, &unused, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    (void)!write(awaited->writer, "", 1); /* SIGPIPE, if nobody reads any more, is blocked, and ends with this thread */
    (void)close(awaited->writer);
    free(awaited);
    return NULL;
}

int kernel_process_await(pid_t pid)
{
    int saved = errno;
    struct awaited_process *awaited = malloc(sizeof *awaited);
    int ends[2];
    int result = awaited ? result_of(pipe2(ends, O_CLOEXEC), saved) : -ENOMEM;

    if (result == 0) {
        *awaited = (struct awaited_process){.pid = pid, .writer = kernel_above_streams(ends[1])};
        ends[0] = kernel_above_streams(ends[0]);
        result = ends[0] < 0 ? ends[0] : awaited->writer < 0 ? awaited->writer : start_thread(await_process, awaited, "child");
        if (result == 0) {
            return ends[0];
        }
        (void)close(ends[0]);
        (void)close(awaited->writer);
    }
    free(awaited);
    errno = saved;
    return result;
}
