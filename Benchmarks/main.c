/* SPDX-License-Identifier: Apache-2.0 */
/* bench --list; bench [--iterations N] CASE PARAMETER. See bench.h. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const struct bench *const groups[] = {loop_benches, timer_benches, thread_benches, memory_benches};
static long fixed_iterations;

static double clock_ns(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double wall_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

long iterations(long by_default)
{
    return fixed_iterations > 0 ? fixed_iterations : by_default;
}

double measure(void (*operation)(long count))
{
    const double enough_ns = 40e6;
    long count = iterations(1);

    if (fixed_iterations == 0) {
        operation(1); /* what is made at the first need is not what is asked about */
    }
    for (;;) {
        double start = thread_ns();
        double taken;

        operation(count);
        taken = thread_ns() - start;
        if (fixed_iterations > 0 || taken >= enough_ns) {
            return taken / (double)count;
        }
        count = taken > enough_ns / 100 ? (long)((double)count * enough_ns / taken * 1.2) + 1 : count * 10;
    }
}

unsigned long next_random(void)
{
    static unsigned long state = 88172645463325252ul;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void shuffle(void **items, long count)
{
    for (long i = count - 1; i > 0; i--) {
        long other = (long)(next_random() % (unsigned long)(i + 1));
        void *item = items[i];

        items[i] = items[other];
        items[other] = item;
    }
}

CFStringRef bench_mode(void)
{
    return CFSTR("bench");
}

static void do_nothing(void *info)
{
    (void)info;
}

CFRunLoopSourceRef idle_source(CFStringRef mode)
{
    static long count;
    CFRunLoopSourceContext context = {.info = (void *)++count, .perform = do_nothing}; /* equal ones would be one */
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode);
    return source;
}

static void no_beat(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

CFRunLoopTimerRef far_timer(double seconds)
{
    return CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + seconds, 0, 0, 0, no_beat, NULL);
}

/* ---- the choice of a case ---- */

struct job {
    const struct bench *bench;
    long parameter;
    double result;
};

static void *do_job(void *info)
{
    struct job *job = info;

    job->result = job->bench->run(job->parameter);
    (void)printf("%.3f\n", job->result);
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
                bool takes_too_long = bench->toolchain_most && bench->parameters[j] > bench->toolchain_most;

                (void)printf("%s\t%ld\t%s\t%s\t%d\n", bench->name, bench->parameters[j], bench->unit, bench->what, !takes_too_long);
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
        (void)fprintf(stderr, "usage: bench --list | bench [--iterations N] CASE [PARAMETER]\n");
        return 2;
    }
    allow_many_descriptors();
    if (pthread_create(&thread, NULL, do_job, &job) != 0) {
        return 1;
    }
    (void)pthread_join(thread, NULL);
    return 0;
}
