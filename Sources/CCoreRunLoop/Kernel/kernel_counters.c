/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on eventfds and timerfds. No state. */
#define _GNU_SOURCE
#include "Kernel/kernel_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

int kernel_event_create(void)
{
    int saved = errno;

    return kernel_above_streams(result_of(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), saved));
}

int kernel_event_post(int event)
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

int kernel_event_renew(int event)
{
    int saved = errno;
    int fresh = kernel_event_create();
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

int kernel_counter_drain(int descriptor)
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

/* The bare system call, because libc's read is a cancellation point. */
int kernel_counter_take(int descriptor)
{
    int saved = errno;
    uint64_t count;
    int result = result_of(syscall(SYS_read, descriptor, &count, sizeof count), saved);

    return result < 0 ? result : 0;
}

/*
 * Marks the timerfds that were made here, for kernel_alarm_is_own. It has no other effect: a timerfd goes on to its next interval only
 * when it is read, and these are never read.
 */
static const struct timespec alarm_interval = {2000000000, 271828183};

int kernel_alarm_set(int alarm, int64_t deadline_ns)
{
    int saved = errno;
    struct itimerspec when = {alarm_interval, {0, 0}};

    if (deadline_ns != kernel_never) {
        /* 0 would disarm and a negative value is refused: the first nanosecond is long past and fires at once. */
        int64_t at = deadline_ns > 0 ? deadline_ns : 1;

        when.it_value.tv_sec = (time_t)(at / kernel_second_ns);
        when.it_value.tv_nsec = (long)(at % kernel_second_ns);
    }
    return result_of(timerfd_settime(alarm, TFD_TIMER_ABSTIME, &when, NULL), saved);
}

int kernel_alarm_create(void)
{
    int saved = errno;
    int alarm = kernel_above_streams(result_of(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), saved));

    if (alarm >= 0) {
        (void)kernel_alarm_set(alarm, kernel_never);
    }
    return alarm;
}

int kernel_resume_open(void)
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

bool kernel_alarm_is_own(int alarm)
{
    int saved = errno;
    struct itimerspec when;

    return result_of(timerfd_gettime(alarm, &when), saved) == 0 && when.it_interval.tv_sec == alarm_interval.tv_sec &&
           when.it_interval.tv_nsec == alarm_interval.tv_nsec;
}
