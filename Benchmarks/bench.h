/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark program: built twice, against this library and against the Swift toolchain's Core Foundation, from the same sources.
 *
 * It runs one case at a time, once, in a process of its own, on a secondary thread (where neither library has the
 * main dispatch queue to look after), and
 * prints one number. Repetition, interleaving, medians and system calls are the runner's business.
 */
#ifndef BENCH_H
#define BENCH_H

#include <CoreFoundation/CoreFoundation.h>
#include <stdbool.h>

enum { parameters_most = 5 };

struct bench {
    const char *name;
    const char *what; /* one operation */
    const char *unit; /* "ns" or "bytes" */
    long parameters[parameters_most]; /* how many there are of what the case is about; 0 ends the list */
    long toolchain_most; /* parameters above it would take the toolchain too long */
    double (*run)(long parameter);
};

extern const struct bench loop_benches[];
extern const struct bench timer_benches[];
extern const struct bench thread_benches[];
extern const struct bench memory_benches[];

/* Repeats `operation` often enough to be measured, or as often as the runner says. Nanoseconds of this thread's processor time for one. */
double measure(void (*operation)(long count));

/* As the runner says, or the default: for cases that count for themselves. */
long iterations(long by_default);

/* Processor time of this thread, and time on the wall. */
double thread_ns(void);
double wall_ns(void);

/* A random permutation, the same in each run. */
void shuffle(void **items, long count);
unsigned long next_random(void);

/* A mode of the current loop that has one source, never signalled. */
CFStringRef bench_mode(void);
CFRunLoopSourceRef idle_source(CFStringRef mode);
CFRunLoopTimerRef far_timer(double seconds);

/* One pass that waits for nothing. */
static inline CFRunLoopRunResult look(CFStringRef mode)
{
    return CFRunLoopRunInMode(mode, 0, true);
}

#endif
