/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes texts from any bytes in any encoding. Each text can be taken apart and made again, and every question about it has an answer inside
 * its bounds. Formats are put together from the specifiers that the library knows, each with an argument of its type.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"

static const CFStringEncoding encodings[] = {
    kCFStringEncodingUTF8,          kCFStringEncodingASCII,   kCFStringEncodingISOLatin1, kCFStringEncodingMacRoman,
    kCFStringEncodingWindowsLatin1, kCFStringEncodingUTF16,   kCFStringEncodingUTF16BE,   kCFStringEncodingUTF16LE,
    kCFStringEncodingUTF32,         kCFStringEncodingUTF32BE, kCFStringEncodingUTF32LE,   kCFStringEncodingNonLossyASCII,
};

enum { encoding_count = sizeof encodings / sizeof encodings[0] };

static CFStringEncoding encoding_of(uint8_t byte)
{
    return encodings[byte % encoding_count];
}

/* Through its units, and through UTF-16 as bytes: the same text. */
static void check_round_trip(CFStringRef text)
{
    CFIndex length = CFStringGetLength(text);
    UniChar *units = malloc((size_t)length * sizeof *units + 1);
    CFStringRef again;

    CHECK(units);
    CFStringGetCharacters(text, CFRangeMake(0, length), units);
    for (CFIndex i = 0; i < length; i++) {
        CHECK(units[i] == CFStringGetCharacterAtIndex(text, i));
    }
    again = CFStringCreateWithCharacters(NULL, units, length);
    free(units);
    CHECK(again && CFEqual(text, again) && CFHash(text) == CFHash(again));
    CHECK(CFStringCompare(text, again, 0) == kCFCompareEqualTo);
    CHECK(length == 0 || (CFStringHasPrefix(text, again) && CFStringHasSuffix(text, again)));
    CFRelease(again);
}

/* What a reader may take for a byte order mark, and skip. */
static bool starts_with_mark(CFStringRef text)
{
    UniChar first = CFStringGetLength(text) > 0 ? CFStringGetCharacterAtIndex(text, 0) : 0;

    return first == 0xfeff || first == 0xfffe;
}

/* In another encoding: never more bytes than asked for, or than the maximum says. */
static void check_conversion(CFStringRef text, CFStringEncoding encoding, uint8_t choice)
{
    CFIndex length = CFStringGetLength(text);
    CFIndex most = CFStringGetMaximumSizeForEncoding(length, encoding) + 8; /* and a byte order mark */
    CFIndex capacity = choice % 3 == 0 ? choice % 16 : most;
    UInt8 *bytes = malloc((size_t)capacity + 1);
    CFIndex used = -1;
    CFIndex converted;

    CHECK(bytes);
    converted = CFStringGetBytes(text, CFRangeMake(0, length), encoding, choice & 1 ? '?' : 0, choice & 2, bytes, capacity, &used);
    CHECK(converted >= 0 && converted <= length && used >= 0 && used <= capacity);
    if (converted == length && !(choice & 1) && !(choice & 2) && !starts_with_mark(text)) {
        CFStringRef again = CFStringCreateWithBytes(NULL, bytes, used, encoding, false);

        CHECK(again && CFEqual(text, again));
        CFRelease(again);
    }
    (void)CFStringGetCString(text, (char *)bytes, capacity, encoding);
    free(bytes);
}

static void check_parts(CFStringRef text, CFStringRef other)
{
    CFIndex length = CFStringGetLength(text);
    CFRange found = CFStringFind(text, other, 0);
    CFArrayRef parts = CFStringCreateArrayBySeparatingStrings(NULL, text, other);
    CFComparisonResult order = CFStringCompare(text, other, 0);

    CHECK(found.location == kCFNotFound || (found.location >= 0 && found.location + found.length <= length));
    CHECK(CFStringCompare(other, text, 0) == -order);
    if (parts) {
        CFStringRef joined = CFStringCreateByCombiningStrings(NULL, parts, other);

        CHECK(joined && CFEqual(joined, text));
        CFRelease(joined);
        CFRelease(parts);
    }
    (void)CFStringGetIntValue(text);
    (void)CFStringGetDoubleValue(text);
}

static void append_formatted(CFMutableStringRef text, uint8_t choice, CFStringRef argument, const uint8_t *raw)
{
    static const char *const flags[] = {"", "-", "0", "+", " ", "#", "-12", "012.3", "+.0", "'", "5", ".2", "20", "-#8"};
    char format[64];
    CFStringRef formats;
    int64_t number;
    double real;
    const char *flag = flags[choice / 8 % 14];

    memcpy(&number, raw, sizeof number);
    memcpy(&real, raw, sizeof real);
    (void)snprintf(format, sizeof format, "<%%%s%s>", flag, ((const char *[]){"d", "lld", "x", "@", "f", "s", "g", "C"})[choice % 8]);
    formats = CFStringCreateWithCString(NULL, format, kCFStringEncodingASCII);
    CHECK(formats);
    switch (choice % 8) {
    case 0:
    case 2:
        CFStringAppendFormat(text, NULL, formats, (int)number);
        break;
    case 1:
        CFStringAppendFormat(text, NULL, formats, (long long)number);
        break;
    case 3:
        CFStringAppendFormat(text, NULL, formats, argument);
        break;
    case 4:
    case 6:
        CFStringAppendFormat(text, NULL, formats, real);
        break;
    case 5:
        CFStringAppendFormat(text, NULL, formats, "some text");
        break;
    default:
        CFStringAppendFormat(text, NULL, formats, (int)(number & 0xffff));
        break;
    }
    CFRelease(formats);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t raw[16] = {0};
    CFStringRef text;
    CFStringRef other;
    CFMutableStringRef all;
    size_t half;

    if (size < 4) {
        return 0;
    }
    half = (size - 4) / 2;
    memcpy(raw, bytes + 4, size - 4 < sizeof raw ? size - 4 : sizeof raw);
    text = CFStringCreateWithBytes(NULL, bytes + 4, (CFIndex)(size - 4 - half), encoding_of(bytes[0]), bytes[3] & 4);
    other = CFStringCreateWithBytes(NULL, bytes + 4 + half, (CFIndex)(size - 4 - half), encoding_of(bytes[1]), false);
    all = CFStringCreateMutable(NULL, 0);
    CHECK(all);
    if (text) {
        check_round_trip(text);
        check_conversion(text, encoding_of(bytes[2]), bytes[3]);
        CFStringAppend(all, text);
    }
    if (text && other) {
        check_parts(text, other);
    }
    append_formatted(all, bytes[3], text ? text : CFSTR("none"), raw);
    append_formatted(all, bytes[2], other ? other : CFSTR("none"), raw + 8);
    check_round_trip(all);
    if (text) {
        CFRelease(text);
    }
    if (other) {
        CFRelease(other);
    }
    CFRelease(all);
    return 0;
}
