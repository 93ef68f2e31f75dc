/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of members, with chains. The loop's lock guards it. A search drops that lock to call the program's `equal`, and begins again
 * if the set has changed meanwhile.
 */
#include "Loop/Signal/source_set.h"

#include <stdlib.h>

/* Fibonacci hashing: hashes that are pointers differ mostly in their middle bits. */
static uint64_t hash_spread(CFHashCode hash)
{
    return (uint64_t)hash * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

REQUIRES(the_loop_lock) static struct source_member **bucket_of(struct source_set *set, CFHashCode hash)
{
    if (!set->buckets) {
        return &set->first;
    }
    invariant((set->bucket_count & (set->bucket_count - 1)) == 0);
    return &set->buckets[hash_spread(hash) & (set->bucket_count - 1)];
}

REQUIRES(the_loop_lock) static void chain_insert(struct source_set *set, struct source_member *member)
{
    struct source_member **bucket = bucket_of(set, member->hash);

    member->chain = *bucket;
    *bucket = member;
}

/* Doubles the buckets. Without memory the chains grow longer instead. */
REQUIRES(the_loop_lock) static void buckets_grow(struct source_set *set)
{
    uint32_t old_count = set->buckets ? set->bucket_count : 1;
    struct source_member **old = set->buckets ? set->buckets : &set->first;
    struct source_member **buckets = calloc((size_t)old_count * 2, sizeof(struct source_member *));
    struct source_set grown = *set;

    if (!buckets) {
        return;
    }
    grown.buckets = buckets;
    grown.bucket_count = old_count * 2;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct source_member *member = old[i], *next; member; member = next) {
            next = member->chain;
            chain_insert(&grown, member);
        }
    }
    free(set->buckets);
    *set = grown;
    set->first = NULL;
}

void source_set_insert(struct source_set *set, struct source_member *member)
{
    invariant(!member->chain);
    if (set->count >= (set->buckets ? set->bucket_count : 1) && set->count < UINT32_MAX / 4) {
        buckets_grow(set);
    }
    chain_insert(set, member);
    set->count++;
    if (member->mode && source_lets_runs_finish(member->binding->source)) {
        member->mode->suspended_count++;
    }
    set->changes++;
}

void source_set_remove(struct source_set *set, struct source_member *member)
{
    struct source_member **place = bucket_of(set, member->hash);

    invariant(set->count > 0);
    while (*place != member) {
        invariant(*place != NULL); /* the member is in the bucket of its hash */
        place = &(*place)->chain;
    }
    *place = member->chain;
    member->chain = NULL;
    set->count--;
    if (member->mode && source_lets_runs_finish(member->binding->source)) {
        member->mode->suspended_count--;
    }
    set->changes++;
}

/* Calls the program's `equal` without the lock. A reference keeps the candidate alive meanwhile. */
REQUIRES(the_loop_lock) static bool equal_unlocked(CFRunLoopRef loop, CFRunLoopSourceRef candidate, CFRunLoopSourceRef source)
{
    bool is_equal;

    object_retain(candidate);
    loop_unlock(loop);
    is_equal = source_infos_are_equal(candidate, source);
    object_release(candidate);
    loop_lock(loop);
    return is_equal;
}

/* Returns 1 for equal, 0 for different, -1 if the set changed while the lock was dropped. */
REQUIRES(the_loop_lock)
static int compare_candidate(CFRunLoopRef loop, struct source_set *set, struct source_member *member, CFRunLoopSourceRef source)
{
    CFRunLoopSourceRef candidate = member->binding->source;
    uint32_t changes = set->changes;
    bool is_equal;

    if (!source_could_equal(candidate, source)) {
        return 0;
    }
    if (!source_callback(source, source_callback_equal)) {
        return source_infos_are_equal(candidate, source);
    }
    is_equal = equal_unlocked(loop, candidate, source);
    return set->changes != changes ? -1 : is_equal;
}

REQUIRES(the_loop_lock)
static struct source_member *find_equal(CFRunLoopRef loop, struct source_set *set, CFRunLoopSourceRef source, CFHashCode hash,
                                        bool *ret_changed)
{
    *ret_changed = false;
    for (struct source_member *member = *bucket_of(set, hash); member; member = member->chain) {
        int comparison = member->hash == hash ? compare_candidate(loop, set, member, source) : 0;

        if (comparison > 0) {
            return member;
        }
        if (comparison < 0) {
            *ret_changed = true; /* the member, and so its chain, may be gone */
            return NULL;
        }
    }
    return NULL;
}

struct source_member *source_set_find(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source,
                                      CFHashCode hash)
{
    struct source_member *member;
    bool changed;

    do {
        member = source_member_in(loop, source, mode);
        if (member) {
            return member;
        }
        member = find_equal(loop, set, source, hash, &changed);
    } while (changed);
    return member;
}
