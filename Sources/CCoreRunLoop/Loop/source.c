/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mechanics of sources: signalling without a lock, draining, joining and leaving modes. Which thread may do what is in source.h; why
 * each memory order suffices, in docs/threads.md.
 */
#include "Loop/source.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/source_set.h"
#include "Loop/watch.h"
#include "Support/barrier.h"
#include "Support/fault.h"

static struct mailbox *bound_mailbox(uintptr_t bind)
{
    return (struct mailbox *)(bind & ~slot_queued); /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- construction ---- */

static void finalize(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    source_function release = source_callback(source, source_callback_release);
    source_function forget = source_kind(source) == source_descriptor ? source_callback(source, source_callback_port) : NULL;

    if (forget) {
        ((void (*)(void *, CFRunLoopSourceRef))forget)(source->context_info, source);
    }
    if (release) {
        ((void (*)(const void *))release)(source->context_info);
    }
    for (struct slot *slot = slot_after(&source->first_slot), *next; slot; slot = next) {
        next = slot_after(slot);
        free(slot);
    }
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    source_function copy = source_callback(source, source_callback_describe);
    CFStringRef context = copy ? ((CFStringRef (*)(const void *))copy)(source->context_info) : NULL;
    CFStringRef text;

    if (context) {
        text = CFStringCreateWithFormat(NULL, NULL,
                                        CFSTR("<CFRunLoopSource %p>{version = %d, valid = %s, signalled = %s, order = %ld, context = %@}"),
                                        object, source_version(source), source_is_valid(source) ? "Yes" : "No",
                                        source_is_marked(source) ? "Yes" : "No", (long)source->order, context);
        CFRelease(context);
        return text;
    }
    return CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopSource %p>{version = %d, valid = %s, signalled = %s, order = %ld, info = %p, callout = %p}"), object,
        source_version(source), source_is_valid(source) ? "Yes" : "No", source_is_marked(source) ? "Yes" : "No", (long)source->order,
        source->context_info, (void *)(uintptr_t)source_callback(source, source_callback_perform));
}

const struct object_class source_class = {
    .type_id = object_type_run_loop_source,
    .name = "CFRunLoopSource",
    .finalize = finalize,
    .equal = source_equal,
    .hash = source_hash,
    .copy_description = describe,
};

CFRunLoopSourceRef source_create(CFAllocatorRef allocator, CFIndex order, enum source_kind kind, void *info,
                                 const source_function *callbacks)
{
    uint32_t present = 0;
    uint32_t count;
    size_t size;
    CFRunLoopSourceRef source;

    for (uint32_t i = 0; i < source_callback_count; i++) {
        present |= callbacks[i] ? 1u << i : 0;
    }
    count = count_bits(present);
    size = sizeof *source + (size_t)count * sizeof(source_function);
    size += kind == source_manual ? 0 : sizeof(struct source_port_part);
    source = object_create(allocator, &source_class, size);
    if (!source) {
        return NULL;
    }
    source->object.info = present | (uint32_t)kind << source_kind_shift | count << source_count_shift;
    source->order = order;
    source->context_info = info;
    source->first_slot.source = source;
    for (uint32_t i = 0, next = 0; i < source_callback_count; i++) {
        if (callbacks[i]) {
            source->callbacks[next++] = callbacks[i];
        }
    }
    if (kind != source_manual) {
        source_port_part(source)->descriptor = -1;
    }
    return source;
}

/* ---- the mark ---- */

static uint32_t with_state(uint32_t mark, enum mark_state state)
{
    return (mark & ~(uint32_t)mark_state_mask) | (uint32_t)state;
}

bool source_may_be_marked(CFRunLoopSourceRef source)
{
    uint32_t state = source_mark_state(atomic_load_explicit(&source->mark, memory_order_seq_cst));

    return state != mark_clear && state != mark_invalid;
}

bool source_is_marked(CFRunLoopSourceRef source)
{
    uint32_t state = source_mark_state(atomic_load_explicit(&source->mark, memory_order_seq_cst));

    return state == mark_flooded ? flood_is_told(&source->told) : state != mark_clear && state != mark_invalid;
}

/* What a loop that takes the mark leaves of it. */
static uint32_t taken_from(uint32_t mark)
{
    return source_mark_state(mark) == mark_set_flooded ? with_state(mark, mark_flooded) : with_state(mark, mark_clear) + mark_generation;
}

enum source_taken source_take_mark(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load_explicit(&source->mark, memory_order_acquire);

    do {
        if (source_mark_state(mark) == mark_clear || source_mark_state(mark) == mark_invalid) {
            return source_taken_nothing;
        }
        if (source_mark_state(mark) == mark_flooded && flood_hear(&source->told)) {
            return source_taken_in_flood;
        }
    } while (!atomic_compare_exchange_weak_explicit(&source->mark, &mark, taken_from(mark), memory_order_seq_cst, memory_order_acquire));
    barrier_after_update(); /* what the signaller wrote is read by perform */
    if (source_mark_state(mark) == mark_flooded) {
        return source_taken_flood;
    }
    if (source_mark_state(mark) == mark_set_flooded) {
        (void)flood_hear(&source->told); /* this perform is for those who told, too (78) */
        return source_taken_in_flood;
    }
    return source_taken_signal;
}

bool source_end_flood(CFRunLoopSourceRef source)
{
    flood_fence();
    return flood_hear(&source->told);
}

static void queue_push(struct mailbox *mailbox, struct slot *slot)
{
    struct slot *head = atomic_load_explicit(&mailbox->queue, memory_order_relaxed);

    do {
        slot->queue_next = head;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->queue, &head, slot, memory_order_acq_rel, memory_order_relaxed));
}

static void push_free_slots(CFRunLoopSourceRef source)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        uintptr_t bind = atomic_load_explicit(&slot->bind, memory_order_seq_cst);

        if (bind && !(bind & slot_queued) &&
            atomic_compare_exchange_strong_explicit(&slot->bind, &bind, bind | slot_queued, memory_order_seq_cst, memory_order_relaxed)) {
            queue_push(bound_mailbox(bind), slot);
        }
    }
}

static void wake_bound_loops(CFRunLoopSourceRef source)
{
    for (struct slot *slot = &source->first_slot; slot; slot = slot_after(slot)) {
        uintptr_t bind = atomic_load_explicit(&slot->bind, memory_order_acquire);

        if (bind) {
            mailbox_wake(bound_mailbox(bind));
        }
    }
}

/* From now on signallers only tell, unless the mark `set` has been taken meanwhile. */
static void begin_flood(CFRunLoopSourceRef source, uint32_t set)
{
    (void)atomic_compare_exchange_strong_explicit(&source->mark, &set, with_state(set, mark_set_flooded), memory_order_seq_cst,
                                                  memory_order_relaxed);
}

/* The pushes are done: others may now leave early. If somebody has left while they were not, or a loop has looked, wakes on everyone's
 * behalf. */
static void finish_signal(CFRunLoopSourceRef source, uint32_t busy)
{
    uint32_t mark = busy;
    uint32_t set = with_state(busy, mark_set);
    bool is_flood = flood_note_signal();

    if (atomic_compare_exchange_strong_explicit(&source->mark, &mark, set, memory_order_seq_cst, memory_order_relaxed)) {
        if (is_flood) {
            begin_flood(source, set);
        }
        return;
    }
    while (with_state(mark, mark_busy) == busy &&
           (source_mark_state(mark) == mark_busy || source_mark_state(mark) == mark_contested)) {
        if (atomic_compare_exchange_weak_explicit(&source->mark, &mark, set, memory_order_seq_cst, memory_order_relaxed)) {
            break;
        }
    }
    wake_bound_loops(source);
}

void source_signal_from(CFRunLoopSourceRef source, uint32_t mark)
{
    /* The push and the pass need the rest of it, which is in no cache if it is one of very many. */
    __builtin_prefetch((const char *)source + cache_line);
    __builtin_prefetch((const char *)source + 2 * cache_line);
    while (!source_signal_is_moot(mark)) {
        uint32_t state = source_mark_state(mark);

        if (mark & mark_flooded) {
            source_signal_in_flood(source, flood_tell(&source->told, &source->mark, mark_flooded));
            return;
        }
        if (atomic_compare_exchange_weak_explicit(&source->mark, &mark, with_state(mark, state == mark_clear ? mark_busy : mark_contested),
                                                  memory_order_seq_cst, memory_order_relaxed)) {
            if (state == mark_clear) {
                push_free_slots(source);
                finish_signal(source, with_state(mark, mark_busy));
            }
            return;
        }
    }
}

void source_signal_in_vain(CFRunLoopSourceRef source, uint32_t mark)
{
    if (source_mark_state(mark) == mark_set && flood_is_reached(&flood_record.fenced_signals)) {
        begin_flood(source, mark);
    }
}

void source_signal_in_flood(CFRunLoopSourceRef source, enum flood_answer answer)
{
    if (!flood_finish_telling(answer, &source->told, &source->mark, mark_flooded)) {
        source_signal_from(source, atomic_load_explicit(&source->mark, memory_order_relaxed)); /* what was taken back was a fence, too */
        wake_bound_loops(source); /* a loop that others have woken since they told may have found neither that nor the mark */
    }
}
