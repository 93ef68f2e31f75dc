/* SPDX-License-Identifier: Apache-2.0 */
/* Messages within the process; see inbox.h. */
#include "Port/inbox.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/descriptor_source.h"
#include "Port/payload.h"
#include "Runtime/data.h"
#include "Runtime/object.h"

bool inboxes_are_off;

static struct letter *letter_of(struct link *link)
{
    return container_of(link, struct letter, link);
}

/* ---- the inbox ---- */

struct inbox *inbox_create(uint32_t limit)
{
    struct inbox *inbox = inboxes_are_off ? NULL : calloc(1, sizeof *inbox);

    if (inbox) {
        atomic_init(&inbox->references, 1);
        link_init(&inbox->waiting);
        link_init(&inbox->in_callout);
        inbox->limit = limit;
        inbox->process = kernel_ports.process_id();
    }
    return inbox;
}

void inbox_retain(struct inbox *inbox)
{
    (void)atomic_fetch_add_explicit(&inbox->references, 1, memory_order_relaxed);
}

void inbox_release(struct inbox *inbox)
{
    if (atomic_fetch_sub_explicit(&inbox->references, 1, memory_order_acq_rel) == 1) {
        free(inbox);
    }
}

void inbox_lock(struct inbox *inbox)
{
    lock_take(&inbox->lock);
}

void inbox_unlock(struct inbox *inbox)
{
    lock_drop(&inbox->lock);
}

CFRunLoopSourceRef inbox_open(struct inbox *inbox, CFRunLoopSourceRef source, bool *ret_has_letters)
{
    CFRunLoopSourceRef old = NULL;

    inbox_lock(inbox);
    if (!inbox->is_closed) {
        object_retain(source);
        old = inbox->source;
        inbox->source = source;
    }
    *ret_has_letters = inbox->count > 0;
    inbox_unlock(inbox);
    return old;
}

bool inbox_is_open(struct inbox *inbox)
{
    bool is_open;

    inbox_lock(inbox);
    is_open = inbox->source != NULL && atomic_load_explicit(&inbox->in_socket, memory_order_acquire) == 0;
    inbox_unlock(inbox);
    return is_open;
}

void inbox_expect_packet(struct inbox *inbox)
{
    (void)atomic_fetch_add_explicit(&inbox->in_socket, 1, memory_order_relaxed);
}

void inbox_forget_packet(struct inbox *inbox)
{
    uint32_t count = atomic_load_explicit(&inbox->in_socket, memory_order_relaxed);

    /* One that was sent before the inbox was there has not been counted. */
    while (count > 0 &&
           !atomic_compare_exchange_weak_explicit(&inbox->in_socket, &count, count - 1, memory_order_release, memory_order_relaxed)) {
    }
}

/* Somebody who waits for room may find some. */
static void tell_senders(struct inbox *inbox)
{
    (void)atomic_fetch_add_explicit(&inbox->taken, 1, memory_order_release);
    (void)kernel.futex_wake(&inbox->taken);
}

void inbox_set_limit(struct inbox *inbox, uint32_t limit)
{
    inbox_lock(inbox);
    inbox->limit = limit;
    inbox_unlock(inbox);
    tell_senders(inbox);
}

void inbox_close(struct inbox *inbox)
{
    CFRunLoopSourceRef source;
    struct link dropped;
    uint32_t senders;

    link_init(&dropped);
    inbox_lock(inbox);
    inbox->is_closed = true;
    source = inbox->source;
    inbox->source = NULL;
    senders = inbox->senders;
    list_append_all(&dropped, &inbox->waiting);
    inbox->count = 0;
    list_for_each(link, &inbox->in_callout) {
        (void)letter_end(letter_of(link), letter_gone);
    }
    inbox_unlock(inbox);
    while (!list_is_empty(&dropped)) {
        struct letter *letter = letter_of(dropped.next);

        list_remove(&letter->link);
        (void)letter_end(letter, letter_gone);
        letter_release(letter);
    }
    do {
        tell_senders(inbox);
    } while (senders-- > 0);
    if (source) {
        object_release(source);
    }
}

void inbox_abandon(struct inbox *inbox)
{
    lock_reset(&inbox->lock);
    inbox->is_closed = true;
    inbox->source = NULL; /* the reference is the parent's: the source's count here is of no account */
}

/* ---- letters ---- */

struct letter *letter_create(SInt32 message_id, CFDataRef data, CFRunLoopRef loop)
{
    struct letter *letter = malloc(sizeof *letter);

    if (!letter) {
        return NULL;
    }
    *letter = (struct letter){.message_id = message_id, .loop = loop};
    atomic_init(&letter->references, loop ? 2 : 1);
    link_init(&letter->link);
    link_init(&letter->sender_link);
    letter->data = data && CFDataGetLength(data) > 0 ? payload_share(data) : data_empty();
    if (!letter->data) {
        free(letter);
        return NULL;
    }
    if (loop) {
        object_retain(loop);
    }
    return letter;
}

void letter_release(struct letter *letter)
{
    if (atomic_fetch_sub_explicit(&letter->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    object_release(letter->data);
    if (letter->reply) {
        object_release(letter->reply);
    }
    if (letter->loop) {
        object_release(letter->loop);
    }
    free(letter);
}

bool letter_end(struct letter *letter, enum letter_state state)
{
    uint32_t waiting = letter_waiting;

    if (!atomic_compare_exchange_strong_explicit(&letter->state, &waiting, state, memory_order_acq_rel, memory_order_acquire)) {
        return false;
    }
    if (letter->loop) {
        CFRunLoopWakeUp(letter->loop);
    }
    return true;
}

enum letter_state letter_give_up(struct letter *letter)
{
    uint32_t state = letter_waiting;

    if (atomic_compare_exchange_strong_explicit(&letter->state, &state, letter_given_up, memory_order_acq_rel, memory_order_acquire)) {
        return letter_given_up;
    }
    return (enum letter_state)state;
}

void letter_wait(struct letter *letter, int64_t deadline_ns)
{
    (void)kernel.futex_wait(&letter->state, letter_waiting, deadline_ns);
}

/* ---- the sender ---- */

enum inbox_put inbox_put(struct inbox *inbox, struct letter *letter, uint32_t *ret_taken)
{
    CFRunLoopSourceRef posted = NULL;
    enum inbox_put result = inbox_took;
    uint32_t first = 0;

    inbox_lock(inbox);
    *ret_taken = atomic_load_explicit(&inbox->taken, memory_order_acquire);
    if (inbox->is_closed) {
        result = inbox_gone;
    } else if (inbox->count >= inbox->limit) {
        result = inbox_full;
    } else {
        list_append(&inbox->waiting, &letter->link);
        inbox->firsts += inbox->count++ == 0 ? 1 : 0;
        first = inbox->firsts;
        /*
         * For later ones whoever takes the first will do it. But if that has not been posted yet, its sender is held up: a look by the
         * receiver would find nothing, although this one has been sent.
         */
        if (atomic_load_explicit(&inbox->posted, memory_order_acquire) != first) {
            posted = inbox->source;
            object_retain(posted);
        }
    }
    inbox_unlock(inbox);
    if (posted) {
        descriptor_source_post(posted);
        atomic_store_explicit(&inbox->posted, first, memory_order_release); /* an older one only has others post in vain */
        object_release(posted);
    }
    return result;
}

void inbox_wait_for_room(struct inbox *inbox, uint32_t taken, int64_t deadline_ns)
{
    inbox_lock(inbox);
    inbox->senders++;
    inbox_unlock(inbox);
    (void)kernel.futex_wait(&inbox->taken, taken, deadline_ns);
    inbox_lock(inbox);
    inbox->senders--;
    inbox_unlock(inbox);
}

/* ---- the receiver ---- */

struct letter *inbox_take(struct inbox *inbox, bool *ret_has_more)
{
    struct letter *letter = NULL;
    bool has_senders;

    inbox_lock(inbox);
    if (!list_is_empty(&inbox->waiting)) {
        letter = letter_of(inbox->waiting.next);
        list_remove(&letter->link);
        list_append(&inbox->in_callout, &letter->link);
        inbox->count--;
    }
    *ret_has_more = inbox->count > 0;
    has_senders = letter && inbox->senders > 0;
    if (letter && !has_senders) {
        (void)atomic_fetch_add_explicit(&inbox->taken, 1, memory_order_release);
    }
    inbox_unlock(inbox);
    if (has_senders) {
        tell_senders(inbox);
    }
    return letter;
}

static void end(struct inbox *inbox, struct letter *letter, enum letter_state state)
{
    inbox_lock(inbox);
    list_remove(&letter->link);
    inbox_unlock(inbox);
    (void)letter_end(letter, state);
    letter_release(letter);
}

void inbox_reply(struct inbox *inbox, struct letter *letter, CFDataRef reply)
{
    if (letter->loop && atomic_load_explicit(&letter->state, memory_order_relaxed) == letter_waiting) {
        letter->reply = payload_share(reply);
    }
    end(inbox, letter, !letter->loop || letter->reply ? letter_replied : letter_dropped);
}

void inbox_drop(struct inbox *inbox, struct letter *letter)
{
    end(inbox, letter, letter_dropped);
}
