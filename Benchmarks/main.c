/* SPDX-License-Identifier: Apache-2.0 */
/* bench --list; bench [--iterations N] CASE PARAMETER; bench --start [--memory]. See bench.h. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const struct bench *const groups[] = {loop_benches, timer_benches, thread_benches, echo_benches, memory_benches, start_benches};
static long fixed_iterations;

double clock_ns(enum bench_clock clock)
{
    static const clockid_t clocks[] = {CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC};
    struct timespec time;

    (void)clock_gettime(clocks[clock], &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

long iterations(long by_default)
{
    return fixed_iterations > 0 ? fixed_iterations : by_default;
}

void require(bool succeeded, const char *what)
{
    if (!succeeded) {
        (void)fprintf(stderr, "bench: %s failed\n", what);
        _exit(1);
    }
}

void *zeroed(long count, unsigned long size)
{
    void *memory = calloc((size_t)count, size);

    require(memory, "calloc");
    return memory;
}

unsigned long next_random(void)
{
    static unsigned long state = 88172645463325252ul;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void shuffle(long *items, long count)
{
    for (long i = count - 1; i > 0; i--) {
        long other = (long)(next_random() % (unsigned long)(i + 1));
        long item = items[i];

        items[i] = items[other];
        items[other] = item;
    }
}

void stay_on(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

/* What callgrind is told to count: it must keep its name and stay a call. */
__attribute__((noinline)) long measured_operations(const struct bench *bench, long count);
long measured_operations(const struct bench *bench, long count)
{
    long done = bench->operate(count);

    __asm__ volatile("" ::: "memory"); /* it comes back here */
    return done;
}

static double operate_once(const struct bench *bench, long count)
{
    double start = clock_ns(bench->clock);
    long done = measured_operations(bench, count);

    return (clock_ns(bench->clock) - start) / (double)done;
}

/* Repeats it often enough to be measured, or as often as the runner says. */
static double operate_repeatedly(const struct bench *bench)
{
    const double enough_ns = 40e6;
    long count = iterations(1);

    (void)bench->operate(1); /* what is made at the first need is not what is asked about */
    for (;;) {
        double start = clock_ns(bench->clock);
        long done = measured_operations(bench, count);
        double taken = clock_ns(bench->clock) - start;

        if (fixed_iterations > 0 || taken >= enough_ns) {
            return taken / (double)done;
        }
        count = taken > enough_ns / 100 ? (long)((double)count * enough_ns / taken * 1.2) + 1 : count * 10;
    }
}

static double result_of(const struct bench *bench, long parameter)
{
    if (bench->figure) {
        return bench->figure(parameter);
    }
    bench->prepare(parameter);
    if (bench->once) {
        long count = iterations(bench->once);

        return operate_once(bench, count < bench->once ? count : bench->once);
    }
    return operate_repeatedly(bench);
}

/* ---- the choice of a case ---- */

struct job {
    const struct bench *bench;
    long parameter;
};

static void *do_job(void *info)
{
    const struct job *job = info;

    (void)printf("%.4f\n", result_of(job->bench, job->parameter));
    (void)fflush(stdout);
    _exit(0); /* taking down what is left is no part of it */
}

static const struct bench *find(const char *name)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const struct bench *bench = groups[i]; bench->name; bench++) {
            if (strcmp(bench->name, name) == 0) {
                return bench;
            }
        }
    }
    return NULL;
}

static void list(void)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const struct bench *bench = groups[i]; bench->name; bench++) {
            for (int j = 0; j < parameters_most && bench->parameters[j]; j++) {
                if (!bench->most || bench->parameters[j] <= bench->most) {
                    (void)printf("%s\t%ld\t%s\t%s\n", bench->name, bench->parameters[j], bench->unit, bench->what);
                }
            }
        }
    }
}

static void allow_many_descriptors(void)
{
    struct rlimit limit;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int count, char **arguments)
{
    struct job job = {.bench = NULL};
    pthread_t thread;
    int next = 1;

    if (count > 1 && strcmp(arguments[1], "--start") == 0) {
        start_and_end(count > 2);
        return 0;
    }
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        list();
        return 0;
    }
    if (count > 3 && strcmp(arguments[1], "--iterations") == 0) {
        fixed_iterations = strtol(arguments[2], NULL, 10);
        next = 3;
    }
    if (next < count) {
        job.bench = find(arguments[next]);
        job.parameter = next + 1 < count ? strtol(arguments[next + 1], NULL, 10) : 1;
    }
    if (!job.bench) {
        (void)fprintf(stderr, "usage: bench --list | bench [--iterations N] CASE [PARAMETER] | bench --start [--memory]\n");
        return 2;
    }
    allow_many_descriptors();
    if (pthread_create(&thread, NULL, do_job, &job) != 0) {
        return 1;
    }
    (void)pthread_join(thread, NULL);
    return 0;
}
