/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests by seed need of C: the thread of a seeded run has clocks of its own, and each change of executor on it leads through the
 * run's own executor.
 *
 * Everything but `seeded_thread_is_blocked` is about the calling thread.
 */
#ifndef CORE_RUN_LOOP_TESTING_SHIMS_H
#define CORE_RUN_LOOP_TESTING_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/*
 * Makes the calling thread that of the seeded run `run`. From now on the clocks of the C library show there what the clocks moved by hand
 * show, and a task that leaves one executor for another is queued on `hops` first: the two words of an UnownedSerialExecutor.
 */
void seeded_thread_begin(const void *run, uintptr_t hops_identity, uintptr_t hops_implementation);
void seeded_thread_end(void);
/* Returns whether the program reads its clocks by the function here. */
bool seeded_clocks_are_read_here(void);
/* Returns the run of the calling thread, or NULL. */
const void *_Nullable seeded_thread_run(void);

/* What the calling thread queues first belongs to `run`; NULL: no longer. */
void seeded_claim(const void *_Nullable run);
const void *_Nullable seeded_claimed(void);

/* Returns the number of a job's task, which no other task has; 0 for a job that is no task. */
uint64_t seeded_job_task(void *job);

/* Returns whether a thread of the process sleeps in the kernel. False if it has ended. */
bool seeded_thread_is_blocked(int thread_id);
/* Returns whether a descriptor becomes readable within a limit. */
bool seeded_is_readable(int descriptor, int limit_ms);

/*
 * Copies a closure of two words that withoutActuallyEscaping has made, so that the copy may outlive that call. It is never freed: the
 * tasks of a run that cannot end keep it.
 */
void *_Nullable seeded_keep_context(const void *context);

#pragma clang assume_nonnull end

#endif
