/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of the tz database (zone_rules.h). */
#include "Zone/zone_rules.h"

#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

enum { header_size = 44, type_size = 6, most_types = 256, kept_letters = 320, most_offset_s = 26 * 3600 };

struct zone_type {
    int32_t offset_s;
    bool is_daylight;
    uint8_t letters; /* where its abbreviation begins */
};

struct zone_rules {
    bool has_footer;
    struct zone_footer footer; /* if there is one: of all that is behind the last change */
    struct zone_type types[most_types];
    char letters[kept_letters + 1];
    size_t count; /* of changes */
    const uint8_t *types_after; /* of each change: the type from then on; behind the instants */
    int64_t instants[]; /* of the changes, each greater than the one before */
};

/* One of the two parts of a file, which have a header of the same form. */
struct zone_block {
    char version;
    uint64_t utc_flags, standard_flags, leaps, changes, types, letters; /* counts */
    const uint8_t *body;
    unsigned time_size; /* 4 or 8 */
};

static uint32_t number_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint64_t size_of_body(const struct zone_block *block)
{
    return block->changes * (block->time_size + 1) + block->types * type_size + block->letters + block->leaps * (block->time_size + 4) +
           block->standard_flags + block->utc_flags;
}

/* The counts have 32 bits, so their sizes in 64 bits do not overflow. */
static bool read_header(const uint8_t *bytes, size_t size, unsigned time_size, struct zone_block *ret_block)
{
    if (size < header_size || memcmp(bytes, "TZif", 4) != 0) {
        return false;
    }
    *ret_block = (struct zone_block){
        .version = (char)bytes[4],
        .utc_flags = number_at(bytes + 20),
        .standard_flags = number_at(bytes + 24),
        .leaps = number_at(bytes + 28),
        .changes = number_at(bytes + 32),
        .types = number_at(bytes + 36),
        .letters = number_at(bytes + 40),
        .body = bytes + header_size,
        .time_size = time_size,
    };
    return size_of_body(ret_block) <= size - header_size;
}

static int64_t instant_at(const struct zone_block *block, size_t index)
{
    const uint8_t *bytes = block->body + index * block->time_size;

    return block->time_size == 4 ? (int32_t)number_at(bytes) : (int64_t)((uint64_t)number_at(bytes) << 32 | number_at(bytes + 4));
}

static bool read_changes(const struct zone_block *block, struct zone_rules *rules)
{
    const uint8_t *types = block->body + block->changes * block->time_size;
    uint8_t *types_after = (uint8_t *)(rules->instants + rules->count);

    rules->types_after = types_after;
    for (size_t i = 0; i < rules->count; i++) {
        rules->instants[i] = instant_at(block, i);
        types_after[i] = types[i];
        if (types[i] >= block->types || (i > 0 && rules->instants[i] <= rules->instants[i - 1])) {
            return false;
        }
    }
    return true;
}

static bool read_types(const struct zone_block *block, struct zone_rules *rules)
{
    const uint8_t *bytes = block->body + block->changes * (block->time_size + 1);
    const uint8_t *letters = bytes + block->types * type_size;
    size_t kept = block->letters < kept_letters ? (size_t)block->letters : kept_letters;

    memcpy(rules->letters, letters, kept);
    for (size_t i = 0; i < block->types; i++, bytes += type_size) {
        struct zone_type type = {(int32_t)number_at(bytes), bytes[4] == 1, bytes[5]};

        if (bytes[4] > 1 || type.offset_s < -most_offset_s || type.offset_s > most_offset_s || type.letters >= kept ||
            !memchr(letters + type.letters, '\0', kept - type.letters)) {
            return false;
        }
        rules->types[i] = type;
    }
    return true;
}

/* Of a later version, a line with a rule comes last. What is no rule is passed over, as an empty line is. */
static void read_footer(const uint8_t *bytes, size_t size, struct zone_rules *rules)
{
    const uint8_t *end = size > 1 && bytes[0] == '\n' ? memchr(bytes + 1, '\n', size - 1) : NULL;

    rules->has_footer = end && zone_footer_parse((const char *)bytes + 1, (size_t)(end - bytes) - 1, &rules->footer);
}

struct zone_rules *zone_rules_create(const uint8_t *bytes, size_t size)
{
    struct zone_block block;

    if (!read_header(bytes, size, 4, &block)) {
        return NULL;
    }
    bool is_later = block.version >= '2';
    const uint8_t *end = bytes + size;
    if (is_later) {
        const uint8_t *second = block.body + size_of_body(&block);

        if (!read_header(second, (size_t)(end - second), 8, &block)) {
            return NULL;
        }
    }
    if (block.types == 0 || block.types > most_types || block.letters == 0) {
        return NULL;
    }
    struct zone_rules *rules = calloc(1, sizeof *rules + (size_t)block.changes * (sizeof(int64_t) + 1));
    if (!rules) {
        return NULL;
    }
    rules->count = (size_t)block.changes;
    if (!read_changes(&block, rules) || !read_types(&block, rules)) {
        free(rules);
        return NULL;
    }
    if (is_later) {
        const uint8_t *footer = block.body + size_of_body(&block);

        read_footer(footer, (size_t)(end - footer), rules);
    }
    return rules;
}

/* How many changes have come by then. */
static size_t count_changes(const struct zone_rules *rules, int64_t instant)
{
    size_t low = 0;
    size_t high = rules->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rules->instants[middle] <= instant) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct zone_period zone_rules_period(const struct zone_rules *rules, int64_t instant)
{
    size_t passed = count_changes(rules, instant);
    int64_t start = passed > 0 ? rules->instants[passed - 1] : INT64_MIN;

    invariant(passed <= rules->count);
    if (passed == rules->count && rules->has_footer) {
        struct zone_period period = zone_footer_period(&rules->footer, instant);

        period.start = period.start > start ? period.start : start;
        return period;
    }
    const struct zone_type *type = &rules->types[passed > 0 ? rules->types_after[passed - 1] : 0];
    return (struct zone_period){
        .start = start,
        .end = passed < rules->count ? rules->instants[passed] : INT64_MAX,
        .offset_s = type->offset_s,
        .is_daylight = type->is_daylight,
        .abbreviation = rules->letters + type->letters,
    };
}
