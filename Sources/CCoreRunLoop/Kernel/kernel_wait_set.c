/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on wait sets: epoll. No state but one flag: whether the kernel has epoll_pwait2. */
#define _GNU_SOURCE
#include "Kernel/kernel_wait_set.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"

static const int64_t millisecond_ns = 1000000;

/* Set once epoll_pwait2 (Linux 5.11) was found missing; monotone, so relaxed. */
static atomic_bool lacks_nanosecond_wait;

static uint32_t epoll_mask(uint32_t interest)
{
    return (interest & kernel_readable ? EPOLLIN | EPOLLRDHUP : 0u) | (interest & kernel_writable ? EPOLLOUT : 0u) |
           (interest & kernel_priority ? EPOLLPRI : 0u) | (interest & kernel_edge ? EPOLLET : 0u);
}

int kernel_set_create(void)
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

int kernel_set_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return set_control(set, EPOLL_CTL_ADD, descriptor, epoll_mask(interest), token);
}

int kernel_set_add_edge(int set, int descriptor, uint64_t token)
{
    return set_control(set, EPOLL_CTL_ADD, descriptor, EPOLLIN | EPOLLET, token);
}

int kernel_set_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    return set_control(set, EPOLL_CTL_MOD, descriptor, epoll_mask(interest), token);
}

int kernel_set_remove(int set, int descriptor)
{
    return set_control(set, EPOLL_CTL_DEL, descriptor, 0, 0);
}

/* Adds the descriptor to find out: a set refuses one that it holds already. */
bool kernel_set_holds(int set, int descriptor)
{
    int result = set_control(set, EPOLL_CTL_ADD, descriptor, 0, 0);

    if (result == 0) {
        (void)kernel_set_remove(set, descriptor);
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
    left_ns = deadline_ns - kernel_clock_read(CLOCK_MONOTONIC);
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
    int64_t left_ns = deadline_ns - kernel_clock_read(CLOCK_MONOTONIC);
    struct {
        int64_t seconds;
        int64_t nanoseconds;
    } limit = {0, 0}; /* struct __kernel_timespec: 64 bits on every architecture */

    if (left_ns > 0) {
        limit.seconds = left_ns / kernel_second_ns;
        limit.nanoseconds = left_ns % kernel_second_ns;
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
    return (mask & (EPOLLIN | EPOLLRDHUP) ? kernel_readable : 0u) | (mask & EPOLLOUT ? kernel_writable : 0u) |
           (mask & EPOLLPRI ? kernel_priority : 0u) | (mask & (EPOLLERR | EPOLLHUP) ? kernel_failed : 0u) |
           (mask & (EPOLLRDHUP | EPOLLHUP) ? kernel_ended : 0u) | (mask & EPOLLERR ? kernel_error : 0u);
}

int kernel_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
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
