/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark program: built once for each peer, from the same cases (bench_*.c) and the peer's own header (peers/, see peer.h).
 *
 * It runs one case at a time, once, in a process of its own, on a secondary thread (where no library has a main dispatch queue to look
 * after), and prints one number. Repetition, interleaving, medians, system calls and instructions are the runner's business.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>

enum { parameters_most = 6 };

enum bench_clock {
    clock_of_thread, /* processor time of the thread that does the work */
    clock_of_process, /* of all threads: where several work on one processor, or the peer has threads of its own */
    clock_on_wall, /* where the waiting is the point */
};

struct bench {
    const char *name;
    const char *what; /* one operation */
    const char *unit; /* "ns", or what `figure` answers */
    long parameters[parameters_most]; /* how many there are of what the case is about; 0 ends the list */
    void (*prepare)(long parameter);
    long (*operate)(long count); /* timed; says how many operations it did */
    double (*figure)(long parameter); /* instead of those two, where the time of an operation is not what is asked */
    long once; /* not 0: the operation uses something up, so it runs once, with this count */
    enum bench_clock clock;
    long most; /* parameters above it take this peer too long; 0: none does */
};

extern const struct bench loop_benches[];
extern const struct bench timer_benches[];
extern const struct bench thread_benches[];
extern const struct bench echo_benches[];
extern const struct bench memory_benches[];
extern const struct bench start_benches[];

/* As the runner says, or the default: for cases that count for themselves. */
long iterations(long by_default);

double clock_ns(enum bench_clock clock);

/* A random permutation, the same in each run. */
void shuffle(long *items, long count);
unsigned long next_random(void);

/* This thread, and those it makes, run on this processor only. */
void stay_on(int processor);

/* Memory that is never given back; the process ends first. */
void *zeroed(long count, unsigned long size);

/* Ends the process if `succeeded` is false. */
void require(bool succeeded, const char *what);

/* What the process that is started to be measured does: a loop, a timer that is due, and the end. Prints its private memory if asked. */
void start_and_end(bool prints_memory);

#endif
