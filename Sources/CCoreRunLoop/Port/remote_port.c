/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending side of message ports: the connection, how many messages may be under way, and finding out that the receiver is gone.
 *
 * A frame counts as under way until something comes back that confirms it: a reply, or an acknowledgement on the control line, which is
 * asked for from the third on. The kernel keeps the order of one socket, so a frame's number confirms all before it.
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Port/client_line.h"
#include "Port/message_port.h"
#include "Port/port_log.h"

enum {
    unasked_max = 2,
    frame_beside_data = wire_frame_max - wire_inline_max,
    queue_most = 11, /* packets in a queue of the kernel's, unless the host has been told otherwise */
    send_room_beside = 4096, /* for lines and pages that are handed over meanwhile */
};

/* The longest wait between two looks: the kernel reports room late, and another thread may take an acknowledgement. */
static const int64_t slice_ns = 10000000;

/* ---- making one ---- */

/* The inbox of the port of that name, if it is of this process and others find the same one; the port in `ret_port`, with a reference. */
static struct inbox *inbox_of(const struct port_name *name, CFMessagePortRef *ret_port)
{
    CFMessagePortRef port = port_table_find(false, name);
    struct inbox *inbox = NULL;

    *ret_port = port;
    if (port) {
        port_lock(port);
        if (port_is_valid(port) && port->side.local.inbox && registry_is_published(&port->side.local.publication)) {
            inbox = port->side.local.inbox;
            inbox_retain(inbox);
        }
        port_unlock(port);
    }
    return inbox;
}

/* Enough for a queue of the largest packets, if the host allows it. */
static uint64_t room_of(int socket)
{
    uint64_t wanted = queue_limit_default * packet_charge_max(wire_frame_max, kernel_ports.page_size()) + send_room_beside;
    int room = kernel_ports.send_room(socket, (int)wanted);

    return room > 0 ? (uint64_t)room : 0;
}

/* The valid port of that name, with a reference; or NULL, and nobody else makes one until the creation that has begun ends. */
static CFMessagePortRef find_or_begin_creation(const struct port_name *name)
{
    CFMessagePortRef port;

    port_table_begin_creation();
    while ((port = port_table_find(true, name)) != NULL) {
        port_table_end_creation(); /* who is told of its end may make another */
        if (remote_port_is_alive(port) && port_is_valid(port)) {
            return port;
        }
        message_port_end(port);
        port_table_begin_creation();
    }
    return NULL;
}

CFMessagePortRef remote_port_create(CFAllocatorRef allocator, const struct port_name *name)
{
    CFMessagePortRef owner = NULL;
    CFMessagePortRef port = find_or_begin_creation(name);
    struct remote_port *remote;
    struct port_card card;
    int result;

    if (port) {
        return port;
    }
    port_table_republish(name);
    port = message_port_allocate(allocator, true, name);
    result = -ENOMEM;
    if (port) {
        remote = &port->side.remote;
        link_init(&remote->free_lines);
        link_init(&remote->busy_lines);
        link_init(&remote->letters);
        remote->control = remote->socket = remote->place = -1;
        result = registry_connect("CFMessagePortCreateRemote", name, &remote->socket, &remote->place, &card);
    }
    if (port && result < 0) {
        atomic_store_explicit(&port->is_valid, false, memory_order_relaxed);
        object_release(port);
        port = NULL;
    }
    if (port) {
        port->side.remote.queue_limit = card.queue_limit;
        port->side.remote.budget = card.budget;
        port->side.remote.send_room = room_of(port->side.remote.socket);
        port->side.remote.inbox = inbox_of(name, &owner);
        port_table_add(port);
    }
    port_table_end_creation();
    if (owner) {
        object_release(owner);
    }
    return port;
}

/* ---- its end ---- */

static void close_one(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)kernel.close(*descriptor);
        *descriptor = -1;
    }
}

/* P, the port is invalid and nobody uses it. */
static void close_descriptors(struct remote_port *remote)
{
    close_one(&remote->socket);
    close_one(&remote->place);
    close_one(&remote->control);
}

void remote_port_close(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    struct link closing;

    link_init(&closing);
    port_lock(port);
    list_append_all(&closing, &remote->free_lines);
    remote->free_count = 0;
    list_for_each(link, &remote->busy_lines) {
        client_line_hang_up(container_of(link, struct client_line, link));
    }
    list_for_each(link, &remote->letters) {
        (void)letter_end(container_of(link, struct letter, sender_link), letter_gone);
    }
    if (remote->users == 0) {
        close_descriptors(remote);
    } else {
        (void)kernel_ports.hang_up(remote->socket);
        if (remote->control >= 0) {
            (void)kernel_ports.hang_up(remote->control);
        }
    }
    port_unlock(port);
    while (!list_is_empty(&closing)) {
        struct client_line *line = container_of(closing.next, struct client_line, link);

        list_remove(&line->link);
        client_line_close(line);
    }
}

static void abandon_lines(struct link *lines)
{
    list_for_each(link, lines) {
        struct client_line *line = container_of(link, struct client_line, link);

        line->arena = (struct arena){NULL, 0}; /* not mapped here */
        if (line->page) {
            line->page = NULL; /* nor this */
            (void)kernel.close(line->set);
        }
        (void)kernel.close(line->descriptor);
        line->descriptor = -1;
    }
}

void remote_port_abandon(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;

    abandon_lines(&remote->free_lines);
    abandon_lines(&remote->busy_lines);
    remote->users = 0;
    close_descriptors(remote);
}

uint64_t remote_port_packet_data_max(CFMessagePortRef port, uint64_t length)
{
    struct remote_port *remote = &port->side.remote;
    uint64_t before; /* packets that may be under way when the last one is sent; one: it has to fit itself */
    uint64_t most;

    if (length <= packet_small) {
        return packet_small;
    }
    port_lock(port);
    before = remote->queue_limit > queue_most ? queue_most - 1 : remote->queue_limit > 2 ? remote->queue_limit - 1 : 1;
    port_unlock(port);
    if (remote->send_room <= send_room_beside) {
        return packet_small;
    }
    /* Less than all: the kernel looks at what is under way before a packet, not at what it comes to be. */
    most = packet_size_within((remote->send_room - send_room_beside - 1) / before, kernel_ports.page_size());
    if (most <= packet_small + frame_beside_data) {
        return packet_small;
    }
    return most >= wire_frame_max ? wire_inline_max : most - frame_beside_data;
}

bool remote_port_uses_inbox(struct remote_port *remote)
{
    bool uses = atomic_load_explicit(&remote->uses_inbox, memory_order_relaxed) ||
                (remote->sends_by_socket == 0 && remote->sequence == remote->confirmed && inbox_is_open(remote->inbox));

    atomic_store_explicit(&remote->uses_inbox, uses, memory_order_relaxed);
    return uses;
}

bool remote_port_use(CFMessagePortRef port)
{
    bool can = port_is_valid(port);

    port->side.remote.users += can ? 1 : 0;
    return can;
}

void remote_port_unuse(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;

    if (remote->users > 0 && --remote->users == 0 && !port_is_valid(port)) {
        close_descriptors(remote);
    }
}

bool remote_port_is_alive(CFMessagePortRef port)
{
    bool is_alive;
    bool can;

    port_lock(port);
    can = remote_port_use(port);
    port_unlock(port);
    if (!can) {
        return false;
    }
    is_alive = registry_probe(port->side.remote.place);
    port_lock(port);
    remote_port_unuse(port);
    port_unlock(port);
    return is_alive;
}

/* ---- the control line ---- */

void remote_port_confirm(struct remote_port *remote, uint32_t sequence)
{
    if ((int32_t)(sequence - remote->confirmed) > 0 && (int32_t)(remote->sequence - sequence) >= 0) {
        remote->confirmed = sequence;
    }
}

/* Takes what acknowledgements there are. */
static void drain_control(struct remote_port *remote)
{
    uint8_t bytes[wire_header_size + 1];
    struct wire_frame frame;
    ssize_t size;

    while (remote->control >= 0 && (size = kernel_ports.receive(remote->control, bytes, sizeof bytes)) != -EAGAIN) {
        if (size == -EINTR) {
            continue;
        }
        if (size <= 0) {
            close_one(&remote->control); /* the receiver is gone, or does not want it */
            remote->has_no_control = true;
        } else if ((size_t)size <= sizeof bytes && wire_decode(wire_on_line, bytes, (size_t)size, &frame) == wire_ok &&
                   frame.type == wire_ack) {
            remote_port_confirm(remote, frame.sequence);
            remote->queue_limit = frame.length > 0 ? (uint32_t)frame.length : 1;
        }
    }
}

/* All that goes to the owner's socket; if that is of this process, it is counted until it has been taken. P */
static int send_packet(struct remote_port *remote, const struct wire_frame *frame, const void *data, const int *descriptors, int count)
{
    int result;

    if (remote->inbox) {
        inbox_expect_packet(remote->inbox);
    }
    result = packet_send(remote->socket, frame, data, descriptors, count);
    if (result < 0 && remote->inbox) {
        inbox_forget_packet(remote->inbox);
    }
    return result;
}

/* Hands one over. -EAGAIN: the queue is full; without the means for one the kernel's queue has to do. */
static int offer_control(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    struct wire_frame frame = {.type = wire_control, .flags = wire_new_line, .line = 1};
    int ends[2];
    int result = kernel_ports.line_create(ends);

    if (result < 0) {
        remote->has_no_control = true;
        return 0;
    }
    kernel_ports.random_bytes(&frame.token, sizeof frame.token);
    frame.token |= 1;
    frame.name = port->name.bytes;
    frame.name_length = port->name.length;
    result = send_packet(remote, &frame, NULL, &ends[1], 1);
    (void)kernel.close(ends[1]);
    if (result < 0) {
        (void)kernel.close(ends[0]);
        return result;
    }
    remote->control = ends[0];
    remote->control_token = frame.token;
    return 0;
}

int remote_port_offer_page(CFMessagePortRef port, uint32_t line, uint64_t token, const int descriptors[wire_descriptors_max])
{
    const struct wire_frame frame = {.type = wire_page, .line = line, .token = token};
    int result = -ENOTCONN;

    port_lock(port);
    if (port_is_valid(port)) {
        result = send_packet(&port->side.remote, &frame, NULL, descriptors, wire_descriptors_max);
    }
    port_unlock(port);
    return result;
}

/* ---- sending ---- */

enum outcome { outcome_sent, outcome_full, outcome_busy, outcome_gone, outcome_failed };

static enum outcome outcome_of(int error)
{
    switch (-error) {
    case 0:
        return outcome_sent;
    case EAGAIN:
    case EINTR:
        return outcome_busy;
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
        return outcome_gone;
    default:
        return outcome_failed;
    }
}

/* P */
static enum outcome try_send(CFMessagePortRef port, struct wire_frame *frame, const void *data, const int *descriptors, int count,
                             int *ret_error)
{
    struct remote_port *remote = &port->side.remote;
    uint32_t under_way;
    uint32_t asked_from;
    int result = 0;

    if (remote->sequence - remote->confirmed >= remote->queue_limit) {
        drain_control(remote);
    }
    under_way = remote->sequence - remote->confirmed;
    asked_from = remote->queue_limit <= unasked_max ? remote->queue_limit - 1 : unasked_max;
    if (under_way >= remote->queue_limit && remote->control >= 0) {
        return outcome_full;
    }
    if (under_way >= asked_from && remote->control < 0 && !remote->has_no_control) {
        result = offer_control(port);
    }
    if (result == 0) {
        frame->flags &= (uint16_t)~wire_want_ack;
        frame->extra = 0;
        if (under_way >= asked_from && remote->control >= 0) {
            frame->flags |= wire_want_ack;
            frame->extra = remote->control_token;
        }
        frame->sequence = remote->sequence + 1;
        result = send_packet(remote, frame, data, descriptors, count);
    }
    if (result == 0) {
        remote->sequence++;
    }
    *ret_error = result;
    return outcome_of(result);
}

/* Waits until there may be room, or another look is due. */
static void wait_for_room(struct remote_port *remote, enum outcome outcome, int control, int64_t now_ns, int64_t deadline_ns)
{
    int64_t until_ns = deadline_ns - now_ns > slice_ns ? now_ns + slice_ns : deadline_ns;

    if (outcome == outcome_full) {
        (void)kernel_ports.wait(control, kernel_readable, until_ns);
    } else {
        (void)kernel_ports.wait(remote->socket, kernel_writable, until_ns);
    }
}

SInt32 remote_port_send(CFMessagePortRef port, struct wire_frame *frame, const void *data, const int *descriptors, int count,
                        int64_t deadline_ns, int64_t *now_ns)
{
    struct remote_port *remote = &port->side.remote;
    SInt32 gone = kCFMessagePortIsInvalid;

    for (;;) {
        enum outcome outcome;
        int64_t looked_ns;
        int error = 0;
        int control;

        port_lock(port);
        outcome = port_is_valid(port) ? try_send(port, frame, data, descriptors, count, &error) : outcome_gone;
        control = remote->control;
        port_unlock(port);
        if (outcome == outcome_sent) {
            return kCFMessagePortSuccess;
        }
        if (outcome == outcome_gone) {
            return gone;
        }
        if (outcome == outcome_failed) {
            port_log("CFMessagePortSendRequest", "a message cannot be sent: %s", port_error_text(error));
            return kCFMessagePortTransportError;
        }
        *now_ns = 0;
        looked_ns = kernel.monotonic_ns();
        if (looked_ns >= deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        gone = kCFMessagePortBecameInvalidError;
        wait_for_room(remote, outcome, control, looked_ns, deadline_ns);
    }
}
