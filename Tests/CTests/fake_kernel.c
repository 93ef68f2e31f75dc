/* SPDX-License-Identifier: Apache-2.0 */
/* The clock moved by hand. State is the test process's own; the library under test runs on one thread. */
#include "fake_kernel.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Runtime/Value/wall_clock.h"

static const int64_t start_ns = INT64_C(1000) * 1000000000;
static const int64_t wall_start_ns = INT64_C(1767225600) * 1000000000;

static const int64_t longest_stretch_ns = 100000000;

static _Atomic int64_t monotonic_now_ns;
static _Atomic int64_t wall_now_ns;
static _Atomic int64_t suspended_ns;
static _Atomic uint64_t sleeps;
static _Atomic uint64_t calls;
static int early_count;
static int64_t early_ns;
static int64_t late_ns;
static int64_t slack_ns;

enum { alarms_max = 8 };

/* What goes off when the clock has been moved on that far. */
static struct fake_alarm {
    int descriptor;
    int64_t deadline_ns; /* kernel_never: it will not */
} alarms[alarms_max];
static int alarm_count;

static int64_t fake_monotonic_ns(void)
{
    return monotonic_now_ns;
}

static int64_t fake_elapsed_ns(void)
{
    return kernel.monotonic_ns() + suspended_ns;
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

static bool is_niced;

static int64_t fake_slack_ns(void)
{
    return slack_ns;
}

/* ---- alarms ---- */

/* The real ones are for a clock that is another here: they are told only that it is time. */
static void ring(struct fake_alarm *alarm)
{
    struct pollfd rung = {.fd = alarm->descriptor, .events = POLLIN};

    alarm->deadline_ns = kernel_never;
    if (kernel_linux.alarm_set(alarm->descriptor, 1) == 0) {
        (void)poll(&rung, 1, -1); /* the kernel takes a moment */
    }
}

static void ring_due_alarms(void)
{
    for (int i = 0; i < alarm_count; i++) {
        if (alarms[i].deadline_ns <= monotonic_now_ns) {
            ring(&alarms[i]);
        }
    }
}

static int64_t next_alarm_ns(void)
{
    int64_t next_ns = kernel_never;

    for (int i = 0; i < alarm_count; i++) {
        next_ns = alarms[i].deadline_ns < next_ns ? alarms[i].deadline_ns : next_ns;
    }
    return next_ns;
}

static struct fake_alarm *alarm_of(int descriptor)
{
    for (int i = 0; i < alarm_count; i++) {
        if (alarms[i].descriptor == descriptor) {
            return &alarms[i];
        }
    }
    if (alarm_count == alarms_max) {
        (void)fprintf(stderr, "fake kernel: more than %d alarms\n", alarms_max);
        abort();
    }
    alarms[alarm_count].descriptor = descriptor;
    return &alarms[alarm_count++];
}

static int fake_alarm_set(int alarm, int64_t deadline_ns)
{
    int result = kernel_linux.alarm_set(alarm, kernel_never);

    calls++;
    if (result == 0) {
        alarm_of(alarm)->deadline_ns = deadline_ns;
        ring_due_alarms();
    }
    return result;
}

/* ---- suspensions ---- */

enum { resumes_max = 16 };
static int resumes[resumes_max]; /* descriptors that tell of a resumption */
static int resume_count;
static void (*parts_clocks)(int64_t ns); /* what is to happen at `parts_at_ns`, and by how much */
static int64_t parts_by_ns;
static int64_t parts_at_ns = kernel_never;

static int fake_resume_open(void)
{
    int resume = kernel_linux.resume_open();

    if (resume >= 0) {
        resumes[resume_count++ % resumes_max] = resume;
    }
    return resume;
}

/* A timerfd that is set to the past becomes readable at once, as one does that is cancelled. */
static void ring_resumes(void)
{
    for (int i = 0; i < resume_count && i < resumes_max; i++) {
        struct pollfd rung = {.fd = resumes[i], .events = POLLIN};

        if (kernel_linux.alarm_is_own(resumes[i]) && kernel_linux.alarm_set(resumes[i], 1) == 0) {
            (void)poll(&rung, 1, -1);
        }
    }
}

void fake_kernel_suspend(int64_t ns)
{
    suspended_ns += ns;
    wall_now_ns += ns;
    ring_resumes();
}

void fake_kernel_in(int64_t from_now_ns, void (*parts)(int64_t ns), int64_t ns)
{
    parts_at_ns = monotonic_now_ns + from_now_ns;
    parts_clocks = parts;
    parts_by_ns = ns;
}

/* ---- waits ---- */

/* When a wait for `deadline_ns` ends: short of it or past it, if the test asked for that. */
static int64_t end_of_wait(int64_t deadline_ns)
{
    if (deadline_ns == kernel_never) {
        return kernel_never;
    }
    if (early_count > 0 && deadline_ns - early_ns > monotonic_now_ns) {
        early_count--;
        return deadline_ns - early_ns;
    }
    return deadline_ns > monotonic_now_ns ? deadline_ns + late_ns : monotonic_now_ns;
}

static int64_t later(int64_t one_ns, int64_t other_ns)
{
    return one_ns > other_ns ? one_ns : other_ns;
}

/* If the clocks are to part before a sleep ends, moves on to that. */
static void part_before(int64_t end_ns)
{
    if (end_ns > parts_at_ns) {
        fake_kernel_advance(parts_at_ns - monotonic_now_ns);
        parts_at_ns = kernel_never;
        parts_clocks(parts_by_ns);
    }
}

/* Sleeps. The clock that waits go by stands still in a suspension; a report that it is over ends a wait in the set that has it. */
static void sleep_until(int64_t end_ns, int set)
{
    struct pollfd in_set = {.fd = set, .events = POLLIN};

    part_before(end_ns);
    if (set >= 0 && poll(&in_set, 1, 0) > 0) {
        return;
    }
    if (end_ns == kernel_never) {
        (void)fprintf(stderr, "fake kernel: the loop would sleep for ever\n");
        abort();
    }
    fake_kernel_advance(end_ns - monotonic_now_ns);
}

static int fake_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    calls++;
    if (atomic_load(word) != expected) {
        return -EAGAIN;
    }
    sleeps++;
    /* Even a wait whose deadline has passed lasts until the kernel looks, which is as late as the slack lets it be. */
    sleep_until(deadline_ns > monotonic_now_ns ? end_of_wait(deadline_ns) : later(monotonic_now_ns, deadline_ns + slack_ns), -1);
    return -ETIMEDOUT;
}

static bool fake_is_niced(void)
{
    return is_niced;
}

void fake_kernel_be_nice(void)
{
    is_niced = true;
}

/*
 * Linux lets long waits in a wait set end later by a thousandth of their length, for a niced thread by a two hundredth, at most 100 ms.
 * Alarms are not late.
 */
static void sleep_in_set_until(int set, int64_t deadline_ns)
{
    int64_t stretch_ns = deadline_ns == kernel_never ? 0 : (deadline_ns - monotonic_now_ns) / (is_niced ? 200 : 1000);
    int64_t end_ns = end_of_wait(deadline_ns + (stretch_ns < longest_stretch_ns ? stretch_ns : longest_stretch_ns));
    int64_t alarm_ns = next_alarm_ns();

    sleep_until(alarm_ns < end_ns ? alarm_ns : end_ns, set);
}

static int fake_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count;

    calls++;
    count = kernel_linux.set_wait(set, events, capacity, 0);
    if (count == 0 && deadline_ns > monotonic_now_ns) {
        sleeps++;
        sleep_in_set_until(set, deadline_ns);
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
    suspended_ns = 0;
    kernel.monotonic_ns = fake_monotonic_ns;
    kernel.elapsed_ns = fake_elapsed_ns;
    kernel.wall_ns = fake_wall_ns;
    kernel.tick_ns = fake_tick_ns;
    runtime_wall_clock = fake_wall_ns;
    kernel.timer_slack_ns = fake_slack_ns;
    kernel.is_niced = fake_is_niced;
    kernel.futex_wait = fake_futex_wait;
    kernel.futex_wake = counted_futex_wake;
    kernel.set_wait = fake_set_wait;
    kernel.event_post = counted_event_post;
    kernel.alarm_set = fake_alarm_set;
    kernel.resume_open = fake_resume_open;
    kernel.set_add = counted_set_add;
    kernel.set_change = counted_set_change;
    kernel.set_remove = counted_set_remove;
}

void fake_kernel_advance(int64_t ns)
{
    monotonic_now_ns += ns;
    wall_now_ns += ns;
    ring_due_alarms();
}

void fake_kernel_step_wall(int64_t ns)
{
    wall_now_ns += ns;
    ring_resumes();
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

void fake_kernel_be_late(int64_t ns)
{
    late_ns = ns;
}

void fake_kernel_wake_early(int count, int64_t ns)
{
    early_count = count;
    early_ns = ns;
}
