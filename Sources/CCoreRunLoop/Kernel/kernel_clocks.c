/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on clocks, and on how exactly a thread's waits keep to them. No state. */
#define _GNU_SOURCE /* SCHED_RESET_ON_FORK */
#include "Kernel/kernel_clocks.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "Kernel/kernel_result.h"

int64_t kernel_monotonic_ns(void)
{
    return kernel_clock_read(CLOCK_MONOTONIC);
}

int64_t kernel_elapsed_ns(void)
{
    return kernel_clock_read(CLOCK_BOOTTIME);
}

int64_t kernel_wall_ns(void)
{
    return kernel_clock_read(CLOCK_REALTIME);
}

int64_t kernel_tick_ns(int64_t *ret_wall_ns)
{
    int64_t monotonic = kernel_clock_read(CLOCK_MONOTONIC_COARSE);

    *ret_wall_ns = kernel_clock_read(CLOCK_REALTIME_COARSE);
    return monotonic;
}

/* Before Linux 6.12 the kernel reported a slack for threads with a real-time policy, and did not use it. */
int64_t kernel_timer_slack_ns(void)
{
    int saved = errno;
    int policy = result_of(sched_getscheduler(0), saved) & ~SCHED_RESET_ON_FORK;
    int slack = result_of(prctl(PR_GET_TIMERSLACK), saved);

    return slack < 0 || policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE ? 0 : slack;
}

bool kernel_is_niced(void)
{
    int saved = errno;
    int nice = getpriority(PRIO_PROCESS, 0); /* the thread's own: Linux keeps a nice value for each thread */

    errno = saved; /* errors are not looked for: -1 is a valid result, too, and means not niced */
    return nice > 0;
}
