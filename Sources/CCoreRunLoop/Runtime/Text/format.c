/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format is read twice: first to learn the types of all arguments, which must be taken from the list in their order whatever order the
 * format uses them in, then to write. Both readings go through conversion_next, so they agree.
 *
 * Numbers are written by snprintf in a plain locale, so that a point stays a point.
 */
#include "Runtime/Text/format.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Runtime/Text/conversion.h"
#include "Runtime/Text/plain_locale.h"
#include "Runtime/Text/description.h"
#include "Runtime/Text/string_storage.h"

enum { number_buffer_size = 64, number_size_max = 1 << 24 };

struct argument {
    enum argument_kind kind;
    union {
        intmax_t integer;
        long double floating;
        const void *pointer;
    } value;
};

static void note_kind(struct argument *arguments, int index, enum argument_kind kind)
{
    if (index != none && (arguments[index].kind == kind_unused || (arguments[index].kind == kind_pointer && kind > kind_pointer))) {
        arguments[index].kind = kind;
    }
}

/* Learns the type of each argument, and how many there are. */
static int learn_arguments(const struct text *format, struct argument *arguments)
{
    struct format_reader reader = {.format = format};
    struct conversion conversion;

    while (conversion_next(&reader, &conversion)) {
        note_kind(arguments, conversion.width_argument, kind_int);
        note_kind(arguments, conversion.precision_argument, kind_int);
        note_kind(arguments, conversion.argument, conversion.kind);
    }
    int count = arguments_max;
    while (count > 0 && arguments[count - 1].kind == kind_unused) {
        count--;
    }
    return count;
}

static bool is_integer(enum argument_kind kind)
{
    return kind <= kind_ptrdiff;
}

static bool is_floating(enum argument_kind kind)
{
    return kind == kind_double || kind == kind_long_double;
}

/* Whether an argument taken as one kind can be shown as another: the format may name one argument twice. */
static bool fits(enum argument_kind taken, enum argument_kind wanted)
{
    return taken == wanted || (taken >= kind_pointer && wanted == kind_pointer) || (is_integer(taken) && is_integer(wanted)) ||
           (is_floating(taken) && is_floating(wanted));
}

static int amount_of(const struct argument *arguments, int index, int amount)
{
    if (index == none || !is_integer(arguments[index].kind)) {
        return amount;
    }
    intmax_t value = arguments[index].value.integer;
    return value > INT_MAX ? INT_MAX : value < -INT_MAX ? -INT_MAX : (int)value;
}

/* Puts the width and precision that stand among the arguments into the conversion. */
static void settle_amounts(struct conversion *conversion, const struct argument *arguments)
{
    if (conversion->width_argument == none && conversion->width == none) {
        conversion->width = 0;
    }
    conversion->width = amount_of(arguments, conversion->width_argument, conversion->width);
    if (conversion->width < 0) {
        conversion->has_flag[flag_left] = true;
        conversion->width = -conversion->width;
    }
    conversion->precision = amount_of(arguments, conversion->precision_argument, conversion->precision);
    if (conversion->precision < 0) {
        conversion->precision = none;
    }
}

static bool append_padded(CFMutableStringRef string, const struct conversion *conversion, const struct text *text)
{
    CFIndex padding = conversion->width > text->length ? conversion->width - text->length : 0;
    bool is_left = conversion->has_flag[flag_left];

    return (is_left || string_append_repeated(string, ' ', padding)) && string_append(string, text) &&
           (!is_left || string_append_repeated(string, ' ', padding));
}

/* snprintf's conversion for a number: the flags and amounts as given, the length `modifier`. */
static void write_specification(char *ret_specification, const struct conversion *conversion, const char *modifier)
{
    char *end = ret_specification;

    *end++ = '%';
    for (int i = 0; i < flags_max; i++) {
        if (conversion->has_flag[i]) {
            *end++ = flag_units[i];
        }
    }
    *end++ = '*';
    if (conversion->precision != none) {
        *end++ = '.';
        *end++ = '*';
    }
    while (*modifier != '\0') {
        *end++ = *modifier++;
    }
    *end++ = conversion->letter;
    *end = '\0';
}

static intmax_t narrow_signed(intmax_t value, const struct conversion *conversion)
{
    switch (conversion->length) {
    case length_char:
        return (signed char)value;
    case length_short:
        return (short)value;
    default:
        break;
    }
    return conversion->kind == kind_int ? (int)value : conversion->kind == kind_size ? (ssize_t)value : value;
}

static intmax_t narrow_unsigned(intmax_t value, const struct conversion *conversion)
{
    switch (conversion->length) {
    case length_char:
        return (unsigned char)value;
    case length_short:
        return (unsigned short)value;
    default:
        break;
    }
    return conversion->kind == kind_int       ? (intmax_t)(unsigned int)value
           : conversion->kind == kind_long    ? (intmax_t)(unsigned long)value
           : conversion->kind == kind_ptrdiff ? (intmax_t)(size_t)value
                                              : value;
}

static int print_number(char *buffer, size_t size, const struct conversion *conversion, const struct argument *argument)
{
    char specification[16];
    bool has_precision = conversion->precision != none;
    int width = conversion->width;
    int precision = conversion->precision;

    if (is_floating(argument->kind)) {
        long double value = argument->value.floating;
        write_specification(specification, conversion, argument->kind == kind_long_double ? "L" : "");
        if (argument->kind == kind_long_double) {
            return has_precision ? snprintf(buffer, size, specification, width, precision, value)
                                 : snprintf(buffer, size, specification, width, value);
        }
        return has_precision ? snprintf(buffer, size, specification, width, precision, (double)value)
                             : snprintf(buffer, size, specification, width, (double)value);
    }
    bool is_signed = conversion->letter == 'd' || conversion->letter == 'i';
    intmax_t value = argument->value.integer;
    value = is_signed ? narrow_signed(value, conversion) : narrow_unsigned(value, conversion);
    write_specification(specification, conversion, "j");
    return has_precision ? snprintf(buffer, size, specification, width, precision, value)
                         : snprintf(buffer, size, specification, width, value);
}

/* Leaves the sign of a NaN out, as Apple's system does; snprintf here would show one. */
static bool append_no_number(CFMutableStringRef string, const struct conversion *conversion)
{
    bool is_small = conversion->letter >= 'a';
    struct text text = text_of_ascii(is_small ? "nan" : "NAN", 3);

    return append_padded(string, conversion, &text);
}

static bool append_number(CFMutableStringRef string, const struct conversion *conversion, const struct argument *argument)
{
    /* snprintf would write such a number for seconds, and then find it too long. */
    if (conversion->width > number_size_max || conversion->precision > number_size_max) {
        return false;
    }
    if (is_floating(argument->kind) && isnan(argument->value.floating)) {
        return append_no_number(string, conversion);
    }
    char short_buffer[number_buffer_size];
    char *buffer = short_buffer;
    locale_t locale = plain_locale();
    locale_t previous = uselocale(locale);
    int length = print_number(buffer, sizeof short_buffer, conversion, argument);
    if (length >= (int)sizeof short_buffer) {
        buffer = malloc((size_t)length + 1);
        if (buffer != NULL) {
            print_number(buffer, (size_t)length + 1, conversion, argument);
        }
    }
    uselocale(previous);
    bool is_done = false;
    if (length >= 0 && buffer != NULL) {
        struct text text = text_of_ascii(buffer, length);

        is_done = string_append(string, &text);
    }
    if (buffer != short_buffer) {
        free(buffer);
    }
    return is_done;
}

static bool append_pointer(CFMutableStringRef string, const struct conversion *conversion, const void *pointer)
{
    char buffer[number_buffer_size];
    struct text text = text_of_ascii(buffer, snprintf(buffer, sizeof buffer, "0x%jx", (uintmax_t)(uintptr_t)pointer));

    return append_padded(string, conversion, &text);
}

static bool append_characters(CFMutableStringRef string, const struct conversion *conversion, intmax_t value)
{
    UniChar units[2];
    CFIndex count = 1;

    if (conversion->letter == 'C') {
        units[0] = (UniChar)value;
    } else if (conversion->length == length_long && value >= 0 && value <= 0x10FFFF) {
        count = units_of_character((uint32_t)value, units);
    } else {
        units[0] = (UniChar)(unsigned char)value;
    }
    struct text text = text_of_units(units, count);
    return append_padded(string, conversion, &text);
}

/* A view cut to the conversion's precision, without leaving half of a pair. */
static struct text cut(struct text text, const struct conversion *conversion)
{
    if (conversion->precision != none && conversion->precision < text.length) {
        text.length = conversion->precision;
        if (text.length > 0 && unit_is_high_surrogate(text_unit(&text, text.length - 1))) {
            text.length--;
        }
    }
    return text;
}

static bool append_string(CFMutableStringRef string, const struct conversion *conversion, CFStringRef appended)
{
    struct text text = cut(text_of(appended, "CFStringCreateWithFormat"), conversion);

    return append_padded(string, conversion, &text);
}

/* Writes "(null)" in whole and ignores width and precision, as Core Foundation does. */
static bool append_null(CFMutableStringRef string)
{
    struct text text = text_of_ascii("(null)", 6);

    return string_append(string, &text);
}

static bool append_object(CFMutableStringRef string, const struct conversion *conversion, CFTypeRef object)
{
    if (object == NULL) {
        return append_null(string);
    }
    CFStringRef words = description_copy_text(object);
    bool is_done = words != NULL && append_string(string, conversion, words);
    object_release_if_any(words);
    return is_done;
}

/* The bytes of a C string up to the precision, without the first part of a UTF-8 sequence that the precision cuts. */
static size_t bytes_within(const char *bytes, int precision)
{
    if (precision == none) {
        return strlen(bytes);
    }
    size_t count = strnlen(bytes, (size_t)precision);
    if (count == 0 || count < (size_t)precision) {
        return count;
    }
    size_t start = count - 1;
    while (start > 0 && count - start < 4 && ((uint8_t)bytes[start] & 0xC0) == 0x80) {
        start--;
    }
    uint8_t first = (uint8_t)bytes[start];
    size_t needed = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    return count - start < needed ? start : count;
}

static bool append_bytes(CFMutableStringRef string, const struct conversion *conversion, const char *bytes)
{
    size_t count = bytes_within(bytes, conversion->precision);
    CFStringRef decoded = string_create_decoded(NULL, (const uint8_t *)bytes, count, kCFStringEncodingUTF8, false);

    if (decoded == NULL) {
        decoded = string_create_decoded(NULL, (const uint8_t *)bytes, count, kCFStringEncodingISOLatin1, false);
    }
    if (decoded == NULL) {
        return false;
    }
    struct text text = text_of(decoded, "CFStringCreateWithFormat");
    bool is_done = append_padded(string, conversion, &text);
    object_release(decoded);
    return is_done;
}

static bool append_wide(CFMutableStringRef string, const struct conversion *conversion, const wchar_t *characters)
{
    size_t count = conversion->precision != none ? wcsnlen(characters, (size_t)conversion->precision) : wcslen(characters);
    CFStringEncoding encoding = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? kCFStringEncodingUTF32BE : kCFStringEncodingUTF32LE;
    CFStringRef decoded = string_create_decoded(NULL, (const uint8_t *)characters, count * sizeof(wchar_t), encoding, false);

    if (decoded == NULL) {
        return append_string(string, conversion, CFSTR("(invalid)"));
    }
    struct text text = text_of(decoded, "CFStringCreateWithFormat");
    bool is_done = append_padded(string, conversion, &text);
    object_release(decoded);
    return is_done;
}

static bool append_units(CFMutableStringRef string, const struct conversion *conversion, const UniChar *units)
{
    CFIndex length = 0;

    while ((conversion->precision == none || length < conversion->precision) && units[length] != 0) {
        length++;
    }
    struct text text = text_of_units(units, length);
    return append_padded(string, conversion, &text);
}

static bool append_text(CFMutableStringRef string, const struct conversion *conversion, const void *pointer)
{
    if (pointer == NULL) {
        return append_null(string);
    }
    switch (conversion->kind) {
    case kind_units:
        return append_units(string, conversion, pointer);
    case kind_wide:
        return append_wide(string, conversion, pointer);
    default:
        return append_bytes(string, conversion, pointer);
    }
}

static bool append_argument(CFMutableStringRef string, const struct conversion *conversion, const struct argument *argument)
{
    const void *pointer = argument->value.pointer;

    switch (conversion->letter) {
    case '@':
        return append_object(string, conversion, pointer);
    case 'p':
        return append_pointer(string, conversion, pointer);
    case 'n':
        return true;
    case 'c':
    case 'C':
        return append_characters(string, conversion, argument->value.integer);
    case 's':
    case 'S':
        return append_text(string, conversion, pointer);
    default:
        return append_number(string, conversion, argument);
    }
}

/* Adds units of the format itself. */
static bool append_literal(CFMutableStringRef string, const struct text *format, CFIndex start, CFIndex end)
{
    while (start < end) {
        UniChar units[64];
        CFIndex count = end - start < 64 ? end - start : 64;

        text_copy_units(format, CFRangeMake(start, count), units);
        struct text text = text_of_units(units, count);
        if (!string_append(string, &text)) {
            return false;
        }
        start += count;
    }
    return true;
}

static bool append_conversion(CFMutableStringRef string, const struct text *format, struct conversion *conversion,
                              const struct argument *arguments)
{
    if (conversion->letter == '%') {
        return string_append_repeated(string, '%', 1);
    }
    const struct argument *argument = &arguments[conversion->argument];
    if (!fits(argument->kind, conversion->kind)) {
        return append_literal(string, format, conversion->start, conversion->end);
    }
    settle_amounts(conversion, arguments);
    return append_argument(string, conversion, argument);
}

static bool append_all(CFMutableStringRef string, const struct text *format, const struct argument *arguments)
{
    struct format_reader reader = {.format = format};
    struct conversion conversion;
    CFIndex copied = 0;

    while (conversion_next(&reader, &conversion)) {
        if (!append_literal(string, format, copied, conversion.start) || !append_conversion(string, format, &conversion, arguments)) {
            return false;
        }
        copied = conversion.end;
    }
    return append_literal(string, format, copied, format->length);
}

bool format_append(CFMutableStringRef string, const struct text *format, va_list list)
{
    struct argument arguments[arguments_max] = {{.kind = kind_unused}};
    int count = learn_arguments(format, arguments);

    for (int i = 0; i < count; i++) {
        switch (arguments[i].kind) {
        case kind_int:
            arguments[i].value.integer = va_arg(list, int);
            break;
        case kind_long_long:
            arguments[i].value.integer = va_arg(list, long long);
            break;
        case kind_intmax:
            arguments[i].value.integer = va_arg(list, intmax_t);
            break;
        case kind_size:
            arguments[i].value.integer = (intmax_t)va_arg(list, size_t);
            break;
        case kind_ptrdiff:
            arguments[i].value.integer = va_arg(list, ptrdiff_t);
            break;
        case kind_double:
            arguments[i].value.floating = va_arg(list, double);
            break;
        case kind_long_double:
            arguments[i].value.floating = va_arg(list, long double);
            break;
        case kind_pointer:
        case kind_object:
        case kind_bytes:
        case kind_units:
        case kind_wide:
            arguments[i].value.pointer = va_arg(list, const void *);
            break;
        case kind_unused: /* no conversion uses it: of the size that most have */
        case kind_long:
            arguments[i].value.integer = va_arg(list, long);
            break;
        }
    }
    return append_all(string, format, arguments);
}
