/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input sources: their mark, their bindings to loops, and their memberships of modes.
 *
 * The mark alone says whether a source is signalled. It has a state, and a generation that counts how often a loop has taken it:
 *
 *   CLEAR -> BUSY           the first signaller; it then pushes every bound binding that is not queued onto its loop's queue
 *   BUSY -> CONTESTED       a second signaller, or a signal handler, arrives before the pushes are done; it may return at once
 *   BUSY -> SET             the first signaller, after the pushes
 *   CONTESTED -> SET        the first signaller, after the pushes; it wakes all bound loops for those that have returned, as it also does
 *                           if it finds the mark taken already
 *   BUSY, CONTESTED, SET -> CLEAR   one loop takes the mark just before perform
 *   SET -> SET_COALESCED    signalled so often that signallers only announce their signals from now on, in `announced` (coalesce.h)
 *   SET_COALESCED -> COALESCED  a loop, just before perform; it keeps the source in its pending lists, to look again in the next pass
 *   COALESCED -> CLEAR      a loop that finds nothing announced; it makes all threads pass a fence, and looks once more
 *   any -> INVALID          for good
 *
 * Without BUSY, a second signaller could return early and wake a loop that finds nothing yet, while the first pushes and wakes nobody.
 *
 * A binding joins a source to one loop. Its word is 0 (free), the waker's address (bound), or that address with the lowest bit set (bound,
 * and queued or being queued). Leaving the last mode unbinds it. If a push is under way, the binding stays bound without members (a zombie)
 * until the loop's next drain finds it.
 */
#ifndef CRL_LOOP_SOURCE_H
#define CRL_LOOP_SOURCE_H

#include "Loop/link_names.h"

#include "Loop/Wake/coalesce.h"
#include "Loop/Core/loop.h"
#include "Support/invariant.h"

enum source_kind {
    source_manual, /* version 0 */
    source_with_port, /* version 1: getPort and perform */
    source_with_descriptor, /* made by a higher layer of this library; see descriptor_source.h */
};

enum mark_state {
    mark_clear,
    mark_busy,
    mark_contested,
    mark_set,
    mark_coalesced, /* a bit of its own, which no state before it has */
    mark_set_coalesced = mark_set | mark_coalesced,
    mark_invalid,
    mark_state_mask = 15,
    /*
     * The upper bits count. They wrap around after 2^28 performs. A signaller that stays between its push and its last look for so long
     * may take another's BUSY for its own. The other signaller then finds its BUSY gone, and wakes all bound loops for both.
     */
    mark_generation = 16
};

static const uintptr_t binding_queued = 1; /* the lowest bit of a binding's word */

struct binding {
    _Atomic uintptr_t word; /* see above */
    struct binding *queue_next; /* until the push: the thread that set the queued bit; then the loop that drains, with its lock */
    _Atomic(CFRunLoopRef) loop; /* written with the item lock, and with the loop's lock where that binds; a reference unless NULL */
    struct source_member *members GUARDED_BY(the_loop_lock); /* the lock of that loop */
    _Atomic(struct binding *) next; /* only appended to, with the item lock */
    CFRunLoopSourceRef source; /* constant */
};

struct source_member {
    struct binding *binding; /* constant */
    struct mode *mode; /* constant; NULL: membership of the common items */
    struct source_member *next GUARDED_BY(the_loop_lock); /* the next member of the binding */
    struct source_member *chain GUARDED_BY(the_loop_lock); /* the next member in the bucket of the set */
    struct link link GUARDED_BY(the_loop_lock); /* version 0: in the pending list of the mode; with a descriptor: in a watch; a common
                                                   item: in the order of joining */
    CFHashCode hash; /* constant: the source's hash when it joined */
};

/* The callbacks of a context. Those that are not NULL are stored behind the source, in this order. */
enum source_callback {
    source_callback_perform,
    source_callback_schedule,
    source_callback_cancel,
    source_callback_equal,
    source_callback_hash,
    source_callback_retain,
    source_callback_release,
    source_callback_describe,
    source_callback_get_port, /* of a version-1 source: getPort; of a descriptor source: forget */
    source_callback_count
};

typedef void (*source_function)(void);

struct __CFRunLoopSource {
    struct object object; /* `info` has the bits of the callbacks present and of the enum below; constant */
    _Atomic uint32_t mark;
    _Atomic uint32_t announced; /* while signals are coalesced; see coalesce.h */
    CFIndex order; /* constant */
    void *context_info; /* constant; equality and hash need it after an invalidation, so freeing the source releases it (rule 73) */
    struct binding first_binding;
    struct source_member first_member; /* free while its binding is NULL; claimed with the item lock */
    source_function callbacks[]; /* constant */
};

/* What the descriptor of a version-1 source is. The loop reads the count of an eventfd or timerfd before perform (rule 99). */
enum port_kind { port_kind_unknown, port_kind_counter, port_kind_blocking_counter, port_kind_other };

/* Stored behind the callbacks of sources of version 1 and of sources with a descriptor. */
struct source_descriptor_part {
    int descriptor; /* -1: none. Written with the item lock at each add of a version-1 source that is in no mode yet */
    _Atomic uint8_t port_kind; /* unknown until the first report: the kernel is asked then, and not at each add. Written by a loop that the
                                * source is in, with that loop's lock; or with the item lock, while no loop has the source */
    bool is_set; /* the descriptor is a wait set: it is watched for new readiness, edge-triggered. Written while in no mode */
    int ending; /* with is_set: the descriptor before it, whose hang-up is watched for, too. Written while in no mode */
    bool is_suspended; /* the lock of the one loop that it is in; only with a kept_id */
    bool lets_runs_finish; /* constant once a loop knows the source: a mode that has nothing else is empty */
    atomic_bool is_posted; /* somebody has posted the source, and no perform has taken the post yet */
    _Atomic uint32_t own_interest; /* for a source whose owner has no word of its own */
    _Atomic uint32_t *interest; /* constant; a source with a descriptor: bits of enum descriptor_interest */
    uint64_t kept_id; /* constant; 0: none. A unique number: a removed source with one stays in epoll until the mode's next wait */
};

enum {
    source_kind_shift = 16,
    source_version_0_bit = 1 << 24, /* a source with a descriptor that calls itself version 0, as sockets do (rule 254) */
    source_count_shift = 28, /* the number of callbacks present */
};

static inline enum source_kind source_kind(const struct __CFRunLoopSource *source)
{
    return (enum source_kind)(source->object.info >> source_kind_shift & 0xff);
}

/* Returns true if the kernel watches the source's descriptor though the source calls itself version 0. */
static inline bool source_is_polled_v0(const struct __CFRunLoopSource *source)
{
    return (source->object.info & source_version_0_bit) != 0;
}

/* Returns the version that CFRunLoopSourceGetContext reports. */
static inline int source_version(const struct __CFRunLoopSource *source)
{
    return source_kind(source) == source_manual || source_is_polled_v0(source) ? 0 : 1;
}

extern const struct object_class source_class;

static inline uint32_t source_callbacks_present(const struct __CFRunLoopSource *source)
{
    return source->object.info & ((1u << source_callback_count) - 1);
}

/* Counts the set bits among the lowest 16. A builtin would become a library call on processors without such an instruction. */
static inline uint32_t count_bits(uint32_t bits)
{
    bits -= bits >> 1 & 0x5555;
    bits = (bits & 0x3333) + (bits >> 2 & 0x3333);
    bits = (bits + (bits >> 4)) & 0x0f0f;
    return (bits + (bits >> 8)) & 0xff;
}

static inline source_function source_callback(const struct __CFRunLoopSource *source, enum source_callback which)
{
    uint32_t present = source_callbacks_present(source);
    uint32_t bit = 1u << which;

    return present & bit ? source->callbacks[count_bits(present & (bit - 1))] : NULL;
}

static inline struct source_descriptor_part *source_descriptor_part(CFRunLoopSourceRef source)
{
    return (struct source_descriptor_part *)(void *)&source->callbacks[source->object.info >> source_count_shift];
}

/* Returns true if the source keeps no run going. */
static inline bool source_lets_runs_finish(CFRunLoopSourceRef source)
{
    return source_kind(source) != source_manual && source_descriptor_part(source)->lets_runs_finish;
}

/* Returns NULL if there is no memory. `callbacks` has source_callback_count entries. */
CFRunLoopSourceRef source_create(CFAllocatorRef allocator, CFIndex order, enum source_kind kind, void *info,
                                 const source_function *callbacks);

static inline uint32_t source_mark_state(uint32_t mark)
{
    return mark & mark_state_mask;
}

static inline struct binding *binding_next(struct binding *binding)
{
    return atomic_load_explicit(&binding->next, memory_order_acquire);
}

/* Returns the loop that a binding leads to, with a reference, or NULL. */
CFRunLoopRef binding_copy_loop(CFRunLoopSourceRef source, struct binding *binding);

/*
 * Returns true if the binding leads to `loop`. It does not read `binding->loop`, because the thread that unbinds a binding resets that
 * field after it has dropped the lock.
 */
REQUIRES(the_loop_lock) static inline bool binding_is_to(const struct binding *binding, CFRunLoopRef loop)
{
    return (atomic_load_explicit(&binding->word, memory_order_relaxed) & ~(uintptr_t)binding_queued) == (uintptr_t)loop->waker;
}

static inline bool source_is_valid(const struct __CFRunLoopSource *source)
{
    return source_mark_state(atomic_load_explicit(&source->mark, memory_order_acquire)) != mark_invalid;
}

/*
 * Returns true if a signal would change nothing: the source is signalled already, another thread has undertaken to wake for this call, or
 * the source is invalid.
 */
static inline bool source_signal_is_redundant(uint32_t mark)
{
    return source_mark_state(mark) >= mark_contested && !(mark & mark_coalesced);
}

/*
 * The slow paths of source_signal, which has found the value `mark`. The first changes something. The second counts the call, and begins a
 * burst after many of them.
 */
void source_signal_from(CFRunLoopSourceRef source, uint32_t mark);
void source_signal_redundantly(CFRunLoopSourceRef source, uint32_t mark);
/* The slow path while signals are coalesced, where more than an announcement is needed. */
void source_signal_coalesced(CFRunLoopSourceRef source, enum coalesce_answer answer);

/* Signals the source. Any thread; safe in signal handlers. */
static inline void source_signal(CFRunLoopSourceRef source)
{
    uint32_t mark;

    atomic_signal_fence(memory_order_seq_cst);
    mark = atomic_load_explicit(&source->mark, memory_order_relaxed);
    if (mark & mark_coalesced) {
        enum coalesce_answer answer = coalesce_announce(&source->announced, &source->mark, mark_coalesced);

        coalesce_record.unfenced_signals++;
        if (__builtin_expect(answer != coalesce_is_announced_in_time, 0)) {
            source_signal_coalesced(source, answer);
        }
        return;
    }
    barrier_full(); /* the perform that an early return relies on must see the writes of the caller */
    mark = atomic_load_explicit(&source->mark, memory_order_relaxed);
    if (source_signal_is_redundant(mark)) {
        source_signal_redundantly(source, mark);
    } else {
        source_signal_from(source, mark);
    }
}

bool source_is_marked(CFRunLoopSourceRef source);

/* Returns true if the source is signalled, or is coalesced, so that a loop has to look in its next pass. */
bool source_may_be_marked(CFRunLoopSourceRef source);

static inline bool source_is_coalesced(const struct __CFRunLoopSource *source)
{
    return (atomic_load_explicit(&source->mark, memory_order_relaxed) & mark_coalesced) != 0;
}

/* The result of taking a mark. */
enum source_taken {
    source_taken_nothing,
    source_taken_signal,
    source_taken_coalesced, /* a signal; and signallers rely on a look in the next pass */
    source_taken_no_signal, /* nothing was announced, so coalescing ends: source_end_coalescing says whether there was a signal */
};

/* Takes the mark, if there is one. A pass calls this just before perform; exactly one loop gets the mark. */
enum source_taken source_take_mark(CFRunLoopSourceRef source);

/* Ends coalescing after source_taken_no_signal. Returns true if there was a signal after all. */
bool source_end_coalescing(CFRunLoopSourceRef source);

/* Hash and equality of sources (rules 93 and 94), for the object class. They call the program. */
CFHashCode source_hash(CFTypeRef source);
/* Compares the fields: validity, order, kind and callbacks. Calls nothing. */
bool source_could_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other);
/* Compares the infos, by the program's `equal` callback if there is one. Then no lock may be held. */
bool source_infos_are_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other);
Boolean source_equal(CFTypeRef one, CFTypeRef other);

/* Returns the membership of exactly this source in `mode` of `loop`, or NULL. A NULL mode stands for the common items. */
REQUIRES(the_loop_lock) struct source_member *source_member_in(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode);

/* Returns true if source_member_in finds a membership. Quick for a source with only one. */
REQUIRES(the_loop_lock) static inline bool source_has_joined(CFRunLoopRef loop, CFRunLoopSourceRef source, const struct mode *mode)
{
    const struct binding *binding = &source->first_binding;

    if (binding_is_to(binding, loop) && binding->members && binding->members->mode == mode) {
        return true;
    }
    return source_member_in(loop, source, mode) != NULL;
}

#endif
