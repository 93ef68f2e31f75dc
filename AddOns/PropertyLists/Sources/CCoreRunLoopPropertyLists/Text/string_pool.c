/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that a reader has made (string_pool.h). */
#include "Text/string_pool.h"

#include <stdlib.h>
#include <string.h>

enum { tries = 8 }; /* places that are looked at */

/* Eight bytes at a time. It need not be good against an enemy, as the tries are bounded. */
static uint64_t hash_of(const uint8_t *bytes, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t word;

    for (; length >= sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    for (word = 0; length > 0; length--) {
        word = word << 8 | *bytes++;
    }
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* The place of the bytes, or a free one; NULL if there is neither in reach. */
static struct pooled_string *find_place(struct string_pool *pool, const uint8_t *bytes, size_t length)
{
    size_t place = (size_t)hash_of(bytes, length);

    for (int i = 0; i < tries && pool->place_count > 0; i++) {
        struct pooled_string *pooled = &pool->places[(place + (size_t)i) & (pool->place_count - 1)];

        if (!pooled->string || (pooled->length == length && memcmp(pooled->bytes, bytes, length) == 0)) {
            return pooled;
        }
    }
    return NULL;
}

/* Without memory the pool stays as it is. A string that finds no place in the larger table is given up. */
static void grow(struct string_pool *pool)
{
    struct string_pool larger = {.place_count = pool->place_count ? pool->place_count * 4 : 256};

    larger.places = calloc(larger.place_count, sizeof *larger.places);
    if (!larger.places) {
        return;
    }
    for (size_t i = 0; i < pool->place_count; i++) {
        struct pooled_string *pooled = &pool->places[i];
        struct pooled_string *place = pooled->string ? find_place(&larger, pooled->bytes, pooled->length) : NULL;

        if (place) {
            *place = *pooled;
        } else if (pooled->string) {
            CFRelease(pooled->string);
            pool->count--;
        }
    }
    free(pool->places);
    pool->places = larger.places;
    pool->place_count = larger.place_count;
}

CFStringRef string_pool_copy(struct string_pool *pool, const uint8_t *bytes, size_t length)
{
    struct pooled_string *place;
    CFStringRef string;

    if (pool->count >= pool->place_count / 2) {
        grow(pool);
    }
    place = find_place(pool, bytes, length);
    if (place && place->string) {
        return CFRetain(place->string);
    }
    string = CFStringCreateWithBytes(pool->allocator, bytes, (CFIndex)length, kCFStringEncodingUTF8, false);
    if (string && place) {
        *place = (struct pooled_string){bytes, length, CFRetain(string)};
        pool->count++;
    }
    return string;
}

void string_pool_free(struct string_pool *pool)
{
    for (size_t i = 0; i < pool->place_count; i++) {
        if (pool->places[i].string) {
            CFRelease(pool->places[i].string);
        }
    }
    free(pool->places);
}
