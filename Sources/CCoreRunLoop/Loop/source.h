/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input sources: the mark, the slots that bind a source to loops, and membership of modes.
 *
 * The mark is the only truth about "signalled". Its states, with a generation that counts how often it was taken:
 *
 *   CLEAR -> BUSY           the first signaller; it then pushes every free slot onto its loop's queue
 *   BUSY -> BUSY_CONTESTED  a second signaller, or a signal handler, arrives before the pushes are done: it may leave at once ...
 *   BUSY -> SET             ... because the first, if it finds CONTESTED or a mark already taken, wakes all bound loops for everyone
 *   any set -> CLEAR        exactly one loop, just before perform
 *   SET -> SET_FLOODED      signalled so often that signallers only tell of it from now on, in a word beside the mark (flood.h)
 *   SET_FLOODED -> FLOODED  a loop, just before perform; it keeps the source in its pending lists, to look again in the next pass
 *   FLOODED -> CLEAR        a loop that finds nothing told; it fences all threads, and looks once more
 *   any -> INVALID          for good
 *
 * Without BUSY, a second signaller could return early and wake a loop that finds nothing yet, while the first pushes and wakes nobody.
 *
 * A slot joins a source to one loop. Its bind word is 0 (free), the mailbox's address (bound), or that with the lowest bit set (bound, and
 * queued or being queued). Leaving the last mode unbinds it; if a push is under way it stays bound without members (a zombie) until the
 * loop's next drain meets it.
 */
#ifndef CRL_LOOP_SOURCE_H
#define CRL_LOOP_SOURCE_H

#include "Support/link_names.h"

#include "Loop/flood.h"
#include "Loop/loop.h"

enum source_kind {
    source_manual, /* version 0 */
    source_port, /* version 1: getPort and perform */
    source_descriptor, /* of this library's own: see descriptor_source.h */
};

enum mark_state {
    mark_clear,
    mark_busy,
    mark_contested,
    mark_set,
    mark_flooded, /* a bit, as what follows says */
    mark_set_flooded = mark_set | mark_flooded,
    mark_invalid,
    mark_state_mask = 15,
    /*
     * The upper bits count. A signaller that is between its push and its last look while they come round, 2^28 performs, takes another's
     * BUSY for its own. It then leaves the waking to that one, which finds its BUSY gone and wakes all bound loops.
     */
    mark_generation = 16
};

static const uintptr_t slot_queued = 1; /* the lowest bit of the bind word */

struct slot {
    _Atomic uintptr_t bind; /* see above */
    struct slot *queue_next; /* whoever owns the queued bit, until the push; then the drainer (L) */
    _Atomic(CFRunLoopRef) loop; /* written under I (and that loop's L unless unbound); holds a reference while not NULL */
    struct source_member *members; /* L of that loop */
    _Atomic(struct slot *) next; /* append-only; written under I */
    CFRunLoopSourceRef source; /* C */
};

struct source_member {
    struct slot *slot; /* C */
    struct mode *mode; /* C; NULL: membership of the common items */
    struct source_member *next; /* of the slot; L */
    struct source_member *chain; /* of the set's bucket; L */
    struct link link; /* pending list (version 0) or watch (descriptors); of a common item: the order of joining; L */
    CFHashCode hash; /* of the source when it joined; C */
};

/* The callbacks of a context, stored only where they are not NULL, in this order behind the source. */
enum source_callback {
    source_callback_perform,
    source_callback_schedule,
    source_callback_cancel,
    source_callback_equal,
    source_callback_hash,
    source_callback_retain,
    source_callback_release,
    source_callback_describe,
    source_callback_port, /* of a version-1 source: getPort; of a descriptor source: forget */
    source_callback_count
};

typedef void (*source_function)(void);

struct __CFRunLoopSource {
    struct object object; /* info: bits of the callbacks present, and the enum below; C */
    _Atomic uint32_t mark;
    _Atomic uint32_t told; /* in a flood; see flood.h */
    CFIndex order; /* C */
    void *context_info; /* C; released when the source is freed (73) */
    struct slot first_slot;
    struct source_member first_member; /* free while its slot is NULL; L of the loop that uses it, claimed under I */
    source_function callbacks[]; /* C */
};

/* Behind the callbacks of ports and descriptors. */
struct source_port_part {
    int descriptor; /* -1: none. Written at each add of a version-1 source that is in no mode yet, under I */
    bool is_counter; /* an eventfd or timerfd: the loop reads it (99) */
    bool is_set; /* a wait set, which nobody waits in: it is watched for what is added, not for what is there. Written in no mode */
    int ending; /* of a set: what it stood on before, whose end is watched for as well, as long as that lasts. Written in no mode */
    bool rests; /* L of the one loop that it is in; of a lingering one */
    atomic_bool is_posted; /* somebody has posted it, and nobody has taken that yet */
    _Atomic uint32_t own_interest; /* where the owner has no word for it */
    _Atomic uint32_t *interest; /* C; of descriptor sources: enum descriptor_interest */
    const void *callers_info; /* C; what `perform` will hand to the program, or NULL: only ever fetched ahead */
    uint64_t lingering; /* C; not 0: unique, and the kernel may go on watching until the mode is waited on again without it */
};

enum {
    source_kind_shift = 16,
    source_version_0_bit = 1 << 24, /* a descriptor's that says it is of version 0 (254) */
    source_count_shift = 28, /* how many callbacks are present */
};

static inline enum source_kind source_kind(const struct __CFRunLoopSource *source)
{
    return (enum source_kind)(source->object.info >> source_kind_shift & 0xff);
}

/* Watched by the kernel, and of version 0 all the same. */
static inline bool source_is_socket(const struct __CFRunLoopSource *source)
{
    return (source->object.info & source_version_0_bit) != 0;
}

/* As CFRunLoopSourceGetContext says. */
static inline int source_version(const struct __CFRunLoopSource *source)
{
    return source_kind(source) == source_manual || source_is_socket(source) ? 0 : 1;
}

extern const struct object_class source_class;

static inline uint32_t source_callbacks_present(const struct __CFRunLoopSource *source)
{
    return source->object.info & ((1u << source_callback_count) - 1);
}

/* How many of the lowest 16 bits are set, without the call that the compiler makes of it for processors that cannot count them. */
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

static inline struct source_port_part *source_port_part(CFRunLoopSourceRef source)
{
    return (struct source_port_part *)(void *)&source->callbacks[source->object.info >> source_count_shift];
}

/* NULL if there is no memory. `callbacks` has source_callback_count entries. */
CFRunLoopSourceRef source_create(CFAllocatorRef allocator, CFIndex order, enum source_kind kind, void *info,
                                 const source_function *callbacks);

static inline uint32_t source_mark_state(uint32_t mark)
{
    return mark & mark_state_mask;
}

static inline struct slot *slot_after(struct slot *slot)
{
    return atomic_load_explicit(&slot->next, memory_order_acquire);
}

/*
 * L of `loop`, which is what guards this, and not whether `slot->loop` is the loop: the thread that unbinds a slot sets that back after it
 * has dropped the lock.
 */
static inline bool slot_is_bound_to(const struct slot *slot, CFRunLoopRef loop)
{
    return (atomic_load_explicit(&slot->bind, memory_order_relaxed) & ~(uintptr_t)slot_queued) == (uintptr_t)loop->mailbox;
}

static inline bool source_is_valid(const struct __CFRunLoopSource *source)
{
    return source_mark_state(atomic_load_explicit(&source->mark, memory_order_acquire)) != mark_invalid;
}

/* A signal would change nothing: somebody has announced one, or the source is invalid. */
static inline bool source_signal_is_moot(uint32_t mark)
{
    return source_mark_state(mark) >= mark_contested && !(mark & mark_flooded);
}

/* The rest of source_signal, where `mark` was found: with something to do, or with nothing but to note it. */
void source_signal_from(CFRunLoopSourceRef source, uint32_t mark);
void source_signal_in_vain(CFRunLoopSourceRef source, uint32_t mark);
/* Or where there is more to do than to tell. */
void source_signal_in_flood(CFRunLoopSourceRef source, enum flood_answer answer);

/* Signal-safe. */
static inline void source_signal(CFRunLoopSourceRef source)
{
    uint32_t mark;

    atomic_signal_fence(memory_order_seq_cst);
    mark = atomic_load_explicit(&source->mark, memory_order_relaxed);
    if (mark & mark_flooded) {
        enum flood_answer answer = flood_tell(&source->told, &source->mark, mark_flooded);

        flood_record.spared_signals++;
        if (__builtin_expect(answer != flood_is_heard, 0)) {
            source_signal_in_flood(source, answer);
        }
        return;
    }
    barrier_full(); /* what the caller wrote is seen by the perform that an early return relies on */
    mark = atomic_load_explicit(&source->mark, memory_order_relaxed);
    if (source_signal_is_moot(mark)) {
        source_signal_in_vain(source, mark);
    } else {
        source_signal_from(source, mark);
    }
}

bool source_is_marked(CFRunLoopSourceRef source);

/* Some loop has to look whether it is, in its next pass. */
bool source_may_be_marked(CFRunLoopSourceRef source);

static inline bool source_is_flooded(const struct __CFRunLoopSource *source)
{
    return (atomic_load_explicit(&source->mark, memory_order_relaxed) & mark_flooded) != 0;
}

/* What a pass has taken of a source. */
enum source_taken {
    source_taken_nothing,
    source_taken_signal,
    source_taken_in_flood, /* likewise; and signallers rely on a look in the next pass */
    source_taken_flood, /* no signal, but the mark of a flood: source_end_flood tells */
};

/* For the pass. */
enum source_taken source_take_mark(CFRunLoopSourceRef source);

/* True if there was a signal after all. */
bool source_end_flood(CFRunLoopSourceRef source);

#endif
