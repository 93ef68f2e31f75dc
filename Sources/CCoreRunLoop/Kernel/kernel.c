/* SPDX-License-Identifier: Apache-2.0 */
/* The table as Linux fills it: what other files of this layer do, and the calls on signals, children and threads. No state. */
#define _GNU_SOURCE
#include "Kernel/kernel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/fork_mark.h"
#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_counters.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_files.h"
#include "Kernel/kernel_result.h"
#include "Kernel/kernel_signals.h"
#include "Kernel/kernel_sockets.h"
#include "Kernel/kernel_wait_set.h"
#include "Support/barrier.h"
#include "Support/futex.h"
#include "Support/uncancelled.h"

static int signal_open(int signal)
{
    int saved = errno;
    sigset_t set;

    (void)sigemptyset(&set);
    if (sigaddset(&set, signal) < 0) {
        return result_of(-1, saved);
    }
    return kernel_above_streams(result_of(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), saved));
}

static int signal_take(int descriptor, struct signalfd_siginfo *ret_info)
{
    int saved = errno;
    int result = result_of(uncancelled(read(descriptor, ret_info, sizeof *ret_info)), saved);

    return result < 0 ? result : result == (int)sizeof *ret_info ? 0 : -EIO;
}

static int signal_block(int signal)
{
    int saved = errno;
    sigset_t set;

    (void)sigemptyset(&set);
    if (sigaddset(&set, signal) < 0) {
        return result_of(-1, saved);
    }
    return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static bool process_is_child(pid_t pid)
{
    int saved = errno;
    siginfo_t info;

    return pid > 0 && result_of(uncancelled(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT)), saved) == 0;
}

static int process_open(pid_t pid)
{
    int saved = errno;

#ifdef SYS_pidfd_open
    return kernel_above_streams(result_of(syscall(SYS_pidfd_open, pid, 0), saved)); /* close-on-exec by definition */
#else
    (void)pid;
    errno = ENOSYS;
    return result_of(-1, saved);
#endif
}

static int process_reap(pid_t pid, int *ret_status)
{
    int saved = errno;
    int result = result_of(uncancelled(waitpid(pid, ret_status, WNOHANG)), saved);

    return result > 0 ? 1 : result;
}

static int fence_threads(void)
{
    return barrier_everywhere() ? 0 : -EPERM;
}

static bool is_on_stack(uintptr_t address)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return false;
    }
    (void)pthread_attr_getstack(&attributes, &low, &size);
    (void)pthread_attr_destroy(&attributes);
    return address - (uintptr_t)low < size;
}

static bool is_main_thread(void)
{
    return getpid() == (pid_t)syscall(SYS_gettid);
}

static void yield_thread(void)
{
    (void)sched_yield();
}

#define KERNEL_LINUX                                     \
    {                                                    \
        .monotonic_ns = kernel_monotonic_ns,             \
        .elapsed_ns = kernel_elapsed_ns,                 \
        .wall_ns = kernel_wall_ns,                       \
        .tick_ns = kernel_tick_ns,                       \
        .timer_slack_ns = kernel_timer_slack_ns,         \
        .is_niced = kernel_is_niced,                     \
        .futex_wait = futex_wait,                        \
        .futex_wake = futex_wake,                        \
        .event_create = kernel_event_create,             \
        .event_post = kernel_event_post,                 \
        .event_renew = kernel_event_renew,               \
        .counter_drain = kernel_counter_drain,           \
        .alarm_create = kernel_alarm_create,             \
        .alarm_set = kernel_alarm_set,                   \
        .alarm_is_own = kernel_alarm_is_own,             \
        .resume_open = kernel_resume_open,               \
        .set_create = kernel_set_create,                 \
        .set_add = kernel_set_add,                       \
        .set_add_edge = kernel_set_add_edge,             \
        .set_change = kernel_set_change,                 \
        .set_remove = kernel_set_remove,                 \
        .set_holds = kernel_set_holds,                   \
        .set_wait = kernel_set_wait,                     \
        .descriptor_ready = kernel_descriptor_ready,     \
        .descriptor_is_open = kernel_descriptor_is_open, \
        .descriptor_kind = kernel_descriptor_kind,       \
        .descriptor_name = kernel_descriptor_name,       \
        .close = kernel_descriptor_close,                \
        .socket_create = kernel_socket_create,           \
        .socket_type = kernel_socket_type,               \
        .socket_bind = kernel_socket_bind,               \
        .socket_listen = kernel_socket_listen,           \
        .socket_connect = kernel_socket_connect,         \
        .socket_accept = kernel_socket_accept,           \
        .socket_receive = kernel_socket_receive,         \
        .socket_peek = kernel_socket_peek,               \
        .socket_send = kernel_socket_send,               \
        .socket_take_error = kernel_socket_take_error,   \
        .socket_address = kernel_socket_address,         \
        .socket_is_idle = kernel_socket_is_idle,         \
        .make_non_blocking = kernel_make_non_blocking,   \
        .path_open = kernel_path_open,                   \
        .file_access = kernel_file_access,               \
        .file_is_regular = kernel_file_is_regular,       \
        .file_seek = kernel_file_seek,                   \
        .file_read = kernel_file_read,                   \
        .file_write = kernel_file_write,                 \
        .signal_open = signal_open,                      \
        .signal_take = signal_take,                      \
        .signal_block = signal_block,                    \
        .signal_expect = kernel_signal_expect,           \
        .signal_unexpect = kernel_signal_unexpect,       \
        .process_is_child = process_is_child,            \
        .process_open = process_open,                    \
        .process_await = kernel_process_await,           \
        .process_reap = process_reap,                    \
        .fork_mark = kernel_fork_mark,                   \
        .fence_threads = fence_threads,                  \
        .thread_start = kernel_thread_start,             \
        .is_on_stack = is_on_stack,                      \
        .is_main_thread = is_main_thread,                \
        .yield = yield_thread,                           \
    }

struct kernel kernel = KERNEL_LINUX;
#if defined(CRL_TESTING)
const struct kernel kernel_linux = KERNEL_LINUX;
#endif
