/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending side of message ports: the connection, how many messages may be under way, and finding out that the receiver is gone.
 *
 * A frame counts as under way until something comes back that confirms it: a reply, or an acknowledgement in the page that goes with the
 * control line, both of which are made when a third is sent. The kernel keeps the order of one socket, so a frame's number confirms all
 * before it. A packet comes on the control line when a thread sleeps for want of room (ack_page.h).
 */
#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Port/client_line.h"
#include "Port/message_port.h"
#include "Port/port_log.h"
#include "Support/barrier.h"

enum {
    unasked_max = 2,
    frame_beside_data = wire_frame_max - wire_inline_max,
    queue_most = 11, /* packets in a queue of the kernel's, unless the host has been told otherwise */
    send_room_beside = 4096, /* for lines and pages that are handed over meanwhile */
    looks_most = 256, /* in a moment, whatever the clock says */
    pauses_between_looks = 8,
    left_out_most = 64,
};

/* For how long a full queue is looked at: a receiver that runs takes some messages in it. */
static const int64_t moment_ns = 20000;

/*
 * The longest wait between two looks: the kernel reports room late, another thread may take the packet that says that there is some, and
 * that comes only when there is room for several.
 */
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

/* P */
static void close_control(struct remote_port *remote)
{
    close_one(&remote->control);
    shared_page_release(remote->acks);
    remote->acks = NULL;
}

/* P, the port is invalid and nobody uses it. */
static void close_descriptors(struct remote_port *remote)
{
    close_one(&remote->socket);
    close_one(&remote->place);
    close_control(remote);
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
    remote->acks = NULL; /* not mapped here either */
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

/* Takes what the server says in the page. P */
static void look_into_page(struct remote_port *remote)
{
    uint32_t taken;
    uint32_t queue_limit;

    if (remote->acks && ack_page_read(remote->acks, &taken, &queue_limit)) {
        remote_port_confirm(remote, taken);
        remote->queue_limit = queue_limit;
    }
}

/* Takes the packet that may have ended a wait, or finds the line hung up. What the packet says stands in the page, too. P */
static void take_wake_up(struct remote_port *remote)
{
    uint8_t bytes[wire_header_size];
    ssize_t size = remote->control >= 0 ? kernel_ports.receive(remote->control, bytes, sizeof bytes) : -EAGAIN;

    if (size <= 0 && size != -EAGAIN && size != -EINTR) {
        close_control(remote); /* the receiver is gone, or does not want it */
        remote->has_no_control = true;
    }
}

/*
 * The queue is full, and its sender is about to sleep: a packet is to come when a quarter of it is left. Each wake-up costs more than a
 * message, so that there should be few, and whoever takes the messages has something to do meanwhile. Threads that sleep at once await the
 * same, as nothing is sent while it is full. What is taken by now is known afterwards. P
 */
static void await_room(struct remote_port *remote)
{
    ack_page_await(remote->acks, remote->sequence - remote->queue_limit / 4);
    look_into_page(remote);
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

/* Our side of a control line and its page, and what is to be handed over. 0, or a negative errno and nothing. P */
static int make_control(struct remote_port *remote, int ret_passed[wire_descriptors_max])
{
    void *page;
    int ends[2];
    int result = shared_page_create(&page, &ret_passed[1]);

    if (result < 0) {
        return result;
    }
    result = kernel_ports.line_create(ends);
    if (result < 0) {
        shared_page_release(page);
        (void)kernel.close(ret_passed[1]);
        return result;
    }
    remote->acks = page;
    remote->control = ends[0];
    ret_passed[0] = ends[1];
    return 0;
}

/* Hands one over. -EAGAIN: the queue is full; without the means for one the kernel's queue has to do. P */
static int offer_control(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    struct wire_frame frame = {.type = wire_control, .flags = wire_new_line, .line = 1};
    int passed[wire_descriptors_max];
    int result;

    if (make_control(remote, passed) < 0) {
        remote->has_no_control = true;
        return 0;
    }
    kernel_ports.random_bytes(&frame.token, sizeof frame.token);
    frame.token |= 1;
    frame.name = port->name.bytes;
    frame.name_length = port->name.length;
    remote->control_token = frame.token;
    result = send_packet(remote, &frame, NULL, passed, wire_descriptors_max);
    (void)kernel.close(passed[0]);
    (void)kernel.close(passed[1]);
    if (result < 0) {
        close_control(remote);
    }
    return result;
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

/* One call's message, and how it goes. */
struct sending {
    struct wire_frame *frame;
    const void *data;
    const int *descriptors;
    int count;
    int64_t deadline_ns;
    int error; /* of the last attempt: 0 or a negative errno */
    SInt32 gone; /* what to return when the receiver or the port has gone: since before the call, or while it waited (211) */
};

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

/* As many are under way as the queue holds; without a control line that is for the kernel to say. P */
static bool is_full(const struct remote_port *remote)
{
    return remote->control >= 0 && remote->sequence - remote->confirmed >= remote->queue_limit;
}

/* Has the server say when it has taken this one, and a control line made for that where it is time for one. 0 or -EAGAIN. P */
static int prepare_ack(CFMessagePortRef port, struct wire_frame *frame)
{
    struct remote_port *remote = &port->side.remote;
    uint32_t under_way = remote->sequence - remote->confirmed;
    bool is_late = under_way >= (remote->queue_limit <= unasked_max ? remote->queue_limit - 1 : unasked_max);
    int result = is_late && remote->control < 0 && !remote->has_no_control ? offer_control(port) : 0;

    /* In each from then on, though a reply confirms a request as well: so the server can tell an old number from a new one. */
    frame->flags = (uint16_t)((frame->flags & ~wire_want_ack) | (remote->control >= 0 ? wire_want_ack : 0));
    frame->extra = remote->control >= 0 ? remote->control_token : 0;
    return result;
}

/* A look at a full queue has found room, or was in vain: then it is left out, twice as often as the last time. P */
static void note_look(struct remote_port *remote)
{
    if (!is_full(remote)) {
        remote->looks_left_out = 0;
    } else if (remote->looks_left_out < left_out_most) {
        remote->looks_left_out = remote->looks_left_out == 0 ? 1 : (uint8_t)(2 * remote->looks_left_out);
    }
    remote->looks_to_leave_out = remote->looks_left_out;
}

/*
 * A receiver that has a processor takes a message in less time than it takes to wake a thread: so a full queue is looked at for a moment
 * before we sleep. Where sender and receiver share a processor that is in vain, and becomes rare. P, which is dropped meanwhile.
 */
static void look_for_room(CFMessagePortRef port, struct sending *sending)
{
    struct remote_port *remote = &port->side.remote;
    int64_t now_ns = kernel.monotonic_ns();
    int64_t until_ns = sending->deadline_ns - now_ns < moment_ns ? sending->deadline_ns : now_ns + moment_ns;

    if (now_ns >= sending->deadline_ns) {
        return;
    }
    if (remote->looks_to_leave_out > 0) {
        remote->looks_to_leave_out--;
        return;
    }
    for (int look = 0; is_full(remote) && look < looks_most && kernel.monotonic_ns() < until_ns; look++) {
        sending->gone = kCFMessagePortBecameInvalidError;
        port_unlock(port);
        for (int pause = 0; pause < pauses_between_looks; pause++) {
            barrier_pause();
        }
        port_lock(port);
        if (is_full(remote)) {
            look_into_page(remote);
        }
    }
    note_look(remote);
}

/* P, which is dropped for a moment if the queue is full. */
static enum outcome try_send(CFMessagePortRef port, struct sending *sending)
{
    struct remote_port *remote = &port->side.remote;

    if (is_full(remote)) {
        look_into_page(remote);
    }
    if (is_full(remote)) {
        look_for_room(port, sending);
        if (!port_is_valid(port)) {
            return outcome_gone;
        }
    }
    if (is_full(remote) && kernel.monotonic_ns() < sending->deadline_ns) {
        await_room(remote);
    } else if (is_full(remote)) {
        take_wake_up(remote); /* who does not wait asks for none, but the line may be hung up */
    }
    if (is_full(remote)) {
        return outcome_full;
    }
    sending->error = prepare_ack(port, sending->frame);
    if (sending->error == 0) {
        sending->frame->sequence = remote->sequence + 1;
        sending->error = send_packet(remote, sending->frame, sending->data, sending->descriptors, sending->count);
    }
    if (sending->error == 0) {
        remote->sequence++;
    }
    return outcome_of(sending->error);
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
    struct sending sending = {frame, data, descriptors, count, deadline_ns, 0, kCFMessagePortIsInvalid};
    enum outcome outcome = outcome_sent;

    for (;;) {
        int64_t looked_ns;
        int control;

        port_lock(port);
        if (outcome == outcome_full) {
            take_wake_up(remote);
        }
        outcome = port_is_valid(port) ? try_send(port, &sending) : outcome_gone;
        control = remote->control;
        port_unlock(port);
        if (outcome == outcome_sent) {
            return kCFMessagePortSuccess;
        }
        if (outcome == outcome_gone) {
            return sending.gone;
        }
        if (outcome == outcome_failed) {
            port_log("CFMessagePortSendRequest", "a message cannot be sent: %s", port_error_text(sending.error));
            return kCFMessagePortTransportError;
        }
        *now_ns = 0;
        looked_ns = kernel.monotonic_ns();
        if (looked_ns >= deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        sending.gone = kCFMessagePortBecameInvalidError;
        wait_for_room(remote, outcome, control, looked_ns, deadline_ns);
    }
}
