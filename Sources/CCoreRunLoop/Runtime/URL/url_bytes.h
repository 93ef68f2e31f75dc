/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of URLs: which may stand in which part, escapes, and the form in which a URL is kept. Pure: no allocation, no state.
 */
#ifndef CRL_RUNTIME_URL_BYTES_H
#define CRL_RUNTIME_URL_BYTES_H

#include "Runtime/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CoreFoundation/CFBase.h"

/* Sets of bytes that need no escape. */
enum url_set {
    url_set_host, /* also in user names and ports: RFC 3986's unreserved bytes, sub-delimiters, and colons */
    url_set_path, /* besides, '@' and '/' */
    url_set_query, /* besides, '?' */
    url_set_file, /* those of a path but ';', which begins parameters for older readers */
    url_set_any, /* whatever may stand in some part, without brackets, '#' and '%' */
};

enum { url_escape_length = 3 };

bool url_set_has(enum url_set set, UniChar unit);

/* The value of a hexadecimal digit, or -1. */
int url_digit(UniChar unit);

/* Writes `%` and two digits, and returns how many bytes these are. */
size_t url_write_escape(uint8_t byte, char *ret_bytes);

/*
 * Writes bytes as a URL keeps them: only what RFC 3986 allows where it stands. Brackets outside of a host, and at signs in a user name, are
 * escaped; other bytes that are not allowed are escaped, too, or refused if `is_strict`. `ret_bytes` has room for three times as many.
 * Returns how many were written, or kCFNotFound.
 */
CFIndex url_write_canonical(const uint8_t *bytes, CFIndex count, bool is_strict, char *ret_bytes);

/* Replaces escapes by the bytes that they stand for. `ret_bytes` has room for `count`; returns how many were written. */
CFIndex url_write_unescaped(const char *bytes, CFIndex count, uint8_t *ret_bytes);

#endif
