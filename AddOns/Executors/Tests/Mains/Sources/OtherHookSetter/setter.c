/* SPDX-License-Identifier: Apache-2.0 */
/* A library that has set the drain hook already. */
#include "setter.h"

#include <stdlib.h>

typedef __attribute__((swiftcall)) void (*drain_function)(void);
typedef __attribute__((swiftcall)) void (*drain_hook)(drain_function by_runtime, void *reserved);
extern drain_hook swift_task_asyncMainDrainQueue_hook;

__attribute__((swiftcall)) static void pass_on(drain_function by_runtime, void *reserved)
{
    (void)reserved;
    by_runtime();
    abort();
}

__attribute__((constructor(101))) static void set_first(void)
{
    swift_task_asyncMainDrainQueue_hook = pass_on;
}
