/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what each encoding's bytes mean. The tables give the characters of bytes from 128 on; 0 marks a byte without a character.
 *
 * Any thread; nothing here has state.
 */
#include "Runtime/Text/encoding.h"

#include "Runtime/Text/text.h"

enum { table_mac_roman = 128, table_windows_latin1 = 32 };

/* clang-format off */
static const uint16_t mac_roman[table_mac_roman] = {
    0x00C4, 0x00C5, 0x00C7, 0x00C9, 0x00D1, 0x00D6, 0x00DC, 0x00E1, 0x00E0, 0x00E2, 0x00E4, 0x00E3, 0x00E5, 0x00E7, 0x00E9, 0x00E8,
    0x00EA, 0x00EB, 0x00ED, 0x00EC, 0x00EE, 0x00EF, 0x00F1, 0x00F3, 0x00F2, 0x00F4, 0x00F6, 0x00F5, 0x00FA, 0x00F9, 0x00FB, 0x00FC,
    0x2020, 0x00B0, 0x00A2, 0x00A3, 0x00A7, 0x2022, 0x00B6, 0x00DF, 0x00AE, 0x00A9, 0x2122, 0x00B4, 0x00A8, 0x2260, 0x00C6, 0x00D8,
    0x221E, 0x00B1, 0x2264, 0x2265, 0x00A5, 0x00B5, 0x2202, 0x2211, 0x220F, 0x03C0, 0x222B, 0x00AA, 0x00BA, 0x03A9, 0x00E6, 0x00F8,
    0x00BF, 0x00A1, 0x00AC, 0x221A, 0x0192, 0x2248, 0x2206, 0x00AB, 0x00BB, 0x2026, 0x00A0, 0x00C0, 0x00C3, 0x00D5, 0x0152, 0x0153,
    0x2013, 0x2014, 0x201C, 0x201D, 0x2018, 0x2019, 0x00F7, 0x25CA, 0x00FF, 0x0178, 0x2044, 0x20AC, 0x2039, 0x203A, 0xFB01, 0xFB02,
    0x2021, 0x00B7, 0x201A, 0x201E, 0x2030, 0x00C2, 0x00CA, 0x00C1, 0x00CB, 0x00C8, 0x00CD, 0x00CE, 0x00CF, 0x00CC, 0x00D3, 0x00D4,
    0xF8FF, 0x00D2, 0x00DA, 0x00DB, 0x00D9, 0x0131, 0x02C6, 0x02DC, 0x00AF, 0x02D8, 0x02D9, 0x02DA, 0x00B8, 0x02DD, 0x02DB, 0x02C7,
};

/* From 160 on the code page is ISO Latin 1. */
static const uint16_t windows_latin1[table_windows_latin1] = {
    0x20AC, 0x0000, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x0000, 0x017D, 0x0000,
    0x0000, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x0000, 0x017E, 0x0178,
};
/* clang-format on */

static const bool machine_is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

bool encoding_is_known(CFStringEncoding encoding)
{
    return encoding_bytes_per_unit(encoding) != 0;
}

bool encoding_extends_ascii(CFStringEncoding encoding)
{
    switch (encoding) {
    case kCFStringEncodingMacRoman:
    case kCFStringEncodingWindowsLatin1:
    case kCFStringEncodingISOLatin1:
    case kCFStringEncodingASCII:
    case kCFStringEncodingUTF8:
        return true;
    default:
        return false;
    }
}

bool encoding_joins_pairs(CFStringEncoding encoding)
{
    switch (encoding) {
    case kCFStringEncodingUTF8:
    case kCFStringEncodingUTF32:
    case kCFStringEncodingUTF32BE:
    case kCFStringEncodingUTF32LE:
        return true;
    default:
        return false;
    }
}

CFIndex encoding_bytes_per_unit(CFStringEncoding encoding)
{
    switch (encoding) {
    case kCFStringEncodingMacRoman:
    case kCFStringEncodingWindowsLatin1:
    case kCFStringEncodingISOLatin1:
    case kCFStringEncodingASCII:
        return 1;
    case kCFStringEncodingUTF16:
    case kCFStringEncodingUTF16BE:
    case kCFStringEncodingUTF16LE:
        return 2;
    case kCFStringEncodingUTF8:
        return 3;
    case kCFStringEncodingUTF32:
    case kCFStringEncodingUTF32BE:
    case kCFStringEncodingUTF32LE:
        return 4;
    case kCFStringEncodingNonLossyASCII:
        return 6;
    default:
        return 0;
    }
}

static bool skip_mark(struct decoder *decoder, const char *mark, size_t size)
{
    if ((size_t)(decoder->end - decoder->next) < size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (decoder->next[i] != (uint8_t)mark[i]) {
            return false;
        }
    }
    decoder->next += size;
    return true;
}

bool decoder_start(struct decoder *decoder, const uint8_t *bytes, size_t count, CFStringEncoding encoding, bool is_external)
{
    if (!encoding_is_known(encoding)) {
        return false;
    }
    *decoder = (struct decoder){.next = bytes, .end = count != 0 ? bytes + count : bytes, .encoding = encoding};
    if (encoding == kCFStringEncodingUTF8) {
        skip_mark(decoder, "\xEF\xBB\xBF", 3);
    } else if (encoding == kCFStringEncodingUTF16) {
        decoder->encoding = machine_is_big_endian ? kCFStringEncodingUTF16BE : kCFStringEncodingUTF16LE;
        if (is_external) {
            /* Without a mark, UTF-16 from outside has the more significant byte first (RFC 2781, 4.3). */
            decoder->encoding = kCFStringEncodingUTF16BE;
            if (!skip_mark(decoder, "\xFE\xFF", 2) && skip_mark(decoder, "\xFF\xFE", 2)) {
                decoder->encoding = kCFStringEncodingUTF16LE;
            }
        }
    } else if (encoding == kCFStringEncodingUTF32) {
        decoder->encoding = machine_is_big_endian ? kCFStringEncodingUTF32BE : kCFStringEncodingUTF32LE;
        if (is_external) {
            /* Without a mark, UTF-32 has the more significant byte first, too (Unicode, D101). */
            decoder->encoding = kCFStringEncodingUTF32BE;
            if (!skip_mark(decoder, "\0\0\xFE\xFF", 4) && skip_mark(decoder, "\xFF\xFE\0\0", 4)) {
                decoder->encoding = kCFStringEncodingUTF32LE;
            }
        }
    }
    return true;
}

static size_t bytes_left(const struct decoder *decoder)
{
    return (size_t)(decoder->end - decoder->next);
}

static int32_t next_utf8(struct decoder *decoder)
{
    uint8_t first = *decoder->next++;

    if (first < 0x80) {
        return first;
    }
    /* The second byte's range tells overlong forms, surrogates and numbers above U+10FFFF (Unicode, table 3-7). */
    uint8_t lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    size_t more = first >= 0xC2 && first < 0xE0 ? 1 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xF0 && first < 0xF5 ? 3 : 0;
    if (more == 0 || bytes_left(decoder) < more) {
        return decoder_invalid;
    }
    int32_t character = first & (0x3F >> more);
    for (size_t i = 0; i < more; i++) {
        uint8_t byte = *decoder->next++;

        if (byte < lowest || byte > highest) {
            return decoder_invalid;
        }
        lowest = 0x80;
        highest = 0xBF;
        character = (character << 6) | (byte & 0x3F);
    }
    return character;
}

static int32_t next_utf16(struct decoder *decoder, bool big_endian)
{
    if (bytes_left(decoder) < 2) {
        return decoder_at_end; /* half a unit is passed over, as the toolchain's library does */
    }
    const uint8_t *bytes = decoder->next;
    decoder->next += 2;
    return big_endian ? bytes[0] << 8 | bytes[1] : bytes[1] << 8 | bytes[0];
}

static int32_t next_utf32(struct decoder *decoder, bool big_endian)
{
    if (bytes_left(decoder) < 4) {
        return decoder_at_end; /* as half a UTF-16 unit */
    }
    uint32_t character = 0;
    for (int i = 0; i < 4; i++) {
        character = character << 8 | decoder->next[big_endian ? i : 3 - i];
    }
    decoder->next += 4;
    bool is_valid = character <= 0x10FFFF && !unit_is_high_surrogate(character) && !unit_is_low_surrogate(character);
    return is_valid ? (int32_t)character : decoder_invalid;
}

static int digit_value(uint8_t byte, int base)
{
    int value = byte >= '0' && byte <= '9'   ? byte - '0'
                : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                             : base;

    return value < base ? value : -1;
}

static int32_t next_digits(struct decoder *decoder, size_t count, int base)
{
    int32_t character = 0;

    if (bytes_left(decoder) < count) {
        return decoder_invalid;
    }
    for (size_t i = 0; i < count; i++) {
        int value = digit_value(*decoder->next++, base);

        if (value < 0) {
            return decoder_invalid;
        }
        character = character * base + value;
    }
    return character;
}

static int32_t next_escaped(struct decoder *decoder)
{
    uint8_t first = *decoder->next++;

    if (first >= 0x80) {
        return decoder_invalid;
    }
    if (first != '\\') {
        return first;
    }
    if (bytes_left(decoder) == 0) {
        return decoder_invalid;
    }
    if (*decoder->next == '\\') {
        return *decoder->next++;
    }
    if (*decoder->next == 'u') {
        decoder->next++;
        return next_digits(decoder, 4, 16);
    }
    int32_t character = next_digits(decoder, 3, 8);
    return character < 0x100 ? character : decoder_invalid;
}

static int32_t byte_in_windows_latin1(uint8_t byte)
{
    bool is_in_table = byte >= 0x80 && byte < 0xA0;
    int32_t character = is_in_table ? windows_latin1[byte - 0x80] : byte;

    return is_in_table && character == 0 ? decoder_invalid : character;
}

int32_t decoder_next(struct decoder *decoder)
{
    if (decoder->next == decoder->end) {
        return decoder_at_end;
    }
    switch (decoder->encoding) {
    case kCFStringEncodingUTF8:
        return next_utf8(decoder);
    case kCFStringEncodingASCII: /* programs that take bytes from elsewhere for ASCII do not expect NULL: Apple reads Latin 1 too */
    case kCFStringEncodingISOLatin1:
        return *decoder->next++;
    case kCFStringEncodingMacRoman:
        return *decoder->next < 0x80 ? *decoder->next++ : mac_roman[*decoder->next++ - 0x80];
    case kCFStringEncodingWindowsLatin1:
        return byte_in_windows_latin1(*decoder->next++);
    case kCFStringEncodingNonLossyASCII:
        return next_escaped(decoder);
    case kCFStringEncodingUTF16BE:
    case kCFStringEncodingUTF16LE:
        return next_utf16(decoder, decoder->encoding == kCFStringEncodingUTF16BE);
    default:
        return next_utf32(decoder, decoder->encoding == kCFStringEncodingUTF32BE);
    }
}

static size_t write_one(uint8_t *bytes, uint32_t byte)
{
    bytes[0] = (uint8_t)byte;
    return 1;
}

static size_t write_from_table(const uint16_t *table, int count, uint32_t character, uint8_t *bytes)
{
    for (int i = 0; i < count; i++) {
        if (table[i] == character && character != 0) {
            return write_one(bytes, (uint32_t)i + 0x80);
        }
    }
    return 0;
}

static size_t write_utf8(uint32_t character, uint8_t *bytes)
{
    if (unit_is_high_surrogate(character) || unit_is_low_surrogate(character)) {
        return 0;
    }
    if (character < 0x80) {
        return write_one(bytes, character);
    }
    size_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    bytes[0] = (uint8_t)(0xFF00 >> (more + 1) | character >> (6 * more));
    for (size_t i = 1; i <= more; i++) {
        bytes[i] = (uint8_t)(0x80 | (character >> (6 * (more - i)) & 0x3F));
    }
    return more + 1;
}

static size_t write_number(uint32_t number, size_t size, bool big_endian, uint8_t *bytes)
{
    for (size_t i = 0; i < size; i++) {
        bytes[big_endian ? size - 1 - i : i] = (uint8_t)(number >> (8 * i));
    }
    return size;
}

static size_t write_escaped(uint32_t unit, uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    bool is_plain = (unit >= ' ' && unit < 0x7F && unit != '\\') || unit == '\t' || unit == '\n' || unit == '\r';

    if (is_plain) {
        return write_one(bytes, unit);
    }
    bytes[0] = '\\';
    if (unit == '\\') {
        return 1 + write_one(bytes + 1, '\\');
    }
    bool is_octal = unit < 0x100;
    size_t count = is_octal ? 3 : 4;
    size_t start = is_octal ? 1 : 2;
    if (!is_octal) {
        bytes[1] = 'u';
    }
    for (size_t i = 0; i < count; i++) {
        bytes[start + count - 1 - i] = (uint8_t)(is_octal ? digits[unit >> (3 * i) & 7] : digits[unit >> (4 * i) & 15]);
    }
    return start + count;
}

size_t encoding_write(CFStringEncoding encoding, uint32_t character, uint8_t ret_bytes[encoding_bytes_max])
{
    switch (encoding) {
    case kCFStringEncodingUTF8:
        return write_utf8(character, ret_bytes);
    case kCFStringEncodingASCII:
        return character < 0x80 ? write_one(ret_bytes, character) : 0;
    case kCFStringEncodingISOLatin1:
        return character < 0x100 ? write_one(ret_bytes, character) : 0;
    case kCFStringEncodingMacRoman:
        return character < 0x80 ? write_one(ret_bytes, character) : write_from_table(mac_roman, table_mac_roman, character, ret_bytes);
    case kCFStringEncodingWindowsLatin1:
        return character < 0x80 || (character >= 0xA0 && character < 0x100)
                   ? write_one(ret_bytes, character)
                   : write_from_table(windows_latin1, table_windows_latin1, character, ret_bytes);
    case kCFStringEncodingNonLossyASCII:
        return write_escaped(character, ret_bytes);
    case kCFStringEncodingUTF16:
        return write_number(character, 2, machine_is_big_endian, ret_bytes);
    case kCFStringEncodingUTF16BE:
    case kCFStringEncodingUTF16LE:
        return write_number(character, 2, encoding == kCFStringEncodingUTF16BE, ret_bytes);
    default:
        break;
    }
    if (unit_is_high_surrogate(character) || unit_is_low_surrogate(character)) {
        return 0;
    }
    return write_number(character, 4, encoding == kCFStringEncodingUTF32 ? machine_is_big_endian : encoding == kCFStringEncodingUTF32BE,
                        ret_bytes);
}

size_t encoding_write_mark(CFStringEncoding encoding, uint8_t ret_bytes[encoding_bytes_max])
{
    bool has_mark = encoding == kCFStringEncodingUTF16 || encoding == kCFStringEncodingUTF32;

    return has_mark ? encoding_write(encoding, 0xFEFF, ret_bytes) : 0;
}
