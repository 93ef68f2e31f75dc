/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats: printf's conversions and %@, written into a string.
 *
 * A format cannot do harm by itself: what is not a conversion is copied as it stands, arguments by position may come in any order, and %n
 * writes nothing. Arguments that do not have the types that the format says are the caller's mistake, as with printf.
 */
#ifndef CRL_RUNTIME_FORMAT_H
#define CRL_RUNTIME_FORMAT_H

#include "Runtime/link_names.h"

#include <stdarg.h>
#include <stdbool.h>

#include "Runtime/Text/text.h"

/* Adds the formatted text to a mutable string. False if there is no memory; then a part may have been added. */
bool format_append(CFMutableStringRef string, const struct text *format, va_list arguments);

#endif
