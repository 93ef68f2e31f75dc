/* SPDX-License-Identifier: Apache-2.0 */
/* What the hook of the Swift runtime and the Swift code behind it know of each other. */
#ifndef CORERUNLOOP_MAIN_HOOK_H
#define CORERUNLOOP_MAIN_HOOK_H

#include <stdbool.h>

/* Whether the main thread comes to `main_hook_drain` when an asynchronous main suspends for the first time. Says once if another library
 * has taken the hook since. */
bool main_hook_is_set(void);

/* Does what the runtime would have done without the hook. Only on the main thread, in its drain. */
_Noreturn void main_hook_drain_by_runtime(void);

/* Whether the program asks for no hooks: CORERUNLOOP_MAIN is 0 in the environment. */
bool main_hook_is_declined(void);

/* Writes a line to the standard error output: what `library` has not done, and why. */
void main_hook_report(const char *library, const char *reason);

/* Writes the line to the standard error output, with a newline. */
void main_hook_tell(const char *line);

/* Called on the main thread before its drain, if it is set. Constructors set it. */
extern void (*main_hook_will_drain)(void);

/* From now on a child of a fork is without threads that tasks need. Any thread. */
void main_hook_tasks_have_threads(void);

/* Ends a process that is such a child, with a line that says so. What a thread does before it sleeps. */
void main_hook_end_stranded_child(void);

#endif
