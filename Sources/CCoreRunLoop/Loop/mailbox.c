/* SPDX-License-Identifier: Apache-2.0 */
/* The transitions of the wake word, and the pool of mailboxes (guarded by one lock of its own, innermost of all). */
#include "Loop/mailbox.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Support/lock.h"

static struct lock pool_lock;
static struct mailbox *pool;

struct mailbox *mailbox_create(void)
{
    struct mailbox *mailbox;

    lock_take(&pool_lock);
    mailbox = pool;
    if (mailbox) {
        pool = mailbox->next_free;
    }
    lock_drop(&pool_lock);
    if (!mailbox) {
        mailbox = aligned_alloc(_Alignof(struct mailbox), sizeof *mailbox);
        if (!mailbox) {
            return NULL;
        }
        atomic_init(&mailbox->word, wake_idle);
        atomic_init(&mailbox->told, flood_untold);
        atomic_init(&mailbox->queue, NULL);
        atomic_init(&mailbox->event, -1);
    }
    mailbox->next_free = NULL;
    return mailbox;
}

void mailbox_recycle(struct mailbox *mailbox)
{
    lock_take(&pool_lock);
    mailbox->next_free = pool;
    pool = mailbox;
    lock_drop(&pool_lock);
}

void mailbox_pool_lock(void)
{
    lock_take(&pool_lock);
}

void mailbox_pool_unlock(void)
{
    lock_drop(&pool_lock);
}

void mailbox_pool_reset(void)
{
    lock_reset(&pool_lock);
}

static bool exchange(struct mailbox *mailbox, uint32_t *old, uint32_t new)
{
    return atomic_compare_exchange_weak_explicit(&mailbox->word, old, new, memory_order_acq_rel, memory_order_relaxed);
}

/* Ends the sleep that the word `old` showed; a writer was counted in if that was EPOLL. */
static void end_sleep(struct mailbox *mailbox, uint32_t old)
{
    if ((old & wake_phase) == wake_futex) {
        (void)kernel.futex_wake(&mailbox->word);
    } else if ((old & wake_phase) == wake_epoll) {
        (void)kernel.event_post(atomic_load_explicit(&mailbox->event, memory_order_relaxed));
        (void)atomic_fetch_sub_explicit(&mailbox->word, wake_writer, memory_order_release);
    }
}

/* `flags` set, and a writer counted in if the eventfd will be written. */
static uint32_t with_flags(uint32_t old, uint32_t flags)
{
    return (old | flags) + ((old & wake_phase) == wake_epoll ? (uint32_t)wake_writer : 0);
}

/* Whether the word may become flooded. What is owed to an outer pass is owed at once: a nested run's does not. */
static bool may_be_flooded(uint32_t word)
{
    return !(word & wake_outer);
}

/* What a wake-up makes of the word `old`, if it makes something of it. Another one would make nothing of that: so it may be flooded. */
static uint32_t woken(uint32_t old, bool is_flood)
{
    uint32_t flooded = is_flood && may_be_flooded(old) ? wake_flooded : 0u;

    return (old & wake_phase) == wake_idle ? old | wake_owed | flooded : with_flags(old, wake_token | flooded);
}

void mailbox_wake_from(struct mailbox *mailbox, uint32_t old)
{
    bool is_flood = flood_note_wake();

    do {
        if (mailbox_wake_is_moot(old)) {
            return;
        }
    } while (!exchange(mailbox, &old, woken(old, is_flood)));
    end_sleep(mailbox, old);
}

void mailbox_wake_in_vain(struct mailbox *mailbox, uint32_t old)
{
    if (may_be_flooded(old) && flood_is_reached(&flood_record.fenced_wakes)) {
        (void)atomic_compare_exchange_strong_explicit(&mailbox->word, &old, old | wake_flooded, memory_order_acq_rel, memory_order_relaxed);
    }
}

void mailbox_wake_in_flood(struct mailbox *mailbox, enum flood_answer answer)
{
    if (!flood_finish_telling(answer, &mailbox->told, &mailbox->word, wake_flooded)) {
        mailbox_wake_from(mailbox, atomic_load_explicit(&mailbox->word, memory_order_relaxed)); /* what was taken back was a fence, too */
    }
}

/* FLOODED has been taken out of the word: what was told of it until then is a wake-up now. */
static __attribute__((cold)) void end_flood(struct mailbox *mailbox)
{
    flood_fence();
    if (flood_hear(&mailbox->told)) {
        mailbox_wake_from(mailbox, atomic_load_explicit(&mailbox->word, memory_order_relaxed));
    }
}

void mailbox_calm(struct mailbox *mailbox)
{
    if (flood_hear(&mailbox->told)) {
        (void)atomic_fetch_or_explicit(&mailbox->word, wake_token, memory_order_acq_rel);
        return;
    }
    (void)atomic_fetch_and_explicit(&mailbox->word, ~(uint32_t)wake_flooded, memory_order_acq_rel);
    end_flood(mailbox);
}

void mailbox_stop(struct mailbox *mailbox)
{
    uint32_t old;
    bool ends_sleep;

    barrier_full();
    old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    for (;;) {
        uint32_t new = old | wake_stop;

        if (!(old & wake_run)) {
            return; /* rule 56 */
        }
        /* Asleep it ends the wait by itself, and a run around this one is not woken by it. Before a wait it is a wake-up, too: of this
         * run's wait, or of one that begins before that, in a nested run. */
        ends_sleep = (old & wake_phase) >= wake_futex && !(old & (wake_token | wake_stop));
        if (ends_sleep) {
            new = with_flags(new, wake_stop);
        } else if ((old & wake_phase) == wake_armed) {
            new |= wake_token;
        }
        if (exchange(mailbox, &old, new)) {
            break;
        }
    }
    if (ends_sleep) {
        end_sleep(mailbox, old);
    }
}

void mailbox_retime(struct mailbox *mailbox)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);

    do {
        if ((old & wake_phase) < wake_futex || (old & (wake_token | wake_retime))) {
            return;
        }
    } while (!exchange(mailbox, &old, with_flags(old, wake_retime)));
    end_sleep(mailbox, old);
}

bool mailbox_sleep(struct mailbox *mailbox, enum wake_word phase, uint32_t *ret_word)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    uint32_t new;

    if (mailbox_is_flooded_in_vain(mailbox)) {
        mailbox_calm(mailbox);
        old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    }
    do { /* who makes it flooded from here on has left a token */
        /* A stop can be here without a token: one that came between the check at the end of the last pass and the start of this one. */
        if (old & (wake_token | wake_stop)) {
            return false;
        }
        new = (old & ~(uint32_t)wake_phase) | (uint32_t)phase;
    } while (!exchange(mailbox, &old, new));
    *ret_word = new;
    return true;
}

void mailbox_rearm(struct mailbox *mailbox)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);

    while (!exchange(mailbox, &old, (old & ~(uint32_t)(wake_phase | wake_retime)) | wake_armed)) {
    }
    barrier_after_update();
}

/* A beginning in a flood; kept apart, so that others need no registers for it. */
static __attribute__((noinline)) uint32_t enter_flooded(struct mailbox *mailbox, uint32_t old, uint32_t new)
{
    if (new & wake_flooded) {
        (void)flood_hear(&mailbox->told); /* so far: the first pass looks now */
    } else {
        end_flood(mailbox);
    }
    return old;
}

uint32_t mailbox_enter(struct mailbox *mailbox)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    uint32_t new;

    do {
        bool is_before_wait = (old & wake_phase) != wake_idle || (old & wake_outer);
        uint32_t ending = wake_phase | wake_stop | wake_retime | wake_owed | (is_before_wait ? wake_flooded : 0u);

        new = (old & ~ending) | wake_run | wake_armed | (is_before_wait ? wake_outer : 0u);
    } while (!exchange(mailbox, &old, new));
    barrier_after_update();
    return old & wake_flooded ? enter_flooded(mailbox, old, new) : old;
}

/*
 * The word that the outer run finds again: its own phase, stop and place, and what it is owed. What it was owed before is in its own word.
 */
static uint32_t restored(uint32_t inner, uint32_t outer, bool give_back)
{
    const uint32_t kept = wake_phase | wake_stop | wake_run | wake_outer | wake_owed;
    uint32_t word = (inner & ~(kept | wake_retime)) | (outer & kept);

    if ((outer & wake_phase) == wake_idle) {
        word &= ~(uint32_t)wake_token;
        return outer & wake_outer ? word | (inner & wake_owed) : word; /* what is owed goes further out */
    }
    return give_back || (inner & wake_owed) ? word | wake_token : word;
}

/* The outer activation is hosted: only the eventfd tells its host. */
static bool is_owed_by_event(uint32_t word)
{
    return (word & (wake_phase | wake_token)) == (wake_epoll | wake_token);
}

void mailbox_leave(struct mailbox *mailbox, uint32_t outer, bool give_back)
{
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    uint32_t new;

    do {
        new = restored(old, outer, give_back);
    } while (!exchange(mailbox, &old, new));
    barrier_after_update();
    if (is_owed_by_event(new)) {
        (void)kernel.event_post(atomic_load_explicit(&mailbox->event, memory_order_relaxed));
    }
}

void mailbox_resume(struct mailbox *mailbox, uint32_t outer, bool give_back)
{
    const uint32_t ended = wake_phase | wake_outer | wake_owed | wake_flooded;
    uint32_t old = atomic_load_explicit(&mailbox->word, memory_order_relaxed);
    uint32_t new;

    do {
        new = (old & ~ended) | wake_armed | wake_run | (outer & (wake_stop | wake_outer | wake_owed));
        new |= give_back || (old & wake_owed) ? (uint32_t)wake_token : 0;
    } while (!exchange(mailbox, &old, new));
    barrier_after_update();
    if (old & wake_flooded) {
        end_flood(mailbox);
    }
}

void mailbox_close_event(struct mailbox *mailbox)
{
    enum { patience = 10000 };
    int event = atomic_load_explicit(&mailbox->event, memory_order_relaxed);

    if (event < 0) {
        return;
    }
    for (int i = 0; i < patience; i++) {
        if (atomic_load_explicit(&mailbox->word, memory_order_acquire) < wake_writer) {
            atomic_store_explicit(&mailbox->event, -1, memory_order_relaxed);
            (void)kernel.close(event);
            return;
        }
        kernel.yield();
    }
    atomic_store_explicit(&mailbox->event, -1, memory_order_relaxed);
}
