/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch sources for ports. libdispatch's functions are weak: absent, they are NULL. */
#include "Port/dispatch_queue.h"

#include <stddef.h>
#include <stdint.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Port/message_port.h"

extern const char _dispatch_source_type_read[] __attribute__((weak));
extern void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue) __attribute__((weak));
extern void dispatch_set_context(void *object, void *context) __attribute__((weak));
extern void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_resume(void *object) __attribute__((weak));
extern void dispatch_source_cancel(void *source) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));

static void receive(void *port)
{
    local_port_receive(port);
}

static void release_port(void *port)
{
    object_release(port);
}

void *dispatch_queue_attach(CFMessagePortRef port, int socket, void *queue)
{
    void *source;

    if (!dispatch_source_create || !dispatch_set_context || !dispatch_source_set_event_handler_f || !dispatch_source_set_cancel_handler_f ||
        !dispatch_resume || !dispatch_source_cancel || !dispatch_release) {
        return NULL;
    }
    source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)socket, 0, queue);
    if (!source) {
        return NULL;
    }
    object_retain(port);
    dispatch_set_context(source, port);
    dispatch_source_set_event_handler_f(source, receive);
    dispatch_source_set_cancel_handler_f(source, release_port);
    dispatch_resume(source);
    return source;
}

void dispatch_queue_detach(void *source)
{
    dispatch_source_cancel(source);
    dispatch_release(source);
}
