// SPDX-License-Identifier: Apache-2.0
//
// The calling thread's run loop of Foundation, as far as a guest in it needs it, and a descriptor for a process. Whoever links this links
// Foundation.

#if !defined(CORE_RUN_LOOP_FOUNDATION_SHIMS_H)
#define CORE_RUN_LOOP_FOUNDATION_SHIMS_H 1

#include <stdbool.h>
#include <stdint.h>

/// What `foundation_loop_run` returns when the loop was stopped.
enum { FOUNDATION_LOOP_STOPPED = 2 };

/// Has runs of the loop in its default mode end when `descriptor` becomes readable, until `foundation_loop_forget`; NULL without memory.
void *foundation_loop_watch(int descriptor);

/// Ends a watch.
void foundation_loop_forget(void *watch);

/// Runs the loop in its default mode for at most `seconds`, or until a source has been handled; returns what CFRunLoopRunInMode does.
int32_t foundation_loop_run(double seconds);

/// Whether `descriptor` is readable now: the loop is told of a descriptor only when it becomes so.
bool foundation_loop_is_readable(int descriptor);

/// A new descriptor that is readable once the process has ended, whoever takes its status; -1 where there is none.
int process_descriptor(int32_t process);

#endif
