/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that go by the owner's socket. This file decides where their data travels, sends them, and judges how the wait for the reply
 * has ended. The reply comes by a channel. A channel belongs to the thread that has taken it, until the thread gives it back. The file has
 * no state of its own.
 */
#include "Port/Message/socket_request.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Run/thread_registry.h"
#include "Port/Core/callback_cleanup.h"
#include "Port/Core/message_trace.h"
#include "Port/Core/port_use.h"
#include "Port/Message/remote_send.h"
#include "Port/Message/reply_wait.h"
#include "Port/Wire/port_log.h"

static void close_load(struct load *load)
{
    for (int i = 0; i < load->count; i++) {
        (void)kernel.close(load->descriptors[i]);
    }
    load->count = 0;
}

/* ---- loading ---- */

/* How large the channel's arena has to be for this request, and for a reply as long as the longest so far. */
static uint64_t arena_wanted(const struct client_channel *channel, uint64_t length)
{
    return length > channel->longest_reply ? length : channel->longest_reply;
}

static bool wants_arena(struct client_channel *channel, uint64_t length)
{
    bool wanted = length > payload_arena_min || channel->longest_reply > payload_arena_min ||
                  (length > payload_arena_second && channel->sent_above_4k);

    channel->sent_above_4k |= length > payload_arena_second;
    return wanted && !channel->refuses_arena && length <= payload_arena_max && channel->arena.size < arena_wanted(channel, length);
}

/* Makes a new arena for the channel. If that fails, the old arena stays, and load_data finds another way for data that does not fit. */
static void renew_arena(struct client_channel *channel, struct wire_frame *frame, struct load *load, uint64_t length)
{
    struct arena arena = {NULL, 0};
    int descriptor;

    if (arena_create(arena_wanted(channel, length), &arena, &descriptor) < 0) {
        return;
    }
    arena_release(&channel->arena);
    channel->arena = arena;
    load->descriptors[load->count++] = descriptor;
    frame->flags |= wire_new_arena;
}

/* Decides how the data travels. Returns 0 or a negative errno. `channel` is NULL for one-way messages. */
static int load_data(CFMessagePortRef port, struct client_channel *channel, struct wire_frame *frame, struct load *load, CFDataRef data)
{
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    const UInt8 *bytes = length > 0 ? CFDataGetBytePtr(data) : NULL;
    int memory;

    frame->length = length;
    if (channel && wants_arena(channel, length)) {
        renew_arena(channel, frame, load, length);
    }
    if (length == 0) {
        frame->flags |= wire_no_data;
        return 0;
    }
    if (channel && length > payload_arena_from && length <= channel->arena.size) {
        memcpy(channel->arena.address, bytes, (size_t)length);
        frame->flags |= wire_in_arena;
        return 0;
    }
    if (length <= remote_port_packet_data_max(port, length)) {
        load->bytes = bytes;
        return 0;
    }
    if (frame->flags & wire_new_arena) { /* drop it: one frame cannot carry both an arena and a memory file */
        close_load(load);
        frame->flags &= (uint16_t)~wire_new_arena;
        arena_release(&channel->arena);
    }
    memory = payload_put(bytes, length);
    if (memory < 0) {
        port_log("CFMessagePortSendRequest", "%llu bytes cannot be passed on in memory: %s", (unsigned long long)length,
                 payload_put_error_text(memory));
        return memory;
    }
    load->descriptors[load->count++] = memory;
    frame->flags |= wire_in_memory;
    return 0;
}

/* ---- one way ---- */

SInt32 socket_one_way_put(CFMessagePortRef port, const struct request *request, int64_t deadline_ns)
{
    struct wire_frame frame = {.type = wire_one_way, .message_id = request->message_id};
    struct load load = {.bytes = NULL};
    SInt32 result = kCFMessagePortTransportError;
    bool can;

    port_lock(port);
    can = remote_port_use(port);
    port_unlock(port);
    if (!can) {
        return kCFMessagePortIsInvalid;
    }
    if (load_data(port, NULL, &frame, &load, request->data) == 0) {
        result = remote_port_send(port, &frame, &load, deadline_ns);
    }
    close_load(&load);
    port_lock(port);
    remote_port_unuse(port);
    port_unlock(port);
    return result;
}

SInt32 socket_one_way_send(CFMessagePortRef port, const struct request *request)
{
    return socket_one_way_put(port, request, request_send_deadline(request));
}

/* ---- results ---- */

SInt32 socket_request_judge_hang_up(CFMessagePortRef port, const struct client_channel *channel, bool is_last_look)
{
    /*
     * A channel that ends never proves the receiver's end. One that never took it may have had no descriptor or memory left for it, and one
     * that had kept it closes the channels of a peer that misbehaves. The next request brings a new channel.
     */
    if (!remote_port_is_alive(port)) {
        return kCFMessagePortBecameInvalidError;
    }
    if (!is_last_look) {
        return kCFMessagePortSuccess;
    }
    port_log("CFMessagePortSendRequest",
             channel->server_keeps_it ? "the receiver lives, but has closed the channel for the reply to a request"
                                      : "the receiver refused a request: it is of another version, or has no descriptor or memory for "
                                        "the reply's channel");
    return kCFMessagePortTransportError;
}

/* Finds the result for a channel that was hung up without a last frame. */
static SInt32 judge_hang_up(CFMessagePortRef port, const struct client_channel *channel)
{
    int64_t deadline_ns = kernel.monotonic_ns() + socket_request_dying_ns;
    SInt32 result;

    while ((result = socket_request_judge_hang_up(port, channel, kernel.monotonic_ns() >= deadline_ns)) == kCFMessagePortSuccess) {
        kernel_ports.pause(socket_request_asking_ns);
    }
    return result;
}

static SInt32 result_of(CFMessagePortRef port, const struct client_channel *channel)
{
    switch (channel->pending->state) {
    case pending_replied:
        return kCFMessagePortSuccess; /* a reply counts even if the port died at the same time (rule 231) */
    case pending_dropped:
    case pending_broken:
        return kCFMessagePortTransportError;
    case pending_hung_up:
        return port_is_valid(port) ? judge_hang_up(port, channel) : kCFMessagePortBecameInvalidError;
    case pending_open:
    case pending_memory:
        break;
    }
    return port_is_valid(port) ? kCFMessagePortReceiveTimeout : kCFMessagePortBecameInvalidError;
}

/* ---- requests ---- */

void socket_request_end_channel(CFMessagePortRef port, struct client_channel *channel)
{
    const struct pending_reply *pending = channel->pending;
    uint64_t length = pending->reply ? (uint64_t)CFDataGetLength(pending->reply) : 0;
    bool is_reusable = (pending->state == pending_replied || pending->state == pending_dropped) && pending->says_kept;

    if (pending->refuses_arena) {
        channel->refuses_arena = true;
        arena_release(&channel->arena);
    } else if (pending->state == pending_dropped) {
        arena_release(&channel->arena); /* the receiver may not have taken over the request's arena */
    } else if (length > channel->longest_reply && length <= payload_arena_max) {
        channel->longest_reply = length;
    }
    channel->server_keeps_it |= is_reusable;
    if (is_reusable) {
        client_channel_offer_page(port, channel);
    }
    channel->pending = NULL;
    client_channel_give(port, channel, is_reusable);
}

/* Gives the channel back after a request that was not sent. A kept channel stays usable, unless the receiver never saw its new arena. */
static void take_back(CFMessagePortRef port, struct client_channel *channel, const struct wire_frame *frame)
{
    client_channel_give(port, channel, channel->server_keeps_it && !(frame->flags & wire_new_arena));
}

/* From now on a serving loop sees the reply. Returns false if there is no memory. */
static bool begin_wait(struct client_channel *channel)
{
    if (!channel->serving_loop) {
        return true;
    }
    channel->pending = &channel->own_pending;
    if (channel->page) {
        reply_page_await(channel->page);
    }
    return client_channel_enter(channel, channel->serving_loop, kCFRunLoopDefaultMode);
}

SInt32 socket_request_put(CFMessagePortRef port, struct client_channel *channel, int end, const struct request *request,
                          struct wire_frame *frame, int64_t deadline_ns)
{
    struct load load = {.bytes = NULL};
    SInt32 result = kCFMessagePortTransportError;

    *frame = (struct wire_frame){.type = wire_request,
                                 .message_id = request->message_id,
                                 .conversation = channel->own_pending.conversation,
                                 .channel = channel->number,
                                 .token = channel->token};
    if (channel->own_pending.wants_status) {
        frame->flags = wire_want_status;
        frame->deadline_ns = request->deadline_ns == kernel_never ? 0 : (uint64_t)request->deadline_ns;
    }
    if (end >= 0) {
        frame->flags |= wire_new_channel;
        frame->name = port->name.bytes;
        frame->name_length = port->name.length;
        load.descriptors[load.count++] = end;
    }
    lock_take(&channel->lock);
    if (begin_wait(channel) && load_data(port, channel, frame, &load, request->data) == 0) {
        result = remote_port_send(port, frame, &load, deadline_ns);
    }
    if (result != kCFMessagePortSuccess) {
        channel->pending = NULL; /* the loop must not take the end of a channel that was not sent for that of the request */
    }
    lock_drop(&channel->lock);
    close_load(&load);
    if (result != kCFMessagePortSuccess) {
        take_back(port, channel, frame);
    }
    return result;
}

/* Ends the request after a callback in the wait has ended the thread or jumped out of it: socket_request_send does not get to do so. */
static void end_left_request(const void *waiting)
{
    struct client_channel *channel = (struct client_channel *)(uintptr_t)waiting;
    CFMessagePortRef port = channel->pending->port;
    CFDataRef reply = channel->pending->reply;

    channel->pending = NULL;
    client_channel_give(port, channel, false);
    remote_port_end_by_socket(port);
    object_release_if_any(reply);
    message_port_remind(port);
    object_release(port);
}

SInt32 socket_request_send(CFMessagePortRef port, const struct request *request, CFDataRef *ret_reply)
{
    struct pending_reply pending = pending_reply_to(port, request);
    CFRunLoopRef loop = thread_registry_current();
    struct wire_frame frame;
    struct reply_wait wait = {.port = port, .loop = loop, .mode = request->reply_mode};
    struct client_channel *channel;
    CFDataRef reply;
    SInt32 result;
    uint32_t begun;
    int error = 0;
    int end;

    channel = client_channel_take(port, NULL, &pending, &end, &error);
    if (!channel && error == -ENOTCONN) {
        return kCFMessagePortIsInvalid;
    }
    if (!channel) {
        port_log("CFMessagePortSendRequest", "there is no means to take a reply: %s", port_error_text(error));
        return kCFMessagePortTransportError;
    }
    result = socket_request_put(port, channel, end, request, &frame, request_send_deadline(request));
    if (result != kCFMessagePortSuccess) {
        return result;
    }
    wait.now_ns = kernel.monotonic_ns();
    wait.deadline_ns = request_reply_deadline(request, wait.now_ns);
    wait.is_over = &channel->pending->is_over;
    wait.channel = channel;
    begun = callback_cleanup_begin(loop, end_left_request, channel);
    reply_wait_run(&wait);
    callback_cleanup_end(loop, begun);
    result = result_of(port, channel);
    if (result == kCFMessagePortSuccess && trace_is_on()) {
        trace_write(trace_reply_comes, trace_by_socket, message_trace_id(&port->name, kernel_ports.process_id(), frame.sequence),
                    (uintptr_t)port);
    }
    reply = channel->pending->reply;
    if (request->ret_status) {
        *request->ret_status = channel->pending->status;
    }
    socket_request_end_channel(port, channel);
    if (result == kCFMessagePortSuccess && ret_reply) {
        *ret_reply = reply;
    } else {
        object_release_if_any(reply);
    }
    return result;
}
