/* SPDX-License-Identifier: Apache-2.0 */
/* Dates as XML has them, 2001-02-03T04:05:06Z, in the Gregorian calendar of all times. Any thread. */
#ifndef CRL_PLIST_DATE_TEXT_H
#define CRL_PLIST_DATE_TEXT_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { date_text_size = 64 };

/* Reads a whole text as seconds since 2001. A month has 31 days here; those that it lacks are of the next one. */
bool date_read(const uint8_t *text, size_t length, double *ret_seconds);
/* Returns the length, or 0 if the date is no number or its year needs more than 32 bits. A part of a second is left out. */
size_t date_write(char text[date_text_size], double seconds);

#endif
