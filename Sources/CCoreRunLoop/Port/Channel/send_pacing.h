/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pacing of a remote port's sends: whether a frame may go now, has to stand in the kernel's line, or has to wait. Knows no port.
 *
 * Two queues limit a sender. The owner's queue takes a number of frames from each process; the pacing counts those under way. The kernel's
 * queue for the owner's socket is shared by the senders of all processes.
 *
 *   window     the frames that may be under way: `queue_limit`. The numbers after `confirmed`, up to `sequence`, are under way
 *   look       to read in the ack page which frames the owner has taken; to spin is to look again and again before sleeping
 *   skip       to leave a spin out because the last ones found no room
 *   line       the threads that the kernel keeps waiting for room in the owner's socket, first come, first served. Of one process and port
 *              one thread stands in it at a time: its frame has the next number
 *   behind     said of the threads of this process that sleep until that one has left the line
 *   turn       the chance to try again that one thread behind gets when the attempt of another has ended
 *   straight   said of a message whose first attempt stands in the line already, because an attempt without a wait was in vain lately
 *
 * The window is in one of four states:
 *
 *   UNCOUNTED  no control channel yet: the kernel's queue alone limits
 *   OPEN       a control channel, and fewer frames under way than the window holds
 *   FULL       a control channel, and as many frames under way as the window holds
 *   ENDLESS    the owner did not take the channel, or has closed it: the kernel's queue alone limits, for ever
 *
 *   UNCOUNTED -> OPEN                  pacing_open_control, when a few frames are under way (pacing_wants_control)
 *   UNCOUNTED -> ENDLESS               pacing_open_control, without the means for a channel
 *   OPEN -> FULL                       pacing_end_attempt, for the last frame that the window has room for; or a look finds a lower limit
 *   FULL -> OPEN                       pacing_confirm, for the number of a reply or one found by a look
 *   OPEN, FULL -> ENDLESS              pacing_admit, pacing_begin_attempt or pacing_has_room, which find the channel hung up
 *   OPEN, FULL -> UNCOUNTED            pacing_close_control: the channel could not be offered, or the port has ended
 *
 * The line of this process is EMPTY or TAKEN:
 *
 *   EMPTY -> TAKEN                     pacing_enter_line, before the lock is dropped for the stay
 *   TAKEN -> EMPTY                     pacing_leave_line, with the lock again; the end of that attempt gives a turn
 *
 * A call makes attempts until its frame is sent, its time is over or the port has ended. What follows depends on the last outcome:
 *
 *   none       the first attempt: does not wait, or goes straight
 *   full       sleeps until a packet comes on the control channel; the next attempt does not wait
 *   busy       the next attempt stands in the line
 *   behind     sleeps until its turn; the next attempt stands in the line
 *
 * In the last moment of a time limit no attempt stands in the line, as the kernel would be late. The port's lock guards the structure.
 */
#ifndef CRL_PORT_CHANNEL_SEND_PACING_H
#define CRL_PORT_CHANNEL_SEND_PACING_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Port/Wire/ack_page.h"
#include "Port/Wire/wire.h"
#include "Support/guard.h"
#include "Support/invariant.h"
#include "Support/lock.h"

extern struct lock_role the_port_lock; /* see Core/message_port.h */

struct send_pacing {
    uint32_t sequence GUARDED_BY(the_port_lock); /* the number of the last request or one-way message sent */
    uint32_t confirmed GUARDED_BY(the_port_lock); /* the number of the last that the owner is known to have taken */
    uint32_t queue_limit GUARDED_BY(the_port_lock);
    int control GUARDED_BY(the_port_lock); /* our end of the control channel, -1 if there is none */
    uint64_t control_token GUARDED_BY(the_port_lock);
    struct ack_page *acks GUARDED_BY(the_port_lock); /* the channel's page; NULL without a channel */
    bool has_no_control GUARDED_BY(the_port_lock); /* the window is ENDLESS */
    uint8_t skips_left GUARDED_BY(the_port_lock); /* spins that are still left out */
    uint8_t skip_size GUARDED_BY(the_port_lock); /* how many are left out after the last one in vain; 0: it found room */
    bool is_in_line GUARDED_BY(the_port_lock); /* the line is TAKEN */
    bool was_in_line GUARDED_BY(the_port_lock); /* the last message stood in the line */
    uint8_t straight_left GUARDED_BY(the_port_lock); /* messages that still go straight */
    int64_t line_limit_ns; /* used by the thread in line: the limit that the socket has for a stay there; 0: none yet */
    uint32_t behind_count GUARDED_BY(the_port_lock);
    _Atomic uint32_t turns; /* written under the lock: counts the turns given; the threads behind sleep on it */
};

enum send_outcome {
    outcome_none, /* the first attempt is not over */
    outcome_full, /* the window is full */
    outcome_busy, /* the kernel's queue is full */
    outcome_behind, /* another thread is in the line */
    outcome_sent,
    outcome_gone, /* the receiver or the port */
    outcome_failed
};

/* The attempts of one call. Used by its thread only. */
struct send_attempts {
    int64_t deadline_ns; /* constant */
    enum send_outcome last;
    int64_t stay_ns; /* how long the present attempt may stay in the line; 0: it does not wait */
    int64_t ended_ns; /* when the last attempt ended that did not send */
    bool has_waited; /* for room in the window, or between two attempts */
    bool is_behind; /* counted in `behind_count` */
    int control; /* a copy from the end of the last attempt, to wait without the lock */
    uint32_t turns; /* a copy, too: a turn that is given meanwhile ends the sleep at once */
};

/* ---- an attempt, in this order ---- */

/* Begins an attempt: decides from the last outcome whether it may stand in the line. */
REQUIRES(the_port_lock) void pacing_begin_attempt(struct send_pacing *pacing, struct send_attempts *attempts);
/*
 * Returns outcome_none if the frame may be sent now, otherwise outcome_full or outcome_behind. Spins if the window is full, for which it
 * drops the lock for moments: the port may have ended afterwards.
 */
REQUIRES(the_port_lock)
enum send_outcome pacing_admit(struct send_pacing *pacing, struct lock *lock, struct send_attempts *attempts);
/* Called around a stay in the line, over which the lock is dropped. */
REQUIRES(the_port_lock) void pacing_enter_line(struct send_pacing *pacing);
REQUIRES(the_port_lock) void pacing_leave_line(struct send_pacing *pacing);
/* Notes the outcome. Returns true if pacing_wake_next has to follow, without the lock. */
REQUIRES(the_port_lock)
bool pacing_end_attempt(struct send_pacing *pacing, struct send_attempts *attempts, enum send_outcome outcome);
void pacing_wake_next(struct send_pacing *pacing);
/* Waits, without the lock, until another attempt may succeed, or a look is due. The caller uses the port, so both descriptors stay open. */
void pacing_wait(struct send_pacing *pacing, struct send_attempts *attempts, int socket);

/* ---- the window ---- */

/* Returns true if no frame is under way. */
REQUIRES(the_port_lock) static inline bool pacing_is_idle(const struct send_pacing *pacing)
{
    return pacing->sequence == pacing->confirmed;
}

/* Notes that the owner has received the frame of this number, and so all frames before it. Ignores numbers that were not sent. */
REQUIRES(the_port_lock) void pacing_confirm(struct send_pacing *pacing, uint32_t sequence);
/* Returns false if the window is full. Looks, but never waits. */
REQUIRES(the_port_lock) bool pacing_has_room(struct send_pacing *pacing);

/* ---- the control channel ---- */

/*
 * Returns true if it is time to offer the owner a control channel. A sender that had to stand in the line offers none: the kernel's queue
 * limits it already, and a crowd would keep the owner busy with channels.
 */
REQUIRES(the_port_lock) bool pacing_wants_control(const struct send_pacing *pacing);
/* Makes a control channel and its page; `ret_passed` gets the owner's descriptors. Returns 0 or a negative errno; then it makes none. */
REQUIRES(the_port_lock) int pacing_open_control(struct send_pacing *pacing, int ret_passed[wire_descriptors_max]);
/*
 * Called when the owner was offered the channel. A sender that stood in the line may have more under way than the window holds. None of
 * that asked to be acknowledged, so most of it counts as taken, or the window would stay full.
 */
REQUIRES(the_port_lock) void pacing_begin_count(struct send_pacing *pacing);
/* Closes the control channel and its page, if there are any. */
REQUIRES(the_port_lock) void pacing_close_control(struct send_pacing *pacing);
/* Ends the waits for the control channel of a port that has ended, while threads still use it. */
REQUIRES(the_port_lock) void pacing_hang_up_control(const struct send_pacing *pacing);
/* Closes it in the child of a fork: closes the child's copy, and the parent goes on with the channel. */
void pacing_abandon_control(struct send_pacing *pacing);

#endif
