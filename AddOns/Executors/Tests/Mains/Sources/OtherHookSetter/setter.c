/* SPDX-License-Identifier: Apache-2.0 */
#include "setter.h"

#include <stdlib.h>
#include <string.h>

#define SWIFT_CALL __attribute__((swiftcall))

struct executor {
    void *identity;
    unsigned long implementation;
};

typedef SWIFT_CALL void (*drain_function)(void);
typedef SWIFT_CALL void (*drain_hook)(drain_function by_runtime, void *reserved);
typedef SWIFT_CALL struct executor (*get_main_function)(void);
typedef SWIFT_CALL struct executor (*get_main_hook)(get_main_function by_runtime);
typedef SWIFT_CALL void (*enqueue_function)(void *job);
typedef SWIFT_CALL void (*enqueue_hook)(void *job, enqueue_function by_runtime);
extern drain_hook swift_task_asyncMainDrainQueue_hook;
extern get_main_hook swift_task_getMainExecutor_hook;
extern enqueue_hook swift_task_enqueueGlobal_hook;

static drain_hook drain_before;

SWIFT_CALL static void drain(drain_function by_runtime, void *reserved)
{
    if (drain_before) {
        drain_before(by_runtime, reserved);
    }
    by_runtime();
    abort();
}

SWIFT_CALL static struct executor get_main(get_main_function by_runtime)
{
    return by_runtime();
}

SWIFT_CALL static void enqueue(void *job, enqueue_function by_runtime)
{
    by_runtime(job);
}

static int is_wished(const char *way)
{
    const char *wish = getenv("OTHER_HOOKS");

    return wish && strcmp(wish, way) == 0;
}

static void set_executors(void)
{
    swift_task_getMainExecutor_hook = get_main;
    swift_task_enqueueGlobal_hook = enqueue;
}

void set_main_hook(void)
{
    if (is_wished("chain")) {
        drain_before = swift_task_asyncMainDrainQueue_hook;
    }
    swift_task_asyncMainDrainQueue_hook = drain;
}

__attribute__((constructor(101))) static void set_first(void)
{
    if (is_wished("first")) {
        set_main_hook();
        set_executors();
    }
}

__attribute__((constructor)) static void set_later(void)
{
    if (is_wished("later")) {
        set_executors();
    }
}
