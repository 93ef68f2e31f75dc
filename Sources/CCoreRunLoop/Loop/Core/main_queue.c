/* SPDX-License-Identifier: Apache-2.0 */
/* Calls libdispatch's interface for run loops: one function returns a descriptor, the other drains the main queue. */
#include "Loop/Core/main_queue.h"

#include <stddef.h>

#include "Kernel/kernel.h"

/* libdispatch defines these two. Their addresses are NULL if it is not in the process. */
extern int _dispatch_get_main_queue_handle_4CF(void) __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *unused) __attribute__((weak));

bool main_queue_is_abandoned;

bool main_queue_is_available(void)
{
    return !main_queue_is_abandoned && _dispatch_get_main_queue_handle_4CF != NULL && _dispatch_main_queue_callback_4CF != NULL;
}

void main_queue_abandon(void)
{
    main_queue_is_abandoned = true;
}

bool main_queue_serves(CFRunLoopRef loop, const struct mode *mode)
{
    return loop->is_main && mode->is_common && !loop->in_main_queue && main_queue_is_available();
}

int main_queue_descriptor(void)
{
    return main_queue_is_available() ? _dispatch_get_main_queue_handle_4CF() : -1;
}

bool main_queue_is_ready(void)
{
    int descriptor = main_queue_descriptor();

    return descriptor >= 0 && (kernel.descriptor_ready(descriptor, kernel_readable) & kernel_readable);
}

void main_queue_drain(CFRunLoopRef loop)
{
    invariant(loop->is_main && !loop->in_main_queue);
    (void)kernel.counter_drain(main_queue_descriptor());
    loop->in_main_queue = true; /* a run nested in one of the blocks does not drain the queue (rule 179) */
    _dispatch_main_queue_callback_4CF(NULL);
    loop->in_main_queue = false;
}
