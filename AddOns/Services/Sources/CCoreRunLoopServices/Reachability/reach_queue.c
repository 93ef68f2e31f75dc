/* SPDX-License-Identifier: Apache-2.0 */
/* Targets on queues of libdispatch, where the process has that: it is not linked, only found. Any thread. */
#include <stdint.h>

#include "Reachability/reach_target.h"
#include "Support/libdispatch.h"

extern void *dispatch_get_global_queue(intptr_t priority, uintptr_t flags) __attribute__((weak));
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));

static void serve_on_queue(void *context)
{
    reach_serve(context);
}

static void end_on_queue(void *context)
{
    CFRelease(context);
}

void *reach_queue_attach(reach_target_ref target, void *queue)
{
    bool is_there = libdispatch_is_there() && dispatch_get_global_queue && dispatch_async_f;
    void *source = is_there ? dispatch_source_create(_dispatch_source_type_read, (uintptr_t)target->set, 0, queue) : NULL;

    if (source) {
        dispatch_set_context(source, (void *)(uintptr_t)CFRetain(target));
        dispatch_source_set_event_handler_f(source, serve_on_queue);
        dispatch_source_set_cancel_handler_f(source, end_on_queue);
        dispatch_resume(source);
    }
    return source;
}

void reach_queue_detach(void *queue_source)
{
    dispatch_source_cancel(queue_source);
    dispatch_release(queue_source);
}

void reach_queue_perform_away(void *info, void (*function)(void *info))
{
    dispatch_async_f(dispatch_get_global_queue(0, 0), info, function);
}
