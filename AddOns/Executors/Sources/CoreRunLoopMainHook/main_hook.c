/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook by which the Swift runtime asks what the main thread does from an asynchronous main's first suspension on.
 *
 * The constructor only stores a pointer: in a program that contains the Swift library, that is not set up yet when constructors run. The
 * main thread alone writes here, before main and in the drain.
 */
#include "main_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SWIFT_CALL __attribute__((swiftcall))

typedef SWIFT_CALL void (*drain_function)(void);
typedef SWIFT_CALL void (*drain_hook)(drain_function by_runtime, void *reserved);

/* Of libswift_Concurrency, where its names come from. Weak: a later runtime may be without it. */
extern drain_hook swift_task_asyncMainDrainQueue_hook __attribute__((weak));

/* In MainThread.swift. Weak: this file is also linked without it, for its reports. */
extern void corerunloop_main_is_linked(void) __attribute__((weak));
/* There as well. Weak: compilers for whose runtime the hook's parameters are not known leave it out. */
extern _Noreturn void corerunloop_main_thread_drain(void) __attribute__((weak));

static drain_function drain_by_runtime;

SWIFT_CALL static void main_hook_drain(drain_function by_runtime, void *reserved)
{
    (void)reserved;
    drain_by_runtime = by_runtime;
    corerunloop_main_thread_drain();
}

bool main_hook_is_set(void)
{
    return &swift_task_asyncMainDrainQueue_hook && swift_task_asyncMainDrainQueue_hook == main_hook_drain;
}

void main_hook_drain_by_runtime(void)
{
    drain_by_runtime();
    abort(); /* the runtime's own does not return */
}

bool main_hook_is_declined(void)
{
    const char *wish = getenv("CORERUNLOOP_MAIN");

    return wish && strcmp(wish, "0") == 0;
}

void main_hook_report(const char *library, const char *reason)
{
    char line[300];
    int length = snprintf(line, sizeof line, "%s stands back, as %s\n", library, reason);

    if (length > 0 && write(STDERR_FILENO, line, strlen(line)) < 0) {
        return; /* nobody listens */
    }
}

__attribute__((constructor)) static void set_hook(void)
{
    if (!&corerunloop_main_is_linked) {
        return;
    }
    if (main_hook_is_declined()) {
        main_hook_report("CoreRunLoopMain", "CORERUNLOOP_MAIN is 0");
    } else if (!&swift_task_asyncMainDrainQueue_hook || !&corerunloop_main_thread_drain) {
        main_hook_report("CoreRunLoopMain", "this Swift runtime is not known; RunLoopProgram works with every one");
    } else if (swift_task_asyncMainDrainQueue_hook) {
        main_hook_report("CoreRunLoopMain", "another library has set what the main thread does");
    } else {
        swift_task_asyncMainDrainQueue_hook = main_hook_drain;
    }
}
