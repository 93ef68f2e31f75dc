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
static SInt32 put_local_message(CFMessagePortRef port, struct local_message *local_message, int64_t deadline_ns)
{
    struct local_queue *local_queue = port->side.remote.local_queue;
    SInt32 gone = kCFMessagePortIsInvalid;

    trace_event(trace_message_is_sent, trace_within_process, local_message, (uintptr_t)port);
    while (port_is_valid(port)) {
        uint32_t room_changes;
        enum local_queue_put outcome = local_queue_put(local_queue, local_message, &room_changes);
        int64_t now_ns;

        if (outcome == local_queue_took) {
            return kCFMessagePortSuccess;
        }
        if (outcome == local_queue_gone) {
            break;
        }
        now_ns = kernel.monotonic_ns();
        if (now_ns >= deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        gone = kCFMessagePortBecameInvalidError;
        local_queue_wait_for_room(local_queue, room_changes,
                                  deadline_ns - now_ns > request_slice_ns ? now_ns + request_slice_ns : deadline_ns);
    }
    return gone;
}

static SInt32 log_no_memory(void)
{
    port_log("CFMessagePortSendRequest", "there is no memory for a message: %s", port_error_text(-ENOMEM));
    return kCFMessagePortTransportError;
}

SInt32 local_one_way_send(CFMessagePortRef port, const struct request *request)
{
    struct local_message *local_message = local_message_create(request->message_id, request->data, NULL);
    SInt32 result;

    if (!local_message) {
        return log_no_memory();
    }
    result = put_local_message(port, local_message, request_send_deadline(request));
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

    note_local_message(port, local_message, false);
    if (local_message_give_up(local_message) == local_message_given_up) {
        local_queue_tell_given_up(port->side.remote.local_queue, local_message);
    }
    local_message_release(local_message);
    message_port_remind(port);
    object_release(port);
}

/* Waits for the reply to a message that was put in. The wait makes one run even if the reply is there already. */
static SInt32 await_local_reply(CFMessagePortRef port, struct local_message *local_message, const struct request *request)
{
    struct reply_wait wait = {.port = port,
                              .loop = local_message->loop,
                              .mode = request->reply_mode,
                              .now_ns = kernel.monotonic_ns(),
                              .is_over = &local_message->state};
    enum local_message_state state;
    uint32_t begun;

    wait.deadline_ns = request_reply_deadline(request, wait.now_ns);
    note_local_message(port, local_message, true); /* before reading the port's validity: after finding it valid, the end wakes us */
    begun = callback_cleanup_begin(wait.loop, end_left_local_request, local_message);
    reply_wait_run(&wait);
    callback_cleanup_end(wait.loop, begun);
    state = local_message_give_up(local_message);
    if (state == local_message_given_up) {
        local_queue_tell_given_up(port->side.remote.local_queue, local_message);
    }
    note_local_message(port, local_message, false);
    return result_of_local_message(port, state);
}

/* Passes on what the receiver has answered. */
static void take_local_reply(CFMessagePortRef port, struct local_message *local_message, const struct request *request,
                             CFDataRef *ret_reply)
{
    trace_event(trace_reply_comes, trace_within_process, local_message, (uintptr_t)port);
    if (request->ret_status) {
        *request->ret_status = local_message->status;
    }
    if (ret_reply) {
        *ret_reply = local_message->reply;
        local_message->reply = NULL;
    }
}

SInt32 local_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    struct local_message *local_message = local_message_create(request->message_id, request->data, thread_registry_current());
    SInt32 result;

    if (!local_message) {
        return log_no_memory();
    }
    local_message->remote = port;
    local_message->wants_status = request->ret_status != NULL;
    local_message->deadline_ns = request->deadline_ns == kernel_never ? 0 : request->deadline_ns;
    result = put_local_message(port, local_message, request_send_deadline(request));
    if (result == kCFMessagePortSuccess) {
        result = await_local_reply(port, local_message, request);
        if (result == kCFMessagePortSuccess) {
            take_local_reply(port, local_message, request, ret_reply);
        }
    } else {
        local_message_release(local_message); /* the receiver's reference: the receiver never got the message */
    }
    local_message_release(local_message);
    return result;
}
