/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pacing of a remote port's sends; see send_pacing.h.
 *
 * Frames are confirmed by a reply, or by an acknowledgement in the page that goes with the control channel. The kernel keeps the order of
 * one socket, so a frame's number confirms all before it. A packet comes on the control channel when a thread sleeps for want of room
 * (ack_page.h).
 */
#include "Port/Channel/send_pacing.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Wire/packet.h"
#include "Port/Wire/shared_page.h"
#include "Support/barrier.h"

enum {
    unasked_most = 2,
    looks_most = 256, /* in one spin, whatever the clock says */
    pauses_between_looks = 8,
    skip_size_most = 64,
    straight_most = 15, /* messages that go straight after an attempt in vain */
};

/* How long a thread spins before it sleeps. A running receiver takes some messages in this time. */
static const int64_t spin_ns = 20000;

/*
 * The longest wait between two looks. The kernel reports room late. The packet that reports room comes only when there is room for several
 * messages, and another thread may take it.
 */
static const int64_t slice_ns = 10000000;

/*
 * The longest stay in the line. Another thread that invalidates the port cannot end it: the sleeper waits on the receiver's socket, so
 * shutting, closing or connecting its own again does not wake it, and signals are the program's. A sender that leaves the line and comes
 * back has to go to the end.
 */
static const int64_t stay_most_ns = 500000000;

/* The kernel is late by an eighth of a stay in the line. What is left of a time limit is waited for outside. */
static const int64_t exact_ns = 20000000;

/* ---- the window ---- */

/* Returns true if the window is FULL. */
REQUIRES(the_port_lock) static bool is_full(const struct send_pacing *pacing)
{
    invariant((pacing->control >= 0) == (pacing->acks != NULL));
    return pacing->control >= 0 && pacing->sequence - pacing->confirmed >= pacing->queue_limit;
}

void pacing_confirm(struct send_pacing *pacing, uint32_t sequence)
{
    if ((int32_t)(sequence - pacing->confirmed) > 0 && (int32_t)(pacing->sequence - sequence) >= 0) {
        pacing->confirmed = sequence;
        invariant(pacing->sequence - sequence <= INT32_MAX);
    }
}

/* If the window is full, reads the number of the last frame taken and the queue's limit from the page. */
REQUIRES(the_port_lock) static void look_into_page(struct send_pacing *pacing)
{
    uint32_t taken;
    uint32_t queue_limit;

    if (is_full(pacing) && ack_page_read(pacing->acks, &taken, &queue_limit)) {
        pacing_confirm(pacing, taken);
        pacing->queue_limit = queue_limit;
    }
}

/* Takes the packet that may have ended a wait, or finds the channel hung up. The packet's contents are ignored: the page has them, too. */
REQUIRES(the_port_lock) static void take_wake_up(struct send_pacing *pacing)
{
    int result = pacing->control >= 0 ? packet_skip(pacing->control) : -EAGAIN;

    if (result <= 0 && result != -EAGAIN && result != -EINTR) {
        pacing_close_control(pacing); /* the receiver is gone, or did not accept the channel */
        pacing->has_no_control = true;
    }
}

bool pacing_has_room(struct send_pacing *pacing)
{
    look_into_page(pacing);
    if (is_full(pacing)) {
        take_wake_up(pacing); /* if the channel is hung up, the window does not count any more */
    }
    return !is_full(pacing);
}

/*
 * Called when the window is full and the thread is about to sleep. Asks for a packet once only a quarter of the queue is left. A wake-up
 * costs more than a message, so there should be few. The last quarter gives the receiver work until the sender runs again. Threads that
 * sleep at the same time ask for the same number, because nothing is sent while the window is full. The page is read after asking, so that
 * no message taken before that is missed.
 */
REQUIRES(the_port_lock) static void await_room(struct send_pacing *pacing)
{
    ack_page_await(pacing->acks, pacing->sequence - pacing->queue_limit / 4);
    look_into_page(pacing);
}

/* ---- the control channel ---- */

/* How many frames may be under way before one asks to be acknowledged. */
REQUIRES(the_port_lock) static uint32_t unasked_limit(const struct send_pacing *pacing)
{
    return pacing->queue_limit <= unasked_most ? pacing->queue_limit - 1 : unasked_most;
}

bool pacing_wants_control(const struct send_pacing *pacing)
{
    bool is_late = pacing->sequence - pacing->confirmed >= unasked_limit(pacing);

    return is_late && pacing->control < 0 && !pacing->was_in_line && !pacing->has_no_control;
}

/* Makes both, or none. */
REQUIRES(the_port_lock) static int make_control(struct send_pacing *pacing, int ret_passed[wire_descriptors_max])
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
    pacing->acks = page;
    pacing->control = ends[0];
    ret_passed[0] = ends[1];
    return 0;
}

int pacing_open_control(struct send_pacing *pacing, int ret_passed[wire_descriptors_max])
{
    int result;

    invariant(pacing->control < 0 && !pacing->acks && !pacing->has_no_control);
    result = make_control(pacing, ret_passed);
    if (result < 0) {
        pacing->has_no_control = true;
        return result;
    }
    (void)kernel_ports.refuse_descriptors(pacing->control);
    kernel_ports.random_bytes(&pacing->control_token, sizeof pacing->control_token);
    pacing->control_token |= 1;
    return 0;
}

void pacing_begin_count(struct send_pacing *pacing)
{
    invariant(pacing->control >= 0);
    pacing_confirm(pacing, pacing->sequence - unasked_limit(pacing));
}

void pacing_close_control(struct send_pacing *pacing)
{
    if (pacing->control >= 0) {
        packet_socket_close(pacing->control);
        pacing->control = -1;
    }
    shared_page_release(pacing->acks);
    pacing->acks = NULL;
}

void pacing_hang_up_control(const struct send_pacing *pacing)
{
    if (pacing->control >= 0) {
        (void)kernel_ports.hang_up(pacing->control);
    }
}

/* Not checked: the child of a fork has one thread. */
NOT_CHECKED void pacing_abandon_control(struct send_pacing *pacing)
{
    pacing->acks = NULL; /* not mapped in a child */
    if (pacing->control >= 0) {
        (void)kernel.close(pacing->control);
        pacing->control = -1;
    }
}

/* ---- spinning ---- */

/* Lets others at the lock for a moment. Not checked: takes back the lock that it drops. */
NOT_CHECKED static void pause_without(struct lock *lock)
{
    lock_drop(lock);
    for (int pause = 0; pause < pauses_between_looks; pause++) {
        barrier_pause();
    }
    lock_take(lock);
}

/* Notes whether a spin has found room. After each one in vain, twice as many of the next spins are left out. */
REQUIRES(the_port_lock) static void note_spin(struct send_pacing *pacing)
{
    if (!is_full(pacing)) {
        pacing->skip_size = 0;
    } else if (pacing->skip_size == 0) {
        pacing->skip_size = 1;
    } else if (pacing->skip_size < skip_size_most) {
        pacing->skip_size = (uint8_t)(2 * pacing->skip_size);
    }
    invariant(pacing->skip_size <= skip_size_most);
    pacing->skips_left = pacing->skip_size;
}

/*
 * Looks at a full window for a moment before the thread sleeps. A receiver on another processor takes a message in less time than a wake-up
 * costs. If both share a processor, the spin is in vain, and note_spin makes it rare.
 */
REQUIRES(the_port_lock) static void spin(struct send_pacing *pacing, struct lock *lock, struct send_attempts *attempts)
{
    int64_t now_ns = kernel.monotonic_ns();
    int64_t until_ns = attempts->deadline_ns - now_ns < spin_ns ? attempts->deadline_ns : now_ns + spin_ns;

    if (now_ns >= attempts->deadline_ns) {
        return;
    }
    if (pacing->skips_left > 0) {
        pacing->skips_left--;
        return;
    }
    for (int look = 0; is_full(pacing) && look < looks_most && kernel.monotonic_ns() < until_ns; look++) {
        attempts->has_waited = true;
        pause_without(lock);
        look_into_page(pacing);
    }
    note_spin(pacing);
}

/* ---- attempts ---- */

/* Returns how long an attempt may stay in the line; 0, not at all, in a time limit's last moment. */
static int64_t longest_stay(int64_t left_ns)
{
    if (left_ns <= exact_ns) {
        return 0;
    }
    return left_ns / 8 * 7 < stay_most_ns ? left_ns / 8 * 7 : stay_most_ns;
}

void pacing_begin_attempt(struct send_pacing *pacing, struct send_attempts *attempts)
{
    bool goes_straight = attempts->last == outcome_none && pacing->straight_left > 0;

    if (attempts->is_behind) {
        invariant(pacing->behind_count > 0);
        pacing->behind_count--;
        attempts->is_behind = false;
    }
    if (attempts->last == outcome_full) {
        take_wake_up(pacing);
    }
    attempts->stay_ns = 0;
    if (goes_straight || attempts->last == outcome_busy || attempts->last == outcome_behind) {
        attempts->stay_ns = longest_stay(attempts->deadline_ns - kernel.monotonic_ns());
    }
}

enum send_outcome pacing_admit(struct send_pacing *pacing, struct lock *lock, struct send_attempts *attempts)
{
    invariant_held(lock);
    look_into_page(pacing);
    if (is_full(pacing)) {
        spin(pacing, lock, attempts);
    }
    if (pacing->is_in_line) {
        return outcome_behind;
    }
    if (is_full(pacing) && kernel.monotonic_ns() < attempts->deadline_ns) {
        await_room(pacing);
    } else if (is_full(pacing)) {
        take_wake_up(pacing); /* this call will not wait and asks for no packet, but the channel may be hung up */
    }
    if (is_full(pacing)) {
        return outcome_full;
    }
    if (attempts->stay_ns > 0) {
        pacing->was_in_line = true;
    }
    return outcome_none;
}

void pacing_enter_line(struct send_pacing *pacing)
{
    invariant(!pacing->is_in_line && pacing->was_in_line);
    pacing->is_in_line = true;
}

void pacing_leave_line(struct send_pacing *pacing)
{
    invariant(pacing->is_in_line);
    pacing->is_in_line = false;
}

/* Counts a frame that was sent. */
REQUIRES(the_port_lock) static void note_sent(struct send_pacing *pacing, bool stood_in_line)
{
    invariant(!pacing->is_in_line);
    pacing->sequence++;
    pacing->was_in_line = stood_in_line;
    if (stood_in_line && pacing->straight_left > 0) {
        pacing->straight_left--;
    }
}

bool pacing_end_attempt(struct send_pacing *pacing, struct send_attempts *attempts, enum send_outcome outcome)
{
    bool gives_turn = outcome != outcome_behind && pacing->behind_count > 0;

    invariant(outcome != outcome_none && !attempts->is_behind);
    attempts->last = outcome;
    if (outcome == outcome_sent) {
        note_sent(pacing, attempts->stay_ns > 0);
    } else {
        attempts->ended_ns = kernel.monotonic_ns();
    }
    if (outcome == outcome_busy) {
        pacing->straight_left = straight_most;
    }
    if (gives_turn) {
        (void)atomic_fetch_add_explicit(&pacing->turns, 1, memory_order_relaxed);
    }
    if (outcome == outcome_behind && attempts->ended_ns < attempts->deadline_ns) {
        attempts->is_behind = true;
        pacing->behind_count++;
    }
    attempts->control = pacing->control;
    attempts->turns = atomic_load_explicit(&pacing->turns, memory_order_relaxed);
    return gives_turn;
}

void pacing_wake_next(struct send_pacing *pacing)
{
    (void)kernel.futex_wake(&pacing->turns);
}

void pacing_wait(struct send_pacing *pacing, struct send_attempts *attempts, int socket)
{
    int64_t left_ns = attempts->deadline_ns - attempts->ended_ns;
    int64_t until_ns = left_ns > slice_ns ? attempts->ended_ns + slice_ns : attempts->deadline_ns;

    attempts->has_waited = true;
    if (attempts->last == outcome_full) {
        (void)kernel_ports.wait(attempts->control, kernel_readable, until_ns);
    } else if (attempts->last == outcome_behind) {
        (void)kernel.futex_wait(&pacing->turns, attempts->turns, attempts->deadline_ns);
    } else if (left_ns <= exact_ns) {
        (void)kernel_ports.wait(socket, kernel_writable, until_ns);
    }
}
