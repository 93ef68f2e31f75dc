/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of messages within the process; see local_queue.h. */
#include "Port/Channel/local_queue.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Source/descriptor_source.h"
#include "Port/Wire/payload.h"
#include "Runtime/Value/data.h"
#include "Runtime/Object/object.h"

bool local_queues_are_off;

static struct local_message *local_message_of(struct link *link)
{
    return container_of(link, struct local_message, link);
}

/* ---- the local queue ---- */

/* Not checked: no other thread has the queue yet. */
NOT_CHECKED struct local_queue *local_queue_create(uint32_t limit)
{
    struct local_queue *local_queue = local_queues_are_off ? NULL : calloc(1, sizeof *local_queue);

    if (local_queue) {
        atomic_init(&local_queue->references, 1);
        link_init(&local_queue->waiting);
        link_init(&local_queue->in_callout);
        local_queue->limit = limit;
        local_queue->process = kernel_ports.process_id();
    }
    return local_queue;
}

void local_queue_retain(struct local_queue *local_queue)
{
    (void)atomic_fetch_add_explicit(&local_queue->references, 1, memory_order_relaxed);
}

void local_queue_release(struct local_queue *local_queue)
{
    if (atomic_fetch_sub_explicit(&local_queue->references, 1, memory_order_acq_rel) == 1) {
        free(local_queue);
    }
}

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void local_queue_lock(struct local_queue *local_queue)
{
    lock_take(&local_queue->lock);
}

/* Not checked: one of a pair, of which the other drops or takes the lock. */
NOT_CHECKED void local_queue_unlock(struct local_queue *local_queue)
{
    lock_drop(&local_queue->lock);
}

CFRunLoopSourceRef local_queue_open(struct local_queue *local_queue, CFRunLoopSourceRef source, bool *ret_has_messages)
{
    CFRunLoopSourceRef old = NULL;

    local_queue_lock(local_queue);
    if (!local_queue->is_closed) {
        object_retain(source);
        old = local_queue->source;
        local_queue->source = source;
    }
    *ret_has_messages = local_queue->count > 0;
    local_queue_unlock(local_queue);
    return old;
}

bool local_queue_is_open(struct local_queue *local_queue)
{
    bool is_open;

    local_queue_lock(local_queue);
    is_open = local_queue->source != NULL && atomic_load_explicit(&local_queue->in_socket, memory_order_acquire) == 0;
    local_queue_unlock(local_queue);
    return is_open;
}

void local_queue_expect_packet(struct local_queue *local_queue)
{
    (void)atomic_fetch_add_explicit(&local_queue->in_socket, 1, memory_order_relaxed);
}

void local_queue_forget_packet(struct local_queue *local_queue)
{
    uint32_t count = atomic_load_explicit(&local_queue->in_socket, memory_order_relaxed);

    /* The count may be 0: a packet that was sent before the local queue existed was not counted. */
    while (count > 0 &&
           !atomic_compare_exchange_weak_explicit(&local_queue->in_socket, &count, count - 1, memory_order_release, memory_order_relaxed)) {
    }
}

/* Wakes the senders that wait for room. */
static void wake_senders(struct local_queue *local_queue)
{
    (void)atomic_fetch_add_explicit(&local_queue->room_changes, 1, memory_order_release);
    (void)kernel.futex_wake(&local_queue->room_changes);
}

void local_queue_set_limit(struct local_queue *local_queue, uint32_t limit)
{
    local_queue_lock(local_queue);
    local_queue->limit = limit;
    local_queue_unlock(local_queue);
    wake_senders(local_queue);
}

void local_queue_close(struct local_queue *local_queue)
{
    CFRunLoopSourceRef source;
    struct link dropped;
    uint32_t senders;

    link_init(&dropped);
    local_queue_lock(local_queue);
    local_queue->is_closed = true;
    source = local_queue->source;
    local_queue->source = NULL;
    senders = local_queue->senders;
    list_append_all(&dropped, &local_queue->waiting);
    local_queue->count = 0;
    list_for_each(link, &local_queue->in_callout) {
        (void)local_message_end(local_message_of(link), local_message_gone);
    }
    local_queue_unlock(local_queue);
    while (!list_is_empty(&dropped)) {
        struct local_message *local_message = local_message_of(dropped.next);

        list_remove(&local_message->link);
        (void)local_message_end(local_message, local_message_gone);
        local_message_release(local_message);
    }
    do {
        wake_senders(local_queue);
    } while (senders-- > 0);
    object_release_if_any(source);
}

/* Not checked: the child of a fork has one thread. */
NOT_CHECKED void local_queue_abandon(struct local_queue *local_queue)
{
    lock_reset(&local_queue->lock);
    local_queue->is_closed = true;
    local_queue->source = NULL; /* not released: the child does not use the source's count of references */
}

/* ---- local messages ---- */

struct local_message *local_message_create(SInt32 message_id, CFDataRef data, CFRunLoopRef loop)
{
    struct local_message *local_message = malloc(sizeof *local_message);

    if (!local_message) {
        return NULL;
    }
    *local_message = (struct local_message){.message_id = message_id, .loop = loop};
    atomic_init(&local_message->references, loop ? 2 : 1);
    link_init(&local_message->link);
    link_init(&local_message->sender_link);
    local_message->data = data && CFDataGetLength(data) > 0 ? payload_share(data) : data_empty();
    if (!local_message->data) {
        free(local_message);
        return NULL;
    }
    if (loop) {
        object_retain(loop);
    }
    return local_message;
}

void local_message_release(struct local_message *local_message)
{
    if (atomic_fetch_sub_explicit(&local_message->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    object_release(local_message->data);
    object_release_if_any(local_message->reply);
    object_release_if_any(local_message->loop);
    free(local_message);
}

bool local_message_end(struct local_message *local_message, enum local_message_state state)
{
    uint32_t waiting = local_message_waiting;

    invariant(state != local_message_waiting);
    if (!atomic_compare_exchange_strong_explicit(&local_message->state, &waiting, state, memory_order_acq_rel, memory_order_acquire)) {
        return false;
    }
    if (local_message->loop) {
        CFRunLoopWakeUp(local_message->loop);
    }
    return true;
}

enum local_message_state local_message_give_up(struct local_message *local_message)
{
    uint32_t state = local_message_waiting;

    if (atomic_compare_exchange_strong_explicit(&local_message->state, &state, local_message_given_up, memory_order_acq_rel,
                                                memory_order_acquire)) {
        return local_message_given_up;
    }
    return (enum local_message_state)state;
}

/* ---- the sender ---- */

void local_queue_tell_given_up(struct local_queue *local_queue, struct local_message *local_message)
{
    void (*given_up)(void *);
    void *info;

    local_queue_lock(local_queue);
    given_up = local_message->given_up;
    info = local_message->given_up_info;
    local_message->given_up = NULL;
    local_message->given_up_info = NULL;
    local_queue_unlock(local_queue);
    if (given_up) {
        given_up(info);
    }
}

enum local_queue_put local_queue_put(struct local_queue *local_queue, struct local_message *local_message, uint32_t *ret_room_changes)
{
    CFRunLoopSourceRef posted = NULL;
    enum local_queue_put result = local_queue_took;
    uint32_t first = 0;

    local_queue_lock(local_queue);
    *ret_room_changes = atomic_load_explicit(&local_queue->room_changes, memory_order_acquire);
    if (local_queue->is_closed) {
        result = local_queue_gone;
    } else if (local_queue->count >= local_queue->limit) {
        result = local_queue_full;
    } else {
        list_append(&local_queue->waiting, &local_message->link);
        if (local_queue->count == 0) {
            local_queue->firsts++;
        }
        local_queue->count++;
        first = local_queue->firsts;
        invariant(local_queue->count <= local_queue->limit);
        /*
         * The sender of the first waiting message posts the source, and the receiver posts it again for the later ones. But that sender may
         * be held up between putting and posting. Then this sender posts, or a receiver would not find a message that has been sent.
         */
        if (atomic_load_explicit(&local_queue->posted, memory_order_acquire) != first) {
            posted = local_queue->source;
            object_retain(posted);
        }
    }
    local_queue_unlock(local_queue);
    if (posted) {
        descriptor_source_post(posted);
        atomic_store_explicit(&local_queue->posted, first, memory_order_release); /* an older value only makes others post in vain */
        object_release(posted);
    }
    return result;
}

void local_queue_wait_for_room(struct local_queue *local_queue, uint32_t room_changes, int64_t deadline_ns)
{
    local_queue_lock(local_queue);
    local_queue->senders++;
    local_queue_unlock(local_queue);
    (void)kernel.futex_wait(&local_queue->room_changes, room_changes, deadline_ns);
    local_queue_lock(local_queue);
    invariant(local_queue->senders > 0);
    local_queue->senders--;
    local_queue_unlock(local_queue);
}

/* ---- the receiver ---- */

struct local_message *local_queue_take(struct local_queue *local_queue, bool *ret_has_more)
{
    struct local_message *local_message = NULL;
    bool has_senders;

    local_queue_lock(local_queue);
    if (!list_is_empty(&local_queue->waiting)) {
        local_message = local_message_of(local_queue->waiting.next);
        list_remove(&local_message->link);
        list_append(&local_queue->in_callout, &local_message->link);
        invariant(local_queue->count > 0);
        local_queue->count--;
    }
    invariant(list_is_empty(&local_queue->waiting) == (local_queue->count == 0));
    *ret_has_more = local_queue->count > 0;
    has_senders = local_message && local_queue->senders > 0;
    if (local_message && !has_senders) {
        (void)atomic_fetch_add_explicit(&local_queue->room_changes, 1, memory_order_release);
    }
    local_queue_unlock(local_queue);
    if (has_senders) {
        wake_senders(local_queue);
    }
    return local_message;
}

static void end_callout(struct local_queue *local_queue, struct local_message *local_message, enum local_message_state state)
{
    invariant(state != local_message_waiting);
    local_queue_lock(local_queue);
    list_remove(&local_message->link);
    local_queue_unlock(local_queue);
    (void)local_message_end(local_message, state);
    local_message_release(local_message);
}

bool local_queue_answer_later(struct local_queue *local_queue, struct local_message *local_message, void (*given_up)(void *info),
                              void *info)
{
    bool is_waiting;

    /* The state is read under the lock: a sender that gives up later takes the lock after that, and finds the function. */
    local_queue_lock(local_queue);
    is_waiting = atomic_load_explicit(&local_message->state, memory_order_acquire) == local_message_waiting;
    if (is_waiting) {
        local_message->given_up = given_up;
        local_message->given_up_info = info;
    }
    local_queue_unlock(local_queue);
    return is_waiting;
}

void *local_queue_forget_given_up(struct local_queue *local_queue, struct local_message *local_message)
{
    void *info;

    local_queue_lock(local_queue);
    info = local_message->given_up_info;
    local_message->given_up = NULL;
    local_message->given_up_info = NULL;
    local_queue_unlock(local_queue);
    return info;
}

void local_queue_reply(struct local_queue *local_queue, struct local_message *local_message, uint32_t status, CFDataRef reply)
{
    if (local_message->loop && atomic_load_explicit(&local_message->state, memory_order_relaxed) == local_message_waiting) {
        local_message->reply = payload_share(reply);
        local_message->status = status;
    }
    end_callout(local_queue, local_message, !local_message->loop || local_message->reply ? local_message_replied : local_message_dropped);
}

void local_queue_drop(struct local_queue *local_queue, struct local_message *local_message)
{
    end_callout(local_queue, local_message, local_message_dropped);
}
