/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends messages to a port of this process. The message goes into the port's local queue, and the calling thread's loop waits for the
 * message's state to change. No state of its own. The local queue and the caller own the local message, as local_queue.h says.
 */
#include "Port/Message/local_request.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Trace/trace.h"
#include "Port/Core/callback_cleanup.h"
#include "Port/Message/reply_wait.h"
#include "Port/Wire/port_log.h"

/* Puts a local message into the queue, and waits for room if it is full. Returns the same codes as remote_port_send. */
static SInt32 put_local_message(CFMessagePortRef port, struct local_message *local_message, struct send_clock *clock)
{
    struct local_queue *local_queue = port->side.remote.local_queue;
    enum local_queue_put outcome = local_queue_gone;
    SInt32 gone = kCFMessagePortIsInvalid;
    int64_t looked_ns;
    uint32_t taken;

    trace_event(trace_message_is_sent, trace_within_process, local_message, (uintptr_t)port);
    while (port_is_valid(port) && (outcome = local_queue_put(local_queue, local_message, &taken)) == local_queue_full) {
        clock->now_ns = 0;
        looked_ns = kernel.monotonic_ns();
        if (looked_ns >= clock->deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        gone = kCFMessagePortBecameInvalidError;
        local_queue_wait_for_room(local_queue, taken,
                                  clock->deadline_ns - looked_ns > request_slice_ns ? looked_ns + request_slice_ns : clock->deadline_ns);
        outcome = local_queue_gone;
    }
    return outcome == local_queue_took ? kCFMessagePortSuccess : gone;
}

static SInt32 log_no_memory(void)
{
    port_log("CFMessagePortSendRequest", "there is no memory for a message: %s", port_error_text(-ENOMEM));
    return kCFMessagePortTransportError;
}

SInt32 local_one_way_send(CFMessagePortRef port, const struct request *request)
{
    struct local_message *local_message = local_message_create(request->message_id, request->data, NULL);
    struct send_clock clock = send_clock_start(request);
    SInt32 result;

    if (!local_message) {
        return log_no_memory();
    }
    result = put_local_message(port, local_message, &clock);
    if (result != kCFMessagePortSuccess) {
        local_message_release(local_message);
    }
    return result;
}

static SInt32 result_of_local_message(CFMessagePortRef port, enum local_message_state state)
{
    switch (state) {
    case local_message_replied:
        return kCFMessagePortSuccess;
    case local_message_dropped:
        return kCFMessagePortTransportError;
    case local_message_gone:
        return kCFMessagePortBecameInvalidError;
    case local_message_waiting:
    case local_message_given_up:
        break;
    }
    return port_is_valid(port) ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError;
}

/* Enters the local message among those that the end of the remote port wakes, or takes it out. */
static void note_local_message(CFMessagePortRef port, struct local_message *local_message, bool waits)
{
    port_lock(port);
    if (waits) {
        list_append(&port->side.remote.local_messages, &local_message->sender_link);
    } else {
        list_remove(&local_message->sender_link);
    }
    port_unlock(port);
}

/* Ends a request after a callback in its wait has ended the thread or jumped out. */
static void end_left_local_request(const void *waiting)
{
    struct local_message *local_message = (struct local_message *)(uintptr_t)waiting;
    CFMessagePortRef port = local_message->remote;

    if (local_message->is_noted) {
        note_local_message(port, local_message, false);
    }
    if (local_message_give_up(local_message) == local_message_given_up) {
        local_queue_tell_given_up(port->side.remote.local_queue, local_message);
    }
    local_message_release(local_message);
    message_port_remind(port);
    object_release(port);
}

SInt32 local_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    CFRunLoopRef loop = thread_registry_current();
    struct local_message *local_message = local_message_create(request->message_id, request->data, loop);
    struct send_clock clock = send_clock_start(request);
    struct reply_wait wait = {.port = port, .loop = loop, .mode = request->reply_mode};
    enum local_message_state state;
    SInt32 result;
    uint32_t begun;
    bool waits;

    if (!local_message) {
        return log_no_memory();
    }
    local_message->remote = port;
    local_message->wants_status = request->ret_status != NULL;
    local_message->deadline_ns = request->deadline_ns == kernel_never ? 0 : request->deadline_ns;
    result = put_local_message(port, local_message, &clock);
    waits = result == kCFMessagePortSuccess; /* even if the reply is there: the wait makes one run */
    local_message->is_noted = waits;
    if (waits) {
        note_local_message(port, local_message, true); /* before reading the port's validity: after finding it valid, the end wakes us */
    }
    if (result == kCFMessagePortSuccess) {
        wait.deadline_ns = request_reply_deadline(request, &clock.now_ns);
        wait.now_ns = clock.now_ns;
        wait.is_over = &local_message->state;
        begun = callback_cleanup_begin(loop, end_left_local_request, local_message);
        reply_wait_run(&wait);
        callback_cleanup_end(loop, begun);
        state = local_message_give_up(local_message);
        if (state == local_message_given_up) {
            local_queue_tell_given_up(port->side.remote.local_queue, local_message);
        }
        result = result_of_local_message(port, state);
        if (result == kCFMessagePortSuccess && request->ret_status) {
            *request->ret_status = local_message->status;
        }
        if (result == kCFMessagePortSuccess) {
            trace_event(trace_reply_comes, trace_within_process, local_message, (uintptr_t)port);
        }
    } else {
        local_message_release(local_message); /* the receiver's reference: the receiver never got the message */
    }
    if (waits) {
        note_local_message(port, local_message, false);
    }
    if (result == kCFMessagePortSuccess && ret_reply) {
        *ret_reply = local_message->reply;
        local_message->reply = NULL;
    }
    local_message_release(local_message);
    return result;
}
