/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to units and back, in every encoding; what is not valid is refused. */
#include <stdio.h>
#include <string.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Text/encoding.h"
#include "harness.h"

static const CFStringEncoding encodings[] = {
    kCFStringEncodingMacRoman, kCFStringEncodingWindowsLatin1, kCFStringEncodingISOLatin1, kCFStringEncodingASCII,
    kCFStringEncodingUTF8,     kCFStringEncodingNonLossyASCII, kCFStringEncodingUTF16,     kCFStringEncodingUTF16BE,
    kCFStringEncodingUTF16LE,  kCFStringEncodingUTF32,         kCFStringEncodingUTF32BE,   kCFStringEncodingUTF32LE,
};

enum { encoding_count = sizeof encodings / sizeof encodings[0] };

struct bytes_and_units {
    const char *name;
    CFStringEncoding encoding;
    bool is_external;
    const char *bytes;
    int count;
    int length; /* -1: not valid */
    UniChar units[6];
};

#define BYTES(_literal) _literal, (int)sizeof _literal - 1

static void expect_decoded(const struct bytes_and_units *expected)
{
    CFStringRef text =
        CFStringCreateWithBytes(NULL, (const UInt8 *)expected->bytes, expected->count, expected->encoding, expected->is_external);
    if (expected->length < 0) {
        EXPECT_STR(text == NULL ? expected->name : "valid", expected->name);
        return;
    }
    if (text == NULL) {
        EXPECT_STR("not valid", expected->name);
        return;
    }
    UniChar units[6] = {0};
    EXPECT_EQ(CFStringGetLength(text), expected->length);
    CFStringGetCharacters(text, CFRangeMake(0, CFStringGetLength(text)), units);
    EXPECT_STR(memcmp(units, expected->units, (size_t)expected->length * sizeof(UniChar)) == 0 ? expected->name : "other units",
               expected->name);
    CFRelease(text);
}

TEST(bytes_become_the_units_that_their_encoding_says, "435")
{
    static const struct bytes_and_units table[] = {
        {"UTF-8, one to four bytes",
         kCFStringEncodingUTF8,
         false,
         BYTES("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"),
         5,
         {'a', 0xE9, 0x20AC, 0xD83D, 0xDE00}},
        {"UTF-8, a mark is skipped",
         kCFStringEncodingUTF8,
         true,
         BYTES("\xEF\xBB\xBF"
               "a"),
         1,
         {'a'}},
        {"UTF-8, a mark is always skipped", kCFStringEncodingUTF8, false, BYTES("\xEF\xBB\xBF\xC3\xA9"), 1, {0xE9}},
        {"UTF-8, the last character", kCFStringEncodingUTF8, false, BYTES("\xF4\x8F\xBF\xBF"), 2, {0xDBFF, 0xDFFF}},
        {"NUL inside", kCFStringEncodingUTF8, false, BYTES("a\0b"), 3, {'a', 0, 'b'}},
        {"Latin 1", kCFStringEncodingISOLatin1, false, BYTES("a\x80\xFF"), 3, {'a', 0x80, 0xFF}},
        {"Windows", kCFStringEncodingWindowsLatin1, false, BYTES("a\x80\x9F\xA0\xE9"), 5, {'a', 0x20AC, 0x178, 0xA0, 0xE9}},
        {"Mac", kCFStringEncodingMacRoman, false, BYTES("a\x80\xCA\xDB\xF0\xFF"), 6, {'a', 0xC4, 0xA0, 0x20AC, 0xF8FF, 0x2C7}},
        {"ASCII", kCFStringEncodingASCII, false, BYTES("az\x7F"), 3, {'a', 'z', 0x7F}},
        {"ASCII above 127", kCFStringEncodingASCII, false, BYTES("a\x80\xE9\xFF"), 4, {'a', 0x80, 0xE9, 0xFF}},
        {"UTF-16, half a unit", kCFStringEncodingUTF16LE, false, BYTES("a\0b"), 1, {'a'}},
        {"UTF-16, less than a unit", kCFStringEncodingUTF16, true, BYTES("a"), 0, {0}},
        {"UTF-32, part of a unit", kCFStringEncodingUTF32LE, false, BYTES("a\0\0\0b\0\0"), 1, {'a'}},
        {"escapes", kCFStringEncodingNonLossyASCII, false, BYTES("a\\351\\u20aC\\\\z"), 5, {'a', 0xE9, 0x20AC, '\\', 'z'}},
        {"UTF-16BE", kCFStringEncodingUTF16BE, false, BYTES("\0a\x20\xAC"), 2, {'a', 0x20AC}},
        {"UTF-16LE", kCFStringEncodingUTF16LE, false, BYTES("a\0\xAC\x20"), 2, {'a', 0x20AC}},
        {"UTF-16BE keeps a mark", kCFStringEncodingUTF16BE, true, BYTES("\xFE\xFF\0a"), 2, {0xFEFF, 'a'}},
        {"UTF-16 with BE mark", kCFStringEncodingUTF16, true, BYTES("\xFE\xFF\0a"), 1, {'a'}},
        {"UTF-16 with LE mark",
         kCFStringEncodingUTF16,
         true,
         BYTES("\xFF\xFE"
               "a\0"),
         1,
         {'a'}},
        {"UTF-16 from outside without a mark", kCFStringEncodingUTF16, true, BYTES("\0a\0b"), 2, {'a', 'b'}},
        {"UTF-16, an unpaired surrogate", kCFStringEncodingUTF16LE, false, BYTES("\x00\xD8"), 1, {0xD800}},
        {"UTF-32BE", kCFStringEncodingUTF32BE, false, BYTES("\0\0\0a\0\x01\xF6\0"), 3, {'a', 0xD83D, 0xDE00}},
        {"UTF-32LE", kCFStringEncodingUTF32LE, false, BYTES("a\0\0\0\0\xF6\x01\0"), 3, {'a', 0xD83D, 0xDE00}},
        {"UTF-32 with LE mark", kCFStringEncodingUTF32, true, BYTES("\xFF\xFE\0\0a\0\0\0"), 1, {'a'}},
        {"UTF-32 with BE mark", kCFStringEncodingUTF32, true, BYTES("\0\0\xFE\xFF\0\0\0a"), 1, {'a'}},
        {"UTF-32 from outside without a mark", kCFStringEncodingUTF32, true, BYTES("\0\0\0a\0\0\0b"), 2, {'a', 'b'}},
        {"nothing", kCFStringEncodingUTF16, true, "", 0, 0, {0}},
        {"only a mark", kCFStringEncodingUTF16, true, BYTES("\xFE\xFF"), 0, {0}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect_decoded(&table[i]);
    }
}

TEST(bytes_that_are_not_valid_are_refused, "")
{
    static const struct bytes_and_units table[] = {
        {"UTF-8, a lone continuation", kCFStringEncodingUTF8, false, BYTES("a\x80"), -1, {0}},
        {"UTF-8, overlong two", kCFStringEncodingUTF8, false, BYTES("\xC0\x80"), -1, {0}},
        {"UTF-8, overlong three", kCFStringEncodingUTF8, false, BYTES("\xE0\x9F\xBF"), -1, {0}},
        {"UTF-8, overlong four", kCFStringEncodingUTF8, false, BYTES("\xF0\x8F\xBF\xBF"), -1, {0}},
        {"UTF-8, a surrogate", kCFStringEncodingUTF8, false, BYTES("\xED\xA0\x80"), -1, {0}},
        {"UTF-8, above the last", kCFStringEncodingUTF8, false, BYTES("\xF4\x90\x80\x80"), -1, {0}},
        {"UTF-8, F5", kCFStringEncodingUTF8, false, BYTES("\xF5\x80\x80\x80"), -1, {0}},
        {"UTF-8, cut", kCFStringEncodingUTF8, false, BYTES("a\xE2\x82"), -1, {0}},
        {"UTF-8, broken", kCFStringEncodingUTF8, false, BYTES("\xE2\x82z"), -1, {0}},
        {"Windows, a byte without a character", kCFStringEncodingWindowsLatin1, false, BYTES("\x81"), -1, {0}},
        {"UTF-32, a surrogate", kCFStringEncodingUTF32LE, false, BYTES("\0\xD8\0\0"), -1, {0}},
        {"UTF-32, too large", kCFStringEncodingUTF32BE, false, BYTES("\0\x11\0\0"), -1, {0}},
        {"escapes, cut", kCFStringEncodingNonLossyASCII, false, BYTES("a\\"), -1, {0}},
        {"escapes, unknown", kCFStringEncodingNonLossyASCII, false, BYTES("\\x41"), -1, {0}},
        {"escapes, too few digits", kCFStringEncodingNonLossyASCII, false, BYTES("\\u20a"), -1, {0}},
        {"escapes, not a digit", kCFStringEncodingNonLossyASCII, false, BYTES("\\38z"), -1, {0}},
        {"escapes, octal too large", kCFStringEncodingNonLossyASCII, false, BYTES("\\777"), -1, {0}},
        {"escapes, a byte above 127", kCFStringEncodingNonLossyASCII, false, BYTES("\xE9"), -1, {0}},
        {"an unknown encoding", 0x12345, false, BYTES("a"), -1, {0}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect_decoded(&table[i]);
    }
    EXPECT(CFStringCreateWithBytes(NULL, (const UInt8 *)"a", -1, kCFStringEncodingUTF8, false) == NULL);
    EXPECT(CFStringCreateWithBytes(NULL, NULL, 1, kCFStringEncodingUTF8, false) == NULL);
}

TEST(what_cannot_be_printed_is_an_escape_but_for_white_space, "")
{
    static const struct {
        uint32_t character;
        const char *text;
    } table[] = {{0, "\\000"},    {1, "\\001"}, {'\t', "\t"},  {'\n', "\n"},   {'\r', "\r"},   {0x1B, "\\033"},
                 {' ', " "}, {'~', "~"}, {'\\', "\\\\"}, {0x7F, "\\177"}, {0xE9, "\\351"}, {0x20AC, "\\u20ac"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint8_t bytes[encoding_bytes_max];
        size_t count = encoding_write(kCFStringEncodingNonLossyASCII, table[i].character, bytes);
        EXPECT_EQ(count, strlen(table[i].text));
        EXPECT(memcmp(bytes, table[i].text, count) == 0);
    }
}

TEST(what_an_encoding_writes_it_reads_again, "435")
{
    for (int i = 0; i < encoding_count; i++) {
        for (uint32_t character = 0; character < 0x11000; character += character < 0x3000 ? 1 : 7) {
            uint8_t bytes[encoding_bytes_max];
            if (character >= 0x10000 && !encoding_joins_pairs(encodings[i])) {
                break;
            }
            size_t count = encoding_write(encodings[i], character, bytes);
            if (count == 0) {
                continue;
            }
            struct decoder decoder;
            REQUIRE(decoder_start(&decoder, bytes, count, encodings[i], false));
            if (character == 0xFEFF) {
                continue; /* a byte order mark is skipped */
            }
            if (decoder_next(&decoder) != (int32_t)character || decoder_next(&decoder) != decoder_at_end) {
                EXPECT_EQ(encodings[i], 0);
                EXPECT_EQ(character, 0);
                return;
            }
        }
    }
}

static int characters_of(CFStringEncoding encoding)
{
    int count = 0;
    for (uint32_t character = 0; character < 0x10000; character++) {
        uint8_t bytes[encoding_bytes_max];
        count += encoding_write(encoding, character, bytes) == 1;
    }
    return count;
}

TEST(one_byte_encodings_have_as_many_characters_as_they_should, "")
{
    EXPECT_EQ(characters_of(kCFStringEncodingASCII), 128);
    EXPECT_EQ(characters_of(kCFStringEncodingISOLatin1), 256);
    EXPECT_EQ(characters_of(kCFStringEncodingMacRoman), 256);
    EXPECT_EQ(characters_of(kCFStringEncodingWindowsLatin1), 251);
}

TEST(no_bytes_whatever_make_the_decoders_read_beyond_them, "")
{
    /* Every pair and, by a simple generator, many longer runs; the sanitizers watch. */
    unsigned state = 7;
    for (int i = 0; i < 60000; i++) {
        UInt8 bytes[9];
        CFIndex count = i % 10;
        for (CFIndex j = 0; j < count; j++) {
            state = state * 1103515245 + 12345;
            bytes[j] = (UInt8)(state >> 16);
        }
        CFStringEncoding encoding = encodings[i % encoding_count];
        CFStringRef text = CFStringCreateWithBytes(NULL, bytes, count, encoding, (i & 64) != 0);
        if (text != NULL) {
            UInt8 written[64];
            CFIndex used = 0;
            CFIndex length = CFStringGetLength(text);
            if (encoding == kCFStringEncodingASCII) {
                encoding = kCFStringEncodingISOLatin1; /* as which ASCII is read, and not written */
            }
            EXPECT_EQ(CFStringGetBytes(text, CFRangeMake(0, length), encoding, 0, false, written, sizeof written, &used), length);
            EXPECT(used <= CFStringGetMaximumSizeForEncoding(length, encoding));
            CFRelease(text);
        }
    }
}

static void expect_bytes(CFStringRef text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, bool is_external, CFIndex room,
                         CFIndex expected_units, const char *expected)
{
    UInt8 buffer[64];
    char shown[200] = "";
    CFIndex used = -1;
    memset(buffer, 0xEE, sizeof buffer);
    EXPECT_EQ(CFStringGetBytes(text, range, encoding, loss_byte, is_external, buffer, room, &used), expected_units);
    for (CFIndex i = 0; i < used; i++) {
        snprintf(shown + 3 * i, 4, "%02x ", buffer[i]);
    }
    EXPECT_STR(shown, expected);
    EXPECT_EQ(buffer[used], 0xEE);
    CFIndex counted = -1;
    if (room == (CFIndex)sizeof buffer) {
        EXPECT_EQ(CFStringGetBytes(text, range, encoding, loss_byte, is_external, NULL, 0, &counted), expected_units);
        EXPECT_EQ(counted, used);
        EXPECT_EQ(CFStringGetBytes(text, range, encoding, loss_byte, is_external, buffer, room, NULL), expected_units);
    }
}

TEST(texts_become_bytes_as_far_as_they_fit_and_can_be_written, "")
{
    CFStringRef text = CFStringCreateWithCString(NULL, "aé😀z", kCFStringEncodingUTF8);
    CFRange all = CFRangeMake(0, 5);
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, false, 64, 5, "61 c3 a9 f0 9f 98 80 7a ");
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, true, 64, 5, "61 c3 a9 f0 9f 98 80 7a ");
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, false, 6, 2, "61 c3 a9 ");
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, false, 2, 1, "61 ");
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, false, 0, 0, "");
    expect_bytes(text, CFRangeMake(2, 2), kCFStringEncodingUTF8, 0, false, 64, 2, "f0 9f 98 80 ");
    expect_bytes(text, CFRangeMake(2, 1), kCFStringEncodingUTF8, '?', false, 64, 1, "3f ");
    expect_bytes(text, CFRangeMake(2, 1), kCFStringEncodingUTF8, 0, false, 64, 0, "");
    expect_bytes(text, all, kCFStringEncodingASCII, 0, false, 64, 1, "61 ");
    expect_bytes(text, all, kCFStringEncodingASCII, '?', false, 64, 5, "61 3f 3f 3f 7a ");
    expect_bytes(text, all, kCFStringEncodingISOLatin1, '?', false, 64, 5, "61 e9 3f 3f 7a ");
    expect_bytes(text, all, kCFStringEncodingWindowsLatin1, 0xBF, false, 64, 5, "61 e9 bf bf 7a ");
    expect_bytes(text, all, kCFStringEncodingMacRoman, 0xFF, false, 64, 5, "61 8e ff ff 7a ");
    expect_bytes(text, all, kCFStringEncodingNonLossyASCII, 0, false, 64, 5, "61 5c 33 35 31 5c 75 64 38 33 64 5c 75 64 65 30 30 7a ");
    expect_bytes(text, all, kCFStringEncodingUTF16LE, 0, true, 64, 5, "61 00 e9 00 3d d8 00 de 7a 00 ");
    expect_bytes(text, all, kCFStringEncodingUTF16BE, 0, true, 64, 5, "00 61 00 e9 d8 3d de 00 00 7a ");
    expect_bytes(text, all, kCFStringEncodingUTF16LE, 0, false, 3, 1, "61 00 ");
    expect_bytes(text, all, kCFStringEncodingUTF32LE, 0, false, 64, 5, "61 00 00 00 e9 00 00 00 00 f6 01 00 7a 00 00 00 ");
    expect_bytes(text, all, kCFStringEncodingUTF32BE, 0, false, 8, 2, "00 00 00 61 00 00 00 e9 ");
    expect_bytes(text, all, 0x12345, '?', false, 64, 0, "");
    expect_bytes(CFSTR("abc"), CFRangeMake(1, 2), kCFStringEncodingUTF8, 0, false, 64, 2, "62 63 ");
    expect_bytes(CFSTR("abc"), CFRangeMake(0, 3), kCFStringEncodingASCII, 0, false, 2, 2, "61 62 ");
    expect_bytes(CFSTR("a\\b"), CFRangeMake(0, 3), kCFStringEncodingNonLossyASCII, 0, false, 64, 3, "61 5c 5c 62 ");
    CFRelease(text);
}

TEST(text_for_the_outside_starts_with_a_mark, "")
{
    static const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    CFRange all = CFRangeMake(0, 1);
    expect_bytes(CFSTR("a"), all, kCFStringEncodingUTF16, 0, true, 64, 1, big ? "fe ff 00 61 " : "ff fe 61 00 ");
    expect_bytes(CFSTR("a"), all, kCFStringEncodingUTF32, 0, true, 64, 1, big ? "00 00 fe ff 00 00 00 61 " : "ff fe 00 00 61 00 00 00 ");
    expect_bytes(CFSTR("a"), CFRangeMake(0, 0), kCFStringEncodingUTF16, 0, true, 64, 0, big ? "fe ff " : "ff fe ");
    expect_bytes(CFSTR("a"), all, kCFStringEncodingUTF16, 0, true, 1, 0, "");
}

TEST(unpaired_surrogates_are_written_where_that_is_possible, "")
{
    UniChar units[] = {'a', 0xD800, 'b', 0xDC00};
    CFStringRef text = CFStringCreateWithCharacters(NULL, units, 4);
    CFRange all = CFRangeMake(0, 4);
    expect_bytes(text, all, kCFStringEncodingUTF8, 0, false, 64, 1, "61 ");
    expect_bytes(text, all, kCFStringEncodingUTF8, '?', false, 64, 4, "61 3f 62 3f ");
    expect_bytes(text, all, kCFStringEncodingUTF32BE, '?', false, 64, 4, "00 00 00 61 00 00 00 3f 00 00 00 62 00 00 00 3f ");
    expect_bytes(text, all, kCFStringEncodingUTF16BE, 0, false, 64, 4, "00 61 d8 00 00 62 dc 00 ");
    CFRelease(text);
}

TEST(maximum_sizes_are_never_too_small, "")
{
    static const CFIndex sizes[encoding_count] = {1, 1, 1, 1, 3, 6, 2, 2, 2, 4, 4, 4};
    for (int i = 0; i < encoding_count; i++) {
        EXPECT_EQ(CFStringGetMaximumSizeForEncoding(10, encodings[i]), 10 * sizes[i]);
        EXPECT_EQ(CFStringGetMaximumSizeForEncoding(0, encodings[i]), 0);
        EXPECT_EQ(CFStringGetMaximumSizeForEncoding(-1, encodings[i]), kCFNotFound);
    }
    EXPECT_EQ(CFStringGetMaximumSizeForEncoding(PTRDIFF_MAX, kCFStringEncodingUTF8), kCFNotFound);
    EXPECT_EQ(CFStringGetMaximumSizeForEncoding(10, 0x12345), kCFNotFound);
}
