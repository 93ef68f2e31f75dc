/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes in at a local port's inbox, from threads of this process: one letter each time that the port's source is performed for it. On
 * the thread of the loop that performs it.
 */
#include "Kernel/kernel_ports.h"
#include "Loop/descriptor_source.h"
#include "Port/incoming.h"

/* Takes a letter and begins its call. False: it is beyond the budget. */
static bool take_letter(CFMessagePortRef port, struct incoming *message, bool *ret_has_more)
{
    struct local_port *local = &port->side.local;
    bool fits = true;

    *ret_has_more = false;
    port_lock(port);
    message->inbox = local->inbox;
    if (message->inbox) {
        inbox_retain(message->inbox);
        message->letter = inbox_take(message->inbox, ret_has_more);
    }
    if (message->letter) {
        message->request.message_id = message->letter->message_id;
        message->data = message->letter->data;
        fits = incoming_reserve(local, (uint64_t)CFDataGetLength(message->data));
    }
    if (message->letter && fits) {
        message->accepted = (uint64_t)CFDataGetLength(message->data);
        incoming_begin(port, message);
    }
    port_unlock(port);
    return fits;
}

void local_port_receive_letter(CFMessagePortRef port, CFRunLoopSourceRef source)
{
    struct incoming message = {.data = NULL};
    bool has_more;
    bool fits;

    descriptor_source_take_post(source); /* before the inbox is looked at: what comes after that posts anew */
    fits = take_letter(port, &message, &has_more);
    if (has_more) {
        descriptor_source_post(source);
    }
    if (!fits) {
        incoming_log_over_budget((uint64_t)CFDataGetLength(message.data), kernel_ports.process_id());
        inbox_drop(message.inbox, message.letter);
    } else if (message.letter) {
        incoming_run(port, &message);
    }
    if (message.inbox) {
        inbox_release(message.inbox);
    }
}
