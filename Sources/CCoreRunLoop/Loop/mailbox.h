/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop's mailbox: what other threads and signal handlers may touch without a lock.
 *
 * The wake word says what the loop is doing and what it has been told:
 *
 *   phase    IDLE    not looking; the next thing it does is to start a pass, or to end the run: wake-ups are dropped (rules 62, 63)
 *            ARMED   in a pass, before the wait: a wake-up is kept as the token (64)
 *            FUTEX   asleep on the word itself
 *            EPOLL   asleep in the wait set of a mode, or hosted by another loop: a wake-up is also written to the eventfd
 *   TOKEN    a kept wake-up; ends the wait of this pass
 *   STOP     the innermost activation has been told to stop (55); ends a sleep as a token does, but is no wake-up to a run around it;
 *            before the wait it comes with a token
 *   RUN      an activation is running: a stop makes sense (56)
 *   RETIME   a timer or descriptor changed under the sleeper: compute the deadline again, without a pass (68, 71)
 *   OUTER    this run is nested in a pass that has not waited yet: a wake-up that this run drops is owed to that pass (64) ...
 *   OWED     ... and one was dropped
 *   FLOODED  woken so often that wakers only tell of it, in a word beside this one (flood.h): while ARMED that is the token, while IDLE
 *            nothing; never with OUTER, nor asleep without TOKEN
 *   writers  from bit 9: threads that will still write the eventfd; its number must not be given back before they have
 *
 *   IDLE -> ARMED            mailbox_arm, at the start of every pass
 *   ARMED -> FUTEX, EPOLL    mailbox_sleep, refused while there is a token or a stop
 *   FUTEX, EPOLL -> ARMED    mailbox_rearm, to look again without ending the wait
 *   any -> IDLE              mailbox_disarm, the wait is over; returns the token that was there
 *   any -> ARMED             mailbox_resume, in a run in whose callback another was left without its end
 *
 * Memory orders, row by row, are argued in docs/threads.md. Mailboxes come from a pool and are never given back to the allocator, because a
 * late signaller may wake one whose loop has just gone (a spurious wake-up of another loop is harmless).
 */
#ifndef CRL_LOOP_MAILBOX_H
#define CRL_LOOP_MAILBOX_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Loop/flood.h"
#include "Support/barrier.h"

struct slot;

enum wake_word {
    wake_idle = 0,
    wake_armed = 1,
    wake_futex = 2,
    wake_epoll = 3,
    wake_phase = 3,
    wake_token = 4,
    wake_stop = 8,
    wake_run = 16,
    wake_retime = 32,
    wake_outer = 64,
    wake_owed = 128,
    wake_flooded = 256,
    wake_writer = 512
};

struct mailbox {
    _Alignas(64) _Atomic uint32_t word; /* lock-free; the futex of a sleeping loop */
    _Atomic uint32_t told; /* in a flood; see flood.h */
    _Atomic int event; /* the eventfd, or -1; written under the loop's lock, read by whoever finds EPOLL */
    _Atomic(struct slot *) queue; /* stack of signalled slots: any thread pushes, the loop takes all under its lock */
    struct mailbox *next_free; /* pool lock */
};

/* NULL if there is no memory. */
struct mailbox *mailbox_create(void);
void mailbox_recycle(struct mailbox *mailbox);

/* For fork. */
void mailbox_pool_lock(void);
void mailbox_pool_unlock(void);
void mailbox_pool_reset(void);

/* A wake-up would change nothing: one is kept already, or it is dropped and owed to nobody who does not know yet. */
static inline bool mailbox_wake_is_moot(uint32_t word)
{
    return (word & wake_phase) == wake_idle ? (word & (wake_outer | wake_owed)) != wake_outer : (word & wake_token) != 0;
}

/* The rest of mailbox_wake, where `old` was found: with something to do, or with nothing but to note it. */
void mailbox_wake_from(struct mailbox *mailbox, uint32_t old);
void mailbox_wake_in_vain(struct mailbox *mailbox, uint32_t old);
/* Or where there is more to do than to tell. */
void mailbox_wake_in_flood(struct mailbox *mailbox, enum flood_answer answer);

/* The three that others call. Safe in signal handlers; keep errno. */
static inline void mailbox_wake(struct mailbox *mailbox)
{
    uint32_t old;

    atomic_signal_fence(memory_order_seq_cst);
    old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    if (old & wake_flooded) {
        enum flood_answer answer = flood_tell(&mailbox->told, &mailbox->word, wake_flooded);

        flood_record.spared_wakes++;
        if (__builtin_expect(answer != flood_is_heard, 0)) {
            mailbox_wake_in_flood(mailbox, answer);
        }
        return;
    }
    /* Whatever the caller did before must be seen by the pass that an early return relies on. */
    barrier_full();
    old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    if (mailbox_wake_is_moot(old)) {
        mailbox_wake_in_vain(mailbox, old);
    } else {
        mailbox_wake_from(mailbox, old);
    }
}

void mailbox_stop(struct mailbox *mailbox);
static inline bool mailbox_is_waiting(const struct mailbox *mailbox)
{
    return (atomic_load_explicit(&mailbox->word, memory_order_acquire) & wake_phase) >= wake_futex;
}

/*
 * Tells a sleeper to compute its deadline again, or to look at what was posted. Under the loop's lock, or after a change under it by
 * somebody with a reference to the loop: another sleep that this ends just begins anew.
 */
void mailbox_retime(struct mailbox *mailbox);

/* The rest is for the owner's thread. */

static inline uint32_t mailbox_word(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->word, memory_order_acquire);
}

/* A loop that does not sleep yet must not any more: a wake-up or a stop is there. */
static inline bool mailbox_ends_wait(const struct mailbox *mailbox)
{
    uint32_t word = atomic_load_explicit(&mailbox->word, memory_order_acquire);

    return (word & (wake_token | wake_stop)) || ((word & wake_flooded) && flood_is_told(&mailbox->told));
}

/* Some slot has been pushed and not been taken yet. */
static inline bool mailbox_has_signals(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->queue, memory_order_acquire) != NULL;
}

static inline void mailbox_arm(struct mailbox *mailbox)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);

    if ((old & wake_phase) == wake_armed) {
        return; /* by mailbox_enter: a run's first pass. A wake-up since then has left its token: another pass comes, or the run ends */
    }
    (void)atomic_fetch_or_explicit(&mailbox->word, wake_armed, memory_order_acq_rel);
    barrier_after_update();
    if (atomic_load_explicit(&mailbox->word, memory_order_relaxed) & wake_flooded) {
        (void)flood_hear(&mailbox->told); /* so far: the pass looks now */
    }
}

/* A flood goes on that may be over: nothing that has been told of yet ends the wait. */
static inline bool mailbox_is_flooded_in_vain(const struct mailbox *mailbox)
{
    return (atomic_load_explicit(&mailbox->word, memory_order_relaxed) & (wake_flooded | wake_token | wake_stop)) == wake_flooded;
}

/*
 * Before a sleep, which needs a word that is not flooded: ends the flood, or keeps what was told as a token. That may be a fence of all
 * threads, of microseconds: mailbox_sleep makes it, too, but there others wait for the lock.
 */
__attribute__((cold)) void mailbox_calm(struct mailbox *mailbox);

/* Under the loop's lock. False if a token or a stop is there: do not sleep. `ret_word` gets the word to sleep on. */
bool mailbox_sleep(struct mailbox *mailbox, enum wake_word phase, uint32_t *ret_word);

/* Back from sleep, still in the wait; clears RETIME. */
void mailbox_rearm(struct mailbox *mailbox);

/* The wait is over. True if there was a token. */
static inline bool mailbox_disarm(struct mailbox *mailbox)
{
    const uint32_t ending = wake_phase | wake_token | wake_retime;
    uint32_t old = atomic_fetch_and_explicit(&mailbox->word, ~ending, memory_order_acq_rel);

    barrier_after_update();
    return (old & wake_token) || ((old & wake_flooded) && flood_is_told(&mailbox->told));
}

/* Entering an activation: returns the word as it was, installs RUN without STOP, ARMED (a wake-up from an Entry observer is kept); a token
 * is carried in. */
uint32_t mailbox_enter(struct mailbox *mailbox);

/* Leaving it: the outer activation's RUN, STOP and phase come back. A token is kept if the outer one is in a pass; `give_back` sets one
 * (rule 64). */
void mailbox_leave(struct mailbox *mailbox, uint32_t outer, bool give_back);

/*
 * The same where the run was abandoned, seen by the outer one when it is about to wait, or ends. That is ARMED then, whatever the other
 * was. What was kept, dropped or stopped since, in either's name, counts for it.
 */
__attribute__((cold)) void mailbox_resume(struct mailbox *mailbox, uint32_t outer, bool give_back);

static inline bool mailbox_is_stopped(const struct mailbox *mailbox)
{
    return (atomic_load_explicit(&mailbox->word, memory_order_relaxed) & wake_stop) != 0;
}

/* Closes the eventfd once no writer is left; rather leaks it than waits without bound. The loop's lock is held, the phase is IDLE. */
void mailbox_close_event(struct mailbox *mailbox);

#endif
