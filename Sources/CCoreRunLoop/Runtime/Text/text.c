/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns how the units of a text are read, compared and searched. Knows every way in which a string may be stored; how one is made and grows
 * is string_storage.c's.
 *
 * Any thread. Nothing here changes a string.
 */
#include "Runtime/Text/text.h"

#include <string.h>
#include <wctype.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Runtime/Text/plain_locale.h"
#include "Runtime/Text/string_storage.h"

static struct text text_of_literal(CFTypeRef literal)
{
    const uint32_t *characters = (const uint32_t *)literal + 1;
    struct text text = {.units = characters, .form = text_utf32};

    for (; *characters != 0; characters++) {
        text.length++;
        if (*characters >= 0x10000) {
            text.length++;
            text.form = text_utf32_with_pairs;
        }
    }
    return text;
}

struct text text_of(CFStringRef string, const char *function)
{
    object_require(string, object_type_string, function, "string");
    if (object_is_wide_literal(string)) {
        return text_of_literal(string);
    }
    const struct string *stored = (const struct string *)(const void *)string;
    return (struct text){
        .units = stored->units,
        .length = stored->length,
        .form = (stored->object.info & string_is_utf16) != 0 ? text_utf16 : text_ascii,
    };
}

struct text text_of_units(const UniChar *units, CFIndex length)
{
    return (struct text){.units = units, .length = length, .form = text_utf16};
}

struct text text_of_ascii(const char *bytes, CFIndex length)
{
    return (struct text){.units = bytes, .length = length, .form = text_ascii};
}

/* Characters of a wide literal, from the one that has the unit `range.location`. */
static void copy_with_pairs(const struct text *text, CFRange range, UniChar *ret_units)
{
    const uint32_t *characters = text->units;
    CFIndex end = range.location + range.length;

    for (CFIndex index = 0; index < end; characters++) {
        UniChar units[2];
        CFIndex count = units_of_character(*characters, units);

        for (CFIndex i = 0; i < count; i++, index++) {
            if (index >= range.location && index < end) {
                *ret_units++ = units[i];
            }
        }
    }
}

UniChar text_unit(const struct text *text, CFIndex index)
{
    switch (text->form) {
    case text_ascii:
        return ((const uint8_t *)text->units)[index];
    case text_utf16:
        return ((const UniChar *)text->units)[index];
    case text_utf32:
        return (UniChar)((const uint32_t *)text->units)[index];
    case text_utf32_with_pairs:
        break;
    }
    UniChar unit;
    copy_with_pairs(text, CFRangeMake(index, 1), &unit);
    return unit;
}

void text_copy_units(const struct text *text, CFRange range, UniChar *ret_units)
{
    if (range.length == 0) {
        return;
    }
    if (text->form == text_utf16) {
        memcpy(ret_units, (const UniChar *)text->units + range.location, (size_t)range.length * sizeof(UniChar));
    } else if (text->form == text_utf32_with_pairs) {
        copy_with_pairs(text, range, ret_units);
    } else {
        for (CFIndex i = 0; i < range.length; i++) {
            ret_units[i] = text_unit(text, range.location + i);
        }
    }
}

bool text_is_ascii(const struct text *text)
{
    if (text->form == text_ascii) {
        return true;
    }
    if (text->form == text_utf32_with_pairs) {
        return false;
    }
    for (CFIndex i = 0; i < text->length; i++) {
        if (text_unit(text, i) >= 0x80) {
            return false;
        }
    }
    return true;
}

bool text_equal(const struct text *one, const struct text *other)
{
    if (one->length != other->length) {
        return false;
    }
    if (one->form == other->form && one->form <= text_utf16) {
        size_t unit_size = one->form == text_ascii ? 1 : sizeof(UniChar);

        return one->length == 0 || memcmp(one->units, other->units, (size_t)one->length * unit_size) == 0;
    }
    for (CFIndex i = 0; i < one->length; i++) {
        if (text_unit(one, i) != text_unit(other, i)) {
            return false;
        }
    }
    return true;
}

CFHashCode text_hash(const struct text *text)
{
    /* FNV-1a over units, so that every form of the same text has the same value. */
    uint64_t hash = 0xCBF29CE484222325;

    for (CFIndex i = 0; i < text->length; i++) {
        hash = (hash ^ text_unit(text, i)) * 0x100000001B3;
    }
    return (CFHashCode)(hash ^ (hash >> 32));
}

static UniChar fold(UniChar unit)
{
    if (unit < 0x80) {
        return unit >= 'A' && unit <= 'Z' ? (UniChar)(unit + ('a' - 'A')) : unit;
    }
    locale_t locale = letter_locale();
    if (locale == (locale_t)0) {
        return unit;
    }
    /* The capital letter is made first, because some letters have two small forms. */
    wint_t folded = towlower_l(towupper_l(unit, locale), locale);
    return folded < 0x10000 ? (UniChar)folded : unit;
}

UniChar unit_in_case(UniChar unit, bool is_capital)
{
    locale_t locale = letter_locale();

    if (unit < 0x80 || locale == (locale_t)0) {
        UniChar first = is_capital ? 'a' : 'A';

        return unit >= first && unit <= first + ('z' - 'a') ? (UniChar)(unit ^ 0x20) : unit;
    }
    wint_t changed = is_capital ? towupper_l(unit, locale) : towlower_l(unit, locale);
    return changed < 0x10000 ? (UniChar)changed : unit;
}

static bool is_digit(UniChar unit)
{
    return unit >= '0' && unit <= '9';
}

struct digits {
    CFIndex start; /* of the first that is not zero */
    CFIndex end;
};

static struct digits digits_at(const struct text *text, CFIndex index, CFIndex end)
{
    struct digits digits = {.start = index};

    while (digits.start < end && text_unit(text, digits.start) == '0') {
        digits.start++;
    }
    digits.end = digits.start;
    while (digits.end < end && is_digit(text_unit(text, digits.end))) {
        digits.end++;
    }
    return digits;
}

static CFComparisonResult order_of(CFIndex one, CFIndex other)
{
    return one < other ? kCFCompareLessThan : one > other ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

static CFComparisonResult compare_digits(const struct text *one, struct digits a, const struct text *other, struct digits b)
{
    CFComparisonResult result = order_of(a.end - a.start, b.end - b.start);

    for (CFIndex i = 0; result == kCFCompareEqualTo && a.start + i < a.end; i++) {
        result = order_of(text_unit(one, a.start + i), text_unit(other, b.start + i));
    }
    return result;
}

CFComparisonResult text_compare(const struct text *one, CFRange range, const struct text *other, CFOptionFlags options)
{
    CFIndex i = range.location;
    CFIndex j = 0;
    CFIndex end = range.location + range.length;

    while (i < end && j < other->length) {
        UniChar a = text_unit(one, i);
        UniChar b = text_unit(other, j);

        if ((options & kCFCompareNumerically) != 0 && is_digit(a) && is_digit(b)) {
            struct digits digits1 = digits_at(one, i, end);
            struct digits digits2 = digits_at(other, j, other->length);
            CFComparisonResult result = compare_digits(one, digits1, other, digits2);

            if (result != kCFCompareEqualTo) {
                return result;
            }
            i = digits1.end;
            j = digits2.end;
            continue;
        }
        if ((options & kCFCompareCaseInsensitive) != 0) {
            a = fold(a);
            b = fold(b);
        }
        if (a != b) {
            return a < b ? kCFCompareLessThan : kCFCompareGreaterThan;
        }
        i++;
        j++;
    }
    return order_of(end - i, other->length - j);
}

static bool stands_at(const struct text *text, CFIndex index, const struct text *wanted, bool folds)
{
    for (CFIndex i = 0; i < wanted->length; i++) {
        UniChar a = text_unit(text, index + i);
        UniChar b = text_unit(wanted, i);

        if (a != b && !(folds && fold(a) == fold(b))) {
            return false;
        }
    }
    return true;
}

CFIndex text_find(const struct text *text, CFRange range, const struct text *wanted, CFOptionFlags options)
{
    if (wanted->length == 0 || wanted->length > range.length) {
        return kCFNotFound;
    }
    bool folds = (options & kCFCompareCaseInsensitive) != 0;
    bool backwards = (options & kCFCompareBackwards) != 0;
    CFIndex places = (options & kCFCompareAnchored) != 0 ? 1 : range.length - wanted->length + 1;
    CFIndex last = range.location + range.length - wanted->length;
    for (CFIndex i = 0; i < places; i++) {
        CFIndex index = backwards ? last - i : range.location + i;

        if (stands_at(text, index, wanted, folds)) {
            return index;
        }
    }
    return kCFNotFound;
}
