/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the middle of texts, and the questions how a text could be written. */
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static CFMutableStringRef mutable_text(const char *utf8)
{
    CFMutableStringRef text = CFStringCreateMutable(NULL, 0);
    CFStringAppendCString(text, utf8, kCFStringEncodingUTF8);
    return text;
}

static void expect_text(CFStringRef text, const char *expected)
{
    char buffer[500];
    EXPECT(CFStringGetCString(text, buffer, sizeof buffer, kCFStringEncodingUTF8));
    EXPECT_STR(buffer, expected);
}

TEST(text_is_inserted_deleted_and_replaced, "")
{
    CFMutableStringRef text = mutable_text("run loop");
    CFStringInsert(text, 4, CFSTR("the "));
    expect_text(text, "run the loop");
    CFStringInsert(text, 12, CFSTR("s"));
    CFStringInsert(text, 0, CFSTR("I "));
    expect_text(text, "I run the loops");
    CFStringDelete(text, CFRangeMake(5, 4));
    expect_text(text, "I run loops");
    CFStringReplace(text, CFRangeMake(0, 1), CFSTR("\u20ac"));
    expect_text(text, "\xe2\x82\xac run loops");
    EXPECT_EQ(CFStringGetLength(text), 11);
    CFStringReplace(text, CFRangeMake(1, 10), CFSTR("x"));
    expect_text(text, "\xe2\x82\xacx");
    CFStringReplaceAll(text, CFSTR("plain"));
    expect_text(text, "plain");
    CFStringReplaceAll(text, CFSTR(""));
    EXPECT_EQ(CFStringGetLength(text), 0);
    EXPECT_STOPS("CFStringInsert", { CFStringInsert(text, 1, CFSTR("x")); });
    EXPECT_STOPS("CFStringDelete", { CFStringDelete(text, CFRangeMake(0, 1)); });
    EXPECT_STOPS("CFStringReplace", { CFStringReplace(text, CFRangeMake(0, -1), CFSTR("x")); });
    EXPECT_STOPS("CFStringReplaceAll", { CFStringReplaceAll((CFMutableStringRef)(uintptr_t)CFSTR("x"), CFSTR("y")); });
    CFRelease(text);
}

TEST(a_text_is_put_into_itself, "")
{
    CFMutableStringRef text = mutable_text("abc");
    CFStringInsert(text, 1, text);
    expect_text(text, "aabcbc");
    CFStringReplace(text, CFRangeMake(0, 5), text);
    expect_text(text, "aabcbcc");
    CFStringInsert(text, 7, text);
    expect_text(text, "aabcbccaabcbcc");
    for (int i = 0; i < 8; i++) {
        CFStringInsert(text, CFStringGetLength(text), text);
    }
    EXPECT_EQ(CFStringGetLength(text), 14 * 256);
    CFStringReplaceAll(text, CFSTR("\u00e9"));
    CFStringInsert(text, 0, text);
    expect_text(text, "\xc3\xa9\xc3\xa9");
    CFRelease(text);
}

static void expect_replaced(const char *start, CFStringRef wanted, CFStringRef by, CFRange range, CFStringCompareFlags options,
                            CFIndex count, const char *end)
{
    CFMutableStringRef text = mutable_text(start);
    EXPECT_EQ(CFStringFindAndReplace(text, wanted, by, range, options), count);
    expect_text(text, end);
    CFRelease(text);
}

TEST(each_place_where_a_text_stands_is_replaced, "")
{
    const CFStringCompareFlags none = (CFStringCompareFlags)0;
    expect_replaced("a-b-c", CFSTR("-"), CFSTR(" + "), CFRangeMake(0, 5), none, 2, "a + b + c");
    expect_replaced("a-b-c", CFSTR("-"), CFSTR("--"), CFRangeMake(2, 3), none, 1, "a-b--c");
    expect_replaced("aaa", CFSTR("aa"), CFSTR("b"), CFRangeMake(0, 3), none, 1, "ba");
    expect_replaced("aaa", CFSTR("aa"), CFSTR("b"), CFRangeMake(0, 3), kCFCompareBackwards, 1, "ab");
    expect_replaced("xxAxa", CFSTR("a"), CFSTR(""), CFRangeMake(0, 5), kCFCompareCaseInsensitive, 2, "xxx");
    expect_replaced("aab", CFSTR("a"), CFSTR("c"), CFRangeMake(0, 3), kCFCompareAnchored, 2, "ccb");
    expect_replaced("abc", CFSTR(""), CFSTR("x"), CFRangeMake(0, 3), none, 0, "abc");
    CFMutableStringRef text = mutable_text("ab");
    EXPECT_EQ(CFStringFindAndReplace(text, CFSTR("b"), text, CFRangeMake(0, 2), none), 1);
    expect_text(text, "aab");
    CFRelease(text);
}

TEST(a_search_passes_over_what_of_its_range_is_outside, "")
{
    const CFStringCompareFlags options[] = {(CFStringCompareFlags)0, kCFCompareBackwards};
    static const CFRange outside[] = {{5, 1}, {6, 0}, {6, 5}, {-1, 9}, {3, -1}, {LONG_MAX, LONG_MAX}, {LONG_MIN, LONG_MAX}};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"text\n", 5);
    CFDataRef newline = CFDataCreate(NULL, (const UInt8 *)"\n", 1);

    for (size_t i = 0; i < 2; i++) {
        expect_replaced("text\n", CFSTR("\n"), CFSTR(""), CFRangeMake(4, 5), options[i], 1, "text");
        expect_replaced("text\n", CFSTR("t"), CFSTR("tt"), CFRangeMake(0, LONG_MAX), options[i], 2, "ttextt\n");
        EXPECT(CFStringFindWithOptions(CFSTR("text\n"), CFSTR("\n"), CFRangeMake(4, 2), options[i], NULL));
    }
    EXPECT_EQ(CFDataFind(data, newline, CFRangeMake(1, LONG_MAX), (CFDataSearchFlags)0).location, 4);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        expect_replaced("text\n", CFSTR("\n"), CFSTR(""), outside[i], options[i % 2], 0, "text\n");
        EXPECT(!CFStringFindWithOptions(CFSTR("text\n"), CFSTR("\n"), outside[i], options[i % 2], NULL));
        EXPECT_EQ(CFDataFind(data, newline, outside[i], (CFDataSearchFlags)0).location, kCFNotFound);
    }
    CFRelease(newline);
    CFRelease(data);
}

TEST(a_text_is_found_in_a_part_of_another, "")
{
    CFRange found = CFRangeMake(7, 7);
    EXPECT(CFStringFindWithOptions(CFSTR("abcabc"), CFSTR("bc"), CFRangeMake(2, 4), (CFStringCompareFlags)0, &found));
    EXPECT_EQ(found.location, 4);
    EXPECT_EQ(found.length, 2);
    EXPECT(CFStringFindWithOptions(CFSTR("abcabc"), CFSTR("BC"), CFRangeMake(0, 5), kCFCompareCaseInsensitive | kCFCompareBackwards, NULL));
    EXPECT(!CFStringFindWithOptions(CFSTR("abcabc"), CFSTR("bc"), CFRangeMake(2, 3), (CFStringCompareFlags)0, &found));
    EXPECT_EQ(found.location, 4);
}

TEST(a_text_is_padded_and_shortened, "")
{
    CFMutableStringRef text = mutable_text("7");
    CFStringPad(text, CFSTR("abc"), 9, 1);
    expect_text(text, "7bcabcabc");
    CFStringPad(text, NULL, 3, 0);
    expect_text(text, "7bc");
    CFStringPad(text, NULL, 10, 0);
    expect_text(text, "7bc");
    CFStringPad(text, text, 8, 2);
    expect_text(text, "7bcc7bc7");
    EXPECT_STOPS("CFStringPad", { CFStringPad(text, CFSTR(""), 10, 0); });
    EXPECT_STOPS("CFStringPad", { CFStringPad(text, CFSTR("a"), -1, 0); });
    CFRelease(text);
}

TEST(text_and_spaces_are_trimmed_off_both_ends, "")
{
    CFMutableStringRef text = mutable_text("--a--b---");
    CFStringTrim(text, CFSTR("--"));
    expect_text(text, "a--b-");
    CFStringTrim(text, CFSTR(""));
    expect_text(text, "a--b-");
    CFStringReplaceAll(text, CFSTR(" \t\u00a0 two words\r\n\u2028"));
    CFStringTrimWhitespace(text);
    expect_text(text, "two words");
    CFStringReplaceAll(text, CFSTR(" \n "));
    CFStringTrimWhitespace(text);
    EXPECT_EQ(CFStringGetLength(text), 0);
    CFStringReplaceAll(text, CFSTR("xxx"));
    CFStringTrim(text, CFSTR("x"));
    EXPECT_EQ(CFStringGetLength(text), 0);
    EXPECT_STOPS("CFStringTrim", { CFStringTrim((CFMutableStringRef)(uintptr_t)CFSTR("x"), CFSTR("x")); });
    CFRelease(text);
}

TEST(letters_change_their_case, "")
{
    CFMutableStringRef text = mutable_text("Stra\xc3\x9f""e, \xc3\x84rger 7 \xf0\x9f\x98\x80 z[`{");
    CFStringUppercase(text, NULL);
    expect_text(text, "STRA\xc3\x9f""E, \xc3\x84RGER 7 \xf0\x9f\x98\x80 Z[`{");
    CFStringLowercase(text, NULL);
    expect_text(text, "stra\xc3\x9f""e, \xc3\xa4rger 7 \xf0\x9f\x98\x80 z[`{");
    CFRelease(text);
}

TEST(a_text_says_how_it_can_be_written, "")
{
    CFStringRef ascii = CFStringCreateWithCString(NULL, "abc", kCFStringEncodingASCII);
    CFStringRef latin = CFStringCreateWithCString(NULL, "\xc3\xa9", kCFStringEncodingUTF8);
    CFStringRef mixed = CFStringCreateWithCString(NULL, "ab\xe2\x82\xac", kCFStringEncodingUTF8);
    CFStringRef euros = CFStringCreateWithCString(NULL, "\xe2\x82\xac\xe2\x82\xac", kCFStringEncodingUTF8);
    EXPECT_EQ(CFStringGetFastestEncoding(ascii), kCFStringEncodingASCII);
    EXPECT_EQ(CFStringGetFastestEncoding(latin), kCFStringEncodingUTF16);
    EXPECT(CFStringGetCStringPtr(ascii, CFStringGetFastestEncoding(ascii)) != NULL);
    EXPECT_STR(CFStringGetCStringPtr(CFSTR("abc"), CFStringGetFastestEncoding(CFSTR("abc"))), "abc");
    EXPECT_EQ(CFStringGetSmallestEncoding(ascii), kCFStringEncodingASCII);
    EXPECT_EQ(CFStringGetSmallestEncoding(latin), kCFStringEncodingISOLatin1);
    EXPECT_EQ(CFStringGetSmallestEncoding(mixed), kCFStringEncodingUTF8);
    EXPECT_EQ(CFStringGetSmallestEncoding(euros), kCFStringEncodingUTF16);
    EXPECT(CFStringGetCharactersPtr(ascii) == NULL);
    EXPECT_EQ(CFStringGetCharactersPtr(euros)[1], 0x20AC);
    EXPECT_EQ(CFStringGetSystemEncoding(), kCFStringEncodingUTF8);
    EXPECT(CFStringIsEncodingAvailable(kCFStringEncodingISOLatin1));
    EXPECT(!CFStringIsEncodingAvailable(kCFStringEncodingInvalidId));
    CFRelease(ascii);
    CFRelease(latin);
    CFRelease(mixed);
    CFRelease(euros);
}

TEST(each_encoding_that_is_there_has_a_name, "")
{
    static const struct {
        CFStringEncoding encoding;
        const char *name;
    } encodings[] = {
        {kCFStringEncodingMacRoman, "Western (Mac OS Roman)"},
        {kCFStringEncodingWindowsLatin1, "Western (Windows Latin 1)"},
        {kCFStringEncodingISOLatin1, "Western (ISO Latin 1)"},
        {kCFStringEncodingASCII, "Western (ASCII)"},
        {kCFStringEncodingNonLossyASCII, "Non-lossy ASCII"},
        {kCFStringEncodingUTF8, "Unicode (UTF-8)"},
        {kCFStringEncodingUTF16, "Unicode (UTF-16)"},
        {kCFStringEncodingUTF16BE, "Unicode (UTF-16BE)"},
        {kCFStringEncodingUTF16LE, "Unicode (UTF-16LE)"},
        {kCFStringEncodingUTF32, "Unicode (UTF-32)"},
        {kCFStringEncodingUTF32BE, "Unicode (UTF-32BE)"},
        {kCFStringEncodingUTF32LE, "Unicode (UTF-32LE)"},
    };
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        expect_text(CFStringGetNameOfEncoding(encodings[i].encoding), encodings[i].name);
    }
    EXPECT(CFStringGetNameOfEncoding(kCFStringEncodingInvalidId) == NULL);
}

TEST(paths_are_texts_in_utf_8, "")
{
    CFStringRef path = CFStringCreateWithFileSystemRepresentation(NULL, "/tmp/\xc3\xa9");
    char buffer[32];
    EXPECT_EQ(CFStringGetLength(path), 6);
    EXPECT(CFStringGetMaximumSizeOfFileSystemRepresentation(path) >= 8);
    EXPECT(!CFStringGetFileSystemRepresentation(path, buffer, 7));
    EXPECT(CFStringGetFileSystemRepresentation(path, buffer, 8));
    EXPECT_STR(buffer, "/tmp/\xc3\xa9");
    EXPECT(CFStringCreateWithFileSystemRepresentation(NULL, NULL) == NULL);
    CFRelease(path);
}

TEST(a_text_frees_the_memory_that_it_was_given, "")
{
    UInt8 *bytes = CFAllocatorAllocate(NULL, 3, 0);
    memcpy(bytes, "abc", 3);
    CFStringRef text = CFStringCreateWithBytesNoCopy(NULL, bytes, 3, kCFStringEncodingASCII, false, NULL);
    expect_text(text, "abc");
    CFRelease(text);
    static const UniChar units[] = {0x20AC, 'x'};
    text = CFStringCreateWithCharactersNoCopy(NULL, units, 2, kCFAllocatorNull);
    expect_text(text, "\xe2\x82\xacx");
    CFRelease(text);
    EXPECT(CFStringCreateWithBytesNoCopy(NULL, (const UInt8 *)"\xff", 1, kCFStringEncodingUTF8, false, NULL) == NULL);
}

static void append(CFMutableStringRef text, CFStringRef format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    CFStringAppendFormatAndArguments(text, NULL, format, arguments);
    va_end(arguments);
}

TEST(a_format_is_added_with_arguments_of_a_callers, "")
{
    CFMutableStringRef text = mutable_text("n =");
    append(text, CFSTR(" %d, %@"), 7, CFSTR("seven"));
    expect_text(text, "n = 7, seven");
    CFRelease(text);
}

TEST(an_inline_buffer_reads_any_unit_of_its_part, "")
{
    CFMutableStringRef text = mutable_text("");
    for (int i = 0; i < 300; i++) {
        UniChar unit = (UniChar)(0x100 + i);
        CFStringAppendCharacters(text, &unit, 1);
    }
    CFStringInlineBuffer buffer;
    CFStringInitInlineBuffer(text, &buffer, CFRangeMake(10, 280));
    for (CFIndex i = 0; i < 280; i++) {
        EXPECT_EQ(CFStringGetCharacterFromInlineBuffer(&buffer, i), 0x10A + i);
    }
    EXPECT_EQ(CFStringGetCharacterFromInlineBuffer(&buffer, 0), 0x10A);
    EXPECT_EQ(CFStringGetCharacterFromInlineBuffer(&buffer, 279), 0x221);
    EXPECT_EQ(CFStringGetCharacterFromInlineBuffer(&buffer, 280), 0);
    EXPECT_EQ(CFStringGetCharacterFromInlineBuffer(&buffer, -1), 0);
    CFRelease(text);
}

TEST(characters_are_split_into_surrogates_and_joined, "")
{
    UniChar pair[2] = {0, 0};
    EXPECT(CFStringGetSurrogatePairForLongCharacter(0x1F600, pair));
    EXPECT(CFStringIsSurrogateHighCharacter(pair[0]) && !CFStringIsSurrogateLowCharacter(pair[0]));
    EXPECT(CFStringIsSurrogateLowCharacter(pair[1]) && !CFStringIsSurrogateHighCharacter(pair[1]));
    EXPECT_EQ(CFStringGetLongCharacterForSurrogatePair(pair[0], pair[1]), 0x1F600);
    EXPECT(!CFStringGetSurrogatePairForLongCharacter('a', pair));
    EXPECT_EQ(pair[0], 'a');
}
