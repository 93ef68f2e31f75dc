/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out for received messages; see received_message.h. No state of its own. */
#include "Port/Message/received_message.h"

#include <stdlib.h>

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Trace/trace.h"
#include "Port/Wire/port_log.h"
#include "Port/Core/local_info.h"
#include "Port/Core/message_trace.h"

/* ---- the budget ---- */

bool received_message_reserve(struct local_port *local, uint64_t length)
{
    bool fits = length <= local->budget && local->in_use <= local->budget - length;

    local->in_use += fits ? length : 0;
    invariant(!fits || local->in_use <= local->budget);
    return fits;
}

void received_message_log_over_budget(uint64_t length, pid_t pid)
{
    port_log(port_log_receiver, "a message of %llu bytes from process %d was dropped: it is beyond the port's memory budget",
             (unsigned long long)length, (int)pid);
}

/* ---- the callout's beginning and end ---- */

void received_message_begin(CFMessagePortRef port, struct received_message *message)
{
    struct local_port *local = &port->side.local;

    invariant_held(&port->lock);
    invariant(!message->is_in_call);
    message->memory = local->spare_message;
    local->spare_message = NULL;
    message->is_in_call = port_is_valid(port);
    if (message->is_in_call && local->receiver) {
        message->receiver = local->receiver;
        message->receiver->calls++;
        message->info = message->receiver->object;
    } else if (message->is_in_call) {
        message->info = callout_info_begin(&local->info);
    }
}

/* Ends the call, and frees or keeps the message's memory. If it returns true, `*ret_info` is to be released once the lock is dropped. */
REQUIRES(the_port_lock) static bool end_call(struct local_port *local, const struct received_message *message, void **ret_info)
{
    struct received_message *memory = message->memory;
    bool releases = false;

    invariant(local->in_use >= message->accepted);
    local->in_use -= message->accepted;
    if (message->receiver) {
        releases = receiver_call_ended(local, message->receiver, ret_info) && local->context.release;
    } else if (message->is_in_call) {
        releases = callout_info_end(&local->info, ret_info) && local->context.release;
    }
    if (local->spare_message) {
        free(memory);
    } else {
        local->spare_message = memory;
    }
    return releases;
}

void received_message_give_up(CFMessagePortRef port, struct received_message *message)
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

static void release_retained(const struct received_message *message)
{
    const struct local_port *local = &message->port->side.local;

    if (message->has_retained && local->context.release) {
        local->context.release(message->info);
    }
}

/* Ends the call of a callout that did not return. There will be no reply, and a sender that waits for one is told. */
static void end_left_call(const void *received)
{
    struct received_message message = *(const struct received_message *)received; /* a copy: end_call gives the original's memory up */
    struct local_port *local = &message.port->side.local;
    void *info = NULL;
    bool releases;

    port_log(port_log_receiver, "a message was dropped: the callback that got it did not return");
    release_retained(&message);
    reply_dropped(message.port, &message.asker, wire_drop_memory);
    port_lock(message.port);
    releases = end_call(local, &message, &info);
    port_unlock(message.port);
    if (message.local_message) {
        local_queue_drop(message.local_queue, message.local_message);
    } else {
        CFRelease(message.data);
    }
    if (message.local_queue) {
        local_queue_release(message.local_queue);
    }
    if (releases) {
        local->context.release(info);
    }
}

static void trace_message_event(enum trace_kind kind, const struct received_message *message, CFMessagePortRef port)
{
    if (trace_is_on() && message->traced != 0) {
        trace_write(kind, message->local_message ? trace_within_process : trace_by_socket, message->traced, (uintptr_t)port);
    }
    if (trace_is_on() && kind == trace_message_comes) {
        message_trace_named(trace_port_is_served, 0, (uintptr_t)port, port);
    }
}

static CFDataRef call_out(CFMessagePortRef port, struct received_message *message)
{
    const struct local_port *local = &port->side.local;
    CFDataRef reply = NULL;

    if (local->context.retain) {
        message->info = (void *)(uintptr_t)local->context.retain(message->info); /* around each callback (rule 224) */
        message->has_retained = true;
    }
    if (local->answering) {
        trace_callout_begin(trace_message, port, (void (*)(void))local->answering);
        trace_message_event(trace_message_comes, message, port);
        reply = local->answering(port, message->asker.message_id, message->data, message->info, message);
        trace_callout_end(trace_message, port);
    } else if (local->callout) {
        trace_callout_begin(trace_message, port, (void (*)(void))local->callout);
        trace_message_event(trace_message_comes, message, port);
        reply = local->callout(port, message->asker.message_id, message->data, message->info);
        trace_callout_end(trace_message, port);
    }
    release_retained(message);
    return reply;
}

/* Calls out. The calling run keeps the message, so that its call ends even if the callback does not return. */
static CFDataRef call_out_held(CFMessagePortRef port, struct received_message *message)
{
    struct received_message *memory = message->memory ? message->memory : malloc(sizeof *memory);
    CFRunLoopRef caller = memory ? thread_loop_if_any() : NULL; /* NULL on a thread of a dispatch queue */
    uint32_t mark;
    CFDataRef reply;

    message->port = port;
    message->memory = memory;
    if (!caller) {
        return call_out(port, message);
    }
    *memory = *message;
    mark = cleanup_push(caller, end_left_call, memory);
    reply = call_out(port, memory);
    cleanup_pop(caller, mark);
    *message = *memory; /* the callout may have deferred the reply, or set a status */
    return reply;
}

void received_message_run(CFMessagePortRef port, struct received_message *message)
{
    struct local_port *local = &port->side.local;
    CFDataRef reply = message->is_in_call ? call_out_held(port, message) : NULL;
    struct reply answer;
    void *info = NULL;
    bool releases;

    if (message->asker.channel || (message->local_message && message->local_message->loop)) {
        trace_message_event(trace_reply_is_sent, message, port);
    }
    if (message->asker.channel) {
        reply_load(&message->asker, message->status, reply, &answer);
    }
    port_lock(port);
    releases = end_call(local, message, &info);
    if (message->asker.channel && message->is_in_call) {
        reply_send(local, &message->asker, &answer);
    } else if (message->asker.channel) {
        channel_table_end(&local->channels, message->asker.channel); /* no callout: the port had ended, which the asker is to hear */
    }
    port_unlock(port);
    if (message->asker.channel) {
        reply_release(&answer);
    }
    if (message->local_message && !message->is_in_call) {
        (void)local_message_end(message->local_message, local_message_gone);
    }
    if (message->local_message) {
        reply_by_local_queue(message->local_queue, message->local_message, message->status, reply);
    } else {
        CFRelease(message->data);
    }
    object_release_if_any(reply);
    if (releases) {
        local->context.release(info);
    }
}
