/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come later than the callout; see deferred_reply.h. */
#include "Port/Async/deferred_reply.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Trace/trace.h"

struct deferred_reply {
    _Atomic uint32_t references;
    struct link link; /* among the port's watched ones; guarded by the port lock */
    struct link telling; /* used by the thread that tells */
    CFMessagePortRef port; /* constant: with a reference */
    struct asker asker; /* constant */
    uint64_t accepted; /* constant: bytes that count against the budget until the answer */
    uint64_t traced; /* constant: what stands for the message in a trace, or 0 */
    struct local_message *local_message; /* constant: the receiver's reference; NULL: the message came by the socket */
    struct local_queue *local_queue; /* constant: the queue of `local_message`, with a reference */
    void (*asker_left)(void *info); /* constant once watched */
    void (*release)(void *info); /* constant once watched */
    void *info; /* constant once watched */
    bool is_told GUARDED_BY(the_port_lock);
    bool is_answered GUARDED_BY(the_port_lock);
};

/* ---- life ---- */

struct deferred_reply *received_message_defer(struct received_message *message)
{
    struct deferred_reply *deferred = calloc(1, sizeof *deferred);

    if (!deferred) {
        return NULL;
    }
    invariant(message->port);
    atomic_init(&deferred->references, 1);
    link_init(&deferred->link);
    link_init(&deferred->telling);
    object_retain(message->port);
    deferred->port = message->port;
    deferred->asker = message->asker;
    deferred->accepted = message->accepted;
    deferred->traced = message->traced;
    message->asker.channel = NULL;
    message->accepted = 0;
    if (message->local_message) {
        CFRetain(message->data); /* the data belongs to the local message, which may end while the callout still reads */
        local_queue_retain(message->local_queue);
        deferred->local_message = message->local_message;
        deferred->local_queue = message->local_queue;
        message->local_message = NULL;
    }
    return deferred;
}

static void release_deferred(struct deferred_reply *deferred)
{
    if (atomic_fetch_sub_explicit(&deferred->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    if (deferred->release) {
        deferred->release(deferred->info);
    }
    object_release(deferred->port);
    free(deferred);
}

static void retain_deferred(struct deferred_reply *deferred)
{
    (void)atomic_fetch_add_explicit(&deferred->references, 1, memory_order_relaxed);
}

int64_t deferred_reply_deadline(const struct deferred_reply *deferred)
{
    return deferred->local_message ? deferred->local_message->deadline_ns : deferred->asker.deadline_ns;
}

CFMessagePortRef deferred_reply_port(const struct deferred_reply *deferred)
{
    return deferred->port;
}

/* ---- the asker's end ---- */

/* The asker within this process has given up. Takes over a reference. */
static void given_up(void *info)
{
    struct deferred_reply *deferred = info;
    bool is_told;

    port_lock(deferred->port);
    is_told = deferred->is_told;
    deferred->is_told = true;
    port_unlock(deferred->port);
    if (!is_told) {
        deferred->asker_left(deferred->info);
    }
    release_deferred(deferred);
}

void deferred_reply_watch(struct deferred_reply *deferred, void (*asker_left)(void *info), void *info, void (*release)(void *info))
{
    CFMessagePortRef port = deferred->port;
    struct local_port *local = &port->side.local;
    bool has_left = false;

    retain_deferred(deferred); /* asker_left may answer, before this function ends */
    deferred->asker_left = asker_left;
    deferred->release = release;
    deferred->info = info;
    if (deferred->local_message) {
        retain_deferred(deferred); /* the message's */
        has_left = !local_queue_answer_later(deferred->local_queue, deferred->local_message, given_up, deferred);
        if (has_left) {
            release_deferred(deferred);
        }
    }
    port_lock(port);
    if (!deferred->is_answered) {
        list_append(&local->deferred_replies, &deferred->link);
        if (deferred->asker.channel) {
            (void)channel_table_watch(&local->channels, deferred->asker.channel);
            has_left = deferred->asker.channel->is_hung_up;
        }
        has_left |= deferred->asker.has_left || !port_is_valid(port);
    }
    has_left &= !deferred->is_told;
    deferred->is_told |= has_left;
    port_unlock(port);
    if (has_left) {
        asker_left(info);
    }
    release_deferred(deferred);
}

/* Moves those that are to be told into a list, with a reference each. */
REQUIRES(the_port_lock) static void collect(struct local_port *local, bool all, struct link *ret_told)
{
    list_for_each(link, &local->deferred_replies) {
        struct deferred_reply *deferred = container_of(link, struct deferred_reply, link);
        bool has_left = all || (deferred->asker.channel && deferred->asker.channel->is_hung_up);

        if (has_left && !deferred->is_told) {
            deferred->is_told = true;
            retain_deferred(deferred);
            list_append(ret_told, &deferred->telling);
        }
    }
}

void deferred_replies_tell(CFMessagePortRef port, bool all)
{
    struct local_port *local = &port->side.local;
    struct link told;

    link_init(&told);
    port_lock(port);
    channel_table_sweep(&local->channels, false);
    collect(local, all, &told);
    port_unlock(port);
    while (!list_is_empty(&told)) {
        struct deferred_reply *deferred = container_of(told.next, struct deferred_reply, telling);

        list_remove(&deferred->telling);
        deferred->asker_left(deferred->info);
        release_deferred(deferred);
    }
}

static void perform(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    (void)source;
    (void)ready;
    deferred_replies_tell(info, false);
}

bool deferred_replies_listen(CFMessagePortRef port, CFRunLoopRef loop)
{
    const struct descriptor_source_context context = {.perform = perform};
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source = NULL;
    bool is_needed;
    int set;

    port_lock(port);
    is_needed = port_is_valid(port) && !local->channel_watch;
    set = is_needed ? channel_table_set(&local->channels) : -1;
    port_unlock(port);
    if (!is_needed) {
        return true;
    }
    source = descriptor_source_create_of(port, NULL, 0, set, context);
    if (!source) {
        return false;
    }
    descriptor_source_set_interest(source, kernel_readable);
    port_lock(port);
    is_needed = port_is_valid(port) && !local->channel_watch;
    if (is_needed) {
        local->channel_watch = source;
        object_retain(source);
    }
    port_unlock(port);
    if (is_needed) { /* if the port ends meanwhile, it makes the source invalid, and the loop takes no such source */
        CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
    } else {
        CFRunLoopSourceInvalidate(source);
    }
    object_release(source);
    return true;
}

void deferred_replies_end_listening(CFMessagePortRef port)
{
    CFRunLoopSourceRef source;

    port_lock(port);
    source = port->side.local.channel_watch;
    port->side.local.channel_watch = NULL;
    port_unlock(port);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
}

/* ---- the answer ---- */

/*
 * A port that has ended answers nobody, so that all askers hear of its end. That closes the channels that the port keeps. The others close
 * with their answers.
 */
static void answer_by_channel(struct deferred_reply *deferred, uint32_t status, CFDataRef data)
{
    struct local_port *local = &deferred->port->side.local;
    struct reply answer;

    if (deferred->asker.channel) {
        reply_load(&deferred->asker, status, data, &answer);
    }
    port_lock(deferred->port);
    list_remove(&deferred->link);
    deferred->is_answered = true;
    invariant(local->in_use >= deferred->accepted);
    local->in_use -= deferred->accepted;
    if (deferred->asker.channel && port_is_valid(deferred->port)) {
        reply_send(local, &deferred->asker, &answer);
    } else if (deferred->asker.channel) {
        channel_table_end(&local->channels, deferred->asker.channel);
    }
    port_unlock(deferred->port);
    if (deferred->asker.channel) {
        reply_release(&answer);
    }
}

void deferred_reply_answer(struct deferred_reply *deferred, uint32_t status, CFDataRef data)
{
    struct local_message *local_message = deferred->local_message;

    if (trace_is_on() && deferred->traced != 0) {
        trace_write(trace_reply_is_sent, local_message ? trace_within_process : trace_by_socket, deferred->traced,
                    (uintptr_t)deferred->port);
    }
    answer_by_channel(deferred, status, data);
    if (local_message && local_queue_forget_given_up(deferred->local_queue, local_message)) {
        release_deferred(deferred); /* the reference that the message had */
    }
    if (local_message && !port_is_valid(deferred->port)) {
        (void)local_message_end(local_message, local_message_gone); /* the answer comes too late then */
    }
    if (local_message) {
        reply_by_local_queue(deferred->local_queue, local_message, status, data);
        local_queue_release(deferred->local_queue);
    }
    release_deferred(deferred);
}
