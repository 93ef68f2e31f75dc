/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of texts: what a CFString holds, whichever way it is stored, as a sequence of UTF-16 units.
 *
 * A view borrows: it is valid while the string lives unchanged. No allocation, no locks.
 */
#ifndef CRL_RUNTIME_TEXT_H
#define CRL_RUNTIME_TEXT_H

#include "Runtime/link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFBase.h"

enum text_form {
    text_ascii, /* bytes below 128 */
    text_utf16, /* UniChar */
    text_utf32, /* a wide literal, one unit a character */
    text_utf32_with_pairs, /* a wide literal with characters that take two units */
};

struct text {
    const void *units;
    CFIndex length; /* in UTF-16 units */
    enum text_form form;
};

/* The view of a string. Stops with a sentence that names `function` when `string` is NULL or not a string. */
struct text text_of(CFStringRef string, const char *function);

/* A view of UTF-16 units, or of bytes below 128. */
struct text text_of_units(const UniChar *units, CFIndex length);
struct text text_of_ascii(const char *bytes, CFIndex length);

UniChar text_unit(const struct text *text, CFIndex index);
void text_copy_units(const struct text *text, CFRange range, UniChar *ret_units);
bool text_is_ascii(const struct text *text);

bool text_equal(const struct text *one, const struct text *other);
CFHashCode text_hash(const struct text *text);

/* `options` are CFStringCompareFlags; `range` lies within `one`. */
CFComparisonResult text_compare(const struct text *one, CFRange range, const struct text *other, CFOptionFlags options);

/* Where `wanted` is in `range` of `text`, or kCFNotFound. */
CFIndex text_find(const struct text *text, CFRange range, const struct text *wanted, CFOptionFlags options);

/* Returns the small or the capital letter of a unit if that is one unit, otherwise the unit itself. */
UniChar unit_in_case(UniChar unit, bool is_capital);

static inline bool unit_is_high_surrogate(uint32_t unit)
{
    return (unit & 0xFFFFFC00) == 0xD800;
}

static inline bool unit_is_low_surrogate(uint32_t unit)
{
    return (unit & 0xFFFFFC00) == 0xDC00;
}

/* Writes a character as one or two units, and says how many. */
static inline CFIndex units_of_character(uint32_t character, UniChar ret_units[2])
{
    if (character < 0x10000) {
        ret_units[0] = (UniChar)character;
        return 1;
    }
    ret_units[0] = (UniChar)(0xD7C0 + (character >> 10));
    ret_units[1] = (UniChar)(0xDC00 | (character & 0x3FF));
    return 2;
}

#endif
