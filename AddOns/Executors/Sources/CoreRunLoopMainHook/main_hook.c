/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook by which the Swift runtime asks what the main thread does from an asynchronous main's first suspension on.
 *
 * The constructor only stores a pointer: in a program that contains the Swift library, that is not set up yet when constructors run. The
 * main thread alone writes here, before main and in the drain.
 */
#include "main_hook.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sysexits.h>
#include <unistd.h>

#define SWIFT_CALL __attribute__((swiftcall))

typedef SWIFT_CALL void (*drain_function)(void);
typedef SWIFT_CALL void (*drain_hook)(drain_function by_runtime, void *reserved);

/* Of libswift_Concurrency, where its names come from. Weak: a later runtime may be without it. */
extern drain_hook swift_task_asyncMainDrainQueue_hook __attribute__((weak));
extern SWIFT_CALL void swift_task_asyncMainDrainQueue(void) __attribute__((weak));

/* In MainThread.swift. Weak: this file is also linked without it, for its reports. */
extern void corerunloop_main_is_linked(void) __attribute__((weak));
/* There as well. Weak: compilers for whose runtime the hook's parameters are not known leave it out. */
extern _Noreturn void corerunloop_main_thread_drain(void) __attribute__((weak));

void (*main_hook_will_drain)(void);
static drain_function drain_by_runtime;
static bool was_set;
static bool had_threads; /* the thread that forks writes it, and its child reads it */
static bool is_stranded; /* set in a child, before it has a second thread */

SWIFT_CALL static void main_hook_drain(drain_function by_runtime, void *reserved)
{
    (void)reserved;
    drain_by_runtime = by_runtime;
    if (main_hook_will_drain) {
        main_hook_will_drain();
    }
    corerunloop_main_thread_drain();
}

bool main_hook_is_set(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool is_set = &swift_task_asyncMainDrainQueue_hook && swift_task_asyncMainDrainQueue_hook == main_hook_drain;

    if (was_set && !is_set && !atomic_flag_test_and_set(&told)) {
        main_hook_report("CoreRunLoopMain", "another library has set since what the main thread does");
    }
    return is_set;
}

void main_hook_drain_by_runtime(void)
{
    if (drain_by_runtime) {
        drain_by_runtime();
    } else if (&swift_task_asyncMainDrainQueue) {
        swift_task_asyncMainDrainQueue(); /* which another library's hook has passed on to */
    }
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

    (void)snprintf(line, sizeof line, "%s stands back, as %s", library, reason);
    main_hook_tell(line);
}

void main_hook_tell(const char *line)
{
    static char newline = '\n';
    struct iovec parts[] = {{(void *)(uintptr_t)line, strlen(line)}, {&newline, 1}};

    if (writev(STDERR_FILENO, parts, 2) < 0) {
        return; /* nobody listens */
    }
}

/* ---- children of a fork ---- */

/* A process of one thread has a whole child. */
static void count_threads(void)
{
    struct stat threads;

    had_threads = stat("/proc/self/task", &threads) < 0 || threads.st_nlink > 3; /* two links are the folder's own */
}

static void note_child(void)
{
    is_stranded = had_threads;
}

void main_hook_tasks_have_threads(void)
{
    static atomic_flag is_noted = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_noted)) {
        (void)pthread_atfork(count_threads, NULL, note_child);
    }
}

void main_hook_end_stranded_child(void)
{
    if (is_stranded) {
        main_hook_tell("CoreRunLoopMain: a child of fork has no threads for its tasks: it has to call exec or _exit");
        _exit(EX_SOFTWARE);
    }
}

/* ---- the beginning ---- */

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
        was_set = true;
    }
}
