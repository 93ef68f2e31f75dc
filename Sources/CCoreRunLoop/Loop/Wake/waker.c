/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transitions of the wake word, and the pool of wakers.
 *
 * The word changes by atomic updates only, from any thread; no lock is needed, except where waker.h says so. The pool has a lock of its
 * own, the innermost of all. Every transition that ends a sleep is followed by one futex wake or one write to the eventfd.
 */
#include "Loop/Wake/waker.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Trace/trace.h"
#include "Support/lock.h"

static struct lock pool_lock;
static struct waker *pool GUARDED_BY(&pool_lock);

struct waker *waker_create(void)
{
    struct waker *waker;

    lock_take(&pool_lock);
    waker = pool;
    if (waker) {
        pool = waker->next_free;
    }
    lock_drop(&pool_lock);
    if (!waker) {
        waker = aligned_alloc(_Alignof(struct waker), sizeof *waker);
        if (!waker) {
            return NULL;
        }
        atomic_init(&waker->word, wake_idle);
        atomic_init(&waker->announced, announced_by_nobody);
        atomic_init(&waker->queue, NULL);
        atomic_init(&waker->event, -1);
    }
    waker->next_free = NULL;
    return waker;
}

void waker_recycle(struct waker *waker)
{
    invariant((atomic_load_explicit(&waker->word, memory_order_relaxed) & wake_phase) == wake_idle);
    invariant(!waker_has_signals(waker));
    lock_take(&pool_lock);
    waker->next_free = pool;
    pool = waker;
    lock_drop(&pool_lock);
}

NOT_CHECKED void waker_pool_lock(void)
{
    lock_take(&pool_lock);
}

NOT_CHECKED void waker_pool_unlock(void)
{
    lock_drop(&pool_lock);
}

void waker_pool_reset(void)
{
    lock_reset(&pool_lock);
}

/* One attempt to change the word. On failure `*old` is the word as it is now. */
static bool word_exchange(struct waker *waker, uint32_t *old, uint32_t new)
{
    return atomic_compare_exchange_weak_explicit(&waker->word, old, new, memory_order_acq_rel, memory_order_relaxed);
}

/* Ends the sleep that the word `old` showed. If that was EPOLL, the caller has counted itself in as a writer, and is counted out here. */
static void end_sleep(struct waker *waker, uint32_t old)
{
    if ((old & wake_phase) == wake_futex) {
        (void)kernel.futex_wake(&waker->word);
    } else if ((old & wake_phase) == wake_epoll) {
        (void)kernel.event_post(atomic_load_explicit(&waker->event, memory_order_relaxed));
        old = atomic_fetch_sub_explicit(&waker->word, wake_writer, memory_order_release);
        invariant(old >= wake_writer);
    }
}

/* Returns the word with `flags` set, and with one more writer if the caller will write the eventfd. */
static uint32_t with_flags(uint32_t old, uint32_t flags)
{
    return (old | flags) + ((old & wake_phase) == wake_epoll ? (uint32_t)wake_writer : 0);
}

/*
 * Returns true if the word may become coalesced. In a run nested in a pass it must not: a wake-up is owed to the outer pass at once, and an
 * announcement would come too late for that.
 */
static bool may_be_coalesced(uint32_t word)
{
    return !(word & wake_outer);
}

/* Returns the word after a useful wake-up. A second wake-up would not change that word, so it may be marked coalesced. */
static uint32_t word_after_wake(uint32_t old, bool is_flood)
{
    uint32_t coalesced = is_flood && may_be_coalesced(old) ? wake_coalesced : 0u;

    invariant(!waker_wake_is_redundant(old));
    return (old & wake_phase) == wake_idle ? old | wake_owed | coalesced : with_flags(old, wake_token | coalesced);
}

void waker_wake_from(struct waker *waker, uint32_t old)
{
    bool is_flood = coalesce_note_wake();

    do {
        if (waker_wake_is_redundant(old)) {
            return;
        }
    } while (!word_exchange(waker, &old, word_after_wake(old, is_flood)));
    trace_event(trace_wake, 0, waker, 0);
    invariant((old & wake_phase) < wake_futex || !(old & wake_token)); /* asleep with a token the wake-up is redundant */
    end_sleep(waker, old);
}

void waker_wake_redundantly(struct waker *waker, uint32_t old)
{
    if (may_be_coalesced(old) && coalesce_count_redundant(&coalesce_record.redundant_wakes)) {
        (void)atomic_compare_exchange_strong_explicit(&waker->word, &old, old | wake_coalesced, memory_order_acq_rel, memory_order_relaxed);
    }
}

void waker_wake_coalesced(struct waker *waker, enum coalesce_answer answer)
{
    if (!coalesce_finish_announcing(answer, &waker->announced, &waker->word, wake_coalesced)) {
        /* Taking the announcement back was a fence as well. */
        waker_wake_from(waker, atomic_load_explicit(&waker->word, memory_order_relaxed));
    }
}

/* The mark has been cleared. Turns what was announced until then into a wake-up. */
static __attribute__((cold)) void serve_late_announcements(struct waker *waker)
{
    coalesce_fence_threads();
    if (coalesce_take_announced(&waker->announced)) {
        waker_wake_from(waker, atomic_load_explicit(&waker->word, memory_order_relaxed));
    }
}

void waker_end_burst(struct waker *waker)
{
    if (coalesce_take_announced(&waker->announced)) {
        (void)atomic_fetch_or_explicit(&waker->word, wake_token, memory_order_acq_rel);
        return;
    }
    (void)atomic_fetch_and_explicit(&waker->word, ~(uint32_t)wake_coalesced, memory_order_acq_rel);
    serve_late_announcements(waker);
}

void waker_stop(struct waker *waker)
{
    uint32_t old;
    bool ends_sleep;

    barrier_full();
    old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    for (;;) {
        uint32_t new = old | wake_stop;

        if (!(old & wake_run)) {
            return; /* nothing runs: the stop is forgotten (rule 56) */
        }
        /* Asleep, STOP ends the wait by itself, and does not wake a run around this one. Before the wait it needs a token as well,
         * which ends the wait of this run, or of a nested run that begins before that. */
        ends_sleep = (old & wake_phase) >= wake_futex && !(old & (wake_token | wake_stop));
        if (ends_sleep) {
            new = with_flags(new, wake_stop);
        } else if ((old & wake_phase) == wake_armed) {
            new |= wake_token;
        }
        if (word_exchange(waker, &old, new)) {
            break;
        }
    }
    if (ends_sleep) {
        end_sleep(waker, old);
    }
}

void waker_retime(struct waker *waker)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);

    do {
        if ((old & wake_phase) < wake_futex || (old & (wake_token | wake_retime))) {
            return;
        }
    } while (!word_exchange(waker, &old, with_flags(old, wake_retime)));
    end_sleep(waker, old);
}

bool waker_sleep(struct waker *waker, enum wake_word phase, uint32_t *ret_word)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    uint32_t new;

    invariant(phase == wake_futex || phase == wake_epoll);
    invariant((old & wake_phase) == wake_armed);
    if (waker_may_end_burst(waker)) {
        waker_end_burst(waker);
        old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    }
    do { /* from here on a wake-up that marks the word coalesced has also left a token */
        /* A stop can be here without a token: one that came between the check at the end of the last pass and the start of this one. */
        if (old & (wake_token | wake_stop)) {
            return false;
        }
        new = (old & ~(uint32_t)wake_phase) | (uint32_t)phase;
        invariant(!(old & wake_coalesced)); /* a sleeper would not see an announcement */
    } while (!word_exchange(waker, &old, new));
    *ret_word = new;
    return true;
}

void waker_rearm(struct waker *waker)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);

    invariant((old & wake_phase) != wake_idle); /* ARMED if a host's sleep was refused */
    while (!word_exchange(waker, &old, (old & ~(uint32_t)(wake_phase | wake_retime)) | wake_armed)) {
    }
    barrier_after_update();
}

/* A run begins while the word is coalesced. Apart from waker_enter, which then needs fewer registers. */
static __attribute__((noinline)) uint32_t enter_coalesced(struct waker *waker, uint32_t old, uint32_t new)
{
    if (new & wake_coalesced) {
        (void)coalesce_take_announced(&waker->announced); /* the first pass looks at everything after this */
    } else {
        serve_late_announcements(waker);
    }
    return old;
}

uint32_t waker_enter(struct waker *waker)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    uint32_t new;

    do {
        /* A nested run before the outer pass's wait: that pass has looked at its sources already, and must hear of every wake-up. */
        bool is_before_wait = (old & wake_phase) != wake_idle || (old & wake_outer);
        uint32_t ending = wake_phase | wake_stop | wake_retime | wake_owed | (is_before_wait ? wake_coalesced : 0u);

        new = (old & ~ending) | wake_run | wake_armed | (is_before_wait ? wake_outer : 0u);
        invariant((new & (wake_coalesced | wake_outer)) != (wake_coalesced | wake_outer));
    } while (!word_exchange(waker, &old, new));
    barrier_after_update();
    return old & wake_coalesced ? enter_coalesced(waker, old, new) : old;
}

/*
 * Returns the word for the outer run: its own phase, stop, RUN and OUTER, and what it is owed. What it was owed before the nested run
 * stands in its own word.
 */
static uint32_t word_for_outer_run(uint32_t inner, uint32_t outer, bool ends_host_wait)
{
    const uint32_t kept = wake_phase | wake_stop | wake_run | wake_outer | wake_owed;
    uint32_t word = (inner & ~(kept | wake_retime)) | (outer & kept);

    invariant(inner & wake_run);
    if ((outer & wake_phase) == wake_idle) {
        word &= ~(uint32_t)wake_token;
        return outer & wake_outer ? word | (inner & wake_owed) : word; /* this run drops wake-ups; they are owed to a pass further out */
    }
    return ends_host_wait || (inner & wake_owed) ? word | wake_token : word;
}

/* Returns true if the outer run is hosted and has a token: its host sees only the eventfd. */
static bool needs_event(uint32_t word)
{
    return (word & (wake_phase | wake_token)) == (wake_epoll | wake_token);
}

void waker_leave(struct waker *waker, uint32_t outer, bool ends_host_wait)
{
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    uint32_t new;

    do {
        new = word_for_outer_run(old, outer, ends_host_wait);
    } while (!word_exchange(waker, &old, new));
    barrier_after_update();
    if (needs_event(new)) {
        (void)kernel.event_post(atomic_load_explicit(&waker->event, memory_order_relaxed));
    }
}

void waker_resume(struct waker *waker, uint32_t outer, bool ends_host_wait)
{
    const uint32_t ended = wake_phase | wake_outer | wake_owed | wake_coalesced;
    uint32_t old = atomic_load_explicit(&waker->word, memory_order_relaxed);
    uint32_t new;

    do {
        new = (old & ~ended) | wake_armed | wake_run | (outer & (wake_stop | wake_outer | wake_owed));
        new |= ends_host_wait || (old & wake_owed) ? (uint32_t)wake_token : 0;
    } while (!word_exchange(waker, &old, new));
    barrier_after_update();
    if (old & wake_coalesced) {
        serve_late_announcements(waker);
    }
}

void waker_close_event(struct waker *waker)
{
    enum { most_looks = 10000 };
    int event = atomic_load_explicit(&waker->event, memory_order_relaxed);

    if (event < 0) {
        return;
    }
    invariant((atomic_load_explicit(&waker->word, memory_order_relaxed) & wake_phase) == wake_idle);
    for (int i = 0; i < most_looks; i++) {
        if (atomic_load_explicit(&waker->word, memory_order_acquire) < wake_writer) {
            atomic_store_explicit(&waker->event, -1, memory_order_relaxed);
            (void)kernel.close(event);
            return;
        }
        kernel.yield();
    }
    atomic_store_explicit(&waker->event, -1, memory_order_relaxed);
}
