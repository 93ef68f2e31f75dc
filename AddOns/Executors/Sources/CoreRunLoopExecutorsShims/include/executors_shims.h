/* SPDX-License-Identifier: Apache-2.0 */
/* What the executors in Swift need of C. */
#ifndef CORERUNLOOP_EXECUTORS_SHIMS_H
#define CORERUNLOOP_EXECUTORS_SHIMS_H

/* Has the main dispatch queue call `function` with `context`, once. */
void executors_queue_on_main(void *context, void (*function)(void *context));

/* The product for which the hooks are set. */
const char *executors_hook_owner(void);

/* Sets what runs jobs, if that is not the runtime's own executors. */
void executors_set_job_runner(void);

/* How many processors the process may use, at least 1. */
int executors_processor_count(void);

/* Lets the calling thread use these processors only. Returns 0, or an error: EINVAL if the process may use none of them. */
int executors_use_processors(const int *processors, long count);

/* Lets a thread have the processor that waits for one. */
void executors_yield(void);

#endif
