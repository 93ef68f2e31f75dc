/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that tests move by hand, for CoreRunLoopTesting: the kernel table's clocks are replaced, and a wait that would sleep for a deadline
 * looks again every millisecond of real time whether the test has moved the clock.
 *
 * Installed and removed while no loop runs on another thread; the clock itself may be moved from any.
 */
#include <errno.h>
#include <stdatomic.h>

#include "CoreRunLoopShims.h"
#include "Kernel/kernel.h"
#include "Runtime/wall_clock.h"

static _Atomic int64_t ahead_ns; /* how far both clocks were moved */
static int64_t start_monotonic_ns;
static int64_t start_wall_ns;

static int64_t hand_monotonic_ns(void)
{
    return start_monotonic_ns + atomic_load(&ahead_ns);
}

static int64_t hand_wall_ns(void)
{
    return start_wall_ns + atomic_load(&ahead_ns);
}

static int64_t no_slack(void)
{
    return 0;
}

/* The real instant at which a wait for `deadline_ns` of the hand-moved clock looks again. */
static int64_t look_again(int64_t deadline_ns)
{
    return deadline_ns <= hand_monotonic_ns() ? 0 : kernel_linux.monotonic_ns() + 1000000;
}

static int hand_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    int error;

    if (deadline_ns == kernel_never) {
        return kernel_linux.futex_wait(word, expected, deadline_ns);
    }
    do {
        error = kernel_linux.futex_wait(word, expected, look_again(deadline_ns));
    } while (error == -ETIMEDOUT && deadline_ns > hand_monotonic_ns());
    return error;
}

static int hand_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count;

    if (deadline_ns == kernel_never || deadline_ns <= 0) {
        return kernel_linux.set_wait(set, events, capacity, deadline_ns);
    }
    do {
        count = kernel_linux.set_wait(set, events, capacity, look_again(deadline_ns));
    } while (count == 0 && deadline_ns > hand_monotonic_ns());
    return count;
}

void shim_clock_install(void)
{
    start_monotonic_ns = kernel_linux.monotonic_ns();
    start_wall_ns = kernel_linux.wall_ns();
    atomic_store(&ahead_ns, 0);
    kernel.monotonic_ns = hand_monotonic_ns;
    kernel.wall_ns = hand_wall_ns;
    runtime_wall_clock = hand_wall_ns;
    kernel.timer_slack_ns = no_slack;
    kernel.futex_wait = hand_futex_wait;
    kernel.set_wait = hand_set_wait;
}

void shim_clock_remove(void)
{
    kernel.monotonic_ns = kernel_linux.monotonic_ns;
    kernel.wall_ns = kernel_linux.wall_ns;
    runtime_wall_clock = kernel_linux.wall_ns;
    kernel.timer_slack_ns = kernel_linux.timer_slack_ns;
    kernel.futex_wait = kernel_linux.futex_wait;
    kernel.set_wait = kernel_linux.set_wait;
}

void shim_clock_advance(int64_t ns)
{
    (void)atomic_fetch_add(&ahead_ns, ns);
}
