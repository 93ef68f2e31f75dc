/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that add escapes to strings and replace them. */
#include "CoreFoundation/CFURL.h"

#include "Runtime/Object/allocator.h"
#include "Runtime/Text/encoding.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/Text/text.h"
#include "Runtime/URL/url_bytes.h"

static bool has_unit(const struct text *text, UniChar unit)
{
    for (CFIndex i = 0; i < text->length; i++) {
        if (text_unit(text, i) == unit) {
            return true;
        }
    }
    return false;
}

/* The view of a set of characters; an empty one for NULL. */
static struct text set_of(CFStringRef characters, const char *function)
{
    return characters != NULL ? text_of(characters, function) : text_of_ascii("", 0);
}

/* The character at an index, and how many units it takes. Half a pair is itself. */
static uint32_t character_at(const struct text *text, CFIndex index, CFIndex *ret_units)
{
    uint32_t unit = text_unit(text, index);

    *ret_units = 1;
    if (unit_is_high_surrogate(unit) && index + 1 < text->length && unit_is_low_surrogate(text_unit(text, index + 1))) {
        *ret_units = 2;
        return 0x10000 + ((unit - 0xD800) << 10) + (text_unit(text, index + 1) - 0xDC00U);
    }
    return unit;
}

struct escapes_to_add {
    struct text left;
    struct text added;
    CFStringEncoding encoding;
};

/* Writes a text with escapes, units as they are and escapes as ASCII. Returns how many units, or kCFNotFound. */
static CFIndex write_escaped(const struct text *text, const struct escapes_to_add *escapes, UniChar *ret_units)
{
    UniChar *next = ret_units;
    CFIndex taken;

    for (CFIndex i = 0; i < text->length; i += taken) {
        UniChar unit = text_unit(text, i);
        uint32_t character = character_at(text, i, &taken);
        bool is_legal = url_set_has(url_set_any, unit) && !has_unit(&escapes->added, unit);

        if (taken == 1 && (is_legal || has_unit(&escapes->left, unit))) {
            *next++ = unit;
            continue;
        }
        uint8_t bytes[encoding_bytes_max];
        size_t count = encoding_write(escapes->encoding, character, bytes);
        if (count == 0 || (taken == 1 && (unit & 0xF800) == 0xD800)) {
            return kCFNotFound;
        }
        for (size_t k = 0; k < count; k++) {
            char escape[url_escape_length];

            url_write_escape(bytes[k], escape);
            for (size_t digit = 0; digit < url_escape_length; digit++) {
                *next++ = (UniChar)escape[digit];
            }
        }
    }
    return next - ret_units;
}

static CFStringRef create_and_free(CFAllocatorRef allocator, UniChar *units, CFIndex length)
{
    struct text text = text_of_units(units, length);
    CFStringRef string = length != kCFNotFound ? string_create(allocator, &text, CFRangeMake(0, length)) : NULL;

    allocator_deallocate(kCFAllocatorSystemDefault, units);
    return string;
}

CFStringRef CFURLCreateStringByAddingPercentEscapes(CFAllocatorRef allocator, CFStringRef string, CFStringRef charactersToLeaveUnescaped,
                                                    CFStringRef legalURLCharactersToBeEscaped, CFStringEncoding encoding)
{
    const char *function = "CFURLCreateStringByAddingPercentEscapes";
    struct text text = text_of(string, function);
    struct escapes_to_add escapes = {
        .left = set_of(charactersToLeaveUnescaped, function),
        .added = set_of(legalURLCharactersToBeEscaped, function),
        .encoding = encoding,
    };

    if (!encoding_is_known(encoding)) {
        return NULL;
    }
    size_t size = ((size_t)text.length * encoding_bytes_max * url_escape_length + 1) * sizeof(UniChar);
    UniChar *units = allocator_allocate(kCFAllocatorSystemDefault, size);
    return units != NULL ? create_and_free(allocator, units, write_escaped(&text, &escapes, units)) : NULL;
}

/* The byte that the escape at an index stands for, or -1. */
static int escaped_byte(const struct text *text, CFIndex index)
{
    if (index + url_escape_length > text->length || text_unit(text, index) != '%') {
        return -1;
    }
    int high = url_digit(text_unit(text, index + 1));
    int low = url_digit(text_unit(text, index + 2));
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Reads the escapes that follow one another from an index on. */
static CFIndex read_escapes(const struct text *text, CFIndex index, uint8_t *ret_bytes)
{
    CFIndex count = 0;
    int byte;

    while ((byte = escaped_byte(text, index + count * url_escape_length)) >= 0) {
        ret_bytes[count++] = (uint8_t)byte;
    }
    return count;
}

struct escapes_to_replace {
    struct text left;
    CFStringEncoding encoding;
    uint8_t *bytes; /* room for a run of escapes */
};

/* Writes the characters of a run of escapes. Those to be left are copied from the text. Returns the place behind them, or NULL. */
static UniChar *write_run(const struct text *text, CFIndex index, CFIndex count, const struct escapes_to_replace *escapes, UniChar *next)
{
    struct decoder decoder;
    int32_t character;

    if (!decoder_start(&decoder, escapes->bytes, (size_t)count, escapes->encoding, false)) {
        return NULL;
    }
    const uint8_t *from = decoder.next;
    for (; (character = decoder_next(&decoder)) >= 0; from = decoder.next) {
        if (character < 0x10000 && has_unit(&escapes->left, (UniChar)character)) {
            CFRange range = CFRangeMake(index + (from - escapes->bytes) * url_escape_length, (decoder.next - from) * url_escape_length);

            text_copy_units(text, range, next);
            next += range.length;
        } else {
            next += units_of_character((uint32_t)character, next);
        }
    }
    return character == decoder_at_end ? next : NULL;
}

static CFIndex write_replaced(const struct text *text, const struct escapes_to_replace *escapes, UniChar *ret_units)
{
    UniChar *next = ret_units;

    for (CFIndex i = 0; i < text->length;) {
        if (text_unit(text, i) != '%') {
            *next++ = text_unit(text, i++);
            continue;
        }
        CFIndex count = read_escapes(text, i, escapes->bytes);
        next = count > 0 ? write_run(text, i, count, escapes, next) : NULL;
        if (next == NULL) {
            return kCFNotFound;
        }
        i += count * url_escape_length;
    }
    return next - ret_units;
}

static CFStringRef create_replaced(CFAllocatorRef allocator, CFStringRef string, CFStringRef left, CFStringEncoding encoding,
                                   const char *function)
{
    struct text text = text_of(string, function);

    if (left == NULL) {
        return CFStringCreateCopy(allocator, string);
    }
    struct escapes_to_replace escapes = {.left = text_of(left, function), .encoding = encoding};
    escapes.bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)text.length / url_escape_length + 1);
    UniChar *units = allocator_allocate(kCFAllocatorSystemDefault, ((size_t)text.length + 1) * sizeof(UniChar));
    CFIndex length = escapes.bytes != NULL && units != NULL ? write_replaced(&text, &escapes, units) : kCFNotFound;
    allocator_deallocate(kCFAllocatorSystemDefault, escapes.bytes);
    return create_and_free(allocator, units, length);
}

CFStringRef CFURLCreateStringByReplacingPercentEscapes(CFAllocatorRef allocator, CFStringRef text, CFStringRef charactersToLeaveEscaped)
{
    return create_replaced(allocator, text, charactersToLeaveEscaped, kCFStringEncodingUTF8, "CFURLCreateStringByReplacingPercentEscapes");
}

CFStringRef CFURLCreateStringByReplacingPercentEscapesUsingEncoding(CFAllocatorRef allocator, CFStringRef text,
                                                                    CFStringRef charactersToLeaveEscaped, CFStringEncoding encoding)
{
    return create_replaced(allocator, text, charactersToLeaveEscaped, encoding, "CFURLCreateStringByReplacingPercentEscapesUsingEncoding");
}
