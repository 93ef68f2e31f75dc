/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of a simulation: real threads, of which one runs at a time, and a clock that stands still while any of them can run.
 *
 * A thread hands the baton over where it calls scheduler_point or waits; which one gets it is drawn from the seed. When all wait, the clock
 * moves on to the earliest deadline; when there is none, the simulation has hung and fails. Whoever runs has the baton, so nothing in the
 * simulation needs a lock. Threads belong to processes, which may die: their threads never run again.
 */
#ifndef CRL_TESTS_SIMULATION_SCHEDULER_H
#define CRL_TESTS_SIMULATION_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { threads_max = 32, processes_max = 4 };

static const int64_t never_ns = INT64_MAX;
static const int64_t millisecond_ns = 1000000;
static const int64_t simulated_second_ns = 1000000000;

/* Streams of random numbers, so that what one of them is asked does not change the others. */
enum random_stream { random_schedule, random_faults, random_work, random_streams };

struct process {
    int number;
    bool has_died;
    int64_t stopped_until_ns; /* none of its threads runs before */
    uint64_t calls;
    uint64_t dies_at_call; /* 0: never */
};

struct scheduler_counts {
    uint64_t points, switches, calls, faults, deaths, hash;
    uint64_t waits, late_waits; /* of senders for room; those let more than twice as many go first as were there first */
    int64_t elapsed_ns;
};
extern struct scheduler_counts scheduler_counts;
extern struct process scheduler_processes[processes_max];

/* What `drain` does is done bit by bit while others run: the descriptors of the dead. False: there was nothing. */
void scheduler_begin(uint64_t seed, bool prints, bool (*drain)(void), int64_t (*next_alarm_ns)(void));

uint64_t scheduler_random(enum random_stream stream, uint64_t below);
bool scheduler_chance(enum random_stream stream, uint64_t one_in);

/* Starts a thread; it runs when it gets the baton. Its number. */
int scheduler_spawn(int process, void (*body)(void *info), void *info);
/* All other threads of the process have ended. */
bool scheduler_is_alone(const struct process *process);
/* Runs until all threads have ended or died. Called by the thread that began, which is none of the simulation's. */
void scheduler_run(void);

int scheduler_self(void);
struct process *scheduler_process(void);
int64_t scheduler_now_ns(void);
/* Time passes, as if all threads had been held up. */
void scheduler_advance(int64_t ns);

/* Another thread may go on here. Keeps errno; does nothing outside of a simulation. */
void scheduler_point(void);
/* Another thread goes on here if any can. */
void scheduler_yield(void);
/* Waits until `is_ready`, or the deadline. False: it was the deadline. */
bool scheduler_wait(bool (*is_ready)(void *info), void *info, int64_t deadline_ns);

/* The calling thread does not return from here if the process is its own. */
void scheduler_kill(struct process *process);

/* One line of the trace: hashed, and printed if that is asked for. */
void scheduler_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints what each thread does, and ends the simulation. */
void scheduler_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* What the calling thread is about, for such a print. */
void scheduler_note(const char *doing);

#endif
