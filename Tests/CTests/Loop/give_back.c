/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the main thread's loop holds until the process ends, given back so that the harness can tell leaks from it; and the main dispatch
 * queue, left alone where a compiler's runtime brings libdispatch: main loops are then as everywhere else.
 */
#include <sched.h>

#include "Loop/Core/main_queue.h"
#include "Loop/Run/stall.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Signal/source_queue.h"

void testing_give_back(void);
void testing_prepare(void);

void testing_prepare(void)
{
    main_queue_abandon();
}

/* A thread that signalled a source while the loop ended queues it afterwards. Until then the source and the loop keep each other. */
static bool takes_late_signals(CFRunLoopRef loop)
{
    struct binding_release_list released = {NULL};
    bool is_bound;

    loop_lock(loop);
    source_queue_drain(loop, &released);
    is_bound = loop->bound_count > 0;
    loop_unlock(loop);
    bindings_release(&released);
    return is_bound;
}

void testing_give_back(void)
{
    CFRunLoopRef loop = thread_registry_current();

    loop_end(loop);
    while (takes_late_signals(loop)) {
        (void)sched_yield();
    }
    stall_end(loop);
    object_release(loop);
}
