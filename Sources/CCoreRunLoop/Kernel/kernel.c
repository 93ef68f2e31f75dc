/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table as Linux fills it. No state of its own but one flag: whether the kernel has epoll_pwait2.
 */
#define _GNU_SOURCE
#include "Kernel/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/fork_mark.h"
#include "Kernel/kernel_files.h"
#include "Kernel/kernel_signals.h"
#include "Kernel/kernel_sockets.h"
#include "Support/barrier.h"
#include "Support/futex.h"
#include "Support/uncancelled.h"

static const int64_t second_ns = 1000000000;
static const int64_t millisecond_ns = 1000000;

/* Set once epoll_pwait2 (Linux 5.11) was found missing; monotone, so relaxed. */
static atomic_bool lacks_nanosecond_wait;

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * second_ns + now.tv_nsec;
}

static int64_t monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t elapsed_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

static int64_t wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

static int64_t tick_ns(int64_t *ret_wall_ns)
{
    int64_t monotonic = read_clock(CLOCK_MONOTONIC_COARSE);

    *ret_wall_ns = read_clock(CLOCK_REALTIME_COARSE);
    return monotonic;
}

/* A system call's result as this layer gives it: the value, or the negative error. errno stays the caller's. */
static int result_of(long result, int saved_errno)
{
    if (result < 0) {
        result = -errno;
    }
    errno = saved_errno;
    return (int)result;
}

/* Before Linux 6.12 the kernel reported a slack for threads with a real-time policy, and did not use it. */
static int64_t timer_slack_ns(void)
{
    int saved = errno;
    int policy = result_of(sched_getscheduler(0), saved) & ~SCHED_RESET_ON_FORK;
    int slack = result_of(prctl(PR_GET_TIMERSLACK), saved);

    return slack < 0 || policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE ? 0 : slack;
}

static bool is_niced(void)
{
    int saved = errno;
    int nice = getpriority(PRIO_PROCESS, 0); /* the thread's own: Linux keeps a nice value for each thread */

    errno = saved; /* errors are not looked for: -1 is a valid result, too, and means not niced */
    return nice > 0;
}

int kernel_above_streams(int descriptor)
{
    int saved = errno;
    int moved;

    if (descriptor < 0 || descriptor > STDERR_FILENO) {
        return descriptor;
    }
    moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved >= 0) {
        (void)uncancelled(close(descriptor));
    }
    errno = saved;
    return moved >= 0 ? moved : descriptor;
}

static int event_create(void)
{
    int saved = errno;

    return kernel_above_streams(result_of(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), saved));
}

static int event_post(int event)
{
    int saved = errno;
    uint64_t one = 1;
    int result = result_of(uncancelled(write(event, &one, sizeof one)), saved);

    /*
     * A full counter is readable already. In a plain wait nobody reads the loop's eventfd, because its set is edge-triggered and reports
     * each write. Such a set would miss a write to a full counter, but no process lives to write 2^64 - 2 times.
     */
    return result < 0 && result != -EAGAIN ? result : 0;
}

static int event_renew(int event)
{
    int saved = errno;
    int fresh = event_create();
    int result;

    if (fresh < 0) {
        return fresh;
    }
    result = result_of(dup2(fresh, event), saved);
    if (result >= 0) {
        result = result_of(fcntl(event, F_SETFD, FD_CLOEXEC), saved);
    }
    (void)uncancelled(close(fresh));
    errno = saved;
    return result < 0 ? result : 0;
}

/* Reads a counter that may be blocking, after asking whether it is readable. */
static int drain_after_poll(int descriptor, uint64_t *ret_count)
{
    struct pollfd one = {.fd = descriptor, .events = POLLIN};

    if (uncancelled(poll(&one, 1, 0)) <= 0) {
        return -EAGAIN;
    }
    if (one.revents & POLLNVAL) {
        return -EBADF;
    }
    return one.revents & POLLIN ? result_of(uncancelled(read(descriptor, ret_count, sizeof *ret_count)), errno) : -EAGAIN;
}

#if defined(RWF_NOWAIT) && defined(SYS_preadv2) && defined(__LP64__)
/* The bare system call. libc's read is a cancellation point, which costs as much as the rest, and this read never waits. */
static ssize_t read_now(int descriptor, void *buffer, size_t size)
{
    struct iovec into = {.iov_base = buffer, .iov_len = size};

    return syscall(SYS_preadv2, descriptor, &into, 1ul, -1l, -1l, (unsigned long)RWF_NOWAIT);
}
#elif defined(RWF_NOWAIT)
static ssize_t read_now(int descriptor, void *buffer, size_t size)
{
    struct iovec into = {.iov_base = buffer, .iov_len = size};

    return uncancelled(preadv2(descriptor, &into, 1, -1, RWF_NOWAIT));
}
#endif

static int counter_drain(int descriptor)
{
    int saved = errno;
    uint64_t count;
    int result = -EOPNOTSUPP;

#ifdef RWF_NOWAIT
    /* One call, whether or not the program has made its counter blocking; timerfds on older kernels refuse. */
    result = result_of(read_now(descriptor, &count, sizeof count), saved);
#endif
    if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL) {
        result = drain_after_poll(descriptor, &count);
    }
    errno = saved;
    return result < 0 ? result : 0;
}

/*
 * Marks the timerfds that were made here, for alarm_is_own. It has no other effect: a timerfd goes on to its next interval only when it is
 * read, and these are never read.
 */
static const struct timespec alarm_interval = {2000000000, 271828183};

static int alarm_set(int alarm, int64_t deadline_ns)
{
    int saved = errno;
    struct itimerspec when = {alarm_interval, {0, 0}};

    if (deadline_ns != kernel_never) {
        /* 0 would disarm and a negative value is refused: the first nanosecond is long past and fires at once. */
        int64_t at = deadline_ns > 0 ? deadline_ns : 1;

        when.it_value.tv_sec = (time_t)(at / second_ns);
        when.it_value.tv_nsec = (long)(at % second_ns);
    }
    return result_of(timerfd_settime(alarm, TFD_TIMER_ABSTIME, &when, NULL), saved);
}

static int alarm_create(void)
{
    int saved = errno;
    int alarm = kernel_above_streams(result_of(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), saved));

    if (alarm >= 0) {
        (void)alarm_set(alarm, kernel_never);
    }
    return alarm;
}

static int resume_open(void)
{
    const struct itimerspec when = {alarm_interval, {INT32_MAX, 0}}; /* in the year 2038 it becomes readable by itself, once */
    int saved = errno;
    int resume = kernel_above_streams(result_of(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK), saved));
    int result = resume < 0 ? resume : result_of(timerfd_settime(resume, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL), saved);

    if (resume >= 0 && result < 0) {
        (void)uncancelled(close(resume));
        errno = saved;
    }
    return result < 0 ? result : resume;
}

static bool alarm_is_own(int alarm)
{
    int saved = errno;
    struct itimerspec when;

    return result_of(timerfd_gettime(alarm, &when), saved) == 0 && when.it_interval.tv_sec == alarm_interval.tv_sec &&
           when.it_interval.tv_nsec == alarm_interval.tv_nsec;
}

static uint32_t epoll_mask(uint32_t interest)
{
    return (interest & kernel_readable ? EPOLLIN | EPOLLRDHUP : 0u) | (interest & kernel_writable ? EPOLLOUT : 0u) |
           (interest & kernel_edge ? EPOLLET : 0u);
}

static int set_create(void)
{
    int saved = errno;

    return kernel_above_streams(result_of(epoll_create1(EPOLL_CLOEXEC), saved));
}

static int set_control(int set, int operation, int descriptor, uint32_t mask, uint64_t token)
{
    int saved = errno;
    struct epoll_event event = {.events = mask, .data.u64 = token};

    return result_of(epoll_ctl(set, operation, descriptor, &event), saved);
}

static int set_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return set_control(set, EPOLL_CTL_ADD, descriptor, epoll_mask(interest), token);
}

static int set_add_edge(int set, int descriptor, uint64_t token)
{
    return set_control(set, EPOLL_CTL_ADD, descriptor, EPOLLIN | EPOLLET, token);
}

static int set_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return set_control(set, EPOLL_CTL_MOD, descriptor, epoll_mask(interest), token);
}

static int set_remove(int set, int descriptor)
{
    return set_control(set, EPOLL_CTL_DEL, descriptor, 0, 0);
}

/* Adds the descriptor to find out: a set refuses one that it holds already. */
static bool set_holds(int set, int descriptor)
{
    int result = set_control(set, EPOLL_CTL_ADD, descriptor, 0, 0);

    if (result == 0) {
        (void)set_remove(set, descriptor);
    }
    return result == -EEXIST;
}

/* Milliseconds until `deadline_ns`, rounded up so that the wait never ends early, and small enough for an int. */
static int milliseconds_until(int64_t deadline_ns)
{
    const int64_t longest_ns = INT64_C(0x7fffffff) * millisecond_ns;
    int64_t left_ns;

    if (deadline_ns == kernel_never) {
        return -1;
    }
    if (deadline_ns <= 0) {
        return 0;
    }
    left_ns = deadline_ns - monotonic_ns();
    if (left_ns <= 0) {
        return 0;
    }
    if (left_ns >= longest_ns) {
        return 0x7fffffff;
    }
    return (int)((left_ns + millisecond_ns - 1) / millisecond_ns);
}

/* Waits until a deadline that is in the future and not kernel_never. */
static long wait_nanoseconds(int set, struct epoll_event *events, int capacity, int64_t deadline_ns)
{
#ifdef SYS_epoll_pwait2
    int64_t left_ns = deadline_ns - monotonic_ns();
    struct {
        int64_t seconds;
        int64_t nanoseconds;
    } limit = {0, 0}; /* struct __kernel_timespec: 64 bits on every architecture */

    if (left_ns > 0) {
        limit.seconds = left_ns / second_ns;
        limit.nanoseconds = left_ns % second_ns;
    }
    return syscall(SYS_epoll_pwait2, set, events, capacity, &limit, NULL, (size_t)0);
#else
    (void)set, (void)events, (void)capacity, (void)deadline_ns;
    errno = ENOSYS;
    return -1;
#endif
}

/* The bare system call, because the C library's function is a cancellation point. */
static long wait_milliseconds(int set, struct epoll_event *events, int capacity, int timeout_ms)
{
#ifdef SYS_epoll_wait
    return syscall(SYS_epoll_wait, set, events, capacity, timeout_ms);
#else
    return syscall(SYS_epoll_pwait, set, events, capacity, timeout_ms, NULL, (size_t)0);
#endif
}

/* A wait of no time or without a limit uses the older call. It copies no limit, and is an eighth to a third quicker. */
static long wait_set(int set, struct epoll_event *events, int capacity, int64_t deadline_ns)
{
    bool is_timed = deadline_ns > 0 && deadline_ns != kernel_never;

    if (is_timed && !atomic_load_explicit(&lacks_nanosecond_wait, memory_order_relaxed)) {
        long count = wait_nanoseconds(set, events, capacity, deadline_ns);

        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return count;
        }
        atomic_store_explicit(&lacks_nanosecond_wait, true, memory_order_relaxed);
    }
    return wait_milliseconds(set, events, capacity, milliseconds_until(deadline_ns));
}

static uint32_t readiness_of(uint32_t mask)
{
    return (mask & (EPOLLIN | EPOLLPRI | EPOLLRDHUP) ? kernel_readable : 0u) | (mask & EPOLLOUT ? kernel_writable : 0u) |
           (mask & (EPOLLERR | EPOLLHUP) ? kernel_failed : 0u) | (mask & (EPOLLRDHUP | EPOLLHUP) ? kernel_ended : 0u) |
           (mask & EPOLLERR ? kernel_error : 0u);
}

static int set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    enum { most = 128 };
    struct epoll_event reports[most];
    int saved = errno;
    int count = result_of(wait_set(set, reports, capacity < most ? capacity : most, deadline_ns), saved);

    for (int i = 0; i < count; i++) {
        events[i].token = reports[i].data.u64;
        events[i].ready = reports[i].events == EPOLLIN ? (uint32_t)kernel_readable : readiness_of(reports[i].events);
    }
    return count;
}

static const short ended_mask = EPOLLRDHUP; /* poll's constant has the same value, but is declared for GNU sources only */

static uint32_t descriptor_ready(int descriptor, uint32_t interest)
{
    int saved = errno;
    struct pollfd one = {.fd = descriptor};
    uint32_t ready = 0;

    one.events = (short)((interest & kernel_readable ? POLLIN | ended_mask : 0) | (interest & kernel_writable ? POLLOUT : 0));
    if (uncancelled(poll(&one, 1, 0)) > 0) {
        ready = (one.revents & (POLLIN | ended_mask) ? kernel_readable : 0u) | (one.revents & POLLOUT ? kernel_writable : 0u) |
                (one.revents & (POLLERR | POLLHUP | POLLNVAL) ? kernel_failed : 0u) |
                (one.revents & (ended_mask | POLLHUP) ? kernel_ended : 0u) | (one.revents & POLLERR ? kernel_error : 0u);
    }
    errno = saved;
    return ready;
}

static bool descriptor_is_open(int descriptor)
{
    int saved = errno;

    return result_of(fcntl(descriptor, F_GETFD), saved) >= 0;
}

static int descriptor_name(int descriptor, char *ret_name, size_t size)
{
    int saved = errno;
    char path[32];
    int length;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    length = result_of((int)readlink(path, ret_name, size - 1), saved);
    ret_name[length > 0 ? length : 0] = '\0';
    return length;
}

/*
 * The name in /proc tells the kind of file behind a descriptor. Without /proc the kind is unknown, and the descriptor is not read: only
 * known counters are.
 */
static enum kernel_descriptor_kind descriptor_kind(int descriptor)
{
    char name[32];

    (void)descriptor_name(descriptor, name, sizeof name);
    return strcmp(name, "anon_inode:[eventfd]") == 0 || strcmp(name, "anon_inode:[timerfd]") == 0 ? kernel_descriptor_counter
                                                                                                  : kernel_descriptor_other;
}

static int close_descriptor(int descriptor)
{
    int saved = errno;

    return result_of(uncancelled(close(descriptor)), saved);
}

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
        .monotonic_ns = monotonic_ns,                    \
        .elapsed_ns = elapsed_ns,                        \
        .wall_ns = wall_ns,                              \
        .tick_ns = tick_ns,                              \
        .timer_slack_ns = timer_slack_ns,                \
        .is_niced = is_niced,                            \
        .futex_wait = futex_wait,                        \
        .futex_wake = futex_wake,                        \
        .event_create = event_create,                    \
        .event_post = event_post,                        \
        .event_renew = event_renew,                      \
        .counter_drain = counter_drain,                  \
        .alarm_create = alarm_create,                    \
        .alarm_set = alarm_set,                          \
        .alarm_is_own = alarm_is_own,                    \
        .resume_open = resume_open,                      \
        .set_create = set_create,                        \
        .set_add = set_add,                              \
        .set_add_edge = set_add_edge,                    \
        .set_change = set_change,                        \
        .set_remove = set_remove,                        \
        .set_holds = set_holds,                          \
        .set_wait = set_wait,                            \
        .descriptor_ready = descriptor_ready,            \
        .descriptor_is_open = descriptor_is_open,        \
        .descriptor_kind = descriptor_kind,              \
        .descriptor_name = descriptor_name,              \
        .close = close_descriptor,                       \
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
