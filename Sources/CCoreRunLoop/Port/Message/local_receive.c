/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives from a local port's local queue, which threads of this process fill. The port's source takes one local message each time that it
 * is performed, on the thread of the performing loop.
 */
#include "Port/Message/local_receive.h"

#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Source/descriptor_source.h"
#include "Port/Message/received_message.h"

/* Takes a local message, if there is one, and begins its call. Returns false if the message exceeds the budget. */
static bool take_local_message(CFMessagePortRef port, struct received_message *message, bool *ret_has_more)
{
    struct local_port *local = &port->side.local;
    bool fits = true;

    *ret_has_more = false;
    port_lock(port);
    message->local_queue = local->local_queue;
    if (message->local_queue) {
        local_queue_retain(message->local_queue);
        message->local_message = local_queue_take(message->local_queue, ret_has_more);
    }
    if (message->local_message) {
        message->asker.message_id = message->local_message->message_id;
        message->asker.process = message->local_queue->process;
        message->asker.deadline_ns = message->local_message->deadline_ns;
        message->data = message->local_message->data;
        fits = received_message_reserve(local, (uint64_t)CFDataGetLength(message->data));
    }
    if (message->local_message && fits) {
        message->accepted = (uint64_t)CFDataGetLength(message->data);
        message->traced = (uintptr_t)message->local_message;
        received_message_begin(port, message);
    }
    port_unlock(port);
    return fits;
}

void local_port_receive_local(CFMessagePortRef port, CFRunLoopSourceRef source)
{
    struct received_message message = {.data = NULL};
    bool has_more;
    bool fits;

    descriptor_source_take_post(source); /* before the local queue is read: a message that comes later posts the source again */
    fits = take_local_message(port, &message, &has_more);
    if (has_more) {
        descriptor_source_post(source);
    }
    if (!fits) {
        received_message_log_over_budget((uint64_t)CFDataGetLength(message.data), kernel_ports.process_id());
        local_queue_drop(message.local_queue, message.local_message);
    } else if (message.local_message) {
        received_message_run(port, &message);
    }
    if (message.local_queue) {
        local_queue_release(message.local_queue);
    }
}
