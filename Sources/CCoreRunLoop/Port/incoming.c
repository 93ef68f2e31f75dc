/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that have come in; see incoming.h. No state of its own. */
#include "Port/incoming.h"

#include <stdlib.h>

#include "Loop/held.h"
#include "Port/port_log.h"

/* ---- the budget ---- */

bool incoming_reserve(struct local_port *local, uint64_t length)
{
    bool fits = length <= local->budget && local->in_use <= local->budget - length;

    local->in_use += fits ? length : 0;
    return fits;
}

void incoming_log_over_budget(uint64_t length, pid_t pid)
{
    port_log(port_log_receiver, "a message of %llu bytes from process %d was dropped: it is beyond the port's memory budget",
             (unsigned long long)length, (int)pid);
}

/* ---- the callout's beginning and end ---- */

void incoming_begin(CFMessagePortRef port, struct incoming *message)
{
    struct local_port *local = &port->side.local;

    message->memory = local->spare_incoming;
    local->spare_incoming = NULL;
    message->is_in_call = port_is_valid(port);
    if (message->is_in_call && local->callee) {
        message->callee = local->callee;
        message->callee->calls++;
        message->info = message->callee->object;
    } else if (message->is_in_call) {
        message->info = called_info_begin(&local->info);
    }
}

/* The message is done with, and so is its memory. P; `ret_info` gets what is to be released once the lock is dropped, if true. */
static bool end_call(struct local_port *local, const struct incoming *message, void **ret_info)
{
    struct incoming *memory = message->memory;
    bool releases = false;

    local->in_use -= message->accepted;
    if (message->callee) {
        releases = local_port_leave(local, message->callee, ret_info) && local->context.release;
    } else if (message->is_in_call) {
        releases = called_info_end(&local->info, ret_info) && local->context.release;
    }
    if (local->spare_incoming) {
        free(memory);
    } else {
        local->spare_incoming = memory;
    }
    return releases;
}

void incoming_give_up(CFMessagePortRef port, struct incoming *message)
{
    struct local_port *local = &port->side.local;
    void *info = NULL;
    bool releases;

    port_lock(port);
    releases = end_call(local, message, &info);
    port_unlock(port);
    if (releases) {
        local->context.release(info);
    }
}

/* ---- the callout ---- */

static void release_retained(const struct incoming *message)
{
    const struct local_port *local = &message->port->side.local;

    if (message->has_retained && local->context.release) {
        local->context.release(message->info);
    }
}

/* The callout does not return: there will be no reply, and who waits for one is told. */
static void end_left_call(const void *received)
{
    struct incoming message = *(const struct incoming *)received; /* its memory goes before it is done with */
    struct local_port *local = &message.port->side.local;
    void *info = NULL;
    bool releases;

    port_log(port_log_receiver, "a message was dropped: the callback that got it did not return");
    release_retained(&message);
    reply_dropped(message.port, &message.request, wire_drop_memory);
    port_lock(message.port);
    releases = end_call(local, &message, &info);
    port_unlock(message.port);
    if (message.letter) {
        inbox_drop(message.inbox, message.letter);
        inbox_release(message.inbox);
    } else {
        CFRelease(message.data);
    }
    if (releases) {
        local->context.release(info);
    }
}

static CFDataRef call_out(CFMessagePortRef port, struct incoming *message)
{
    const struct local_port *local = &port->side.local;
    CFDataRef reply = NULL;

    if (local->context.retain) {
        message->info = (void *)(uintptr_t)local->context.retain(message->info); /* 224 */
        message->has_retained = true;
    }
    if (local->callout) {
        reply = local->callout(port, message->request.message_id, message->data, message->info);
    }
    release_retained(message);
    return reply;
}

/* The same, held by the run that has called. */
static CFDataRef call_out_held(CFMessagePortRef port, struct incoming *message)
{
    struct incoming *memory = message->memory ? message->memory : malloc(sizeof *memory);
    struct activation *caller = memory ? held_caller_if_any() : NULL;
    CFDataRef reply;

    message->port = port;
    message->memory = memory;
    if (!caller) {
        return call_out(port, message);
    }
    *memory = *message;
    held_in_hand(caller, end_left_call, memory);
    reply = call_out(port, memory);
    held_put_down(caller);
    return reply;
}

void incoming_run(CFMessagePortRef port, struct incoming *message)
{
    struct local_port *local = &port->side.local;
    CFDataRef reply = message->is_in_call ? call_out_held(port, message) : NULL;
    struct reply answer;
    void *info = NULL;
    bool releases;

    if (message->request.line) {
        reply_load(&message->request, reply, &answer);
    }
    port_lock(port);
    releases = end_call(local, message, &info);
    if (message->request.line) {
        reply_send(local, &message->request, &answer);
    }
    port_unlock(port);
    if (message->request.line) {
        reply_release(&answer);
    }
    if (message->letter) {
        inbox_reply(message->inbox, message->letter, reply_within_limit(reply));
    } else {
        CFRelease(message->data);
    }
    if (reply) {
        CFRelease(reply);
    }
    if (releases) {
        local->context.release(info);
    }
}
