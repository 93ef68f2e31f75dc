/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings that this add-on brings: their bytes, what is lost, what does not fit, and their names. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CFStringEncodingExt.h"
#include "Encoding/converter.h"
#include "Failure/nth_failure.h"
#include "harness.h"

/* The units of bytes, in hexadecimal. */
static const char *units_of(CFStringEncoding encoding, const char *bytes, size_t count)
{
    static char words[256];
    CFStringRef text = CFStringCreateWithBytes(NULL, (const UInt8 *)bytes, (CFIndex)count, encoding, false);
    size_t used = 0;

    if (!text) {
        return "refused";
    }
    words[0] = '\0';
    for (CFIndex i = 0; i < CFStringGetLength(text); i++) {
        used += (size_t)snprintf(words + used, sizeof words - used, i > 0 ? " %04X" : "%04X", CFStringGetCharacterAtIndex(text, i));
    }
    CFRelease(text);
    return words;
}

#define UNITS(encoding_, bytes_) units_of(encoding_, bytes_, sizeof bytes_ - 1)

TEST(bytes_of_other_encodings_are_read_and_invalid_and_incomplete_ones_are_refused, "2209")
{
    static const struct {
        CFStringEncoding encoding;
        const char *bytes;
        const char *units;
    } rows[] = {
        {kCFStringEncodingISOLatin2, "a\xB1", "0061 0105"},
        {kCFStringEncodingISOLatin3, "\xA5", "refused"},
        {kCFStringEncodingWindowsCyrillic, "\xCF\xF0", "041F 0440"},
        {kCFStringEncodingKOI8_R, "\xD0", "043F"},
        {kCFStringEncodingDOSJapanese, "\x82\xA0", "3042"},
        {kCFStringEncodingDOSJapanese, "\x5C\x81\x60", "005C FF5E"},
        {kCFStringEncodingDOSJapanese, "\x82\xA0\x82", "refused"},
        {kCFStringEncodingDOSJapanese,
         "a\xFF"
         "b",
         "refused"},
        {kCFStringEncodingShiftJIS, "\x82\xA0", "3042"},
        {kCFStringEncodingEUC_JP, "\xA4\xA2", "3042"},
        {kCFStringEncodingISO_2022_JP, "\x1B$B$$$\"\x1B(B", "3044 3042"},
        {kCFStringEncodingISO_2022_JP, "\x1B$B$", "refused"},
        {kCFStringEncodingISO_2022_JP, "\xFF", "refused"},
        {kCFStringEncodingGB_18030_2000, "\x90\x30\x81\x30", "D800 DC00"},
        {kCFStringEncodingGB_18030_2000, "\x81\x30\x81", "refused"},
        {kCFStringEncodingBig5, "\xA4\x40", "4E00"},
        {kCFStringEncodingEUC_KR, "\xB0\xA1", "AC00"},
        {kCFStringEncodingUTF7, "+AGI-", "0062"},
        {kCFStringEncodingUTF7, "\xFF", "refused"},
        {kCFStringEncodingEBCDIC_CP037, "\xC1", "0041"},
        {kCFStringEncodingNextStepLatin, "A\x80\xA0\xFD", "0041 00A0 00A9 00FF"},
        {kCFStringEncodingNextStepLatin, "\xFE", "refused"},
        {kCFStringEncodingMacJapanese, "a", "refused"},
        {0x999, "a", "refused"},
        {kCFStringEncodingDOSJapanese, "", ""},
        {0x999, "", "refused"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_STR(units_of(rows[i].encoding, rows[i].bytes, strlen(rows[i].bytes)), rows[i].units);
    }
    EXPECT_STR(UNITS(kCFStringEncodingNextStepLatin, "\0"), "0000");
    converters_give_back();
}

/* What CFStringGetBytes converts, and the bytes in hexadecimal. */
static const char *bytes_of(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 loss_byte, CFIndex size)
{
    static char words[128];
    UInt8 bytes[64];
    CFIndex used = -1;
    CFIndex counted = -1;
    CFStringRef text = CFStringCreateWithCharacters(NULL, units, count);
    CFIndex converted = CFStringGetBytes(text, CFRangeMake(0, count), encoding, loss_byte, false, bytes, size, &used);
    int length = snprintf(words, sizeof words, "%ld:", converted);

    for (CFIndex i = 0; i < used; i++) {
        length += snprintf(words + length, sizeof words - (size_t)length, " %02X", bytes[i]);
    }
    if (size == sizeof bytes) {
        EXPECT_EQ(CFStringGetBytes(text, CFRangeMake(0, count), encoding, loss_byte, false, NULL, 0, &counted), converted);
        EXPECT_EQ(counted, used);
        EXPECT(used == 0 || used <= CFStringGetMaximumSizeForEncoding(count, encoding));
    }
    CFRelease(text);
    return words;
}

TEST(units_are_written_as_far_as_an_encoding_has_them_and_they_fit, "2209")
{
    static const UniChar mixed[] = {'a', 0x3042, 0x20AC, 'b'}; /* the euro is not in Japanese encodings */
    static const UniChar twice[] = {'a', 0x3042, 'b', 0x3042};
    static const UniChar pair[] = {0xD840, 0xDC0B, 'x'};
    static const UniChar half[] = {0xD840, 'x'};
    static const UniChar low[] = {'x', 0xDC0B};
    static const struct {
        CFStringEncoding encoding;
        const UniChar *units;
        CFIndex count;
        UInt8 loss_byte;
        CFIndex size;
        const char *bytes;
    } rows[] = {
        {kCFStringEncodingDOSJapanese, mixed, 4, 0, 64, "2: 61 82 A0"},
        {kCFStringEncodingDOSJapanese, mixed, 4, '?', 64, "4: 61 82 A0 3F 62"},
        {kCFStringEncodingDOSJapanese, mixed, 4, 0xFF, 64, "4: 61 82 A0 FF 62"},
        {kCFStringEncodingDOSJapanese, mixed, 4, '?', 0, "0:"},
        {kCFStringEncodingDOSJapanese, mixed, 4, '?', 2, "1: 61"},
        {kCFStringEncodingDOSJapanese, mixed, 4, '?', 3, "2: 61 82 A0"},
        {kCFStringEncodingDOSJapanese, mixed, 4, '?', 4, "3: 61 82 A0 3F"},
        {kCFStringEncodingISOLatin2, mixed, 4, '?', 64, "4: 61 3F 3F 62"},
        {kCFStringEncodingGB_18030_2000, mixed, 4, 0, 64, "4: 61 A4 A2 A2 E3 62"},
        {kCFStringEncodingISO_2022_JP, mixed, 4, '?', 64, "4: 61 1B 24 42 24 22 1B 28 42 3F 62"},
        {kCFStringEncodingISO_2022_JP, twice, 4, 0, 64, "4: 61 1B 24 42 24 22 1B 28 42 62 1B 24 42 24 22 1B 28 42"},
        {kCFStringEncodingISO_2022_JP, twice, 4, 0, 18, "4: 61 1B 24 42 24 22 1B 28 42 62 1B 24 42 24 22 1B 28 42"},
        {kCFStringEncodingISO_2022_JP, twice, 4, 0, 17, "3: 61 1B 24 42 24 22 1B 28 42 62"},
        {kCFStringEncodingISO_2022_JP, twice, 4, 0, 8, "1: 61"},
        {kCFStringEncodingISO_2022_KR, twice, 1, 0, 64, "1: 1B 24 29 43 61"},
        {kCFStringEncodingUTF7, twice, 2, 0, 64, "2: 61 2B 4D 45 49 2D"},
        {kCFStringEncodingGB_18030_2000, pair, 3, 0, 64, "3: 95 32 83 37 78"},
        {kCFStringEncodingDOSJapanese, pair, 3, '?', 64, "3: 3F 78"},
        {kCFStringEncodingDOSJapanese, half, 2, '?', 64, "2: 3F 78"},
        {kCFStringEncodingDOSJapanese, half, 1, '?', 64, "1: 3F"},
        {kCFStringEncodingDOSJapanese, half, 1, 0, 64, "0:"},
        {kCFStringEncodingDOSJapanese, low, 2, '?', 64, "2: 78 3F"},
        {kCFStringEncodingNextStepLatin, mixed, 4, '?', 64, "4: 61 3F 3F 62"},
        {kCFStringEncodingNextStepLatin, mixed, 4, '?', 2, "2: 61 3F"},
        {kCFStringEncodingNextStepLatin, pair, 3, '?', 64, "3: 3F 78"},
        {kCFStringEncodingNextStepLatin, mixed, 4, 0, 64, "1: 61"},
        {0x999, mixed, 4, '?', 64, "0:"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* The second time a converter is used again. */
        for (int time = 0; time < 2; time++) {
            EXPECT_STR(bytes_of(rows[i].encoding, rows[i].units, rows[i].count, rows[i].loss_byte, rows[i].size), rows[i].bytes);
        }
    }
    converters_give_back();
}

TEST(a_long_text_is_converted_over_the_pieces_of_a_conversion, "2209")
{
    enum { length = 5001 };
    UniChar *units = malloc(length * sizeof *units);
    char *bytes = malloc(2 * length + 1);

    for (int i = 0; i < length; i++) {
        units[i] = i % 3 == 0 ? 'a' : 0x3042;
    }
    CFStringRef text = CFStringCreateWithCharacters(NULL, units, length);
    CFDataRef data = CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingEUC_JP, 0);
    CFStringRef again = data ? CFStringCreateFromExternalRepresentation(NULL, data, kCFStringEncodingEUC_JP) : NULL;
    EXPECT(again && CFEqual(again, text));
    EXPECT(CFStringGetCString(text, bytes, 2 * length + 1, kCFStringEncodingDOSJapanese));
    EXPECT(!CFStringGetCString(text, bytes, length, kCFStringEncodingDOSJapanese) && bytes[0] == '\0');
    EXPECT(!CFStringGetCString(CFSTR(""), bytes, 10, 0x999));
    EXPECT(!CFStringCreateExternalRepresentation(NULL, CFSTR(""), 0x999, 0));
    EXPECT(!CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingISOLatin2, 0));
    EXPECT_EQ(CFStringGetMaximumSizeForEncoding(10, 0x999), kCFNotFound);
    if (again) {
        CFRelease(again);
    }
    if (data) {
        CFRelease(data);
    }
    CFRelease(text);
    free(bytes);
    free(units);
    converters_give_back();
}

static CFStringEncoding encoding_named(const char *name)
{
    CFStringRef string = CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8);
    CFStringEncoding encoding = CFStringConvertIANACharSetNameToEncoding(string);

    CFRelease(string);
    return encoding;
}

TEST(names_of_character_sets_stand_for_encodings, "2209")
{
    static const struct {
        const char *name;
        CFStringEncoding encoding;
    } rows[] = {
        {"UTF-8", kCFStringEncodingUTF8},
        {"utf8", kCFStringEncodingUTF8},
        {"UTF_8 ", kCFStringEncodingUTF8},
        {"utf-16le", kCFStringEncodingUTF16LE},
        {"US-ASCII", kCFStringEncodingASCII},
        {"ISO_8859-1", kCFStringEncodingISOLatin1},
        {"latin1", kCFStringEncodingISOLatin1},
        {"csISOLatin1", kCFStringEncodingISOLatin1},
        {"iso-8859-8-i", kCFStringEncodingISOLatinHebrew},
        {"Shift_JIS", kCFStringEncodingShiftJIS},
        {"shift-jis", kCFStringEncodingDOSJapanese},
        {"windows-31j", kCFStringEncodingDOSJapanese},
        {"cp00850", kCFStringEncodingDOSLatin1},
        {"ibm850", kCFStringEncodingDOSLatin1},
        {"windows-874", kCFStringEncodingDOSThai},
        {"dos-862", kCFStringEncodingDOSHebrew},
        {"ks_c_5601-1987", kCFStringEncodingDOSKorean},
        {"macintosh", kCFStringEncodingMacRoman},
        {"x-nextstep", kCFStringEncodingNextStepLatin},
        {"x-mac-japanese", kCFStringEncodingMacJapanese},
        {"ebcdic-cp-us", kCFStringEncodingEBCDIC_CP037},
        {"nonsense", kCFStringEncodingInvalidId},
        {"windows-62", kCFStringEncodingInvalidId},
        {"cp99999999999999999999999", kCFStringEncodingInvalidId},
        {"", kCFStringEncodingInvalidId},
        {"---", kCFStringEncodingInvalidId},
        {"\xC3\xA9", kCFStringEncodingInvalidId},
        {"a-name-that-is-longer-than-any-name-of-a-character-set-has-ever-been", kCFStringEncodingInvalidId},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQ(encoding_named(rows[i].name), rows[i].encoding);
    }
    EXPECT_EQ(CFStringConvertIANACharSetNameToEncoding(NULL), kCFStringEncodingInvalidId);
    EXPECT(!CFStringConvertEncodingToIANACharSetName(0x999));
}

TEST(each_number_and_name_of_an_encoding_leads_back_to_it, "2209")
{
    for (size_t i = 0; i < encoding_rows; i++) {
        CFStringEncoding encoding = encoding_table[i].encoding;
        CFStringRef name = CFStringConvertEncodingToIANACharSetName(encoding);
        UInt32 page = CFStringConvertEncodingToWindowsCodepage(encoding);

        EXPECT(i == 0 || encoding > encoding_table[i - 1].encoding);
        EXPECT(!name || CFStringConvertIANACharSetNameToEncoding(name) == encoding);
        EXPECT_EQ(CFStringConvertNSStringEncodingToEncoding(CFStringConvertEncodingToNSStringEncoding(encoding)), encoding);
        EXPECT(page == kCFStringEncodingInvalidId || CFStringConvertWindowsCodepageToEncoding(page) == encoding);
    }
    EXPECT_EQ(CFStringConvertEncodingToNSStringEncoding(kCFStringEncodingUTF8), 4);
    EXPECT_EQ(CFStringConvertNSStringEncodingToEncoding(0), kCFStringEncodingInvalidId);
    EXPECT_EQ(CFStringConvertNSStringEncodingToEncoding(~0UL), kCFStringEncodingInvalidId);
    EXPECT_EQ(CFStringConvertWindowsCodepageToEncoding(1252), kCFStringEncodingWindowsLatin1);
    EXPECT_EQ(CFStringConvertEncodingToWindowsCodepage(0x999), kCFStringEncodingInvalidId);
}

TEST(the_list_of_encodings_has_those_that_convert, "2209")
{
    const CFStringEncoding *list = CFStringGetListOfAvailableEncodings();
    int count = 0;

    EXPECT(list == CFStringGetListOfAvailableEncodings());
    for (; list[count] != kCFStringEncodingInvalidId; count++) {
        UniChar letter = 'a';

        EXPECT(CFStringIsEncodingAvailable(list[count]));
        EXPECT(strncmp(bytes_of(list[count], &letter, 1, 0, 64), "1:", 2) == 0);
    }
    EXPECT(count >= 13);
    EXPECT(!CFStringIsEncodingAvailable(kCFStringEncodingMacJapanese));
    EXPECT(CFEqual(CFStringGetNameOfEncoding(kCFStringEncodingEUC_JP), CFSTR("Japanese (EUC)")));
    EXPECT(CFEqual(CFStringGetNameOfEncoding(kCFStringEncodingNextStepLatin), CFSTR("Western (NextStep)")));
    EXPECT(!CFStringGetNameOfEncoding(kCFStringEncodingMacJapanese));
    converters_give_back();
}

/* ---- threads, forks, failures ---- */

static _Atomic bool is_over;

static bool convert_once(void)
{
    CFStringRef text = CFStringCreateWithBytes(NULL, (const UInt8 *)"\xA4\xA2", 2, kCFStringEncodingEUC_JP, false);
    bool is_right = text && CFStringGetLength(text) == 1 && CFStringGetCharacterAtIndex(text, 0) == 0x3042;

    if (text) {
        CFRelease(text);
    }
    return is_right;
}

static void *convert_on(void *failures)
{
    while (!is_over) {
        *(_Atomic int *)failures += !convert_once();
    }
    return NULL;
}

TEST(threads_convert_at_once_and_so_does_the_child_of_a_fork, "2209 2210")
{
    pthread_t threads[3];
    _Atomic int failures = 0;

    if (!CFStringIsEncodingAvailable(kCFStringEncodingEUC_JP)) {
        SKIP("the C library has no EUC-JP");
    }
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, convert_on, &failures) == 0);
    }
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();

        if (child == 0) {
            _exit(convert_once() ? 0 : 1);
        }
        int status = -1;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT_EQ(status, 0);
    }
    is_over = true;
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    EXPECT_EQ(failures, 0);
    converters_give_back();
}

static bool convert_all_ways(void)
{
    CFStringRef text = bag_keep(CFStringCreateWithBytes(NULL, (const UInt8 *)"a\xA4\xA2", 3, kCFStringEncodingEUC_JP, false));
    bool is_there = text != NULL;

    if (text) {
        CFDataRef data = bag_keep(CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingDOSJapanese, 0));
        CFDataRef plain = bag_keep(CFStringCreateExternalRepresentation(NULL, CFSTR("plain"), kCFStringEncodingISOLatin2, 0));

        MUST(CFStringGetLength(text) == 2);
        MUST(!data || CFDataGetLength(data) == 3);
        is_there = data && plain;
    }
    converters_give_back();
    return is_there;
}

TEST_LIMIT(nth_failure_encodings, "2209", 120)
{
    nth_failure_run_primed("encodings", convert_all_ways, convert_all_ways);
}
