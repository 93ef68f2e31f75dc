/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates sources and signals them. Any thread and any signal handler may signal: the mark and the bindings are changed without a lock. The
 * states of the mark are in source.h. docs/threads.md says why each memory order suffices.
 */
#include "Loop/Signal/source.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/Core/shown.h"
#include "Loop/Trace/trace.h"
#include "Support/barrier.h"
#include "Support/fault.h"
#include "Support/locked_read.h"

CFHashCode source_hash(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    source_function hash = source_callback(source, source_callback_hash);

    return hash ? ((CFHashCode (*)(const void *))hash)(source->context_info) : (CFHashCode)(uintptr_t)source->context_info;
}

bool source_could_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
{
    return source_is_valid(one) == source_is_valid(other) && one->order == other->order && source_kind(one) == source_kind(other) &&
           source_callback(one, source_callback_hash) == source_callback(other, source_callback_hash) &&
           source_callback(one, source_callback_equal) == source_callback(other, source_callback_equal) &&
           source_callback(one, source_callback_perform) == source_callback(other, source_callback_perform);
}

bool source_infos_are_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
{
    source_function equal = source_callback(one, source_callback_equal);

    if (!equal) {
        return one->context_info == other->context_info;
    }
    return ((Boolean (*)(const void *, const void *))equal)(one->context_info, other->context_info);
}

Boolean source_equal(CFTypeRef one, CFTypeRef other)
{
    CFRunLoopSourceRef first = (CFRunLoopSourceRef)(uintptr_t)one;
    CFRunLoopSourceRef second = (CFRunLoopSourceRef)(uintptr_t)other;

    return source_could_equal(first, second) && source_infos_are_equal(first, second);
}

struct source_member *source_member_in(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        if (!binding_is_to(binding, loop)) {
            continue;
        }
        for (struct source_member *member = binding->members; member; member = member->next) {
            if (member->mode == mode) {
                return member;
            }
        }
    }
    return NULL;
}

static struct waker *bound_waker(uintptr_t word)
{
    return (struct waker *)(word & ~binding_queued); /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- construction ---- */

static void finalize(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    source_function release = source_callback(source, source_callback_release);
    source_function forget = source_kind(source) == source_with_descriptor ? source_callback(source, source_callback_get_port) : NULL;

    if (forget) {
        ((void (*)(void *, CFRunLoopSourceRef))forget)(source->context_info, source);
    }
    if (release) {
        ((void (*)(const void *))release)(source->context_info);
    }
    for (struct binding *binding = binding_next(&source->first_binding), *next; binding; binding = next) {
        next = binding_next(binding);
        free(binding);
    }
}

/* What the context says of its info, or the pointer; and the function that is called. NULL if there is no memory. */
static CFStringRef copy_context_or_callout(CFRunLoopSourceRef source)
{
    source_function copy = source_callback(source, source_callback_describe);
    CFStringRef context = copy ? ((CFStringRef (*)(const void *))copy)(source->context_info) : NULL;
    CFStringRef text;
    struct shown callout;

    if (!context) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("callout = %s, info = %p"),
                                        shown_callout(&callout, source_callback(source, source_callback_perform)), source->context_info);
    }
    text = source_kind(source) == source_with_descriptor /* the callout is a function of the library */
               ? CFStringCreateWithFormat(NULL, NULL, CFSTR("context = %@"), context)
               : CFStringCreateWithFormat(NULL, NULL, CFSTR("callout = %s, context = %@"),
                                          shown_callout(&callout, source_callback(source, source_callback_perform)), context);
    CFRelease(context);
    return text;
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    bool is_valid = source_is_valid(source);
    bool has_descriptor = is_valid && source_kind(source) != source_manual; /* an invalid source's number may be another file's */
    CFStringRef rest = copy_context_or_callout(source);
    struct shown shown;
    const char *descriptor = "";
    CFStringRef text;

    if (has_descriptor) {
        descriptor = shown_descriptor(&shown, locked_read_int(item_lock(source), &source_descriptor_part(source)->descriptor));
    }
    text =
        CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFRunLoopSource %p>{version = %d, valid = %s, signalled = %s, order = %ld%s%s, %@}"),
                                 object, source_version(source), shown_bool(is_valid), shown_bool(source_is_marked(source)),
                                 (long)source->order, has_descriptor ? ", descriptor = " : "", descriptor, rest);
    object_release_if_any(rest);
    return text;
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
    size += kind == source_manual ? 0 : sizeof(struct source_descriptor_part);
    source = object_create(allocator, &source_class, size);
    if (!source) {
        return NULL;
    }
    source->object.info = present | (uint32_t)kind << source_kind_shift | count << source_count_shift;
    source->order = order;
    source->context_info = info;
    source->first_binding.source = source;
    for (uint32_t i = 0, next = 0; i < source_callback_count; i++) {
        if (callbacks[i]) {
            source->callbacks[next++] = callbacks[i];
        }
    }
    if (kind != source_manual) {
        source_descriptor_part(source)->descriptor = -1;
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

    return state == mark_coalesced ? coalesce_is_announced(&source->announced) : state != mark_clear && state != mark_invalid;
}

/* Returns the mark that a loop leaves when it takes `mark`. */
static uint32_t taken_from(uint32_t mark)
{
    return source_mark_state(mark) == mark_set_coalesced ? with_state(mark, mark_coalesced)
                                                         : with_state(mark, mark_clear) + mark_generation;
}

enum source_taken source_take_mark(CFRunLoopSourceRef source)
{
    uint32_t mark = atomic_load_explicit(&source->mark, memory_order_acquire);

    do {
        if (source_mark_state(mark) == mark_clear || source_mark_state(mark) == mark_invalid) {
            return source_taken_nothing;
        }
        if (source_mark_state(mark) == mark_coalesced && coalesce_take_announced(&source->announced)) {
            return source_taken_coalesced;
        }
    } while (!atomic_compare_exchange_weak_explicit(&source->mark, &mark, taken_from(mark), memory_order_seq_cst, memory_order_acquire));
    invariant(source_mark_state(mark) != mark_clear && source_mark_state(mark) != mark_invalid); /* I2: there was a mark to take */
    barrier_after_update(); /* perform reads what the signaller wrote before its signal */
    if (source_mark_state(mark) == mark_coalesced) {
        return source_taken_no_signal;
    }
    if (source_mark_state(mark) == mark_set_coalesced) {
        (void)coalesce_take_announced(
            &source->announced); /* this perform serves the announced signals, too; a later one gets another perform (rule 78) */
        return source_taken_coalesced;
    }
    return source_taken_signal;
}

bool source_end_coalescing(CFRunLoopSourceRef source)
{
    coalesce_fence_threads();
    return coalesce_take_announced(&source->announced);
}

/* ---- signalling ---- */

static void queue_push(struct waker *waker, struct binding *binding)
{
    struct binding *head = atomic_load_explicit(&waker->queue, memory_order_relaxed);

    do {
        binding->queue_next = head;
    } while (!atomic_compare_exchange_weak_explicit(&waker->queue, &head, binding, memory_order_acq_rel, memory_order_relaxed));
}

/* Queues each bound binding with its loop, unless it is queued already. Whoever sets the queued bit is the only one that pushes. */
static void push_unqueued_bindings(CFRunLoopSourceRef source)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        uintptr_t word = atomic_load_explicit(&binding->word, memory_order_seq_cst);

        if (word && !(word & binding_queued) &&
            atomic_compare_exchange_strong_explicit(&binding->word, &word, word | binding_queued, memory_order_seq_cst,
                                                    memory_order_relaxed)) {
            queue_push(bound_waker(word), binding);
        }
    }
}

static void wake_bound_loops(CFRunLoopSourceRef source)
{
    for (struct binding *binding = &source->first_binding; binding; binding = binding_next(binding)) {
        uintptr_t word = atomic_load_explicit(&binding->word, memory_order_acquire);

        if (word) {
            waker_wake(bound_waker(word));
        }
    }
}

/* Makes later signallers only announce their signals, unless the mark `set` has been taken meanwhile. */
static void begin_coalescing(CFRunLoopSourceRef source, uint32_t set)
{
    invariant(source_mark_state(set) == mark_set);
    (void)atomic_compare_exchange_strong_explicit(&source->mark, &set, with_state(set, mark_set_coalesced), memory_order_seq_cst,
                                                  memory_order_relaxed);
}

/*
 * Ends BUSY after the pushes, so that other signallers may return early. If another signaller returned before the pushes were done, or a
 * loop has looked already, wakes all bound loops for everyone.
 */
static void finish_signal(CFRunLoopSourceRef source, uint32_t busy)
{
    uint32_t mark = busy;
    uint32_t set = with_state(busy, mark_set);
    bool begins_coalescing = coalesce_note_signal();

    invariant(source_mark_state(busy) == mark_busy);
    if (atomic_compare_exchange_strong_explicit(&source->mark, &mark, set, memory_order_seq_cst, memory_order_relaxed)) {
        if (begins_coalescing) {
            begin_coalescing(source, set);
        }
        return;
    }
    while (with_state(mark, mark_busy) == busy && (source_mark_state(mark) == mark_busy || source_mark_state(mark) == mark_contested)) {
        if (atomic_compare_exchange_weak_explicit(&source->mark, &mark, set, memory_order_seq_cst, memory_order_relaxed)) {
            break;
        }
    }
    wake_bound_loops(source);
}

void source_signal_from(CFRunLoopSourceRef source, uint32_t mark)
{
    /* The push and the pass need the rest of the source. One of very many sources is in no cache. */
    __builtin_prefetch((const char *)source + cache_line);
    __builtin_prefetch((const char *)source + 2 * cache_line);
    while (!source_signal_is_redundant(mark)) {
        uint32_t state = source_mark_state(mark);

        if (mark & mark_coalesced) {
            source_signal_coalesced(source, coalesce_announce(&source->announced, &source->mark, mark_coalesced));
            return;
        }
        invariant(state == mark_clear || state == mark_busy);
        if (atomic_compare_exchange_weak_explicit(&source->mark, &mark, with_state(mark, state == mark_clear ? mark_busy : mark_contested),
                                                  memory_order_seq_cst, memory_order_relaxed)) {
            if (state == mark_clear) {
                trace_event(trace_signal, 0, source, 0);
                push_unqueued_bindings(source);
                finish_signal(source, with_state(mark, mark_busy));
            }
            return;
        }
    }
}

void source_signal_redundantly(CFRunLoopSourceRef source, uint32_t mark)
{
    if (source_mark_state(mark) == mark_set && coalesce_count_redundant(&coalesce_record.redundant_signals)) {
        begin_coalescing(source, mark);
    }
}

void source_signal_coalesced(CFRunLoopSourceRef source, enum coalesce_answer answer)
{
    if (!coalesce_finish_announcing(answer, &source->announced, &source->mark, mark_coalesced)) {
        source_signal_from(source,
                           atomic_load_explicit(&source->mark, memory_order_relaxed)); /* taking the announcement back was a fence, too */
        wake_bound_loops(source); /* a loop that others woke meanwhile may have found neither the announcement nor the mark */
    }
}

CFRunLoopRef binding_copy_loop(CFRunLoopSourceRef source, struct binding *binding)
{
    struct lock *lock = item_lock(source);
    CFRunLoopRef loop;

    lock_take(lock);
    loop = atomic_load_explicit(&binding->loop, memory_order_relaxed);
    if (loop) {
        object_retain(loop);
    }
    lock_drop(lock);
    return loop;
}
