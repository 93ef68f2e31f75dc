/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: making, reading, comparing, searching, changing, showing. Encodings, formats and literals have files of their own. */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static CFStringRef text_of(const char *utf8)
{
    CFStringRef text = CFStringCreateWithCString(NULL, utf8, kCFStringEncodingUTF8);
    REQUIRE(text != NULL);
    return text;
}

/* Compares with a C string and releases. */
static void expect_text(CFStringRef text, const char *expected)
{
    char buffer[500] = "NULL";
    if (text != NULL) {
        EXPECT(CFStringGetCString(text, buffer, sizeof buffer, kCFStringEncodingUTF8));
        CFRelease(text);
    }
    EXPECT_STR(buffer, expected);
}

TEST(texts_count_utf16_units, "")
{
    CFStringRef text = text_of("aé€😀");
    EXPECT_EQ(CFStringGetLength(text), 5);
    EXPECT_EQ(CFStringGetCharacterAtIndex(text, 3), 0xD83D);
    UniChar units[3];
    CFStringGetCharacters(text, CFRangeMake(1, 3), units);
    EXPECT_EQ(units[0], 0xE9);
    EXPECT_EQ(units[1], 0x20AC);
    EXPECT_EQ(units[2], 0xD83D);
    CFStringGetCharacters(text, CFRangeMake(5, 0), NULL);
    CFRelease(text);
    text = CFStringCreateWithCharacters(NULL, units, 2);
    expect_text(text, "é€");
    expect_text(CFStringCreateWithCharacters(NULL, NULL, 0), "");
    EXPECT(CFStringCreateWithCharacters(NULL, NULL, 1) == NULL);
    EXPECT(CFStringCreateWithCharacters(NULL, units, -1) == NULL);
    EXPECT(CFStringCreateWithCString(NULL, NULL, kCFStringEncodingUTF8) == NULL);
}

TEST(texts_of_ascii_characters_have_a_c_string, "")
{
    UniChar units[] = {'a', 'b', 'c'};
    CFStringRef text = CFStringCreateWithCharacters(NULL, units, 3);
    EXPECT_STR(CFStringGetCStringPtr(text, kCFStringEncodingUTF8), "abc");
    EXPECT_STR(CFStringGetCStringPtr(text, kCFStringEncodingMacRoman), "abc");
    EXPECT(CFStringGetCStringPtr(text, kCFStringEncodingNonLossyASCII) == NULL);
    CFRelease(text);
    text = text_of("é");
    EXPECT(CFStringGetCStringPtr(text, kCFStringEncodingUTF8) == NULL);
    CFRelease(text);
    CFMutableStringRef changed = CFStringCreateMutable(NULL, 0);
    EXPECT_STR(CFStringGetCStringPtr(changed, kCFStringEncodingUTF8), "");
    CFStringAppend(changed, CFSTR("abc"));
    EXPECT_STR(CFStringGetCStringPtr(changed, kCFStringEncodingUTF8), "abc");
    CFRelease(changed);
}

TEST(a_c_string_must_fit_with_its_nul, "438")
{
    char buffer[20];
    CFStringRef text = text_of("aé");
    EXPECT(CFStringGetCString(text, buffer, 4, kCFStringEncodingUTF8));
    EXPECT_STR(buffer, "aé");
    EXPECT(!CFStringGetCString(text, buffer, 3, kCFStringEncodingUTF8));
    EXPECT_STR(buffer, "");
    buffer[0] = '#';
    EXPECT(!CFStringGetCString(text, buffer, 20, kCFStringEncodingASCII));
    EXPECT_STR(buffer, "");
    buffer[0] = '#';
    EXPECT(!CFStringGetCString(text, buffer, 20, 0x12345));
    EXPECT_STR(buffer, "");
    EXPECT(!CFStringGetCString(text, buffer, 0, kCFStringEncodingUTF8));
    EXPECT(!CFStringGetCString(text, buffer, -1, kCFStringEncodingUTF8));
    EXPECT(!CFStringGetCString(text, NULL, 20, kCFStringEncodingUTF8));
    CFRelease(text);
    EXPECT(CFStringGetCString(CFSTR(""), buffer, 1, kCFStringEncodingUTF8));
    EXPECT(CFStringGetCString(CFSTR("abc"), buffer, 4, kCFStringEncodingASCII));
    EXPECT(!CFStringGetCString(CFSTR("abc"), buffer, 3, kCFStringEncodingASCII));
}

static int bytes_freed;

static void free_bytes(void *bytes, void *info)
{
    (void)info;
    free(bytes);
    bytes_freed++;
}

static char *new_bytes(const char *bytes)
{
    char *copy = malloc(strlen(bytes) + 1);
    REQUIRE(copy != NULL);
    return strcpy(copy, bytes);
}

TEST(bytes_that_are_not_copied_are_freed_when_they_are_not_needed, "")
{
    CFAllocatorContext context = {.deallocate = free_bytes};
    CFAllocatorRef deallocator = CFAllocatorCreate(NULL, &context);
    char *bytes = new_bytes("ascii");
    CFStringRef text = CFStringCreateWithCStringNoCopy(NULL, bytes, kCFStringEncodingUTF8, deallocator);
    EXPECT(CFStringGetCStringPtr(text, kCFStringEncodingUTF8) == bytes);
    EXPECT_EQ(bytes_freed, 0);
    CFRelease(text);
    EXPECT_EQ(bytes_freed, 1);
    text = CFStringCreateWithCStringNoCopy(NULL, new_bytes("größer"), kCFStringEncodingUTF8, deallocator);
    EXPECT_EQ(bytes_freed, 2);
    expect_text(text, "größer");
    bytes = new_bytes("\xFF");
    EXPECT(CFStringCreateWithCStringNoCopy(NULL, bytes, kCFStringEncodingUTF8, deallocator) == NULL);
    EXPECT_EQ(bytes_freed, 2);
    free(bytes);
    expect_text(CFStringCreateWithCStringNoCopy(NULL, "nobody's", kCFStringEncodingASCII, kCFAllocatorNull), "nobody's");
    expect_text(CFStringCreateWithCStringNoCopy(NULL, new_bytes("the default's"), kCFStringEncodingASCII, NULL), "the default's");
    EXPECT(CFStringCreateWithCStringNoCopy(NULL, NULL, kCFStringEncodingASCII, NULL) == NULL);
    EXPECT_EQ(CFGetRetainCount(deallocator), 1);
    CFRelease(deallocator);
}

TEST(a_copy_of_a_text_outlives_bytes_that_were_lent, "436")
{
    char bytes[] = "abc";
    CFStringRef lent = CFStringCreateWithCStringNoCopy(NULL, bytes, kCFStringEncodingASCII, kCFAllocatorNull);
    CFStringRef copy = CFStringCreateCopy(NULL, lent);
    CFRelease(lent);
    memset(bytes, 'x', 3);
    expect_text(copy, "abc");
}

TEST(copies_have_the_same_text, "")
{
    CFStringRef text = text_of("größer");
    CFStringRef copy = CFStringCreateCopy(NULL, text);
    EXPECT(copy == text);
    CFRelease(copy);
    copy = CFStringCreateCopy(kCFAllocatorMalloc, text);
    EXPECT(copy != text && CFEqual(copy, text));
    CFRelease(copy);
    CFMutableStringRef changed = CFStringCreateMutableCopy(NULL, 100, text);
    CFStringRef frozen = CFStringCreateCopy(NULL, changed);
    CFStringAppend(changed, CFSTR("!"));
    EXPECT(CFEqual(frozen, text));
    EXPECT(!CFEqual(changed, text));
    expect_text(frozen, "größer");
    expect_text(changed, "größer!");
    expect_text(CFStringCreateWithSubstring(NULL, text, CFRangeMake(2, 2)), "öß");
    expect_text(CFStringCreateWithSubstring(NULL, text, CFRangeMake(4, 2)), "er");
    expect_text(CFStringCreateWithSubstring(NULL, text, CFRangeMake(6, 0)), "");
    CFRelease(text);
}

TEST(a_text_grows_from_bytes_to_units, "")
{
    CFMutableStringRef text = CFStringCreateMutable(NULL, 0);
    for (int i = 0; i < 1000; i++) {
        CFStringAppendCString(text, "abc", kCFStringEncodingASCII);
    }
    EXPECT_EQ(CFStringGetLength(text), 3000);
    CFStringAppendCString(text, "é", kCFStringEncodingUTF8);
    CFStringAppend(text, text);
    EXPECT_EQ(CFStringGetLength(text), 6002);
    EXPECT_EQ(CFStringGetCharacterAtIndex(text, 3000), 0xE9);
    EXPECT_EQ(CFStringGetCharacterAtIndex(text, 3001), 'a');
    EXPECT_EQ(CFStringGetCharacterAtIndex(text, 6001), 0xE9);
    UniChar units[] = {0xD83D, 0xDE00};
    CFStringAppendCharacters(text, units, 2);
    CFStringAppendCharacters(text, units, 0);
    CFStringAppendCharacters(text, NULL, 2);
    CFStringAppendCharacters(text, units, -2);
    CFStringAppendCString(text, "\xFF", kCFStringEncodingUTF8);
    CFStringAppend(text, CFSTR(""));
    EXPECT_EQ(CFStringGetLength(text), 6004);
    CFRelease(text);
    text = CFStringCreateMutable(NULL, LONG_MAX);
    CFStringAppend(text, CFSTR("ab"));
    CFStringAppend(text, text);
    expect_text(text, "abab");
    text = CFStringCreateMutable(NULL, -5);
    expect_text(text, "");
}

static CFComparisonResult compared(const char *one, const char *other, CFStringCompareFlags options)
{
    CFStringRef text1 = text_of(one);
    CFStringRef text2 = text_of(other);
    CFComparisonResult result = CFStringCompare(text1, text2, options);
    EXPECT_EQ(CFStringCompare(text2, text1, options), -result);
    CFRelease(text1);
    CFRelease(text2);
    return result;
}

TEST(texts_are_ordered_unit_by_unit, "")
{
    EXPECT_EQ(compared("a", "b", 0), kCFCompareLessThan);
    EXPECT_EQ(compared("abc", "abc", 0), kCFCompareEqualTo);
    EXPECT_EQ(compared("ab", "abc", 0), kCFCompareLessThan);
    EXPECT_EQ(compared("", "a", 0), kCFCompareLessThan);
    EXPECT_EQ(compared("", "", 0), kCFCompareEqualTo);
    EXPECT_EQ(compared("Z", "a", 0), kCFCompareLessThan);
    EXPECT_EQ(compared("z", "é", 0), kCFCompareLessThan);
}

TEST(capital_and_small_letters_may_be_the_same, "")
{
    EXPECT_EQ(compared("Straße", "sTRAßE", kCFCompareCaseInsensitive), kCFCompareEqualTo);
    EXPECT_EQ(compared("ÄÖÜ", "äöü", kCFCompareCaseInsensitive), kCFCompareEqualTo);
    EXPECT_EQ(compared("Σίσυφος", "ΣΊΣΥΦΟΣ", kCFCompareCaseInsensitive), kCFCompareEqualTo);
    EXPECT_EQ(compared("МОСКВА", "москва", kCFCompareCaseInsensitive), kCFCompareEqualTo);
    EXPECT_EQ(compared("abc", "ABD", kCFCompareCaseInsensitive), kCFCompareLessThan);
    EXPECT_EQ(compared("東", "京", kCFCompareCaseInsensitive), kCFCompareGreaterThan);
}

TEST(digits_in_a_row_may_be_a_number, "")
{
    EXPECT_EQ(compared("a2", "a10", kCFCompareNumerically), kCFCompareLessThan);
    EXPECT_EQ(compared("a2", "a10", 0), kCFCompareGreaterThan);
    EXPECT_EQ(compared("a01", "a1", kCFCompareNumerically), kCFCompareEqualTo);
    EXPECT_EQ(compared("a01b", "a1c", kCFCompareNumerically), kCFCompareLessThan);
    EXPECT_EQ(compared("1", "a", kCFCompareNumerically), kCFCompareLessThan);
    EXPECT_EQ(compared("v123456789012345678901234567890", "v123456789012345678901234567891", kCFCompareNumerically), kCFCompareLessThan);
    EXPECT_EQ(compared("A7x", "a07X", kCFCompareNumerically | kCFCompareCaseInsensitive), kCFCompareEqualTo);
}

TEST(a_part_can_be_compared, "")
{
    EXPECT_EQ(CFStringCompareWithOptions(CFSTR("xabcx"), CFSTR("ABC"), CFRangeMake(1, 3), kCFCompareCaseInsensitive), kCFCompareEqualTo);
    EXPECT_EQ(CFStringCompareWithOptions(CFSTR("xabcx"), CFSTR("abc"), CFRangeMake(1, 2), 0), kCFCompareLessThan);
    EXPECT_EQ(CFStringCompareWithOptions(CFSTR("x12x"), CFSTR("12"), CFRangeMake(1, 2), kCFCompareNumerically), kCFCompareEqualTo);
}

static CFIndex found(const char *text, const char *wanted, CFStringCompareFlags options)
{
    CFStringRef text1 = text_of(text);
    CFStringRef text2 = text_of(wanted);
    CFRange range = CFStringFind(text1, text2, options);
    EXPECT_EQ(range.length, range.location == kCFNotFound ? 0 : CFStringGetLength(text2));
    CFRelease(text1);
    CFRelease(text2);
    return range.location;
}

TEST(a_text_is_found_in_another, "")
{
    EXPECT_EQ(found("hello", "l", 0), 2);
    EXPECT_EQ(found("hello", "l", kCFCompareBackwards), 3);
    EXPECT_EQ(found("hello", "h", kCFCompareAnchored), 0);
    EXPECT_EQ(found("hello", "e", kCFCompareAnchored), kCFNotFound);
    EXPECT_EQ(found("hello", "lo", kCFCompareAnchored | kCFCompareBackwards), 3);
    EXPECT_EQ(found("hello", "LL", kCFCompareCaseInsensitive), 2);
    EXPECT_EQ(found("hello", "", 0), kCFNotFound);
    EXPECT_EQ(found("", "x", 0), kCFNotFound);
    EXPECT_EQ(found("short", "much longer", 0), kCFNotFound);
    EXPECT_EQ(found("aaéaaé", "é", kCFCompareBackwards), 5);
    EXPECT_EQ(found("aab", "ab", 0), 1);
    EXPECT(CFStringHasPrefix(CFSTR("prefix"), CFSTR("pre")));
    EXPECT(!CFStringHasPrefix(CFSTR("prefix"), CFSTR("fix")));
    EXPECT(!CFStringHasPrefix(CFSTR("prefix"), CFSTR("")));
    EXPECT(CFStringHasSuffix(CFSTR("prefix"), CFSTR("fix")));
    EXPECT(!CFStringHasSuffix(CFSTR("prefix"), CFSTR("pre")));
    EXPECT(!CFStringHasSuffix(CFSTR("prefix"), CFSTR("")));
}

static void expect_parts(const char *text, const char *separator, const char *expected)
{
    CFStringRef text1 = text_of(text);
    CFStringRef text2 = text_of(separator);
    CFArrayRef parts = CFStringCreateArrayBySeparatingStrings(NULL, text1, text2);
    expect_text(CFStringCreateByCombiningStrings(NULL, parts, CFSTR("|")), expected);
    CFStringRef again = CFStringCreateByCombiningStrings(NULL, parts, text2);
    EXPECT(CFEqual(again, text1));
    CFRelease(again);
    CFRelease(parts);
    CFRelease(text1);
    CFRelease(text2);
}

TEST(texts_are_separated_and_combined, "")
{
    expect_parts("a,b,c", ",", "a|b|c");
    expect_parts("", ",", "");
    expect_parts(",", ",", "|");
    expect_parts("abc", "", "abc");
    expect_parts("aaa", "aa", "|a");
    expect_parts("größer als größer", "ö", "gr|ßer als gr|ßer");
    CFArrayRef nothing = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);
    expect_text(CFStringCreateByCombiningStrings(NULL, nothing, CFSTR(",")), "");
    CFRelease(nothing);
}

TEST(texts_go_outside_and_come_back, "")
{
    static const CFStringEncoding encodings[] = {kCFStringEncodingUTF8, kCFStringEncodingUTF16, kCFStringEncodingUTF32,
                                                 kCFStringEncodingUTF16BE, kCFStringEncodingNonLossyASCII};
    CFStringRef text = text_of("aé😀z");
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        CFDataRef data = CFStringCreateExternalRepresentation(NULL, text, encodings[i], 0);
        REQUIRE(data != NULL);
        expect_text(CFStringCreateFromExternalRepresentation(NULL, data, encodings[i]), "aé😀z");
        CFRelease(data);
    }
    EXPECT(CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingASCII, 0) == NULL);
    EXPECT(CFStringCreateExternalRepresentation(NULL, text, 0x12345, '?') == NULL);
    CFDataRef data = CFStringCreateExternalRepresentation(NULL, text, kCFStringEncodingASCII, '?');
    EXPECT_EQ(CFDataGetLength(data), 5);
    EXPECT(memcmp(CFDataGetBytePtr(data), "a???z", 5) == 0);
    CFRelease(data);
    data = CFStringCreateExternalRepresentation(NULL, CFSTR(""), kCFStringEncodingUTF8, 0);
    EXPECT_EQ(CFDataGetLength(data), 0);
    expect_text(CFStringCreateFromExternalRepresentation(NULL, data, kCFStringEncodingUTF8), "");
    CFRelease(data);
    CFRelease(text);
}

TEST(whole_numbers_are_read_as_far_as_they_go, "")
{
    static const struct {
        const char *text;
        SInt32 value;
    } table[] = {{"12", 12},
                 {"  -12x", -12},
                 {"+5", 5},
                 {"99999999999", INT32_MAX},
                 {"-99999999999", INT32_MIN},
                 {"-2147483648", INT32_MIN},
                 {"2147483647", INT32_MAX},
                 {"abc", 0},
                 {"", 0},
                 {"-", 0},
                 {"0x10", 0},
                 {"1 2", 1},
                 {"\t\n7", 7},
                 {"12.9", 12},
                 {"007", 7}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CFStringRef text = text_of(table[i].text);
        EXPECT_EQ(CFStringGetIntValue(text), table[i].value);
        CFRelease(text);
    }
}

TEST(decimal_numbers_are_read_as_far_as_they_go, "")
{
    static const struct {
        const char *text;
        double value;
    } table[] = {{"12.5", 12.5},
                 {"  -12.25x", -12.25},
                 {"+5", 5},
                 {"1e3", 1000},
                 {"1E-2", 0.01},
                 {"abc", 0},
                 {"", 0},
                 {"0x10", 0},
                 {".5", 0.5},
                 {"5.", 5},
                 {"1e", 1},
                 {"1e+", 1},
                 {"1,5", 1},
                 {".", 0},
                 {"-", 0},
                 {"inf", 0},
                 {"nan", 0},
                 {"-.5e1z", -5},
                 {"0.1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001", 0.1}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CFStringRef text = text_of(table[i].text);
        EXPECT_NEAR(CFStringGetDoubleValue(text), table[i].value, 0);
        CFRelease(text);
    }
    EXPECT(isinf(CFStringGetDoubleValue(CFSTR("1e999"))));
}

/* What `show` writes to standard error. */
static const char *shown(void (*show)(CFTypeRef), CFTypeRef object)
{
    static char text[4096];
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    show(object);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t count = read(ends[0], text, sizeof text - 1);
    text[count > 0 ? count : 0] = '\0';
    close(ends[0]);
    return text;
}

static void show_storage(CFTypeRef text)
{
    CFShowStr(text);
}

TEST(objects_are_shown_on_standard_error, "")
{
    EXPECT_STR(shown(CFShow, CFSTR("größer 😀")), "größer 😀\n");
    EXPECT_STR(shown(CFShow, kCFNull), "<null>\n");
    EXPECT_STR(shown(CFShow, NULL), "(null)\n");
    UniChar half = 0xD800;
    CFStringRef text = CFStringCreateWithCharacters(NULL, &half, 1);
    EXPECT_STR(shown(CFShow, text), "?\n");
    EXPECT_STR(shown(show_storage, text), "length 1, stored as UTF-16, immutable, references 1\n");
    CFRelease(text);
    CFMutableStringRef changed = CFStringCreateMutable(NULL, 0);
    for (int i = 0; i < 300; i++) {
        CFStringAppend(changed, CFSTR("é€😀"));
    }
    EXPECT_EQ(strlen(shown(CFShow, changed)), 300 * 9 + 1);
    CFRelease(changed);
    EXPECT_STR(shown(show_storage, NULL), "(null)\n");
}

TEST(misuse_of_texts_stops_with_a_sentence, "")
{
    CFStringRef text = CFSTR("abc");
    CFMutableStringRef fixed = (CFMutableStringRef)(uintptr_t)text_of("abc");
    UniChar units[4];
    EXPECT_STOPS("CFStringGetLength: the string is NULL", { CFStringGetLength(NULL); });
    EXPECT_STOPS("CFStringGetLength: the string is a CFNull", { CFStringGetLength((CFStringRef)(const void *)kCFNull); });
    EXPECT_STOPS("CFStringGetCharacterAtIndex: the index 3 is outside the string, whose length is 3",
                 { CFStringGetCharacterAtIndex(text, 3); });
    EXPECT_STOPS("CFStringGetCharacterAtIndex: the index -1", { CFStringGetCharacterAtIndex(text, -1); });
    EXPECT_STOPS("CFStringGetCharacters: the range {2, 2} is outside", { CFStringGetCharacters(text, CFRangeMake(2, 2), units); });
    EXPECT_STOPS("CFStringGetBytes: the range {4, 0} is outside",
                 { CFStringGetBytes(text, CFRangeMake(4, 0), kCFStringEncodingUTF8, 0, false, NULL, 0, NULL); });
    EXPECT_STOPS("CFStringCreateWithSubstring: the range {1, 2147483647}",
                 { CFStringCreateWithSubstring(NULL, text, CFRangeMake(1, INT_MAX)); });
    EXPECT_STOPS("CFStringCreateWithSubstring: the range {1, ", { CFStringCreateWithSubstring(NULL, text, CFRangeMake(1, LONG_MAX)); });
    EXPECT_STOPS("CFStringCompareWithOptions: the range {0, -1}", { CFStringCompareWithOptions(text, text, CFRangeMake(0, -1), 0); });
    EXPECT_STOPS("CFStringAppend: the string cannot be changed", { CFStringAppend(fixed, text); });
    EXPECT_STOPS("CFStringAppendFormat: the string cannot be changed", { CFStringAppendFormat(fixed, NULL, text); });
    EXPECT_STOPS("CFStringAppendCString: the string cannot be changed", { CFStringAppendCString(fixed, "x", kCFStringEncodingUTF8); });
    EXPECT_STOPS("CFStringAppendCString: the C string is NULL",
                 { CFStringAppendCString(CFStringCreateMutable(NULL, 0), NULL, kCFStringEncodingUTF8); });
    EXPECT_STOPS("CFStringAppendCharacters: the string is NULL", { CFStringAppendCharacters(NULL, units, 1); });
    EXPECT_STOPS("CFStringCreateByCombiningStrings: the array is NULL", { CFStringCreateByCombiningStrings(NULL, NULL, text); });
    CFRelease(fixed);
}

/* Every way to make a text, each with ever more memory until it succeeds. */
static CFTypeRef make_one(int way, CFAllocatorRef allocator)
{
    static const UniChar units[] = {0x20AC};
    CFTypeRef made = NULL;
    CFArrayRef array;
    switch (way) {
    case 0:
        return CFStringCreateWithCString(allocator, "ascii", kCFStringEncodingUTF8);
    case 1:
        return CFStringCreateWithCString(allocator, "größer", kCFStringEncodingUTF8);
    case 2:
        return CFStringCreateWithCharacters(allocator, units, 1);
    case 3:
        return CFStringCreateWithCStringNoCopy(allocator, "ascii", kCFStringEncodingUTF8, kCFAllocatorNull);
    case 4:
        return CFStringCreateMutable(allocator, 10);
    case 5:
        return CFStringCreateMutableCopy(allocator, 0, CFSTR("größer, and longer than what the first allocation has room for"));
    case 6:
        return CFStringCreateArrayBySeparatingStrings(allocator, CFSTR("a,b,c,d,e,f,g,h,i,j"), CFSTR(","));
    case 7:
        array = CFStringCreateArrayBySeparatingStrings(NULL, CFSTR("a,b"), CFSTR(","));
        made = CFStringCreateByCombiningStrings(allocator, array, CFSTR("ü"));
        CFRelease(array);
        return made;
    case 8:
        return CFStringCreateExternalRepresentation(allocator, CFSTR("größer"), kCFStringEncodingUTF8, 0);
    case 9:
        return CFStringCreateWithFormat(allocator, NULL, CFSTR("%d"), 5);
    default:
        return NULL;
    }
}

TEST(making_a_text_without_memory_gives_null_and_leaks_nothing, "")
{
    for (int way = 0; way < 10; way++) {
        for (int reallocates = 0; reallocates < 2; reallocates++) {
            CFTypeRef made = NULL;
            for (long allowance = 0; made == NULL; allowance++) {
                REQUIRE(allowance < 100);
                struct counting counting;
                counting_open(&counting, allowance, reallocates);
                made = make_one(way, counting.allocator);
                if (made != NULL) {
                    EXPECT(allowance > 0);
                    CFRelease(made);
                }
                counting_close(&counting);
            }
        }
    }
}

TEST(a_text_that_cannot_grow_stays_as_it_is, "")
{
    struct counting counting;
    counting_open(&counting, 2, true);
    CFMutableStringRef text = CFStringCreateMutable(counting.allocator, 0);
    CFStringAppend(text, CFSTR("abc"));
    CFStringAppend(text, CFSTR("größer"));
    CFStringAppendCString(text, "longer than the room that the text had at first", kCFStringEncodingUTF8);
    CFStringAppend(text, CFSTR("d"));
    expect_text(text, "abcd");
    counting_close(&counting);
}

TEST(texts_do_not_grow_beyond_what_an_index_can_hold, "")
{
    /* A literal in clang's layout that claims more than there can be; only its length may be looked at. */
    struct {
        const void *isa;
        uint32_t flags, gap;
        const void *units;
        long length;
    } huge = {NULL, 0x7C8, 0, "", LONG_MAX};
    CFStringRef text = text_of("x");
    huge.isa = *(const void *const *)(const void *)text;
    CFMutableStringRef changed = CFStringCreateMutableCopy(NULL, 0, text);
    CFStringAppend(changed, (CFStringRef)(const void *)&huge);
    CFStringAppend(changed, CFSTR("y"));
    expect_text(changed, "xy");
    huge.length = LONG_MAX - 10;
    EXPECT(CFStringCreateMutableCopy(NULL, 0, (CFStringRef)(const void *)&huge) == NULL);
    EXPECT(CFStringCreateWithSubstring(NULL, (CFStringRef)(const void *)&huge, CFRangeMake(0, LONG_MAX - 10)) == NULL);
    CFRelease(text);
}
