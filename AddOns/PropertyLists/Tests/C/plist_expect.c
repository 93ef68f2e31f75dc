/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what is read and refused with words (plist_maker.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "plist_maker.h"

enum { depth_max = 20 };

struct text {
    char characters[4000];
    size_t length;
};

static void append(struct text *text, const char *words)
{
    size_t length = strlen(words);

    if (text->length + length < sizeof text->characters) {
        memcpy(text->characters + text->length, words, length + 1);
        text->length += length;
    }
}

static void append_string(struct text *text, CFStringRef string)
{
    char bytes[1000] = "?";

    (void)CFStringGetCString(string, bytes, sizeof bytes, kCFStringEncodingUTF8);
    append(text, bytes);
}

static void append_number(struct text *text, CFNumberRef number)
{
    char words[64];
    double real;
    SInt64 integer;

    if (CFNumberIsFloatType(number)) {
        (void)CFNumberGetValue(number, kCFNumberDoubleType, &real);
        snprintf(words, sizeof words, "%s%.17g", CFNumberGetByteSize(number) == 4 ? "f" : "r", real);
    } else {
        (void)CFNumberGetValue(number, kCFNumberSInt64Type, &integer);
        snprintf(words, sizeof words, "%lld", integer);
    }
    append(text, words);
}

static int compare_keys(const void *one, const void *other)
{
    return (int)CFStringCompare(*(const CFStringRef *)one, *(const CFStringRef *)other, 0);
}

static void append_tree(struct text *text, CFTypeRef tree, int depth);

static void append_container(struct text *text, CFTypeRef tree, int depth)
{
    bool is_array = CFGetTypeID(tree) == CFArrayGetTypeID();
    CFIndex count = is_array ? CFArrayGetCount(tree) : CFDictionaryGetCount(tree);
    const void **keys = calloc((size_t)count + 1, sizeof *keys);

    if (!is_array) {
        CFDictionaryGetKeysAndValues(tree, keys, NULL);
        qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    }
    append(text, is_array ? "[" : "{");
    for (CFIndex i = 0; i < count; i++) {
        append(text, i > 0 ? "," : "");
        if (!is_array) {
            append_string(text, keys[i]);
            append(text, ":");
        }
        append_tree(text, is_array ? CFArrayGetValueAtIndex(tree, i) : CFDictionaryGetValue(tree, keys[i]), depth + 1);
    }
    append(text, is_array ? "]" : "}");
    free(keys);
}

static void append_data(struct text *text, CFDataRef data)
{
    char digits[3];

    append(text, "<");
    for (CFIndex i = 0; i < CFDataGetLength(data); i++) {
        snprintf(digits, sizeof digits, "%02x", CFDataGetBytePtr(data)[i]);
        append(text, digits);
    }
    append(text, ">");
}

static void append_tree(struct text *text, CFTypeRef tree, int depth)
{
    CFTypeID type = CFGetTypeID(tree);
    char words[64];

    if (depth > depth_max) {
        append(text, "...");
    } else if (type == CFStringGetTypeID()) {
        append(text, "'");
        append_string(text, tree);
        append(text, "'");
    } else if (type == CFNumberGetTypeID()) {
        append_number(text, tree);
    } else if (type == CFBooleanGetTypeID()) {
        append(text, CFBooleanGetValue(tree) ? "true" : "false");
    } else if (type == CFDateGetTypeID()) {
        snprintf(words, sizeof words, "d%.17g", CFDateGetAbsoluteTime(tree));
        append(text, words);
    } else if (type == CFDataGetTypeID()) {
        append_data(text, tree);
    } else if (type == CFNullGetTypeID()) {
        append(text, "null");
    } else {
        append_container(text, tree, depth);
    }
}

/* Releases the error. */
static void expect_words(CFErrorRef error, const char *fragment, const char *what)
{
    CFDictionaryRef info = error ? CFErrorCopyUserInfo(error) : NULL;
    CFStringRef words = info ? CFDictionaryGetValue(info, CFSTR("NSDebugDescription")) : NULL;
    char text[300] = "no error";

    if (words) {
        (void)CFStringGetCString(words, text, sizeof text, kCFStringEncodingUTF8);
    }
    if (!words || !strstr(text, fragment)) {
        test_failed(__FILE__, __LINE__, "%s: the error is '%s', and not '%s'", what, text, fragment);
    }
    if (error) {
        EXPECT(CFEqual(CFErrorGetDomain(error), kCFErrorDomainCocoa));
        CFRelease(info);
        CFRelease(error);
    }
}

void plist_expect(const void *bytes, size_t length, CFPropertyListFormat format, const char *expected)
{
    CFDataRef data = make_data(bytes, length);
    CFErrorRef error = NULL;
    CFPropertyListFormat found = 0;
    CFTypeRef tree = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, &found, &error);
    static struct text text;

    text.length = 0;
    text.characters[0] = '\0';
    if (tree) {
        append_tree(&text, tree, 0);
        CFRelease(tree);
    }
    if (expected && *expected == '!') {
        EXPECT_STR(text.characters, "");
        EXPECT(!tree);
        expect_words(error, expected + 1, length < 100 ? (const char *)CFDataGetBytePtr(data) : "long");
    } else {
        if (!tree) {
            expect_words(error, "(a tree)", (const char *)bytes);
        }
        EXPECT_EQ(found, format);
        EXPECT_STR(text.characters, expected ? expected : text.characters);
    }
    CFRelease(data);
}

void plist_expect_refused(CFTypeRef tree, CFPropertyListFormat format, const char *fragment)
{
    CFErrorRef error = NULL;

    EXPECT(!CFPropertyListCreateData(NULL, tree, format, 0, &error));
    EXPECT(error && CFErrorGetCode(error) == kCFPropertyListWriteStreamError);
    expect_words(error, fragment, "a tree");
    CFRelease(tree);
}
