/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodings: bytes to characters and back, for every encoding that CFString.h names. Pure: no allocation, no state.
 *
 * Bytes that come from outside are not trusted: overlong and cut sequences, surrogates in UTF-8 and UTF-32, and numbers above U+10FFFF are
 * invalid. UTF-16 is passed on unit by unit, unpaired surrogates included, because strings may hold them.
 */
#ifndef CRL_RUNTIME_ENCODING_H
#define CRL_RUNTIME_ENCODING_H

#include "Runtime/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CoreFoundation/CFString.h"

enum { decoder_at_end = -1, decoder_invalid = -2, encoding_bytes_max = 6 };

struct decoder {
    const uint8_t *next;
    const uint8_t *end;
    CFStringEncoding encoding; /* one with a stated byte order */
};

bool encoding_is_known(CFStringEncoding encoding);

/* Whether every byte below 128 stands for itself. */
bool encoding_extends_ascii(CFStringEncoding encoding);

/* Whether a surrogate pair is written as one character; otherwise each unit is written for itself. */
bool encoding_joins_pairs(CFStringEncoding encoding);

/* The most bytes that one UTF-16 unit may need; 0 for an unknown encoding. */
CFIndex encoding_bytes_per_unit(CFStringEncoding encoding);

/* Sets a decoder to the first byte behind a byte order mark. False for an unknown encoding. */
bool decoder_start(struct decoder *decoder, const uint8_t *bytes, size_t count, CFStringEncoding encoding, bool is_external);

/* The next character, or UTF-16 unit, or decoder_at_end, or decoder_invalid. */
int32_t decoder_next(struct decoder *decoder);

/* Writes a character, or a single UTF-16 unit; 0 when the encoding does not have it. Known encodings only. */
size_t encoding_write(CFStringEncoding encoding, uint32_t character, uint8_t ret_bytes[encoding_bytes_max]);

/* Writes the byte order mark that stands before text for the outside; 0 when the encoding has none. */
size_t encoding_write_mark(CFStringEncoding encoding, uint8_t ret_bytes[encoding_bytes_max]);

#endif
