/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch sources for ports. libdispatch's functions are weak: absent, they are NULL. */
#include "Port/dispatch_queue.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

/* A descriptor of its own: libdispatch lets go of it some time after the source was cancelled. */
struct attachment {
    CFMessagePortRef port;
    int descriptor;
};

static void receive(void *context)
{
    local_port_receive(((struct attachment *)context)->port);
}

static void end(void *context)
{
    struct attachment *attachment = context;

    (void)kernel.close(attachment->descriptor);
    object_release(attachment->port);
    free(attachment);
}

static struct attachment *attach(CFMessagePortRef port, int socket)
{
    struct attachment *attachment = malloc(sizeof *attachment);
    int descriptor = attachment ? kernel_ports.duplicate(socket) : -1;

    if (descriptor < 0) {
        free(attachment);
        return NULL;
    }
    object_retain(port);
    *attachment = (struct attachment){port, descriptor};
    return attachment;
}

void *dispatch_queue_attach(CFMessagePortRef port, int socket, void *queue)
{
    struct attachment *attachment;
    void *source;

    if (!dispatch_source_create || !dispatch_set_context || !dispatch_source_set_event_handler_f || !dispatch_source_set_cancel_handler_f ||
        !dispatch_resume || !dispatch_source_cancel || !dispatch_release) {
        return NULL;
    }
    attachment = attach(port, socket);
    if (!attachment) {
        return NULL;
    }
    source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)attachment->descriptor, 0, queue);
    if (!source) {
        end(attachment);
        return NULL;
    }
    dispatch_set_context(source, attachment);
    dispatch_source_set_event_handler_f(source, receive);
    dispatch_source_set_cancel_handler_f(source, end);
    dispatch_resume(source);
    return source;
}

void dispatch_queue_detach(void *source)
{
    dispatch_source_cancel(source);
    dispatch_release(source);
}
