/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as XML has them (number_text.h). */
#include "Text/number_text.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the locale in which a number has a point ---- */

static locale_t plain_locale;

static void make_plain_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a static object of the C library; it is kept */
}

/* Returns the thread's locale, for uselocale. */
static locale_t use_plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, make_plain_locale);
    return uselocale(plain_locale);
}

/* ---- integers ---- */

static int digit_value(uint8_t character)
{
    return character >= '0' && character <= '9'   ? character - '0'
           : character >= 'a' && character <= 'f' ? character - 'a' + 10
           : character >= 'A' && character <= 'F' ? character - 'A' + 10
                                                  : -1;
}

static enum integer_fault read_magnitude(const uint8_t *text, const uint8_t *end, uint64_t *ret_magnitude)
{
    bool is_hexadecimal = end - text >= 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
    unsigned base = is_hexadecimal ? 16 : 10;
    const uint8_t *digits = is_hexadecimal ? text + 2 : text;
    uint64_t magnitude = 0;

    for (const uint8_t *at = digits; at < end; at++) {
        int digit = digit_value(*at);

        if (digit < 0 || (unsigned)digit >= base) {
            return integer_is_odd;
        }
        if (__builtin_mul_overflow(magnitude, base, &magnitude) || __builtin_add_overflow(magnitude, (uint64_t)digit, &magnitude)) {
            return integer_is_too_large;
        }
    }
    *ret_magnitude = magnitude;
    return digits < end ? integer_is_read : integer_is_empty;
}

enum integer_fault integer_read(const uint8_t *text, size_t length, int64_t *ret_integer, double *ret_double, bool *ret_is_double)
{
    const uint8_t *end = text + length;
    bool has_sign = length > 0 && (*text == '-' || *text == '+');
    bool is_negative = has_sign && *text == '-';
    uint64_t magnitude;
    enum integer_fault fault;

    *ret_is_double = false;
    text += has_sign;
    while (has_sign && text < end && (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r')) {
        text++;
    }
    fault = read_magnitude(text, end, &magnitude);
    if (fault != integer_is_read) {
        return fault;
    }
    if (is_negative) {
        *ret_integer = (int64_t)(0 - magnitude);
        return magnitude <= (uint64_t)INT64_MAX + 1 ? integer_is_read : integer_is_too_large;
    }
    *ret_integer = (int64_t)magnitude;
    *ret_is_double = magnitude > INT64_MAX;
    *ret_double = (double)magnitude;
    return integer_is_read;
}

size_t integer_write(char text[number_text_size], int64_t integer)
{
    uint64_t magnitude = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    char digits[20];
    size_t count = 0;
    size_t length = 0;

    do {
        digits[count++] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (integer < 0) {
        text[length++] = '-';
    }
    while (count > 0) {
        text[length++] = digits[--count];
    }
    return length;
}

/* ---- reals ---- */

static bool is_word(const uint8_t *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp((const char *)text, word, length) == 0;
}

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* Digits with a point among them, without a sign. */
static bool is_decimal(const uint8_t *text, const uint8_t *end)
{
    const uint8_t *at = skip_digits(text, end);
    size_t count = (size_t)(at - text);

    if (at < end && *at == '.') {
        const uint8_t *fraction = at + 1;

        at = skip_digits(fraction, end);
        count += (size_t)(at - fraction);
    }
    if (count > 0 && at < end && (*at | 0x20) == 'e') {
        const uint8_t *exponent = at + 1;

        exponent += exponent < end && (*exponent == '-' || *exponent == '+');
        at = skip_digits(exponent, end);
        count = (size_t)(at - exponent);
    }
    return count > 0 && at == end;
}

/*
 * A number of at most 15 digits without an exponent is a whole number divided by a power of ten: both are exact, so the quotient is right.
 */
static bool read_short_decimal(const uint8_t *text, const uint8_t *end, double *ret_real)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t behind_point = 0;
    bool has_point = false;

    if (end - text > 16) {
        return false;
    }
    for (const uint8_t *at = text; at < end; at++) {
        if (*at == '.') {
            has_point = true;
        } else if (*at >= '0' && *at <= '9') {
            digits = digits * 10 + (uint64_t)(*at - '0');
            behind_point += has_point;
        } else {
            return false;
        }
    }
    if (behind_point > 15 || digits >= UINT64_C(1000000000000000)) {
        return false;
    }
    *ret_real = (double)digits / powers[behind_point];
    return true;
}

bool real_read(const uint8_t *text, size_t length, double *ret_real)
{
    const uint8_t *end = text + length;
    bool has_sign = length > 0 && (*text == '-' || *text == '+');
    bool is_negative = has_sign && *text == '-';
    locale_t locale;

    if (is_word(text, length, "nan")) {
        *ret_real = (double)NAN;
        return true;
    }
    text += has_sign;
    length -= has_sign;
    if (is_word(text, length, "inf") || is_word(text, length, "infinity")) {
        *ret_real = is_negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (!is_decimal(text, end)) {
        return false;
    }
    if (!read_short_decimal(text, end, ret_real)) {
        locale = use_plain_locale();
        *ret_real = strtod((const char *)text, NULL);
        (void)uselocale(locale);
    }
    *ret_real = is_negative ? -*ret_real : *ret_real;
    return true;
}

size_t real_write(char text[number_text_size], double real)
{
    locale_t locale;

    if (isnan(real)) {
        strcpy(text, "nan");
    } else if (isinf(real)) {
        strcpy(text, real < 0 ? "-infinity" : "+infinity");
    } else if (real == 0) {
        strcpy(text, "0.0");
    } else {
        locale = use_plain_locale();
        (void)snprintf(text, number_text_size, "%.17g", real);
        (void)uselocale(locale);
    }
    return strlen(text);
}
