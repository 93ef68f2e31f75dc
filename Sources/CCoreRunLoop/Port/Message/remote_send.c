/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending to the owner's socket; see remote_send.h.
 *
 * Confirmations come by a reply, or by an acknowledgement in the page that goes with the control channel. Both the channel and the page are
 * made when a third message is sent, or with the last that the queue has room for, if it holds fewer. The kernel keeps the order of one
 * socket, so a message's number confirms all before it. A packet comes on the control channel when a thread sleeps for want of room
 * (ack_page.h).
 */
#include "Port/Message/remote_send.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Core/port_use.h"
#include "Port/Core/message_trace.h"
#include "Port/Wire/port_log.h"
#include "Support/barrier.h"

enum {
    unasked_max = 2,
    frame_beside_data = wire_frame_max - wire_inline_max,
    queue_most = 11, /* packets that the kernel queues for a socket by default */
    looks_most = 256, /* looks in one moment, whatever the clock says */
    pauses_between_looks = 8,
    skip_size_most = 64,
    straight_most = 15, /* messages that go to the kernel's line at once after an attempt in vain */
};

/* How long a thread looks at a full queue before it sleeps. A running receiver takes some messages in this time. */
static const int64_t moment_ns = 20000;

/*
 * The longest wait between two looks. The kernel reports room late. The packet that reports room comes only when there is room for several
 * messages, and another thread may take it.
 */
static const int64_t slice_ns = 10000000;

/*
 * The longest stay in the kernel's line of senders. Another thread that invalidates the port cannot end it: the sleeper waits on the
 * receiver's socket, so shutting, closing or connecting its own again does not wake it, and signals are the program's. A sender that leaves
 * the line and comes back has to go to the end.
 */
static const int64_t turn_ns = 500000000;

/* The kernel is late by an eighth of a stay in the line. What is left of a time limit is waited for outside. */
static const int64_t exact_ns = 20000000;

/* ---- which way ---- */

/*
 * Returns true if messages go through the queue of a port of this process, and not through its socket. They begin to do so only when no
 * message by the socket is under way, which they would overtake. From then on they always do.
 */
REQUIRES(the_port_lock) static bool uses_local_queue(struct remote_port *remote)
{
    bool uses = atomic_load_explicit(&remote->uses_local_queue, memory_order_relaxed) ||
                (remote->sends_by_socket == 0 && remote->sequence == remote->confirmed && local_queue_is_open(remote->local_queue));

    atomic_store_explicit(&remote->uses_local_queue, uses, memory_order_relaxed);
    return uses;
}

bool remote_port_begin_send(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    bool result;

    if (!remote->local_queue || atomic_load_explicit(&remote->uses_local_queue, memory_order_relaxed)) {
        return remote->local_queue != NULL;
    }
    port_lock(port);
    result = uses_local_queue(remote);
    remote->sends_by_socket += result ? 0 : 1;
    port_unlock(port);
    return result;
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
    uint64_t before; /* packets that may be under way when the last one is sent; at least 1, because a packet has to fit itself */
    uint64_t most;

    if (length <= packet_small) {
        return packet_small;
    }
    port_lock(port);
    before = remote->queue_limit > queue_most ? queue_most - 1 : remote->queue_limit > 2 ? remote->queue_limit - 1 : 1;
    port_unlock(port);
    if (remote->send_room <= remote_send_room_beside) {
        return packet_small;
    }
    /* One byte less: the kernel admits a packet by what is under way before it, not by the sum with it. */
    most = packet_size_within((remote->send_room - remote_send_room_beside - 1) / before, kernel_ports.page_size());
    if (most <= packet_small + frame_beside_data) {
        return packet_small;
    }
    return most >= wire_frame_max ? wire_inline_max : most - frame_beside_data;
}

/* ---- the control channel ---- */

void remote_port_confirm(struct remote_port *remote, uint32_t sequence)
{
    if ((int32_t)(sequence - remote->confirmed) > 0 && (int32_t)(remote->sequence - sequence) >= 0) {
        remote->confirmed = sequence;
        invariant(remote->sequence - sequence <= INT32_MAX);
    }
}

/* Reads the acknowledged number and the queue's limit from the page. */
REQUIRES(the_port_lock) static void look_into_page(struct remote_port *remote)
{
    uint32_t taken;
    uint32_t queue_limit;

    if (remote->acks && ack_page_read(remote->acks, &taken, &queue_limit)) {
        remote_port_confirm(remote, taken);
        remote->queue_limit = queue_limit;
    }
}

/* Takes the packet that may have ended a wait, or finds the channel hung up. The packet's contents are ignored: the page has them, too. */
REQUIRES(the_port_lock) static void take_wake_up(struct remote_port *remote)
{
    int result = remote->control >= 0 ? packet_skip(remote->control) : -EAGAIN;

    if (result <= 0 && result != -EAGAIN && result != -EINTR) {
        remote_port_close_control(remote); /* the receiver is gone, or did not accept the channel */
        remote->has_no_control = true;
    }
}

/*
 * Called when the queue is full and the sender is about to sleep. Asks for a packet once only a quarter of the queue is left. A wake-up
 * costs more than a message, so there should be few. The last quarter gives the receiver work until the sender runs again. Threads that
 * sleep at the same time ask for the same number, because nothing is sent while the queue is full. The page is read after asking, so that
 * no message taken before that is missed.
 */
REQUIRES(the_port_lock) static void await_room(struct remote_port *remote)
{
    ack_page_await(remote->acks, remote->sequence - remote->queue_limit / 4);
    look_into_page(remote);
}

/*
 * Waits in the kernel's line of senders, without the lock. The frame is the next one that goes, because others find `is_in_line`. Returns
 * -ENOTCONN if the port was invalidated meanwhile and the frame was not sent. Not checked: the caller uses the port, so the socket stays.
 */
NOT_CHECKED static int send_in_turn(CFMessagePortRef port, const struct wire_frame *frame, const struct load *load, int64_t stay_ns)
{
    struct remote_port *remote = &port->side.remote;
    int result;

    remote->is_in_line = true;
    port_unlock(port);
    result = packet_send_in_turn(remote->socket, frame, load->bytes, load->descriptors, load->count, stay_ns, &remote->line_limit_ns);
    port_lock(port);
    remote->is_in_line = false;
    return result < 0 && !port_is_valid(port) ? -ENOTCONN : result;
}

/*
 * Sends every packet to the owner's socket. Waits for room if `stay_ns` is not 0. If the owner is in this process, the packet is counted
 * until it has been taken.
 */
REQUIRES(the_port_lock)
static int send_packet(CFMessagePortRef port, const struct wire_frame *frame, const struct load *load, int64_t stay_ns)
{
    struct remote_port *remote = &port->side.remote;
    int result;

    if (remote->local_queue) {
        local_queue_expect_packet(remote->local_queue);
    }
    result = stay_ns > 0 ? send_in_turn(port, frame, load, stay_ns)
                         : packet_send(remote->socket, frame, load->bytes, load->descriptors, load->count);
    if (result < 0 && remote->local_queue) {
        local_queue_forget_packet(remote->local_queue);
    }
    return result;
}

/* Makes a control channel and its page; `ret_passed` gets the owner's descriptors. On failure returns a negative errno and makes none. */
REQUIRES(the_port_lock) static int make_control(struct remote_port *remote, int ret_passed[wire_descriptors_max])
{
    void *page;
    int ends[2];
    int result = shared_page_create(&page, &ret_passed[1]);

    if (result < 0) {
        return result;
    }
    result = kernel_ports.channel_create(ends);
    if (result < 0) {
        shared_page_release(page);
        (void)kernel.close(ret_passed[1]);
        return result;
    }
    remote->acks = page;
    remote->control = ends[0];
    (void)kernel_ports.refuse_descriptors(remote->control);
    ret_passed[0] = ends[1];
    return 0;
}

/* How many frames may be under way before one asks to be acknowledged. */
REQUIRES(the_port_lock) static uint32_t unasked_limit(const struct remote_port *remote)
{
    return remote->queue_limit <= unasked_max ? remote->queue_limit - 1 : unasked_max;
}

/*
 * Hands a new control channel to the owner. Returns -EAGAIN if the queue is full. If no channel can be made, returns 0: the kernel's queue
 * alone limits the sender then. A sender that stood in the kernel's line may have more under way than its queue holds. None of that asked
 * to be acknowledged, so most of it counts as taken, or the queue would stay full.
 */
REQUIRES(the_port_lock) static int offer_control(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    struct wire_frame frame = {.type = wire_control, .flags = wire_new_channel, .channel = wire_control_wakes};
    struct load load = {.count = wire_descriptors_max};
    int result;

    invariant_held(&port->lock);
    invariant(remote->control < 0 && !remote->acks);
    if (make_control(remote, load.descriptors) < 0) {
        remote->has_no_control = true;
        return 0;
    }
    kernel_ports.random_bytes(&frame.token, sizeof frame.token);
    frame.token |= 1;
    frame.name = port->name.bytes;
    frame.name_length = port->name.length;
    remote->control_token = frame.token;
    result = send_packet(port, &frame, &load, 0);
    (void)kernel.close(load.descriptors[0]);
    (void)kernel.close(load.descriptors[1]);
    if (result < 0) {
        remote_port_close_control(remote);
    } else {
        remote_port_confirm(remote, remote->sequence - unasked_limit(remote));
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
    void *page; /* nobody uses it, but a control frame brings one */
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

/* One call's message, and the state of its sending. */
struct sending {
    struct wire_frame *frame;
    const struct load *load;
    int64_t deadline_ns;
    int64_t stay_ns; /* how long the next attempt may stay in the kernel's line of senders; 0: not at all */
    int error; /* of the last attempt: 0 or a negative errno */
    SInt32 gone; /* the code if the receiver or the port is gone: IsInvalid, or BecameInvalid once the call has waited (rule 211) */
};

/* `full`: as many are under way as the port's queue holds; `busy`: the kernel's queue is full; `behind`: another thread is in its line. */
enum outcome { outcome_sent, outcome_full, outcome_busy, outcome_behind, outcome_gone, outcome_failed };

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

/* True if as many frames are under way as the queue holds. Without a control channel the kernel limits them. */
REQUIRES(the_port_lock) static bool is_full(const struct remote_port *remote)
{
    return remote->control >= 0 && remote->sequence - remote->confirmed >= remote->queue_limit;
}

bool remote_port_has_room(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    bool result;

    port_lock(port);
    if (is_full(remote)) {
        look_into_page(remote);
    }
    if (is_full(remote)) {
        take_wake_up(remote); /* if the channel is hung up, the queue does not count any more */
    }
    result = !is_full(remote);
    port_unlock(port);
    return result;
}

/*
 * Asks the server to acknowledge this frame, and makes the control channel for that when it is due. Returns 0 or -EAGAIN. A sender that had
 * to stand in the kernel's line makes none: the kernel's queue limits it already, and a crowd would keep the owner busy with channels.
 */
REQUIRES(the_port_lock) static int prepare_ack(CFMessagePortRef port, struct wire_frame *frame)
{
    struct remote_port *remote = &port->side.remote;
    bool is_late = remote->sequence - remote->confirmed >= unasked_limit(remote);
    int result = is_late && !remote->was_in_line && remote->control < 0 && !remote->has_no_control ? offer_control(port) : 0;

    /* Every frame asks from then on, though a reply confirms a request as well: so the server can tell an old number from a new one. */
    frame->flags = (uint16_t)((frame->flags & ~wire_want_ack) | (remote->control >= 0 ? wire_want_ack : 0));
    frame->extra = remote->control >= 0 ? remote->control_token : 0;
    return result;
}

/* Notes whether a look at a full queue has found room. After each look in vain, twice as many of the next looks are left out. */
REQUIRES(the_port_lock) static void note_look(struct remote_port *remote)
{
    if (!is_full(remote)) {
        remote->skip_size = 0;
    } else if (remote->skip_size < skip_size_most) {
        remote->skip_size = remote->skip_size == 0 ? 1 : (uint8_t)(2 * remote->skip_size);
    }
    remote->skips_left = remote->skip_size;
}

/*
 * Looks at a full queue for a moment before the thread sleeps. A receiver on another processor takes a message in less time than a wake-up
 * costs. If both share a processor, the look is in vain, and note_look makes it rare. The port lock is dropped between two looks.
 */
REQUIRES(the_port_lock) static void look_for_room(CFMessagePortRef port, struct sending *sending)
{
    struct remote_port *remote = &port->side.remote;
    int64_t now_ns = kernel.monotonic_ns();
    int64_t until_ns = sending->deadline_ns - now_ns < moment_ns ? sending->deadline_ns : now_ns + moment_ns;

    if (now_ns >= sending->deadline_ns) {
        return;
    }
    if (remote->skips_left > 0) {
        remote->skips_left--;
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

/* Tries to send once. Drops the port lock for a moment if the queue is full. */
REQUIRES(the_port_lock) static enum outcome try_send(CFMessagePortRef port, struct sending *sending)
{
    struct remote_port *remote = &port->side.remote;

    invariant_held(&port->lock);
    if (is_full(remote)) {
        look_into_page(remote);
    }
    if (is_full(remote)) {
        look_for_room(port, sending);
        if (!port_is_valid(port)) {
            return outcome_gone;
        }
    }
    if (remote->is_in_line) {
        return outcome_behind;
    }
    if (is_full(remote) && kernel.monotonic_ns() < sending->deadline_ns) {
        await_room(remote);
    } else if (is_full(remote)) {
        take_wake_up(remote); /* this call will not wait and asks for no packet, but the channel may be hung up */
    }
    if (is_full(remote)) {
        return outcome_full;
    }
    remote->was_in_line |= sending->stay_ns > 0;
    sending->error = prepare_ack(port, sending->frame);
    if (sending->error == 0) {
        sending->frame->sequence = remote->sequence + 1;
        if (trace_is_on()) { /* before the packet, whose receiver may be quicker */
            trace_write(trace_message_is_sent, trace_by_socket,
                        message_trace_id(&port->name, kernel_ports.process_id(), sending->frame->sequence), (uintptr_t)port);
        }
        sending->error = send_packet(port, sending->frame, sending->load, sending->stay_ns);
    }
    if (sending->error == 0) {
        remote->sequence++;
        remote->was_in_line = sending->stay_ns > 0;
        remote->straight_left = (uint8_t)(remote->straight_left - (remote->was_in_line && remote->straight_left > 0 ? 1 : 0));
    } else if (sending->error == -EAGAIN) {
        remote->straight_left = straight_most;
    }
    return outcome_of(sending->error);
}

/* What a thread saw under the lock before it waits without it, or wakes another. */
struct seen {
    int control;
    uint32_t turns;
};

/*
 * Waits until there may be room, or another look is due. Not checked: the caller uses the port, so the descriptor stays open and the same.
 */
NOT_CHECKED static void wait_for_room(struct remote_port *remote, enum outcome outcome, const struct seen *seen, int64_t now_ns,
                                      int64_t deadline_ns)
{
    int64_t until_ns = deadline_ns - now_ns > slice_ns ? now_ns + slice_ns : deadline_ns;

    if (outcome == outcome_full) {
        (void)kernel_ports.wait(seen->control, kernel_readable, until_ns);
    } else if (outcome == outcome_behind) {
        (void)kernel.futex_wait(&remote->turns, seen->turns, deadline_ns);
    } else if (deadline_ns - now_ns <= exact_ns) {
        (void)kernel_ports.wait(remote->socket, kernel_writable, until_ns);
    }
}

/*
 * After an attempt, lets one of the threads try that wait until nobody of this process is in the kernel's line. The number tells a thread
 * that is about to sleep. Returns true if one has to be woken.
 */
REQUIRES(the_port_lock) static bool give_turn(struct remote_port *remote, enum outcome outcome)
{
    if (outcome == outcome_behind || remote->behind_count == 0) {
        return false;
    }
    (void)atomic_fetch_add_explicit(&remote->turns, 1, memory_order_relaxed);
    return true;
}

/* How long an attempt may stay in the kernel's line; 0, not at all, if nobody was in the way, and in a time limit's last moment. */
static int64_t stay_in_line(enum outcome last, int64_t now_ns, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - now_ns;

    if ((last != outcome_busy && last != outcome_behind) || left_ns <= exact_ns) {
        return 0;
    }
    return left_ns / 8 * 7 < turn_ns ? left_ns / 8 * 7 : turn_ns;
}

/*
 * Prepares an attempt, after one with the outcome `last`; outcome_sent: it is the first. A sender whose first attempts were in vain leaves
 * most of them out: each costs as much as a message.
 */
REQUIRES(the_port_lock) static void begin_attempt(CFMessagePortRef port, struct sending *sending, enum outcome last)
{
    struct remote_port *remote = &port->side.remote;

    if (last == outcome_full) {
        take_wake_up(remote);
    }
    if (last == outcome_sent && remote->straight_left > 0) {
        last = outcome_busy;
    }
    sending->stay_ns = last == outcome_sent ? 0 : stay_in_line(last, kernel.monotonic_ns(), sending->deadline_ns);
}

SInt32 remote_port_send(CFMessagePortRef port, struct wire_frame *frame, const struct load *load, struct send_clock *clock)
{
    struct remote_port *remote = &port->side.remote;
    struct sending sending = {.frame = frame, .load = load, .deadline_ns = clock->deadline_ns, .gone = kCFMessagePortIsInvalid};
    enum outcome outcome = outcome_sent;
    bool is_behind = false;

    for (;;) {
        struct seen seen;
        int64_t looked_ns;
        bool wakes_next;

        port_lock(port);
        remote->behind_count -= is_behind ? 1 : 0;
        begin_attempt(port, &sending, outcome);
        outcome = port_is_valid(port) ? try_send(port, &sending) : outcome_gone;
        looked_ns = outcome == outcome_sent ? 0 : kernel.monotonic_ns();
        wakes_next = give_turn(remote, outcome);
        is_behind = outcome == outcome_behind && looked_ns < clock->deadline_ns;
        remote->behind_count += is_behind ? 1 : 0;
        seen = (struct seen){remote->control, atomic_load_explicit(&remote->turns, memory_order_relaxed)};
        port_unlock(port);
        if (wakes_next) {
            (void)kernel.futex_wake(&remote->turns);
        }
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
        clock->now_ns = 0;
        if (looked_ns >= clock->deadline_ns) {
            return kCFMessagePortSendTimeout;
        }
        sending.gone = kCFMessagePortBecameInvalidError;
        wait_for_room(remote, outcome, &seen, looked_ns, clock->deadline_ns);
    }
}
