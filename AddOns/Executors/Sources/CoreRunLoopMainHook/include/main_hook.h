/* SPDX-License-Identifier: Apache-2.0 */
/* What the hook of the Swift runtime and the Swift code behind it know of each other. */
#ifndef CORERUNLOOP_MAIN_HOOK_H
#define CORERUNLOOP_MAIN_HOOK_H

#include <stdbool.h>

/* Whether the main thread comes to `main_hook_drain` when an asynchronous main suspends for the first time. */
bool main_hook_is_set(void);

/* Does what the runtime would have done without the hook. Only within `main_hook_drain`. */
_Noreturn void main_hook_drain_by_runtime(void);

/* Whether the program asks for no hooks: CORERUNLOOP_MAIN is 0 in the environment. */
bool main_hook_is_declined(void);

/* Writes a line to the standard error output: what `library` has not done, and why. */
void main_hook_report(const char *library, const char *reason);

#endif
