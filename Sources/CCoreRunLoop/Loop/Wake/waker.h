/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop's waker: what other threads and signal handlers need to wake or stop the loop without a lock.
 *
 * The wake word says what the loop is doing and what others have told it:
 *
 *   phase      IDLE    not looking; next the loop starts a pass or ends the run, so wake-ups are dropped (rules 62, 63)
 *              ARMED   from the start of a run or pass to the end of its wait, but not asleep: a wake-up is kept as the token (rule 64)
 *              FUTEX   asleep on the word itself
 *              EPOLL   asleep in the wait set of a mode, or hosted by another loop: a wake-up is also written to the eventfd
 *   TOKEN      a kept wake-up; ends the wait of this pass
 *   STOP       the innermost run is to stop (rule 55); ends a sleep as a token does, but is no wake-up for a run around it;
 *              before the wait it comes with a token
 *   RUN        a run is under way, so a stop means something (rule 56)
 *   RETIME     a timer or descriptor changed under the sleeper: it computes its deadline again, without a pass (rules 68, 71)
 *   OUTER      a nested run was begun by a callback of a pass that has not waited yet. That pass still expects wake-ups (rule 64), so the
 *              nested run may not lose one. With OUTER, a wake-up that finds the nested run IDLE is not dropped but noted as OWED
 *   OWED       the outer pass is owed a wake-up: when the nested run ends, the outer pass gets it as its TOKEN
 *   COALESCED  woken so often that callers only announce wake-ups in the word beside this one (coalesce.h): while ARMED an announcement is
 *              the token, while IDLE nothing; never with OUTER, nor asleep without TOKEN
 *   writers    from bit 9: threads that will still write the eventfd; its number must not be closed before they have
 *
 *   IDLE -> ARMED            waker_arm, at the start of every pass but a run's first
 *   ARMED -> FUTEX, EPOLL    waker_sleep, refused while there is a token or a stop
 *   FUTEX, EPOLL -> ARMED    waker_rearm, to look again without ending the wait; finds ARMED if the sleep of a hosted run was refused
 *   any -> IDLE              waker_disarm: the wait is over; returns the token that was there
 *   any -> ARMED             waker_enter: a run begins
 *   any -> the phase before the run    waker_leave: the run ends
 *   any -> ARMED             waker_resume, in a run in whose callout another run was abandoned
 *
 * The loop's thread alone changes the phase, OUTER and RUN. docs/threads.md argues the memory orders, row by row. Wakers come from a pool
 * and are never given back to the allocator, because a late signaller may wake one whose loop has just gone. A spurious wake-up of the next
 * loop that has the waker does no harm.
 */
#ifndef CRL_LOOP_WAKE_WAKER_H
#define CRL_LOOP_WAKE_WAKER_H

#include "Loop/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Loop/Wake/coalesce.h"
#include "Support/barrier.h"
#include "Support/invariant.h"

struct binding;

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
    wake_coalesced = 256,
    wake_writer = 512
};

struct waker {
    _Alignas(64) _Atomic uint32_t word; /* lock-free; the futex of a sleeping loop */
    _Atomic uint32_t announced; /* wake-ups announced in a burst; see coalesce.h */
    _Atomic int event; /* the eventfd, or -1; written under the loop's lock, read by whoever finds EPOLL */
    _Atomic(struct binding *) queue; /* stack of signalled bindings: any thread pushes; whoever holds the loop's lock takes all */
    struct waker *next_free; /* guarded by the lock of the pool */
};

/* Returns NULL if there is no memory. */
struct waker *waker_create(void);
/* Gives a waker back to the pool. Its word is IDLE, and its queue is empty. */
void waker_recycle(struct waker *waker);

/* For fork: takes and drops the lock of the pool, or resets it in the child. The checker does not follow these. */
void waker_pool_lock(void);
void waker_pool_unlock(void);
void waker_pool_reset(void);

/*
 * Returns true if a wake-up would change nothing. Either a token is there already; or the loop is IDLE and drops the wake-up, and there is
 * no outer pass that must still be told of it.
 */
static inline bool waker_wake_is_redundant(uint32_t word)
{
    return (word & wake_phase) == wake_idle ? (word & (wake_outer | wake_owed)) != wake_outer : (word & wake_token) != 0;
}

/*
 * The slow parts of waker_wake, which has found the word `old`. The first changes the word. The second counts the redundant call, and
 * begins a burst after many of them.
 */
void waker_wake_from(struct waker *waker, uint32_t old);
void waker_wake_redundantly(struct waker *waker, uint32_t old);
/* Completes an announcement; `answer` is what coalesce_announce returned. */
void waker_wake_coalesced(struct waker *waker, enum coalesce_answer answer);

/* ---- for any thread and for signal handlers; these three keep errno ---- */

/* Keeps a wake-up, or drops it if the loop is not looking (rules 62 to 64). */
static inline void waker_wake(struct waker *waker)
{
    uint32_t old;

    atomic_signal_fence(memory_order_seq_cst);
    old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    if (old & wake_coalesced) {
        enum coalesce_answer answer = coalesce_announce(&waker->announced, &waker->word, wake_coalesced);

        coalesce_record.unfenced_wakes++;
        if (__builtin_expect(answer != coalesce_is_announced_in_time, 0)) {
            waker_wake_coalesced(waker, answer);
        }
        return;
    }
    /* Whatever the caller did before must be seen by the pass that an early return relies on. */
    barrier_full();
    old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    if (waker_wake_is_redundant(old)) {
        waker_wake_redundantly(waker, old);
    } else {
        waker_wake_from(waker, old);
    }
}

/* Stops the innermost run, and ends its sleep (rules 55 to 57). Does nothing if no run is under way. */
void waker_stop(struct waker *waker);
/* Returns true if the loop sleeps or is hosted asleep. */
static inline bool waker_is_waiting(const struct waker *waker)
{
    return (atomic_load_explicit(&waker->word, memory_order_acquire) & wake_phase) >= wake_futex;
}

/* ---- for any thread that has a reference to the loop ---- */

/*
 * Makes a sleeper compute its deadline again, or look at what was posted. The caller holds the loop's lock, or has made its change under
 * the lock: if a later sleep ends by this, it just begins anew.
 */
void waker_retime(struct waker *waker);

/* ---- for the loop's own thread ---- */

static inline uint32_t waker_word(const struct waker *waker)
{
    return atomic_load_explicit(&waker->word, memory_order_acquire);
}

/* Returns true if the loop, which does not sleep yet, must not sleep any more: a wake-up or a stop is there. */
static inline bool waker_ends_wait(const struct waker *waker)
{
    uint32_t word = atomic_load_explicit(&waker->word, memory_order_acquire);

    return (word & (wake_token | wake_stop)) || ((word & wake_coalesced) && coalesce_is_announced(&waker->announced));
}

/* Returns true if a binding was pushed and nobody has taken it yet. */
static inline bool waker_has_signals(const struct waker *waker)
{
    return atomic_load_explicit(&waker->queue, memory_order_acquire) != NULL;
}

/* A pass begins: from here on wake-ups are kept. */
static inline void waker_arm(struct waker *waker)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);

    if ((old & wake_phase) == wake_armed) {
        return; /* waker_enter has armed a run's first pass. A wake-up since then has left its token, which ends the pass's wait */
    }
    invariant((old & wake_phase) == wake_idle);
    (void)atomic_fetch_or_explicit(&waker->word, wake_armed, memory_order_acq_rel);
    barrier_after_update();
    if (atomic_load_explicit(&waker->word, memory_order_relaxed) & wake_coalesced) {
        (void)coalesce_take_announced(&waker->announced); /* this pass looks at everything after this, so it serves these calls */
    }
}

/* Returns true if the word is coalesced and nothing else ends the wait: the burst may be over. */
static inline bool waker_may_end_burst(const struct waker *waker)
{
    return (atomic_load_explicit(&waker->word, memory_order_relaxed) & (wake_coalesced | wake_token | wake_stop)) == wake_coalesced;
}

/*
 * Before a sleep, for which the word must not be coalesced. Ends the burst, or turns an announcement into the token. Ending it may take a
 * fence of all threads, of microseconds. waker_sleep would do this too, but with the loop's lock, for which others wait.
 */
__attribute__((cold)) void waker_end_burst(struct waker *waker);

/*
 * Goes to the phase FUTEX or EPOLL. Returns false if a token or a stop is there: the loop must not sleep. `*ret_word` is the word to sleep
 * on.
 *
 * The loop's lock is held. Whoever changes timers or descriptors holds it too: so the change is in the deadline already, or sees the phase.
 */
bool waker_sleep(struct waker *waker, enum wake_word phase, uint32_t *ret_word);

/* Back from a sleep, but still in the wait. Clears RETIME. */
void waker_rearm(struct waker *waker);

/* The wait or the look is over: from here on wake-ups are dropped. Returns true if there was a token. */
static inline bool waker_disarm(struct waker *waker)
{
    const uint32_t ending = wake_phase | wake_token | wake_retime;
    uint32_t old = atomic_fetch_and_explicit(&waker->word, ~ending, memory_order_acq_rel);

    barrier_after_update();
    invariant((old & (wake_coalesced | wake_outer)) != (wake_coalesced | wake_outer));
    return (old & wake_token) || ((old & wake_coalesced) && coalesce_is_announced(&waker->announced));
}

/*
 * A run begins. Sets RUN and ARMED, so that a wake-up from an Entry observer is kept, and clears STOP. A token stays. Returns the word as
 * it was, for waker_leave or waker_resume.
 */
uint32_t waker_enter(struct waker *waker);

/*
 * The run ends. RUN, STOP and the phase of the run around it come back from `outer`. A token is kept if that run is in a pass. With
 * `ends_host_wait` the outer run, whose host waits, gets a token in any case.
 */
void waker_leave(struct waker *waker, uint32_t outer, bool ends_host_wait);

/*
 * Like waker_leave, for a nested run whose callback never returned. The run around it calls this after the callout, or a run that begins
 * and finds the nested one abandoned. The word becomes ARMED, whatever phase the nested run was in. Tokens, owed wake-ups and stops since
 * then count for the outer run.
 */
__attribute__((cold)) void waker_resume(struct waker *waker, uint32_t outer, bool ends_host_wait);

static inline bool waker_is_stopped(const struct waker *waker)
{
    return (atomic_load_explicit(&waker->word, memory_order_relaxed) & wake_stop) != 0;
}

/*
 * Closes the eventfd once no writer is left. Rather leaks it than waits without bound: a write to a closed number might go to another file.
 * The loop's lock is held and the phase is IDLE, so no new writer is counted in.
 */
void waker_close_event(struct waker *waker);

#endif
