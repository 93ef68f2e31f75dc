/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives messages from a local port's socket, and checks them. No field is trusted before it is checked.
 *
 * Data is copied into memory of the receiver's own before anything looks at it. A refused frame counts as an offence of its sender. Its
 * descriptors are closed, which the sender notices. Any thread that has a reference to the port may receive. Each function names the locks
 * that it needs.
 */
#include "Port/Message/port_receive.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Port/Message/received_message.h"
#include "Port/Message/channel_handover.h"
#include "Port/Core/message_trace.h"
#include "Port/Wire/port_log.h"
#include "Runtime/Value/data.h"
#include "Port/Core/port_use.h"

enum { housekeeping_max = 64 }; /* frames without a callout that one firing of the source takes */

/* ---- misbehaviour ---- */

/* NULL for a peer that is not known, whose offences are nobody's. */
static struct offender *offender_of(struct local_port *local, const struct peer *peer)
{
    struct offender *mildest = &local->offenders[0];

    if (!peer_is_known(peer)) {
        return NULL;
    }

    for (int i = 0; i < offenders_max; i++) {
        struct offender *offender = &local->offenders[i];

        if (offender->count > 0 && peers_are_one(&offender->peer, peer)) {
            return offender;
        }
        if (offender->count < mildest->count) {
            mildest = offender;
        }
    }
    *mildest = (struct offender){*peer, 0};
    return mildest;
}

/* Logs that a message was dropped: by which port, and from which process. */
static void log_dropped(CFMessagePortRef port, const struct packet *packet, const char *why)
{
    struct port_name name;

    port_lock(port);
    name = port->name;
    port_unlock(port);
    port_log(port_log_receiver, "a message from process %d to the port %s was dropped: %s",
             packet->has_sender ? (int)packet->sender.pid : 0, name.length > 0 ? name.bytes : "without a name", why);
}

/* Drops the packet. A peer that commits offences_max offences loses its channels. */
static void refuse_packet(CFMessagePortRef port, struct packet *packet, const char *why)
{
    struct local_port *local = &port->side.local;
    struct offender *offender;

    log_dropped(port, packet, why);
    packet_close(packet);
    port_lock(port);
    offender = offender_of(local, &packet->sender);
    invariant(!offender || offender->count < offences_max);
    if (offender && ++offender->count >= offences_max) {
        offender->count = 0;
        channel_table_drop_peer(&local->channels, &packet->sender);
    }
    port_unlock(port);
}

/* ---- acknowledgements ---- */

/* Notes in the control channel's page that the frame was taken, and sends a packet if a sender sleeps until then. */
REQUIRES(the_port_lock)
static void acknowledge_packet(struct local_port *local, const struct packet *packet, const struct wire_frame *frame)
{
    struct server_channel *control = channel_table_find(&local->channels, 0, frame->extra, &packet->sender, channel_control);

    /*
     * Two threads may have taken a frame each, and the later frame may get here first. Then the earlier number says nothing new. The signed
     * difference tells old from new even when the numbers wrap, because a client names its control channel in all its frames.
     */
    if (!control || (control->has_acknowledged && (int32_t)(frame->sequence - control->last_acknowledged) <= 0)) {
        return;
    }
    invariant(control->acks);
    control->last_acknowledged = frame->sequence;
    control->has_acknowledged = true;
    if (ack_page_note(control->acks, frame->sequence, local->queue_limit)) {
        const struct wire_frame ack = {.type = wire_ack, .length = local->queue_limit, .sequence = frame->sequence};
        int result = packet_send(control->descriptor, &ack, NULL, NULL, 0);

        if (result < 0 && result != -EAGAIN) { /* a full channel is readable already: its client wakes */
            channel_table_drop(&local->channels, control);
        }
    }
}

/* ---- channels ---- */

/*
 * Begins the request on the channel that it names. Returns false if the peer may not name that channel now. Returns true and leaves
 * asker->channel NULL if the channel is gone: the request is run, and nobody waits for its reply.
 */
REQUIRES(the_port_lock)
static bool find_channel(struct channel_table *channels, const struct packet *packet, const struct wire_frame *frame, struct asker *asker)
{
    struct server_channel *channel = channel_table_find(channels, frame->channel, frame->token, &packet->sender, channel_reply);
    bool may_run = channel ? !channel->is_running : channel_table_remembers(channels, frame->channel, frame->token, &packet->sender);

    if (channel && may_run) {
        server_channel_begin(channel);
        asker->channel = channel;
        asker->keeps_channel = true;
    }
    return may_run;
}

/* ---- data ---- */

/*
 * Gives the channel the arena that comes with a request. Returns 0, -EINVAL if the descriptor is no arena, or 1 if the arena cannot be
 * mapped here; its data can still be read then.
 */
static int take_arena(CFMessagePortRef port, struct server_channel *channel, int descriptor)
{
    struct channel_table *channels = &port->side.local.channels;
    struct arena arena = {NULL, 0};
    uint64_t room;
    int result;

    port_lock(port);
    if (channels->mapped > payload_arena_max / 2) {
        channel_table_drop_ended(channels);
    }
    channels->mapped -= channel->arena.size;
    room = channels->mapped < payload_arena_max ? payload_arena_max - channels->mapped : 0;
    port_unlock(port);
    arena_release(&channel->arena);
    result = arena_adopt(descriptor, room, &arena);
    channel->refuses_arena = result < 0;
    if (result < 0) {
        return result == -EINVAL ? result : 1;
    }
    channel->arena = arena;
    port_lock(port);
    channels->mapped += arena.size;
    port_unlock(port);
    return 0;
}

static int copy_from_arena(const struct server_channel *channel, uint64_t length, CFDataRef *ret_data)
{
    if (!channel) {
        return -ECONNRESET; /* the channel is gone, and its arena with it */
    }
    if (length > channel->arena.size) {
        return -EINVAL;
    }
    *ret_data = payload_copy(channel->arena.address, length);
    return *ret_data ? 0 : -ENOMEM;
}

/* Copies the frame's data into memory of its own. Returns 0 or a negative errno. */
static int take_data(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct received_message *message)
{
    int last = packet->descriptor_count - 1;
    int arena_result = 0;

    if (frame->flags & wire_new_arena) {
        /* If the channel ended before this packet was taken, nothing can own the arena: it is only read. */
        arena_result = message->asker.channel ? take_arena(port, message->asker.channel, packet->descriptors[last]) : 1;
        if (arena_result < 0) {
            return arena_result;
        }
    }
    if (frame->flags & wire_in_arena) {
        return arena_result == 1 ? arena_peek(packet->descriptors[last], frame->length, &message->data)
                                 : copy_from_arena(message->asker.channel, frame->length, &message->data);
    }
    if (frame->flags & wire_in_memory) {
        return payload_read(packet->descriptors[last], frame->length, &message->data);
    }
    message->data = frame->length > 0 ? payload_copy(frame->data, frame->length) : data_empty();
    return message->data ? 0 : -ENOMEM;
}

/* ---- one packet ---- */

static bool has_own_name(CFMessagePortRef port, const struct wire_frame *frame)
{
    bool result;

    if (frame->name_length == 0) {
        return true; /* frames on a known channel carry no name: the channel's first frame did */
    }
    port_lock(port);
    result = frame->name_length == port->name.length && memcmp(frame->name, port->name.bytes, frame->name_length) == 0;
    port_unlock(port);
    return result;
}

/* Returns why the packet is refused. Returns NULL for a good one, and its contents in `ret_frame`. */
static const char *reason_to_refuse(CFMessagePortRef port, const uint8_t *bytes, const struct packet *packet, struct wire_frame *ret_frame)
{
    enum wire_error error;

    if (!packet->has_sender || packet->uid != port->side.local.owner_uid) {
        return "it is from another user";
    }
    if (packet->is_cut) {
        return "it is too large, or brings too many descriptors";
    }
    error = wire_decode(wire_to_port, bytes, packet->size, ret_frame);
    if (error != wire_ok) {
        return wire_error_text(error);
    }
    if (wire_descriptor_count(ret_frame) != packet->descriptor_count) {
        return "it does not bring the descriptors that it says";
    }
    return has_own_name(port, ret_frame) ? NULL : "it is for a port of another name";
}

/* The result of asking whether a message may be taken. */
enum admission { admitted, admission_no_channel, admission_over_budget };

/* Counts a packet that this process had sent to its own port as taken, so that the local queue may open. */
REQUIRES(the_port_lock) static void note_taken(const struct local_port *local, const struct packet *packet)
{
    if (packet && local->local_queue && packet->has_sender && packet->sender.pid == local->local_queue->process) {
        local_queue_forget_packet(local->local_queue);
    }
}

/* Ends the read that brought the packet, and begins the message's call, all under one hold of the lock. */
static enum admission reserve_and_begin(CFMessagePortRef port, const struct packet *packet, const struct wire_frame *frame,
                                        struct received_message *message)
{
    struct local_port *local = &port->side.local;
    enum admission result = admitted;

    port_lock(port);
    local_port_end_read(port);
    note_taken(local, packet);
    if (frame->flags & wire_want_ack) {
        acknowledge_packet(local, packet, frame); /* before the callout: the message's place in the queue is free now */
    }
    if (frame->type == wire_request && !(frame->flags & wire_new_channel) &&
        !find_channel(&local->channels, packet, frame, &message->asker)) {
        result = admission_no_channel;
    } else if (!received_message_reserve(local, frame->length)) {
        result = admission_over_budget;
    } else {
        message->accepted = frame->length;
        message->asker.has_left = frame->type == wire_request && !message->asker.channel;
        message->traced = trace_is_on() ? message_trace_id(&port->name, packet->sender.pid, frame->sequence) : 0;
        received_message_begin(port, message);
    }
    port_unlock(port);
    return result;
}

/* Ends a read that begins no call. `packet` is NULL if there was none. */
static void end_read(CFMessagePortRef port, const struct packet *packet)
{
    port_lock(port);
    local_port_end_read(port);
    note_taken(&port->side.local, packet);
    port_unlock(port);
}

/* Takes the data of an admitted message. If that fails, drops the message, tells its sender, and logs the reason. */
static void accept_data(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct received_message *message)
{
    int result = take_data(port, packet, frame, message);

    if (result == 0) {
        packet_close(packet);
        return;
    }
    received_message_give_up(port, message);
    reply_dropped(port, &message->asker, result == -EINVAL ? wire_drop_malformed : wire_drop_memory);
    if (result == -EINVAL) {
        refuse_packet(port, packet, "its data is not in memory that can be trusted");
    } else {
        port_log(port_log_receiver, "a message was dropped: %s", port_error_text(result));
        packet_close(packet);
    }
}

/*
 * Drops a packet whose channel could not be taken over. `error` is -EINVAL if it brings no channel, which is an offence of its sender, or
 * -ENOMEM, which is not.
 */
static void drop_with_channel(CFMessagePortRef port, struct packet *packet, int error, const char *why_malformed)
{
    if (error == -EINVAL) {
        refuse_packet(port, packet, why_malformed);
    } else {
        log_dropped(port, packet, "this process has no memory for the channel that came with it");
        packet_close(packet);
    }
}

/* Finds the channel and the data of a message, or drops the message. Ends the read in every case. */
static void accept_message(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct received_message *message)
{
    enum admission admission;
    int result;

    message->asker.message_id = frame->message_id;
    message->asker.conversation = frame->conversation;
    message->asker.sequence = frame->sequence;
    message->asker.process = packet->has_sender ? packet->sender.pid : 0;
    message->asker.wants_status = frame->flags & wire_want_status;
    message->asker.deadline_ns = (int64_t)frame->deadline_ns; /* not negative, or the frame would have been refused */
    if (frame->type == wire_request && (frame->flags & wire_new_channel)) {
        result = channel_handover_reply_channel(port, packet, frame, &message->asker.channel, &message->asker.keeps_channel);
        if (result < 0) {
            end_read(port, packet);
            drop_with_channel(port, packet, result, "what it brings is not the end of a channel");
            return;
        }
    }
    admission = reserve_and_begin(port, packet, frame, message);
    if (admission == admission_no_channel) {
        refuse_packet(port, packet, "it names a channel that is not its sender's, or that is busy");
    } else if (admission == admission_over_budget) {
        received_message_log_over_budget(frame->length, packet->sender.pid);
        reply_dropped(port, &message->asker, wire_drop_budget);
        packet_close(packet);
    } else {
        accept_data(port, packet, frame, message);
    }
}

/*
 * Drops a packet because this process had no descriptor left for those that came with it. That is no offence of the sender, and a sender
 * that waits for the reply is told.
 */
static void drop_for_want_of_descriptors(CFMessagePortRef port, const uint8_t *bytes, struct packet *packet)
{
    struct wire_frame frame;
    struct asker asker = {.channel = NULL};
    struct local_port *local = &port->side.local;
    bool is_found = false;

    log_dropped(port, packet, "this process has no descriptor left for what came with it");
    packet_close(packet);
    if (wire_decode(wire_to_port, bytes, packet->size, &frame) == wire_ok) {
        port_lock(port);
        if (frame.flags & wire_want_ack) {
            acknowledge_packet(local, packet, &frame); /* its place is free: a sender must not wait for that forever */
        }
        is_found =
            frame.type == wire_request && !(frame.flags & wire_new_channel) && find_channel(&local->channels, packet, &frame, &asker);
        port_unlock(port);
    }
    if (is_found) {
        asker.conversation = frame.conversation;
        asker.sequence = frame.sequence;
        reply_dropped(port, &asker, wire_drop_memory);
    }
}

/*
 * Asks the kernel to identify senders from now on, because one has no process id here. It costs a descriptor for each packet, so a port
 * asks only then. Without a kernel that can do so, such senders stay unknown.
 */
static void identify_senders(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    port_lock(port);
    if (!local->identifies_senders && local->socket >= 0) {
        local->identifies_senders = true;
        (void)kernel_ports.identify_senders(local->socket);
    }
    port_unlock(port);
}

/*
 * Takes one packet apart. Returns -EAGAIN if there is none, otherwise 0; if `message` has data then, it is to be run. Not checked: the
 * socket stays open and the same between the read's beginning and its end.
 */
NOT_CHECKED static int take_packet(CFMessagePortRef port, uint8_t *buffer, struct received_message *message)
{
    struct wire_frame frame;
    struct packet packet;
    const char *why;
    int result;

    if (!local_port_begin_read(port)) {
        return -EAGAIN;
    }
    result = packet_receive(port->side.local.socket, buffer, &packet);
    if (result < 0 || (packet.size == 0 && !packet.has_sender)) {
        end_read(port, NULL);
        return -EAGAIN;
    }
    if (packet.has_sender && !peer_is_known(&packet.sender)) {
        identify_senders(port);
    }
    if (packet.lacks_descriptors && packet.has_sender && packet.uid == port->side.local.owner_uid) {
        end_read(port, &packet);
        drop_for_want_of_descriptors(port, buffer, &packet);
        return 0;
    }
    why = reason_to_refuse(port, buffer, &packet, &frame);
    if (!why && (frame.type == wire_request || frame.type == wire_one_way)) {
        accept_message(port, &packet, &frame, message);
        return 0;
    }
    end_read(port, &packet);
    if (!why && frame.type == wire_control) {
        result = channel_handover_control(port, &packet, &frame);
        if (result < 0) {
            drop_with_channel(port, &packet, result, "what it brings is not the end of a channel and a page");
        }
    } else if (!why && frame.type == wire_page && !channel_handover_page(port, &packet, &frame)) {
        why = "what it brings is no page and no wait set";
    }
    if (why) {
        refuse_packet(port, &packet, why);
    }
    return 0;
}

void local_port_receive(CFMessagePortRef port)
{
    struct received_message message = {.data = NULL};
    uint8_t *buffer = scratch_take(&port->scratch);
    int result = buffer ? take_packet(port, buffer, &message) : -ENOMEM;

    for (int i = 1; i < housekeeping_max && result == 0 && !message.data; i++) {
        message = (struct received_message){.data = NULL};
        result = take_packet(port, buffer, &message);
    }
    if (buffer) {
        scratch_give(&port->scratch, buffer);
    }
    if (message.data) {
        received_message_run(port, &message);
    }
}
