/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of CFString.h that read the number at the beginning of a text. Threads as for CFString.c. */
#include "CoreFoundation/CFString.h"

#include <stdlib.h>

#include "Runtime/Text/plain_locale.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/Text/text.h"

static bool is_space(UniChar unit)
{
    return unit == ' ' || (unit >= '\t' && unit <= '\r');
}

static CFIndex skip_spaces(const struct text *text)
{
    CFIndex index = 0;

    while (index < text->length && is_space(text_unit(text, index))) {
        index++;
    }
    return index;
}

static CFIndex skip_digits(const struct text *text, CFIndex index)
{
    while (index < text->length && text_unit(text, index) >= '0' && text_unit(text, index) <= '9') {
        index++;
    }
    return index;
}

static CFIndex skip_sign(const struct text *text, CFIndex index)
{
    return index < text->length && (text_unit(text, index) == '-' || text_unit(text, index) == '+') ? index + 1 : index;
}

SInt32 CFStringGetIntValue(CFStringRef text)
{
    struct text view = text_of(text, "CFStringGetIntValue");
    CFIndex start = skip_spaces(&view);
    CFIndex index = skip_sign(&view, start);
    bool is_negative = index > start && text_unit(&view, start) == '-';
    CFIndex end = skip_digits(&view, index);
    int64_t value = 0;

    for (; index < end && value <= INT32_MAX; index++) {
        value = value * 10 + (text_unit(&view, index) - '0');
    }
    value = is_negative ? -value : value;
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (SInt32)value;
}

/* Where the decimal number that starts at `start` ends. */
static CFIndex end_of_decimal(const struct text *text, CFIndex start)
{
    CFIndex integer = skip_sign(text, start);
    CFIndex end = skip_digits(text, integer);
    CFIndex digits = end - integer;

    if (end < text->length && text_unit(text, end) == '.') {
        CFIndex fraction = end + 1;

        end = skip_digits(text, fraction);
        digits += end - fraction;
    }
    if (digits > 0 && end < text->length && (text_unit(text, end) | 0x20) == 'e') {
        CFIndex exponent = skip_sign(text, end + 1);
        CFIndex behind = skip_digits(text, exponent);

        end = behind > exponent ? behind : end;
    }
    return digits > 0 ? end : start;
}

double CFStringGetDoubleValue(CFStringRef text)
{
    struct text view = text_of(text, "CFStringGetDoubleValue");
    CFIndex start = skip_spaces(&view);
    CFIndex end = end_of_decimal(&view, start);
    CFStringRef number = end > start ? string_create(kCFAllocatorSystemDefault, &view, CFRangeMake(start, end - start)) : NULL;

    if (number == NULL) {
        return 0;
    }
    locale_t previous = uselocale(plain_locale());
    double value = strtod(CFStringGetCStringPtr(number, kCFStringEncodingASCII), NULL);
    uselocale(previous);
    CFRelease(number);
    return value;
}
