/* SPDX-License-Identifier: Apache-2.0 */
/* The clock moved by hand. State is the test process's own; the library under test runs on one thread. */
#include "fake_kernel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Runtime/wall_clock.h"

static const int64_t start_ns = INT64_C(1000) * 1000000000;
static const int64_t wall_start_ns = INT64_C(1767225600) * 1000000000;

static const int64_t longest_stretch_ns = 100000000;

static _Atomic int64_t monotonic_now_ns;
static _Atomic int64_t wall_now_ns;
static _Atomic uint64_t sleeps;
static _Atomic uint64_t calls;
static int early_count;
static int64_t early_ns;
static int64_t slack_ns;

static int64_t fake_monotonic_ns(void)
{
    return monotonic_now_ns;
}

static int64_t fake_wall_ns(void)
{
    return wall_now_ns;
}

/* By the table, because some tests have a wall clock of their own. */
static int64_t fake_tick_ns(int64_t *ret_wall_ns)
{
    *ret_wall_ns = kernel.wall_ns();
    return kernel.monotonic_ns();
}

static int64_t fake_slack_ns(void)
{
    return slack_ns;
}

/* Moves on to `deadline_ns`, or short of it if the test asked for that. */
static void sleep_until(int64_t deadline_ns)
{
    if (deadline_ns == kernel_never) {
        (void)fprintf(stderr, "fake kernel: the loop would sleep for ever\n");
        abort();
    }
    if (early_count > 0 && deadline_ns - early_ns > monotonic_now_ns) {
        early_count--;
        deadline_ns -= early_ns;
    }
    if (deadline_ns > monotonic_now_ns) {
        fake_kernel_advance(deadline_ns - monotonic_now_ns);
    }
}

static int fake_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    calls++;
    if (atomic_load(word) != expected) {
        return -EAGAIN;
    }
    sleeps++;
    sleep_until(deadline_ns);
    return -ETIMEDOUT;
}

static int fake_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count;

    calls++;
    count = kernel_linux.set_wait(set, events, capacity, 0);
    if (count == 0 && deadline_ns > monotonic_now_ns) {
        int64_t stretch_ns = deadline_ns == kernel_never ? 0 : (deadline_ns - monotonic_now_ns) / 1000;

        /* Linux lets long waits in a wait set end later by a thousandth of their length, at most 100 ms. */
        sleeps++;
        sleep_until(deadline_ns + (stretch_ns < longest_stretch_ns ? stretch_ns : longest_stretch_ns));
        count = kernel_linux.set_wait(set, events, capacity, 0);
    }
    return count;
}

static int counted_futex_wake(_Atomic uint32_t *word)
{
    calls++;
    return kernel_linux.futex_wake(word);
}

static int counted_event_post(int event)
{
    calls++;
    return kernel_linux.event_post(event);
}

static int counted_set_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    calls++;
    return kernel_linux.set_change(set, descriptor, interest, token);
}

static int counted_set_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    calls++;
    return kernel_linux.set_add(set, descriptor, interest, token);
}

static int counted_set_remove(int set, int descriptor)
{
    calls++;
    return kernel_linux.set_remove(set, descriptor);
}

void fake_kernel_install(void)
{
    monotonic_now_ns = start_ns;
    wall_now_ns = wall_start_ns;
    kernel.monotonic_ns = fake_monotonic_ns;
    kernel.wall_ns = fake_wall_ns;
    kernel.tick_ns = fake_tick_ns;
    runtime_wall_clock = fake_wall_ns;
    kernel.timer_slack_ns = fake_slack_ns;
    kernel.futex_wait = fake_futex_wait;
    kernel.futex_wake = counted_futex_wake;
    kernel.set_wait = fake_set_wait;
    kernel.event_post = counted_event_post;
    kernel.set_add = counted_set_add;
    kernel.set_change = counted_set_change;
    kernel.set_remove = counted_set_remove;
}

void fake_kernel_advance(int64_t ns)
{
    monotonic_now_ns += ns;
    wall_now_ns += ns;
}

void fake_kernel_step_wall(int64_t ns)
{
    wall_now_ns += ns;
}

int64_t fake_kernel_elapsed_ns(void)
{
    return monotonic_now_ns - start_ns;
}

uint64_t fake_kernel_sleeps(void)
{
    return sleeps;
}

uint64_t fake_kernel_calls(void)
{
    return calls;
}

void fake_kernel_set_slack(int64_t ns)
{
    slack_ns = ns;
}

void fake_kernel_wake_early(int count, int64_t ns)
{
    early_count = count;
    early_ns = ns;
}
