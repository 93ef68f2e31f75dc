/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending to the owner's socket; see remote_send.h. The pacing says when a frame may go (Channel/send_pacing.h). No state of its own: the
 * fields are those of the remote port.
 */
#include "Port/Message/remote_send.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Core/port_use.h"
#include "Port/Core/message_trace.h"
#include "Port/Wire/port_log.h"

enum {
    frame_beside_data = wire_frame_max - wire_inline_max,
    queue_most = 11, /* packets that the kernel queues for a socket by default */
};

/* ---- which way ---- */

/*
 * Messages go through the queue of a port of this process from the moment when no message by the socket is under way, which they would
 * overtake. From then on they always do.
 */
REQUIRES(the_port_lock) static enum send_way choose_way(struct remote_port *remote)
{
    if (remote->sends_by_socket == 0 && pacing_is_idle(&remote->pacing) && local_queue_is_open(remote->local_queue)) {
        atomic_store_explicit(&remote->uses_local_queue, true, memory_order_relaxed);
    }
    if (atomic_load_explicit(&remote->uses_local_queue, memory_order_relaxed)) {
        return send_by_local_queue;
    }
    remote->sends_by_socket++;
    return send_by_socket;
}

enum send_way remote_port_begin_send(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    enum send_way way;

    if (!remote->local_queue) {
        return send_by_socket;
    }
    if (atomic_load_explicit(&remote->uses_local_queue, memory_order_relaxed)) {
        return send_by_local_queue;
    }
    port_lock(port);
    way = choose_way(remote);
    port_unlock(port);
    return way;
}

void remote_port_end_by_socket(CFMessagePortRef port)
{
    if (port->side.remote.local_queue) {
        port_lock(port);
        invariant(port->side.remote.sends_by_socket > 0);
        port->side.remote.sends_by_socket--;
        port_unlock(port);
    }
}

/* ---- how much ---- */

uint64_t remote_port_packet_data_max(CFMessagePortRef port, uint64_t length)
{
    struct remote_port *remote = &port->side.remote;
    uint32_t queue_limit;
    uint64_t before; /* packets that may be under way when the last one is sent; at least 1, because a packet has to fit itself */
    uint64_t most;

    if (length <= packet_small) {
        return packet_small;
    }
    port_lock(port);
    queue_limit = remote->pacing.queue_limit;
    port_unlock(port);
    before = queue_limit > queue_most ? queue_most - 1 : queue_limit > 2 ? queue_limit - 1 : 1;
    if (remote->send_room <= remote_send_room_beside) {
        return packet_small;
    }
    /* One byte less, because the kernel admits a packet if what is under way before it is below the room. */
    most = packet_size_within((remote->send_room - remote_send_room_beside - 1) / before, kernel_ports.page_size());
    if (most <= packet_small + frame_beside_data) {
        return packet_small;
    }
    return most >= wire_frame_max ? wire_inline_max : most - frame_beside_data;
}

/* ---- packets ---- */

/*
 * Stands in the kernel's line of senders, without the lock. Returns -ENOTCONN if the port was invalidated meanwhile and the frame was not
 * sent. Not checked: the caller uses the port, so the socket stays.
 */
NOT_CHECKED static int send_in_line(CFMessagePortRef port, const struct wire_frame *frame, const struct load *load, int64_t stay_ns)
{
    struct remote_port *remote = &port->side.remote;
    int64_t *limit_ns = &remote->pacing.line_limit_ns;
    int result;

    pacing_enter_line(&remote->pacing);
    port_unlock(port);
    result = packet_send_in_turn(remote->socket, frame, load->bytes, load->descriptors, load->count, stay_ns, limit_ns);
    port_lock(port);
    pacing_leave_line(&remote->pacing);
    return result < 0 && !port_is_valid(port) ? -ENOTCONN : result;
}

/*
 * Sends every packet to the owner's socket. Stands in the line for up to `stay_ns`, or does not wait if that is 0. If the owner is in this
 * process, the packet is counted until it has been taken.
 */
REQUIRES(the_port_lock)
static int send_packet(CFMessagePortRef port, const struct wire_frame *frame, const struct load *load, int64_t stay_ns)
{
    struct remote_port *remote = &port->side.remote;
    int result;

    if (remote->local_queue) {
        local_queue_expect_packet(remote->local_queue);
    }
    result = stay_ns > 0 ? send_in_line(port, frame, load, stay_ns)
                         : packet_send(remote->socket, frame, load->bytes, load->descriptors, load->count);
    if (result < 0 && remote->local_queue) {
        local_queue_forget_packet(remote->local_queue);
    }
    return result;
}

/* ---- channels and pages for the owner ---- */

/* Offers the owner a control channel, unless none can be made. Returns 0, or -EAGAIN if the kernel's queue is full. */
REQUIRES(the_port_lock) static int offer_control(CFMessagePortRef port)
{
    struct send_pacing *pacing = &port->side.remote.pacing;
    struct wire_frame frame = {.type = wire_control, .flags = wire_new_channel, .channel = wire_control_wakes};
    struct load load = {.count = wire_descriptors_max};
    int result;

    invariant_held(&port->lock);
    if (pacing_open_control(pacing, load.descriptors) < 0) {
        return 0;
    }
    frame.token = pacing->control_token;
    frame.name = port->name.bytes;
    frame.name_length = port->name.length;
    result = send_packet(port, &frame, &load, 0);
    (void)kernel.close(load.descriptors[0]);
    (void)kernel.close(load.descriptors[1]);
    if (result < 0) {
        pacing_close_control(pacing);
    } else {
        pacing_begin_count(pacing);
    }
    return result;
}

/* Makes a watch channel and sends its end. On failure neither end is left. */
REQUIRES(the_port_lock) static int send_watch(CFMessagePortRef port, int page, int *ret_end)
{
    struct wire_frame frame = {.type = wire_control, .flags = wire_new_channel, .channel = wire_control_watches};
    struct load load = {.descriptors = {-1, page}, .count = wire_descriptors_max};
    int ends[2];
    int result = kernel_ports.channel_create(ends);

    if (result < 0) {
        return result;
    }
    kernel_ports.random_bytes(&frame.token, sizeof frame.token);
    frame.token |= 1;
    frame.name = port->name.bytes;
    frame.name_length = port->name.length;
    load.descriptors[0] = ends[1];
    (void)kernel_ports.refuse_descriptors(ends[0]);
    result = send_packet(port, &frame, &load, 0);
    (void)kernel.close(ends[1]);
    if (result < 0) {
        (void)kernel.close(ends[0]);
        return result;
    }
    *ret_end = ends[0];
    return 0;
}

int remote_port_offer_watch(CFMessagePortRef port, int *ret_end)
{
    void *page; /* a control frame has to bring a page; nobody uses this one */
    int memory;
    int result = shared_page_create(&page, &memory);

    if (result < 0) {
        return result;
    }
    shared_page_release(page);
    result = send_watch(port, memory, ret_end);
    (void)kernel.close(memory);
    return result;
}

int remote_port_offer_page(CFMessagePortRef port, uint32_t channel, uint64_t token, const int descriptors[wire_descriptors_max])
{
    const struct wire_frame frame = {.type = wire_page, .channel = channel, .token = token};
    const struct load load = {.descriptors = {descriptors[0], descriptors[1]}, .count = wire_descriptors_max};
    int result = -ENOTCONN;

    port_lock(port);
    if (port_is_valid(port)) {
        result = send_packet(port, &frame, &load, 0);
    }
    port_unlock(port);
    return result;
}

/* ---- sending ---- */

bool remote_port_has_room(CFMessagePortRef port)
{
    bool result;

    port_lock(port);
    result = pacing_has_room(&port->side.remote.pacing);
    port_unlock(port);
    return result;
}

/* Asks the owner to acknowledge this frame, and offers the control channel for that when it is due. Returns 0 or a negative errno. */
REQUIRES(the_port_lock) static int prepare_ack(CFMessagePortRef port, struct wire_frame *frame)
{
    struct send_pacing *pacing = &port->side.remote.pacing;
    int result = pacing_wants_control(pacing) ? offer_control(port) : 0;

    /* Every frame asks from then on, though a reply confirms a request as well: so the server can tell an old number from a new one. */
    frame->flags &= (uint16_t)~wire_want_ack;
    frame->extra = 0;
    if (pacing->control >= 0) {
        frame->flags |= wire_want_ack;
        frame->extra = pacing->control_token;
    }
    return result;
}

/* Sends the frame under the next number. Returns 0 or a negative errno. */
REQUIRES(the_port_lock)
static int send_frame(CFMessagePortRef port, struct wire_frame *frame, const struct load *load, int64_t stay_ns)
{
    struct send_pacing *pacing = &port->side.remote.pacing;
    int error = prepare_ack(port, frame);

    if (error < 0) {
        return error;
    }
    frame->sequence = pacing->sequence + 1;
    if (trace_is_on()) { /* before the packet, whose receiver may be quicker */
        trace_write(trace_message_is_sent, trace_by_socket, message_trace_id(&port->name, kernel_ports.process_id(), frame->sequence),
                    (uintptr_t)port);
    }
    error = send_packet(port, frame, load, stay_ns);
    invariant(frame->sequence == pacing->sequence + 1);
    return error;
}

static enum send_outcome outcome_of(int error)
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

/* Tries to send once, if the pacing admits the frame. `ret_error` gets the negative errno of an attempt that failed. */
REQUIRES(the_port_lock)
static enum send_outcome try_send(CFMessagePortRef port, struct wire_frame *frame, const struct load *load, struct send_attempts *attempts,
                                  int *ret_error)
{
    enum send_outcome outcome = pacing_admit(&port->side.remote.pacing, &port->lock, attempts);

    if (!port_is_valid(port)) {
        return outcome_gone;
    }
    if (outcome == outcome_none) {
        *ret_error = send_frame(port, frame, load, attempts->stay_ns);
        outcome = outcome_of(*ret_error);
    }
    return outcome;
}

/* Not checked: the caller uses the port, so the socket stays open and the same. */
NOT_CHECKED static void wait_for_room(struct remote_port *remote, struct send_attempts *attempts)
{
    pacing_wait(&remote->pacing, attempts, remote->socket);
}

SInt32 remote_port_send(CFMessagePortRef port, struct wire_frame *frame, const struct load *load, int64_t deadline_ns)
{
    struct remote_port *remote = &port->side.remote;
    struct send_attempts attempts = {.deadline_ns = deadline_ns, .last = outcome_none};

    for (;;) {
        enum send_outcome outcome = outcome_gone;
        bool wakes_next;
        int error = 0;

        port_lock(port);
        pacing_begin_attempt(&remote->pacing, &attempts);
        if (port_is_valid(port)) {
            outcome = try_send(port, frame, load, &attempts, &error);
        }
        wakes_next = pacing_end_attempt(&remote->pacing, &attempts, outcome);
        port_unlock(port);
        if (wakes_next) {
            pacing_wake_next(&remote->pacing);
        }
        if (outcome == outcome_sent) {
            return kCFMessagePortSuccess;
        }
        if (outcome == outcome_gone) {
            return attempts.has_waited ? kCFMessagePortBecameInvalidError : kCFMessagePortIsInvalid;
        }
        if (outcome == outcome_failed) {
            port_log("CFMessagePortSendRequest", "a message cannot be sent: %s", port_error_text(error));
            return kCFMessagePortTransportError;
        }
        if (attempts.ended_ns >= deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        wait_for_room(remote, &attempts);
    }
}
