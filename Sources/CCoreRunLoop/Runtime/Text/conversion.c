/* SPDX-License-Identifier: Apache-2.0 */
#include "Runtime/Text/conversion.h"

#include <limits.h>
#include <string.h>

static UniChar peek(const struct format_reader *reader)
{
    return reader->position < reader->format->length ? text_unit(reader->format, reader->position) : 0;
}

/* A decimal number, cut off at INT_MAX; none when there is no digit. */
static int read_number(struct format_reader *reader)
{
    int number = none;

    for (UniChar unit = peek(reader); unit >= '0' && unit <= '9'; unit = peek(reader)) {
        int digit = unit - '0';

        number = number == none ? 0 : number;
        number = number > (INT_MAX - digit) / 10 ? INT_MAX : number * 10 + digit;
        reader->position++;
    }
    return number;
}

/* `12$`: the index of the argument, or none with nothing read. */
static int read_position(struct format_reader *reader)
{
    CFIndex start = reader->position;
    int number = read_number(reader);

    if (number > 0 && peek(reader) == '$') {
        reader->position++;
        return number - 1;
    }
    reader->position = start;
    return none;
}

static void read_flags(struct format_reader *reader, struct conversion *conversion)
{
    for (;; reader->position++) {
        UniChar unit = peek(reader);
        const char *flag = unit != 0 && unit < 0x80 ? strchr(flag_units, unit) : NULL;

        if (flag != NULL) {
            conversion->has_flag[flag - flag_units] = true;
        } else if (unit != '\'') { /* grouping: the plain locale has none */
            return;
        }
    }
}

/* `*` or `*2$` or a number. */
static int read_amount(struct format_reader *reader, int *ret_argument)
{
    if (peek(reader) != '*') {
        return read_number(reader);
    }
    reader->position++;
    int position = read_position(reader);
    *ret_argument = position != none ? position : reader->next_argument++;
    return none;
}

static enum argument_length read_length(struct format_reader *reader)
{
    UniChar unit = peek(reader);
    static const char letters[] = "hlqjztL";
    static const enum argument_length lengths[] = {length_short, length_long,    length_long_long,  length_intmax,
                                                   length_size,  length_ptrdiff, length_long_double};
    const char *letter = unit != 0 && unit < 0x80 ? strchr(letters, unit) : NULL;

    if (letter == NULL) {
        return length_none;
    }
    reader->position++;
    enum argument_length length = lengths[letter - letters];
    if (peek(reader) == unit && (unit == 'h' || unit == 'l')) {
        reader->position++;
        return unit == 'h' ? length_char : length_long_long;
    }
    return length;
}

static enum argument_kind kind_of_integer(enum argument_length length)
{
    switch (length) {
    case length_long:
        return kind_long;
    case length_long_long:
    case length_long_double:
        return kind_long_long;
    case length_intmax:
        return kind_intmax;
    case length_size:
        return kind_size;
    case length_ptrdiff:
        return kind_ptrdiff;
    default:
        return kind_int;
    }
}

static enum argument_kind kind_of(char letter, enum argument_length length)
{
    switch (letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        return kind_of_integer(length);
    case 'c':
    case 'C':
        return kind_int;
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        return length == length_long_double ? kind_long_double : kind_double;
    case '@':
        return kind_object;
    case 's':
        return length == length_long ? kind_wide : kind_bytes;
    case 'S':
        return kind_units;
    case 'p':
    case 'n':
        return kind_pointer;
    default:
        return kind_unused;
    }
}

/* The capital forms of whole-number conversions are those of older systems, and mean the same. */
static char plain_letter(UniChar unit)
{
    switch (unit) {
    case 'D':
        return 'd';
    case 'U':
        return 'u';
    case 'O':
        return 'o';
    default:
        return unit < 0x80 ? (char)unit : '\0';
    }
}

/* Reads what follows a '%'. False when it is not a conversion. */
static bool read_conversion(struct format_reader *reader, struct conversion *conversion)
{
    conversion->argument = read_position(reader);
    read_flags(reader, conversion);
    conversion->width = read_amount(reader, &conversion->width_argument);
    if (peek(reader) == '.') {
        reader->position++;
        conversion->precision = read_amount(reader, &conversion->precision_argument);
        if (conversion->precision == none && conversion->precision_argument == none) {
            conversion->precision = 0;
        }
    }
    conversion->length = read_length(reader);
    conversion->letter = plain_letter(peek(reader));
    conversion->kind = kind_of(conversion->letter, conversion->length);
    if (conversion->kind == kind_unused && conversion->letter != '%') {
        return false;
    }
    reader->position++;
    if (conversion->letter == '%') {
        conversion->argument = none;
    } else if (conversion->argument == none) {
        conversion->argument = reader->next_argument++;
    }
    return conversion->argument < arguments_max && conversion->width_argument < arguments_max &&
           conversion->precision_argument < arguments_max;
}

bool conversion_next(struct format_reader *reader, struct conversion *ret_conversion)
{
    while (reader->position < reader->format->length) {
        if (peek(reader) != '%') {
            reader->position++;
            continue;
        }
        struct format_reader before = *reader;
        *ret_conversion =
            (struct conversion){.start = reader->position, .width_argument = none, .precision_argument = none, .precision = none};
        reader->position++;
        if (read_conversion(reader, ret_conversion)) {
            ret_conversion->end = reader->position;
            return true;
        }
        *reader = before;
        reader->position++;
    }
    return false;
}
