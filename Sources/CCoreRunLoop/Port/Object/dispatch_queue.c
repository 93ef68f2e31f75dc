/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch sources for ports. libdispatch calls on a thread of the queue; the other functions run on any thread. */
#include "Port/Object/dispatch_queue.h"

#include <stdint.h>
#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"
#include "Port/Message/port_receive.h"
#include "Support/libdispatch.h"

/*
 * libdispatch does not watch the port's socket itself, but a wait set with the socket in it. libdispatch closes its descriptor only some
 * time after the source was cancelled. A set keeps no socket open until then, nor in the child of a fork. And the port may get another
 * socket.
 */
struct dispatch_attachment {
    CFMessagePortRef port; /* constant: a reference */
    int set; /* constant */
    void *source; /* constant once the port has the attachment */
};

static void receive_on_queue(void *context)
{
    local_port_receive(((struct dispatch_attachment *)context)->port);
}

static void free_attachment(void *context)
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

    attachment = libdispatch_is_there() ? make_attachment(port) : NULL;
    if (!attachment) {
        return NULL;
    }
    source = dispatch_source_create(_dispatch_source_type_read, (uintptr_t)attachment->set, 0, queue);
    if (!source) {
        free_attachment(attachment);
        return NULL;
    }
    attachment->source = source;
    dispatch_set_context(source, attachment);
    dispatch_source_set_event_handler_f(source, receive_on_queue);
    dispatch_source_set_cancel_handler_f(source, free_attachment);
    dispatch_resume(source);
    return attachment;
}

int dispatch_queue_watch(const struct dispatch_attachment *attachment, int socket)
{
    return kernel.set_add(attachment->set, socket, kernel_readable, 0);
}

void dispatch_queue_detach(struct dispatch_attachment *attachment)
{
    void *source = attachment->source; /* a copy: the source's end frees the attachment, on the queue */

    dispatch_source_cancel(source);
    dispatch_release(source);
}
