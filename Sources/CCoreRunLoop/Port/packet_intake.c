/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes in at a local port's socket: checks, in an order that trusts nothing before it is known.
 *
 * Data is in memory of its own before anything looks at it. A frame that is refused costs its sender an offence; its descriptors are
 * closed, which the sender notices. Any thread that has a reference to the port; the locks are said at each function.
 */
#include <errno.h>

#include "Port/incoming.h"
#include "Port/line_intake.h"
#include "Port/port_log.h"
#include "Runtime/data.h"

enum { housekeeping_max = 64 }; /* frames without a callout that one firing of the source takes */

/* ---- misbehaviour ---- */

static struct offender *offender_of(struct local_port *local, pid_t pid)
{
    struct offender *mildest = &local->offenders[0];

    for (int i = 0; i < offenders_max; i++) {
        struct offender *offender = &local->offenders[i];

        if (offender->count > 0 && offender->pid == pid) {
            return offender;
        }
        if (offender->count < mildest->count) {
            mildest = offender;
        }
    }
    *mildest = (struct offender){pid, 0};
    return mildest;
}

/* Drops the packet; a peer that goes on like this loses its lines. */
static void refuse(CFMessagePortRef port, struct packet *packet, const char *why)
{
    struct local_port *local = &port->side.local;
    struct offender *offender;

    port_log(port_log_receiver, "a message from process %d was dropped: %s", packet->has_sender ? (int)packet->pid : 0, why);
    packet_close(packet);
    port_lock(port);
    offender = offender_of(local, packet->pid);
    if (++offender->count >= offences_max) {
        offender->count = 0;
        line_table_drop_peer(&local->lines, packet->pid);
    }
    port_unlock(port);
}

/* ---- acknowledgements ---- */

/* P */
static void acknowledge(struct local_port *local, const struct packet *packet, const struct wire_frame *frame)
{
    struct server_line *control = line_table_find(&local->lines, 0, frame->extra, packet->pid, true);

    /*
     * Of two threads that have taken a frame each the later may be here first. Since a client names its control line in all its frames,
     * a number that is not far behind is an old one, also when the numbers begin anew.
     */
    if (!control || (control->has_taken && (int32_t)(frame->sequence - control->taken) <= 0)) {
        return;
    }
    control->taken = frame->sequence;
    control->has_taken = true;
    if (ack_page_note(control->acks, frame->sequence, local->queue_limit)) {
        const struct wire_frame ack = {.type = wire_ack, .length = local->queue_limit, .sequence = frame->sequence};
        int result = packet_send(control->descriptor, &ack, NULL, NULL, 0);

        if (result < 0 && result != -EAGAIN) { /* a full line wakes as well */
            line_table_drop(&local->lines, control);
        }
    }
}

/* ---- lines ---- */

/* The line that a request names. False: it is not one that this peer may name now; NULL with true: it is gone, and nobody waits. P */
static bool find_line(struct line_table *lines, const struct packet *packet, const struct wire_frame *frame, struct request *request)
{
    struct server_line *line = line_table_find(lines, frame->line, frame->token, packet->pid, false);
    bool may_run = line ? !line->is_running : line_table_was(lines, frame->line, frame->token, packet->pid);

    if (line && may_run) {
        server_line_begin(line);
        request->line = line;
        request->keeps_line = true;
    }
    return may_run;
}

/* ---- data ---- */

/* Makes the arena that comes with a request the line's. -EINVAL: it is none; 1: it cannot be used here, but its data can be read. */
static int take_arena(CFMessagePortRef port, struct server_line *line, int descriptor)
{
    struct line_table *lines = &port->side.local.lines;
    struct arena arena = {NULL, 0};
    uint64_t room;
    int result;

    port_lock(port);
    if (lines->mapped > payload_arena_max / 2) {
        line_table_drop_ended(lines);
    }
    lines->mapped -= line->arena.size;
    room = lines->mapped < payload_arena_max ? payload_arena_max - lines->mapped : 0;
    port_unlock(port);
    arena_release(&line->arena);
    result = arena_adopt(descriptor, room, &arena);
    line->refuses_arena = result < 0;
    if (result < 0) {
        return result == -EINVAL ? result : 1;
    }
    line->arena = arena;
    port_lock(port);
    lines->mapped += arena.size;
    port_unlock(port);
    return 0;
}

static int copy_from_arena(const struct server_line *line, uint64_t length, CFDataRef *ret_data)
{
    if (!line) {
        return -ECONNRESET; /* its sender has given up, and the arena with it */
    }
    if (length > line->arena.size) {
        return -EINVAL;
    }
    *ret_data = payload_copy(line->arena.address, length);
    return *ret_data ? 0 : -ENOMEM;
}

/* The frame's data, in memory of its own. */
static int take_data(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct incoming *message)
{
    int last = packet->descriptor_count - 1;
    int arena_result = 0;

    if (frame->flags & wire_new_arena) {
        /* Without a line, whose end came before this was taken, the arena is only read from. */
        arena_result = message->request.line ? take_arena(port, message->request.line, packet->descriptors[last]) : 1;
        if (arena_result < 0) {
            return arena_result;
        }
    }
    if (frame->flags & wire_in_arena) {
        return arena_result == 1 ? arena_peek(packet->descriptors[last], frame->length, &message->data)
                                 : copy_from_arena(message->request.line, frame->length, &message->data);
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
        return true; /* whoever has the line has named the port before */
    }
    port_lock(port);
    result = frame->name_length == port->name.length && memcmp(frame->name, port->name.bytes, frame->name_length) == 0;
    port_unlock(port);
    return result;
}

/* Why the packet is not taken, or NULL; what it says is in `ret_frame` then. */
static const char *objection(CFMessagePortRef port, const uint8_t *bytes, const struct packet *packet, struct wire_frame *ret_frame)
{
    enum wire_error error;

    if (!packet->has_sender || packet->uid != port->side.local.owner) {
        return "it is from another user";
    }
    if (packet->is_cut) {
        return "it is too large, or brings too many descriptors";
    }
    error = wire_decode(wire_on_port, bytes, packet->size, ret_frame);
    if (error != wire_ok) {
        return wire_error_text(error);
    }
    if (wire_descriptor_count(ret_frame) != packet->descriptor_count) {
        return "it does not bring the descriptors that it says";
    }
    return has_own_name(port, ret_frame) ? NULL : "it is for a port of another name";
}

/* What stands against taking a message that has come. */
enum admission { admitted, admission_no_line, admission_over_budget };

/* A packet of this process's own has left the socket. P */
static void note_taken(const struct local_port *local, const struct packet *packet)
{
    if (packet && local->inbox && packet->has_sender && packet->pid == local->inbox->process) {
        inbox_forget_packet(local->inbox);
    }
}

/* Ends the read that brought the packet, and begins the message's call, all under one hold of the lock. */
static enum admission admit(CFMessagePortRef port, const struct packet *packet, const struct wire_frame *frame, struct incoming *message)
{
    struct local_port *local = &port->side.local;
    enum admission result = admitted;

    port_lock(port);
    local_port_end_read(port);
    note_taken(local, packet);
    if (frame->flags & wire_want_ack) {
        acknowledge(local, packet, frame); /* before the callout: its place in the queue is free */
    }
    if (frame->type == wire_request && !(frame->flags & wire_new_line) && !find_line(&local->lines, packet, frame, &message->request)) {
        result = admission_no_line;
    } else if (!incoming_reserve(local, frame->length)) {
        result = admission_over_budget;
    } else {
        message->accepted = frame->length;
        incoming_begin(port, message);
    }
    port_unlock(port);
    return result;
}

/* `packet` is NULL if there was none. */
static void end_read(CFMessagePortRef port, const struct packet *packet)
{
    port_lock(port);
    local_port_end_read(port);
    note_taken(&port->side.local, packet);
    port_unlock(port);
}

/* Takes the data of a message that was admitted, or drops it and tells everybody. */
static void accept_data(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct incoming *message)
{
    int result = take_data(port, packet, frame, message);

    if (result == 0) {
        packet_close(packet);
        return;
    }
    incoming_give_up(port, message);
    reply_dropped(port, &message->request, result == -EINVAL ? wire_drop_malformed : wire_drop_memory);
    if (result == -EINVAL) {
        refuse(port, packet, "its data is not in memory that can be trusted");
    } else {
        port_log(port_log_receiver, "a message was dropped: %s", port_error_text(result));
        packet_close(packet);
    }
}

/* Finds the line and the data of a message, unless it is dropped. */
static void accept_message(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, struct incoming *message)
{
    enum admission admission;

    message->request.message_id = frame->message_id;
    message->request.conversation = frame->conversation;
    message->request.sequence = frame->sequence;
    if (frame->type == wire_request && (frame->flags & wire_new_line)) {
        message->request.line = line_intake_reply_line(port, packet, frame, &message->request.keeps_line);
        if (!message->request.line) {
            end_read(port, packet);
            refuse(port, packet, "what it brings is not the end of a line");
            return;
        }
    }
    admission = admit(port, packet, frame, message);
    if (admission == admission_no_line) {
        refuse(port, packet, "it names a line that is not its sender's, or that is busy");
    } else if (admission == admission_over_budget) {
        incoming_log_over_budget(frame->length, packet->pid);
        reply_dropped(port, &message->request, wire_drop_budget);
        packet_close(packet);
    } else {
        accept_data(port, packet, frame, message);
    }
}

/* This process has no descriptor left for what came with it, which is not its sender's fault: who waits is told. */
static void excuse(CFMessagePortRef port, const uint8_t *bytes, struct packet *packet)
{
    struct wire_frame frame;
    struct request request = {.line = NULL};
    struct local_port *local = &port->side.local;
    bool is_found = false;

    port_log(port_log_receiver, "a message from process %d was dropped: this process has no descriptor left for what came with it",
             (int)packet->pid);
    packet_close(packet);
    if (wire_decode(wire_on_port, bytes, packet->size, &frame) == wire_ok) {
        port_lock(port);
        if (frame.flags & wire_want_ack) {
            acknowledge(local, packet, &frame); /* its place in the queue is free, too: who waits for that must not wait for ever */
        }
        is_found = frame.type == wire_request && !(frame.flags & wire_new_line) && find_line(&local->lines, packet, &frame, &request);
        port_unlock(port);
    }
    if (is_found) {
        request.conversation = frame.conversation;
        request.sequence = frame.sequence;
        reply_dropped(port, &request, wire_drop_memory);
    }
}

/* Takes one packet apart. -EAGAIN: there is none; 0: `message` is to be run if it has data. */
static int take_packet(CFMessagePortRef port, uint8_t *buffer, struct incoming *message)
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
    if (packet.lacks_descriptors && packet.has_sender && packet.uid == port->side.local.owner) {
        end_read(port, &packet);
        excuse(port, buffer, &packet);
        return 0;
    }
    why = objection(port, buffer, &packet, &frame);
    if (!why && (frame.type == wire_request || frame.type == wire_one_way)) {
        accept_message(port, &packet, &frame, message);
        return 0;
    }
    end_read(port, &packet);
    if (!why && frame.type == wire_control && !line_intake_control(port, &packet, &frame)) {
        why = "what it brings is not the end of a line and a page";
    } else if (!why && frame.type == wire_page && !line_intake_page(port, &packet, &frame)) {
        why = "what it brings is no page and no wait set";
    }
    if (why) {
        refuse(port, &packet, why);
    }
    return 0;
}

void local_port_receive(CFMessagePortRef port)
{
    struct incoming message = {.data = NULL};
    uint8_t *buffer = scratch_take(&port->scratch);
    int result = buffer ? take_packet(port, buffer, &message) : -ENOMEM;

    for (int i = 1; i < housekeeping_max && result == 0 && !message.data; i++) {
        message = (struct incoming){.data = NULL};
        result = take_packet(port, buffer, &message);
    }
    if (buffer) {
        scratch_give(&port->scratch, buffer);
    }
    if (message.data) {
        incoming_run(port, &message);
    }
}
