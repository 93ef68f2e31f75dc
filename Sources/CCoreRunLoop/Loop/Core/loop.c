/* SPDX-License-Identifier: Apache-2.0 */
/* The making and freeing of a loop's memory. Run/pass.c has what a loop does, Run/loop_dump.c how it is described. */
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/thread_loop.h"
#include "Support/fault.h"
#include "Support/invariant.h"

/* The last reference is gone: no thread runs the loop, no item is in it, and no binding leads to it. */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFRunLoopRef loop = (CFRunLoopRef)(uintptr_t)object;

    if (!loop->is_dead) {
        fault_stop("CFRelease", "the run loop of a living thread was released more often than it was retained");
    }
    invariant(!loop->innermost_run);
    invariant(!loop->waiting);
    invariant(loop->bound_count == 0);
    thread_loop_unregister(loop);
    modes_free(loop);
    free(loop->common_sources.buckets);
    free(atomic_load_explicit(&loop->stall, memory_order_relaxed));
    if (loop->waker) {
        waker_recycle(loop->waker);
    }
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopRef loop = (CFRunLoopRef)(uintptr_t)object;

    return loop->copy_dump(loop);
}

const struct object_class run_loop_class = {
    .type_id = object_type_run_loop,
    .name = "CFRunLoop",
    .finalize = finalize,
    .copy_description = describe,
};

NOT_CHECKED void loop_note_slack(CFRunLoopRef loop)
{
    const int64_t usual_ns = 50000; /* Linux gives it to the first process, and each passes it on */
    int64_t slack_ns = kernel.timer_slack_ns();

    loop->slack_ns = slack_ns < usual_ns ? slack_ns : usual_ns;
    loop->is_niced = kernel.is_niced();
}

NOT_CHECKED CFRunLoopRef loop_create(bool is_main)
{
    CFRunLoopRef loop = object_create(kCFAllocatorSystemDefault, &run_loop_class, sizeof *loop);

    if (!loop) {
        return NULL;
    }
    link_init(&loop->common_sources_in_order);
    link_init(&loop->common_timers);
    link_init(&loop->common_observers);
    link_init(&loop->registry_link);
    cleanup_stack_init(&loop->cleanups);
    block_queue_init(&loop->common_blocks);
    block_queue_init(&loop->listed_blocks);
    loop->modes_end = &loop->modes;
    loop->common_modes_end = &loop->common_modes;
    loop->is_main = is_main;
    loop->resume = -1;
    loop_note_slack(loop);
    loop->waker = waker_create();
    if (loop->waker) {
        loop->default_mode = mode_declare(loop, kCFRunLoopDefaultMode);
    }
    if (!loop->default_mode) {
        loop->is_dead = true; /* a living loop may not be released */
        object_release(loop);
        return NULL;
    }
    mode_make_common(loop, loop->default_mode); /* it is common from the start (rule 18) */
    return loop;
}

bool loop_refuse(CFRunLoopRef loop)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (loop->is_main) {
        fault_log_once(&logged, "the main thread has ended: what is added to its run loop is ignored");
    }
    return false;
}

int loop_event(CFRunLoopRef loop)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    if (event >= 0) {
        return event;
    }
    event = kernel.event_create();
    if (event >= 0) {
        atomic_store_explicit(&loop->waker->event, event, memory_order_relaxed);
    }
    return event;
}
