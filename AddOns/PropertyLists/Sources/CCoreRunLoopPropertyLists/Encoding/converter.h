/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's converters (iconv). One of each kind is kept for the next call, so that most calls open none. They are opened and closed
 * under the fork lock, because the C library takes locks then that the child of a fork would find taken. Any thread.
 */
#ifndef CRL_PLIST_CONVERTER_H
#define CRL_PLIST_CONVERTER_H

#include "plist_link_names.h"

#include <iconv.h>

#include "Encoding/encoding_table.h"

enum converter_way { converter_decodes, converter_encodes };

/* Whether the C library has the encoding: its files may be missing, as in a static program. */
bool converter_exists(const struct encoding_row *row);
/* (iconv_t)-1: there is none, or no memory. It is in its first state. */
iconv_t converter_take(const struct encoding_row *row, enum converter_way way);
void converter_give_back(const struct encoding_row *row, enum converter_way way, iconv_t converter);

#if defined(CRL_TESTING)
/* Gives back what the process keeps until it ends. */
void converters_give_back(void);
#endif

#endif
