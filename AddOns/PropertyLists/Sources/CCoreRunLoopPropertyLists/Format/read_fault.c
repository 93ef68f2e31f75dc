/* SPDX-License-Identifier: Apache-2.0 */
/* Why bytes could not be read (read_fault.h). */
#include "Format/read_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill_in(struct read_fault *fault, const char *format, va_list arguments)
{
    (void)vsnprintf(fault->words, sizeof fault->words, format, arguments);
}

bool read_fault_set(struct read_fault *fault, const char *format, ...)
{
    va_list arguments;

    if (fault->words[0] == '\0') {
        va_start(arguments, format);
        fill_in(fault, format, arguments);
        va_end(arguments);
    }
    return false;
}

bool read_fault_set_no_memory(struct read_fault *fault)
{
    return read_fault_set(fault, "There is no memory");
}

/* A line ends with a line feed, a carriage return, or both. */
static size_t line_of(const uint8_t *start, const uint8_t *at)
{
    size_t line = 1;

    for (const uint8_t *byte = start; byte < at; byte++) {
        line += *byte == '\n' || (*byte == '\r' && (byte + 1 == at || byte[1] != '\n'));
    }
    return line;
}

bool read_fault_set_at(struct read_fault *fault, const uint8_t *start, const uint8_t *at, const char *format, ...)
{
    va_list arguments;
    size_t length;

    if (fault->words[0] == '\0') {
        va_start(arguments, format);
        fill_in(fault, format, arguments);
        va_end(arguments);
        length = strlen(fault->words);
        (void)snprintf(fault->words + length, sizeof fault->words - length, " on line %zu", line_of(start, at));
    }
    return false;
}
