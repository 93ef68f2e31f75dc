/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as XML has them, in no locale. Any thread. */
#ifndef CRL_PLIST_NUMBER_TEXT_H
#define CRL_PLIST_NUMBER_TEXT_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { number_text_size = 64 };

enum integer_fault { integer_is_read, integer_is_empty, integer_is_odd, integer_is_too_large };

/*
 * Reads a whole text: a sign with blanks behind it, and decimal digits or 0x with others. A magnitude beyond 64 bits with a sign, but not
 * beyond those without, is a double.
 */
enum integer_fault integer_read(const uint8_t *text, size_t length, int64_t *ret_integer, double *ret_double, bool *ret_is_double);
/* Reads a whole text, behind which another byte lies that is no part of a number. */
bool real_read(const uint8_t *text, size_t length, double *ret_real);
size_t integer_write(char text[number_text_size], int64_t integer);
size_t real_write(char text[number_text_size], double real);

#endif
