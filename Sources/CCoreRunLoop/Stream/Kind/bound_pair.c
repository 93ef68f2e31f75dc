/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bound pairs; see bound_pair.h. The two streams share a structure with the ring. The structure's own item lock guards it. A thread never
 * holds two item locks, so it never holds this one together with a stream's.
 *
 * A thread that waits for bytes or room sleeps on a word. Every change of the ring adds one to the word.
 */
#include "Stream/Kind/bound_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "Stream/Core/stream_events.h"

enum pair_end { pair_end_reader, pair_end_writer, pair_end_count };

struct bound_pair {
    struct stream *ends[pair_end_count] GUARDED_BY(the_item_lock); /* weak references; NULL: closed, freed or never made */
    uint32_t references GUARDED_BY(the_item_lock); /* streams that refer to it */
    _Atomic uint32_t changes; /* counts the changes of the ring and of its ends; written under the lock */
    uint32_t sleepers GUARDED_BY(the_item_lock); /* threads that wait for a change */
    uint32_t tellers[pair_end_count] GUARDED_BY(the_item_lock); /* threads that tell an end of a change, without a reference to it */
    size_t capacity; /* constant */
    size_t begin GUARDED_BY(the_item_lock); /* the place of the first byte */
    size_t count GUARDED_BY(the_item_lock);
    UInt8 bytes[] GUARDED_BY(the_item_lock);
};

struct bound_stream {
    struct stream stream;
    struct bound_pair *pair; /* constant */
};

ACQUIRES(the_item_lock) static void lock_pair(struct bound_pair *pair)
{
    lock_take(item_lock(pair));
}

RELEASES(the_item_lock) static void unlock_pair(struct bound_pair *pair)
{
    lock_drop(item_lock(pair));
}

static struct bound_pair *pair_of(const struct stream *s)
{
    return ((const struct bound_stream *)s)->pair;
}

static enum pair_end end_of(const struct stream *s)
{
    return stream_is_reader(s) ? pair_end_reader : pair_end_writer;
}

/* ---- telling the other end ---- */

/*
 * The ring, or an end, has changed: sets whether each end would wait. Returns the other end, which stays until the caller has told it, or
 * NULL, and whether threads have to be woken. There is no reference: the program's last one is to end all callbacks (see `forget`).
 */
REQUIRES(the_item_lock)
static struct stream *take_change(struct bound_pair *pair, enum pair_end own, bool *ret_wakes)
{
    struct stream *reader = pair->ends[pair_end_reader];
    struct stream *writer = pair->ends[pair_end_writer];
    struct stream *other = pair->ends[pair_end_writer - own];

    if (reader) {
        atomic_store_explicit(&reader->is_ready, pair->count > 0 || !writer, memory_order_release);
    }
    if (writer) {
        atomic_store_explicit(&writer->is_ready, pair->count < pair->capacity || !reader, memory_order_release);
    }
    atomic_fetch_add_explicit(&pair->changes, 1, memory_order_release);
    *ret_wakes = pair->sleepers > 0;
    if (other) {
        pair->tellers[pair_end_writer - own]++;
    }
    return other;
}

/* Tells the other end of a change, once the lock is dropped. */
static void tell_change(struct bound_pair *pair, struct stream *other, bool wakes)
{
    if (wakes) {
        (void)kernel.futex_wake(&pair->changes);
    }
    if (other) {
        stream_events_changed(other);
        lock_pair(pair);
        invariant(pair->tellers[end_of(other)] > 0);
        pair->tellers[end_of(other)]--;
        atomic_fetch_add_explicit(&pair->changes, 1, memory_order_release);
        wakes = pair->sleepers > 0;
        unlock_pair(pair);
        if (wakes) {
            (void)kernel.futex_wake(&pair->changes);
        }
    }
}

/* Sleeps until the pair changes. Drops the lock meanwhile. */
REQUIRES(the_item_lock) static void await_change(struct bound_pair *pair)
{
    uint32_t seen = atomic_load_explicit(&pair->changes, memory_order_relaxed);

    pair->sleepers++;
    unlock_pair(pair);
    (void)kernel.futex_wait(&pair->changes, seen, kernel_never);
    lock_pair(pair);
    invariant(pair->sleepers > 0);
    pair->sleepers--;
}

/* ---- moving bytes ---- */

/* Copies out of the ring, in two pieces where the bytes go round its end. */
REQUIRES(the_item_lock) static void take_bytes(struct bound_pair *pair, UInt8 *bytes, size_t count)
{
    size_t straight = pair->capacity - pair->begin;
    size_t first = count < straight ? count : straight;

    invariant(count <= pair->count && pair->begin < pair->capacity);
    memcpy(bytes, pair->bytes + pair->begin, first);
    memcpy(bytes + first, pair->bytes, count - first);
    pair->begin = (pair->begin + count) % pair->capacity;
    pair->count -= count;
}

REQUIRES(the_item_lock) static void put_bytes(struct bound_pair *pair, const UInt8 *bytes, size_t count)
{
    size_t end = (pair->begin + pair->count) % pair->capacity;
    size_t straight = pair->capacity - end;
    size_t first = count < straight ? count : straight;

    invariant(count <= pair->capacity - pair->count);
    memcpy(pair->bytes + end, bytes, first);
    memcpy(pair->bytes, bytes + first, count - first);
    pair->count += count;
}

static CFIndex read_pair(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    struct bound_pair *pair = pair_of(s);
    struct stream *other = NULL;
    bool wakes = false;
    size_t count;

    lock_pair(pair);
    while (pair->count == 0 && pair->ends[pair_end_writer]) {
        await_change(pair);
    }
    count = pair->count < (size_t)size ? pair->count : (size_t)size;
    if (count > 0) {
        take_bytes(pair, bytes, count);
        other = take_change(pair, pair_end_reader, &wakes);
    }
    unlock_pair(pair);
    tell_change(pair, other, wakes);
    *ret_at_end = count == 0;
    return (CFIndex)count;
}

static CFIndex write_pair(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    struct bound_pair *pair = pair_of(s);
    struct stream *other = NULL;
    bool wakes = false;
    bool has_reader;
    size_t count = 0;

    lock_pair(pair);
    while (pair->count == pair->capacity && pair->ends[pair_end_reader]) {
        await_change(pair);
    }
    has_reader = pair->ends[pair_end_reader] != NULL;
    if (has_reader) {
        count = pair->capacity - pair->count < (size_t)size ? pair->capacity - pair->count : (size_t)size;
        put_bytes(pair, bytes, count);
        other = take_change(pair, pair_end_writer, &wakes);
    }
    unlock_pair(pair);
    tell_change(pair, other, wakes);
    return has_reader ? (CFIndex)count : -EPIPE;
}

/* A look finds the end, and the loss of the reader, although the program neither reads nor writes. */
static int look_at_pair(struct stream *s, uint32_t ready)
{
    struct bound_pair *pair = pair_of(s);
    int events = 0;

    (void)ready;
    lock_pair(pair);
    if (stream_is_reader(s)) {
        if (pair->count > 0) {
            events = kCFStreamEventHasBytesAvailable;
        } else if (!pair->ends[pair_end_writer]) {
            events = kCFStreamEventEndEncountered;
        }
    } else if (!pair->ends[pair_end_reader]) {
        events = -EPIPE;
    } else if (pair->count < pair->capacity) {
        events = kCFStreamEventCanAcceptBytes;
    }
    unlock_pair(pair);
    return events;
}

/* ---- the end ---- */

static void leave(struct stream *s)
{
    struct bound_pair *pair = pair_of(s);
    struct stream *other = NULL;
    bool wakes = false;

    lock_pair(pair);
    if (pair->ends[end_of(s)]) {
        pair->ends[end_of(s)] = NULL;
        other = take_change(pair, end_of(s), &wakes);
    }
    unlock_pair(pair);
    tell_change(pair, other, wakes);
}

/* No thread begins to tell the end any more, and none is left that does. */
static void forget(struct stream *s)
{
    struct bound_pair *pair = pair_of(s);

    if (!pair) {
        return;
    }
    leave(s);
    lock_pair(pair);
    while (pair->tellers[end_of(s)] > 0) {
        await_change(pair);
    }
    unlock_pair(pair);
}

static void finalize(struct stream *s)
{
    struct bound_pair *pair = pair_of(s);
    bool is_last;

    if (!pair) {
        return;
    }
    lock_pair(pair);
    invariant(pair->references > 0 && !pair->ends[end_of(s)]);
    is_last = --pair->references == 0;
    unlock_pair(pair);
    if (is_last) {
        free(pair);
    }
}

static const struct stream_kind bound_kind = {
    .size = sizeof(struct bound_stream),
    .read = read_pair,
    .write = write_pair,
    .look = look_at_pair,
    .forget = forget,
    .close = leave,
    .finalize = finalize,
};

/* Adds a stream to a new pair, which no other thread knows (NOT_CHECKED). Returns false if there is no memory. */
NOT_CHECKED static bool add_end(CFAllocatorRef allocator, struct bound_pair *pair, bool is_reader, struct stream **ret_stream)
{
    struct bound_stream *bound;

    if (!ret_stream) {
        return true;
    }
    bound = (struct bound_stream *)stream_create(allocator, &bound_kind, is_reader);
    *ret_stream = bound ? &bound->stream : NULL;
    if (!bound) {
        return false;
    }
    bound->pair = pair;
    pair->ends[end_of(&bound->stream)] = &bound->stream;
    pair->references++;
    return true;
}

/* No other thread knows the pair yet (NOT_CHECKED). */
NOT_CHECKED bool bound_pair_create(CFAllocatorRef allocator, CFIndex capacity, struct stream **ret_reader, struct stream **ret_writer)
{
    enum { default_capacity = 4096 };
    size_t size = capacity > 0 ? (size_t)capacity : (size_t)default_capacity;
    struct bound_pair *pair = size < INTPTR_MAX / 2 ? calloc(1, sizeof *pair + size) : NULL;

    if (!pair || (!ret_reader && !ret_writer)) {
        free(pair);
        return !ret_reader && !ret_writer;
    }
    pair->capacity = size;
    if (!add_end(allocator, pair, true, ret_reader)) {
        free(pair);
        return false;
    }
    if (!add_end(allocator, pair, false, ret_writer)) {
        if (ret_reader) {
            object_release(*ret_reader); /* frees the pair */
            *ret_reader = NULL;
        } else {
            free(pair);
        }
        return false;
    }
    if (pair->ends[pair_end_reader]) {
        atomic_init(&pair->ends[pair_end_reader]->is_ready, !pair->ends[pair_end_writer]);
    }
    if (pair->ends[pair_end_writer]) {
        atomic_init(&pair->ends[pair_end_writer]->is_ready, true);
    }
    return true;
}
