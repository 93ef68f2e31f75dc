/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of stalls' system calls as Linux fills it. No state.
 *
 * The backtrace is glibc's. Its first call loads the unwinder, which allocates; so signal_claim makes that call. Later ones allocate
 * nothing and take no lock: the unwinder keeps its state on the stack, reads the tables that are mapped with each object, and finds them by
 * _dl_find_object, which glibc has had since 2.35 for this very purpose. An older one goes through the list of objects with the loader's
 * lock, which the interrupted thread itself may hold, because it is recursive; but if another thread holds it, the backtrace waits for
 * that thread.
 */
#define _GNU_SOURCE
#include "Kernel/Trace/kernel_stall.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "Kernel/kernel_result.h"

#if defined(__GLIBC__)
#include <execinfo.h>
#else
/* musl has no backtrace. A stall is then told with the interrupted instruction alone. */
static int backtrace(void **ret_frames, int most)
{
    (void)ret_frames;
    (void)most;
    return 0;
}
#endif

enum {
    frames_most = 80,
    frames_of_handler = 8, /* at most: between `backtrace` and what was interrupted, with those of a sanitizer */
    second_ns = 1000000000,
};

/* Older glibc does not name the field in which SIGEV_THREAD_ID has its thread. */
#if !defined(sigev_notify_thread_id)
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Both answers mean the same for a signal that is ignored by default. */
static bool is_unhandled(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

static int take_signal(int signal, kernel_signal_handler *handler)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    /* On the thread's own stack: an alternate one is often too small for an unwinder. */
    return sigaction(signal, &action, NULL);
}

static int signal_claim(kernel_signal_handler *handler)
{
    struct sigaction before;
    int saved = errno;
    void *frame;

    (void)backtrace(&frame, 1);
    if (sigaction(SIGURG, NULL, &before) < 0 || !is_unhandled(&before)) {
        errno = saved;
        return -EBUSY;
    }
    int result = result_of(take_signal(SIGURG, handler), saved);
    return result < 0 ? result : SIGURG;
}

static const char *signal_loss(int signal, kernel_signal_handler *handler)
{
    int saved = errno;
    struct sigaction now;
    sigset_t blocked;
    const char *loss = NULL;

    (void)sigemptyset(&blocked);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    if (sigaction(signal, NULL, &now) == 0 && !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler) &&
        !(is_unhandled(&now) && take_signal(signal, handler) == 0)) {
        loss = "has a handler of its own for";
    } else if (sigismember(&blocked, signal) == 1) {
        loss = "blocks";
    }
    errno = saved;
    return loss;
}

static int signal_admit(int signal)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int alarm_create(int signal, void *value, timer_t *ret_alarm)
{
    int saved = errno;
    struct sigevent event;

    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_value.sival_ptr = value;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    return result_of(timer_create(CLOCK_MONOTONIC, &event, ret_alarm), saved);
}

static int alarm_set(timer_t alarm, int64_t after_ns)
{
    int saved = errno;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(after_ns / second_ns), .tv_nsec = (long)(after_ns % second_ns)}};

    return result_of(timer_settime(alarm, 0, &when, NULL), saved);
}

static int alarm_delete(timer_t alarm)
{
    int saved = errno;

    return result_of(timer_delete(alarm), saved);
}

/* Returns the address of the instruction that was interrupted, or 0 where it is not known how to find it. */
static uintptr_t interrupted_at(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__i386__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_EIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#elif defined(__arm__)
    return (uintptr_t)context->uc_mcontext.arm_pc;
#else
    (void)context;
    return 0;
#endif
}

static int take_backtrace(const void *context, const void **ret_frames, int most)
{
    void *all[frames_most];
    int saved = errno;
    int count = backtrace(all, frames_most);
    uintptr_t interrupted = interrupted_at(context);
    int first = 0;
    int kept = 0;

    for (int i = 0; i < count && i < frames_of_handler && first == 0; i++) {
        first = (uintptr_t)all[i] == interrupted ? i : 0;
    }
    if (first == 0 && interrupted != 0 && most > 0) { /* the unwinder has not got past the handler */
        ret_frames[kept++] = (const void *)interrupted;
    }
    for (int i = first; i < count && kept < most; i++) {
        ret_frames[kept++] = all[i];
    }
    errno = saved;
    return kept;
}

#define KERNEL_STALL_LINUX            \
    {                                 \
        .signal_claim = signal_claim, \
        .signal_loss = signal_loss,   \
        .signal_admit = signal_admit, \
        .alarm_create = alarm_create, \
        .alarm_set = alarm_set,       \
        .alarm_delete = alarm_delete, \
        .backtrace = take_backtrace,  \
    }

struct kernel_stall kernel_stall = KERNEL_STALL_LINUX;
#if defined(CRL_TESTING)
const struct kernel_stall kernel_stall_linux = KERNEL_STALL_LINUX;
#endif
