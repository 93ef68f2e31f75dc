/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the main thread's loop holds until the process ends, given back so that the harness can tell leaks from it; and the main dispatch
 * queue, left alone where a compiler's runtime brings libdispatch: main loops are then as everywhere else.
 */
#include "Loop/Core/main_queue.h"
#include "Loop/Run/stall.h"
#include "Loop/Run/thread_registry.h"

void testing_give_back(void);
void testing_prepare(void);

void testing_prepare(void)
{
    main_queue_abandon();
}

void testing_give_back(void)
{
    CFRunLoopRef loop = thread_registry_current();

    loop_end(loop);
    stall_end(loop);
    object_release(loop);
}
