/* SPDX-License-Identifier: Apache-2.0 */
/* The conversions in a format, one after the other: `%`, a position, flags, width, precision, length and letter. */
#ifndef CRL_RUNTIME_CONVERSION_H
#define CRL_RUNTIME_CONVERSION_H

#include "Runtime/link_names.h"

#include <stdbool.h>

#include "Runtime/Text/text.h"

/* An amount or a place that the format does not give is `none`. */
enum { arguments_max = 128, flags_max = 5, none = -1 };

enum argument_kind {
    kind_unused,
    kind_int,
    kind_long,
    kind_long_long,
    kind_intmax,
    kind_size,
    kind_ptrdiff,
    kind_double,
    kind_long_double,
    kind_pointer, /* of any kind, and those behind it of one kind */
    kind_object,
    kind_bytes,
    kind_units,
    kind_wide,
};

enum argument_length {
    length_none,
    length_char,
    length_short,
    length_long,
    length_long_long,
    length_intmax,
    length_size,
    length_ptrdiff,
    length_long_double
};

struct conversion {
    CFIndex start; /* of the '%' */
    CFIndex end; /* behind the last unit */
    bool has_flag[flags_max]; /* by enum conversion_flag */
    int width; /* or none; from argument `width_argument` if that is one */
    int precision;
    int width_argument; /* index, or none */
    int precision_argument;
    int argument; /* index, or none for %% */
    enum argument_length length;
    enum argument_kind kind;
    char letter;
};

enum conversion_flag { flag_left, flag_plus, flag_space, flag_alternate, flag_zero };
static const char flag_units[flags_max + 1] = "-+ #0"; /* as they are written, in the same order */

/* Begins with the format, and nothing else. */
struct format_reader {
    const struct text *format;
    CFIndex position;
    int next_argument; /* index of the one that a conversion without a position takes */
};

/* Goes on to the next conversion; false at the end of the format. What is not a conversion is skipped, and takes no argument. */
bool conversion_next(struct format_reader *reader, struct conversion *ret_conversion);

#endif
