/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch sources for ports. libdispatch's functions are weak: absent, they are NULL. */
#include "Port/dispatch_queue.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Port/message_port.h"

extern const char _dispatch_source_type_read[] __attribute__((weak));
extern void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue) __attribute__((weak));
extern void dispatch_set_context(void *object, void *context) __attribute__((weak));
extern void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_resume(void *object) __attribute__((weak));
extern void dispatch_source_cancel(void *source) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));

/*
 * libdispatch watches a wait set with the port's socket in it: it lets go of its descriptor some time after the source was cancelled, and
 * a set keeps no socket open, neither then nor in the child of a fork; and the port may get another socket.
 */
struct dispatch_attachment {
    CFMessagePortRef port; /* C; a reference */
    int set; /* C */
    void *source; /* C once it is with the port */
};

static void receive(void *context)
{
    local_port_receive(((struct dispatch_attachment *)context)->port);
}

static void end(void *context)
{
    struct dispatch_attachment *attachment = context;

    (void)kernel.close(attachment->set);
    object_release(attachment->port);
    free(attachment);
}

static struct dispatch_attachment *make_attachment(CFMessagePortRef port)
{
    struct dispatch_attachment *attachment = malloc(sizeof *attachment);
    int set = attachment ? kernel.set_create() : -1;

    if (set < 0) {
        free(attachment);
        return NULL;
    }
    object_retain(port);
    *attachment = (struct dispatch_attachment){port, set, NULL};
    return attachment;
}

struct dispatch_attachment *dispatch_queue_attach(CFMessagePortRef port, void *queue)
{
    struct dispatch_attachment *attachment;
    void *source;

    if (!dispatch_source_create || !dispatch_set_context || !dispatch_source_set_event_handler_f || !dispatch_source_set_cancel_handler_f ||
        !dispatch_resume || !dispatch_source_cancel || !dispatch_release) {
        return NULL;
    }
    attachment = make_attachment(port);
    if (!attachment) {
        return NULL;
    }
    source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)attachment->set, 0, queue);
    if (!source) {
        end(attachment);
        return NULL;
    }
    attachment->source = source;
    dispatch_set_context(source, attachment);
    dispatch_source_set_event_handler_f(source, receive);
    dispatch_source_set_cancel_handler_f(source, end);
    dispatch_resume(source);
    return attachment;
}

int dispatch_queue_watch(const struct dispatch_attachment *attachment, int socket)
{
    return kernel.set_add(attachment->set, socket, kernel_readable, 0);
}

void dispatch_queue_detach(struct dispatch_attachment *attachment)
{
    void *source = attachment->source; /* its end frees the attachment, on the queue */

    dispatch_source_cancel(source);
    dispatch_release(source);
}
