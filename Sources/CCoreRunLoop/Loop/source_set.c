/* SPDX-License-Identifier: Apache-2.0 */
/* A chained hash table of members, and what it means for two sources to be equal. */
#include "Loop/source_set.h"

#include <stdlib.h>

#include "Loop/source_membership.h"

static uint64_t spread(CFHashCode hash)
{
    return (uint64_t)hash * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

static struct source_member **bucket_of(struct source_set *set, CFHashCode hash)
{
    if (!set->buckets) {
        return &set->first;
    }
    return &set->buckets[spread(hash) & (set->bucket_count - 1)];
}

static void chain_insert(struct source_set *set, struct source_member *member)
{
    struct source_member **bucket = bucket_of(set, member->hash);

    member->chain = *bucket;
    *bucket = member;
}

/* Doubles the buckets; without memory the chains just grow longer. */
static void grow(struct source_set *set)
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
    if (set->count >= (set->buckets ? set->bucket_count : 1) && set->count < UINT32_MAX / 4) {
        grow(set);
    }
    chain_insert(set, member);
    set->count++;
    set->changes++;
}

void source_set_remove(struct source_set *set, struct source_member *member)
{
    struct source_member **place = bucket_of(set, member->hash);

    while (*place != member) {
        place = &(*place)->chain;
    }
    *place = member->chain;
    member->chain = NULL;
    set->count--;
    set->changes++;
}

void source_set_free(struct source_set *set)
{
    free(set->buckets);
    *set = (struct source_set){0};
}

CFHashCode source_hash(CFTypeRef object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;
    source_function hash = source_callback(source, source_callback_hash);

    return hash ? ((CFHashCode (*)(const void *))hash)(source->context_info) : (CFHashCode)(uintptr_t)source->context_info;
}

/* All that rule 93 asks but `equal` itself. */
static bool could_be_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
{
    return source_is_valid(one) == source_is_valid(other) && one->order == other->order && source_kind(one) == source_kind(other) &&
           source_callback(one, source_callback_hash) == source_callback(other, source_callback_hash) &&
           source_callback(one, source_callback_equal) == source_callback(other, source_callback_equal) &&
           source_callback(one, source_callback_perform) == source_callback(other, source_callback_perform);
}

static bool infos_are_equal(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
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

    return could_be_equal(first, second) && infos_are_equal(first, second);
}

/* Asks the user's `equal` without the lock. The candidate is kept alive meanwhile. */
static bool equal_unlocked(CFRunLoopRef loop, CFRunLoopSourceRef candidate, CFRunLoopSourceRef source)
{
    bool is_equal;

    object_retain(candidate);
    loop_unlock(loop);
    is_equal = infos_are_equal(candidate, source);
    object_release(candidate);
    loop_lock(loop);
    return is_equal;
}

/* 1 equal, 0 not, -1 the set changed while the lock was dropped. */
static int compare_candidate(CFRunLoopRef loop, struct source_set *set, struct source_member *member, CFRunLoopSourceRef source)
{
    CFRunLoopSourceRef candidate = member->slot->source;
    uint32_t changes = set->changes;
    bool is_equal;

    if (!could_be_equal(candidate, source)) {
        return 0;
    }
    if (!source_callback(source, source_callback_equal)) {
        return infos_are_equal(candidate, source);
    }
    is_equal = equal_unlocked(loop, candidate, source);
    return set->changes != changes ? -1 : is_equal;
}

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
            *ret_changed = true; /* the chain may be another one by now */
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
