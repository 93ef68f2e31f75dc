/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of loops: in a page of shared memory (statistics_file.h), for a process whose environment asks for them, or in one of its own,
 * for a program that does. Each loop's thread counts in a place of its own, without a lock.
 */
#ifndef CRL_LOOP_TRACE_STATISTICS_H
#define CRL_LOOP_TRACE_STATISTICS_H

#include "Loop/link_names.h"

#include <pthread.h>
#include <stdbool.h>

#include "CRLRunLoop.h"

/* Begins to count if the environment says CORERUNLOOP_STATISTICS=1. If that cannot be done it is one line on standard error. */
void statistics_start_from_environment(void);

/* Begins to count, in memory of the process's own unless the environment asks for the page. */
void statistics_start(void);

/* Tells what the loop of a thread has done that has not ended. Returns false if it is not counted. */
bool statistics_copy(pthread_t thread, CRLStatistics *ret_statistics);

/* The calling thread's loop has ended: another one may have its place. */
void statistics_thread_ends(void);

/* In the child of a fork: it gets a page of its own when it first runs a loop. */
void statistics_forget_parent(void);

#endif
