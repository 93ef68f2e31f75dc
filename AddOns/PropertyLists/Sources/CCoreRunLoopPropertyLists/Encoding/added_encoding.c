/* SPDX-License-Identifier: Apache-2.0 */
/* Converts by the C library, and installs itself (added_encoding.h). */
#include "Encoding/added_encoding.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "Encoding/converter.h"
#include "Encoding/nextstep.h"

enum { piece_size = 512 };

static const size_t conversion_failed = (size_t)-1;

CFIndex added_encoding_bytes_per_unit(CFStringEncoding encoding)
{
    const struct encoding_row *row = encoding_find(encoding);
    bool is_ours = row && row->bytes_per_unit != 0 && (encoding == kCFStringEncodingNextStepLatin || converter_exists(row));

    return is_ours ? row->bytes_per_unit : 0;
}

/* ---- bytes to units ---- */

/* Units that grow as the C library asks for room. */
struct unit_buffer {
    UniChar *units;
    size_t capacity;
    size_t used;
};

static bool grow_units(struct unit_buffer *buffer)
{
    size_t capacity = buffer->capacity * 2;
    UniChar *units = capacity <= SIZE_MAX / 4 ? realloc(buffer->units, capacity * sizeof *units) : NULL;

    if (units) {
        buffer->units = units;
        buffer->capacity = capacity;
    }
    return units != NULL;
}

/* Converts all that is left, and with NULL what the converter holds back. */
static bool convert_into(iconv_t converter, char **bytes, size_t *left, struct unit_buffer *buffer)
{
    for (;;) {
        char *place = (char *)(buffer->units + buffer->used);
        size_t room = (buffer->capacity - buffer->used) * sizeof *buffer->units;
        size_t result = iconv(converter, bytes, left, &place, &room);

        buffer->used = buffer->capacity - room / sizeof *buffer->units;
        if (result != conversion_failed) {
            return true;
        }
        if (errno != E2BIG || !grow_units(buffer)) {
            return false;
        }
    }
}

static bool decode_by_library(const struct encoding_row *row, const UInt8 *bytes, CFIndex count, struct unit_buffer *buffer)
{
    iconv_t converter = converter_take(row, converter_decodes);
    char *next = (char *)(uintptr_t)bytes;
    size_t left = (size_t)count;

    if (converter == (iconv_t)-1) {
        return false;
    }
    bool is_valid = convert_into(converter, &next, &left, buffer) && left == 0 && convert_into(converter, NULL, NULL, buffer);
    converter_give_back(row, converter_decodes, converter);
    return is_valid;
}

CFIndex added_encoding_decode(CFStringEncoding encoding, const UInt8 *bytes, CFIndex count, UniChar **ret_units)
{
    const struct encoding_row *row = encoding_find(encoding);
    struct unit_buffer buffer = {.capacity = (size_t)count + 16};

    buffer.units = malloc(buffer.capacity * sizeof *buffer.units);
    *ret_units = buffer.units;
    if (!buffer.units) {
        return kCFNotFound;
    }
    bool is_valid;
    if (encoding == kCFStringEncodingNextStepLatin) {
        is_valid = nextstep_decode(bytes, count, buffer.units);
        buffer.used = (size_t)count;
    } else {
        is_valid = decode_by_library(row, bytes, count, &buffer);
    }
    if (!is_valid) {
        free(buffer.units);
        return kCFNotFound;
    }
    *ret_units = buffer.units;
    return (CFIndex)buffer.used;
}

/* ---- units to bytes ---- */

/* Where bytes go: without a buffer, and behind its end, they are only counted. */
struct byte_sink {
    UInt8 *buffer;
    size_t size;
    size_t used;
};

/* A conversion under way. */
struct encoding_run {
    iconv_t converter;
    struct byte_sink sink;
    UInt8 loss_byte;
    const UniChar *next;
    const UniChar *end;
};

static void put_bytes(struct byte_sink *sink, const void *bytes, size_t count)
{
    if (sink->buffer && count != 0 && sink->used + count <= sink->size) {
        memcpy(sink->buffer + sink->used, bytes, count);
    }
    sink->used += count;
}

static bool is_over(const struct byte_sink *sink)
{
    return sink->buffer && sink->used > sink->size;
}

enum piece_end { piece_is_full, piece_is_whole, piece_has_foreign };

/* Converts a piece, or with `is_end` what the converter holds back and what leads to its first state. */
static enum piece_end convert_piece(struct encoding_run *run, bool is_end)
{
    char piece[piece_size];
    char *place = piece;
    size_t room = sizeof piece;
    char *next = (char *)(uintptr_t)run->next;
    size_t left = (size_t)(run->end - run->next) * sizeof *run->next;
    size_t result = is_end ? iconv(run->converter, NULL, NULL, &place, &room) : iconv(run->converter, &next, &left, &place, &room);
    int error = errno;

    put_bytes(&run->sink, piece, sizeof piece - room);
    if (!is_end) {
        run->next = run->end - left / sizeof *run->next;
    }
    if (result != conversion_failed) {
        return piece_is_whole;
    }
    return error == E2BIG ? piece_is_full : piece_has_foreign;
}

/* Goes on over pieces until all is converted, a character is foreign, or there are more bytes than room. */
static enum piece_end convert_pieces(struct encoding_run *run, bool is_end)
{
    enum piece_end end = piece_is_full;

    while (end == piece_is_full && !is_over(&run->sink)) {
        end = convert_piece(run, is_end);
    }
    return end;
}

static bool is_pair(const UniChar *units, const UniChar *end)
{
    return end - units > 1 && (units[0] & 0xFC00) == 0xD800 && (units[1] & 0xFC00) == 0xDC00;
}

/* Converts so many units, with the loss byte for what the encoding lacks, or up to it. False: there are more bytes than room. */
static bool run_encoding(struct encoding_run *run, CFIndex count)
{
    run->end = run->next + count;
    while (convert_pieces(run, false) == piece_has_foreign && run->loss_byte != 0 && !is_over(&run->sink)) {
        (void)convert_pieces(run, true);
        put_bytes(&run->sink, &run->loss_byte, 1);
        run->next += is_pair(run->next, run->end) ? 2 : 1;
    }
    (void)convert_pieces(run, true);
    return !is_over(&run->sink);
}

/* Of no units it makes no bytes, not even those with which an encoding begins. */
static CFIndex encode_by_library(const struct encoding_row *row, const UniChar *units, CFIndex count, UInt8 loss_byte,
                                 struct byte_sink *sink)
{
    const struct encoding_run first = {count != 0 ? converter_take(row, converter_encodes) : (iconv_t)-1, *sink, loss_byte, units, units};
    struct encoding_run run = first;

    if (run.converter == (iconv_t)-1) {
        return 0;
    }
    if (!run_encoding(&run, count)) {
        /* How many units fit is searched for: what leads to a character's set and back makes it hard to say before. */
        CFIndex low = 0;

        for (CFIndex high = run.next - units; low < high;) {
            CFIndex middle = (low + high + 1) / 2;
            bool splits = middle < count && is_pair(units + middle - 1, units + count);

            run = first;
            (void)iconv(run.converter, NULL, NULL, NULL, NULL);
            if (run_encoding(&run, middle + splits)) {
                low = middle + splits;
            } else {
                high = middle - 1;
            }
        }
        run = first;
        (void)iconv(run.converter, NULL, NULL, NULL, NULL);
        (void)(low != 0 && run_encoding(&run, low));
    }
    converter_give_back(row, converter_encodes, run.converter);
    sink->used = run.sink.used;
    return run.next - units;
}

static CFIndex encode_nextstep(const UniChar *units, CFIndex count, UInt8 loss_byte, struct byte_sink *sink)
{
    CFIndex index = 0;

    while (index < count) {
        int found = nextstep_byte(units[index]);
        UInt8 byte = found >= 0 ? (UInt8)found : loss_byte;

        if ((found < 0 && loss_byte == 0) || (sink->buffer && sink->used == sink->size)) {
            break;
        }
        put_bytes(sink, &byte, 1);
        index += is_pair(units + index, units + count) ? 2 : 1;
    }
    return index;
}

CFIndex added_encoding_encode(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                              CFIndex *ret_used)
{
    const struct encoding_row *row = encoding_find(encoding);
    struct byte_sink sink = {buffer, buffer ? (size_t)size : 0, 0};
    CFIndex converted = encoding == kCFStringEncodingNextStepLatin ? encode_nextstep(units, count, loss_byte, &sink)
                                                                   : encode_by_library(row, units, count, loss_byte, &sink);

    *ret_used = (CFIndex)sink.used;
    return converted;
}

/* ---- installing ---- */

static CFStringRef name_of(CFStringEncoding encoding)
{
    const struct encoding_row *row = encoding_find(encoding);

    return row ? row->name : NULL;
}

static __attribute__((constructor)) void install_encodings(void)
{
    static const CRLStringEncodings encodings = {
        .bytesPerUnit = added_encoding_bytes_per_unit, .decode = added_encoding_decode, .encode = added_encoding_encode, .name = name_of};

    CRLStringSetEncodings(&encodings);
}
