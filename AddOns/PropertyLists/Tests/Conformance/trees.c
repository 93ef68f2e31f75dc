/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random trees, written and read: built once with the toolchain's Core Foundation and once with this library, and compared by `run`.
 *
 *     trees write FIRST LAST     each seed's tree: a line of it as text, one of its XML and one of its binary form, in hexadecimal
 *     trees read                 lines of bytes in hexadecimal; for each a line of the tree as text, or "refused"
 */
#include <CoreFoundation/CoreFoundation.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- trees as text ---- */

static void print_string(CFStringRef string)
{
    CFIndex length = CFStringGetLength(string);

    printf("'");
    for (CFIndex i = 0; i < length; i++) {
        UniChar unit = CFStringGetCharacterAtIndex(string, i);

        printf(unit > 32 && unit < 127 && unit != '\'' && unit != '\\' ? "%c" : "\\%04x", unit);
    }
    printf("'");
}

static void print_real(char letter, double real)
{
    if (isnan(real)) {
        printf("%cnan", letter);
    } else {
        printf("%c%a", letter, real);
    }
}

static int compare_keys(const void *one, const void *other)
{
    return (int)CFStringCompare(*(const CFStringRef *)one, *(const CFStringRef *)other, 0);
}

static void print_tree(CFTypeRef tree);

static void print_dictionary(CFDictionaryRef dictionary)
{
    CFIndex count = CFDictionaryGetCount(dictionary);
    const void **keys = calloc((size_t)count + 1, sizeof *keys);

    CFDictionaryGetKeysAndValues(dictionary, keys, NULL);
    for (CFIndex i = 0; i < count; i++) {
        if (CFGetTypeID(keys[i]) != CFStringGetTypeID()) {
            printf("foreign");
            free(keys);
            return;
        }
    }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    printf("{");
    for (CFIndex i = 0; i < count; i++) {
        print_string(keys[i]);
        printf(":");
        print_tree(CFDictionaryGetValue(dictionary, keys[i]));
        printf(",");
    }
    printf("}");
    free(keys);
}

static void print_number(CFNumberRef number)
{
    double real = 0;
    SInt64 integer = 0;

    if (CFNumberIsFloatType(number)) {
        CFNumberGetValue(number, kCFNumberDoubleType, &real);
        print_real('r', real);
    } else {
        CFNumberGetValue(number, kCFNumberSInt64Type, &integer);
        printf("%lld", (long long)integer);
    }
}

static void print_tree(CFTypeRef tree)
{
    CFTypeID type = CFGetTypeID(tree);

    if (type == CFStringGetTypeID()) {
        print_string(tree);
    } else if (type == CFNumberGetTypeID()) {
        print_number(tree);
    } else if (type == CFBooleanGetTypeID()) {
        printf(CFBooleanGetValue(tree) ? "true" : "false");
    } else if (type == CFDateGetTypeID()) {
        print_real('d', CFDateGetAbsoluteTime(tree));
    } else if (type == CFDataGetTypeID()) {
        printf("<");
        for (CFIndex i = 0; i < CFDataGetLength(tree); i++) {
            printf("%02x", CFDataGetBytePtr(tree)[i]);
        }
        printf(">");
    } else if (type == CFArrayGetTypeID()) {
        printf("[");
        for (CFIndex i = 0; i < CFArrayGetCount(tree); i++) {
            print_tree(CFArrayGetValueAtIndex(tree, i));
            printf(",");
        }
        printf("]");
    } else if (type == CFDictionaryGetTypeID()) {
        print_dictionary(tree);
    } else {
        printf("foreign");
    }
}

static void print_data(CFDataRef data)
{
    for (CFIndex i = 0; data && i < CFDataGetLength(data); i++) {
        printf("%02x", CFDataGetBytePtr(data)[i]);
    }
    printf(data ? "\n" : "none\n");
}

/* ---- random trees ---- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static uint64_t draw_bits(void)
{
    return (uint64_t)draw(UINT32_C(1) << 31) << 33 ^ (uint64_t)draw(UINT32_C(1) << 31) << 10 ^ draw(1024);
}

static UniChar draw_unit(void)
{
    static const UniChar odd[] = {'<',  '>',  '&',    '"',    '\'',   '\t',   '\n', '\r', 1,  0x7F,
                                  0x80, 0xE9, 0x20AC, 0xFEFF, 0xFFFE, 0xFFFF, ' ',  '\\', ']'};

    return draw(3) ? (UniChar)('a' + draw(26)) : draw(4) ? odd[draw(sizeof odd / sizeof odd[0])] : (UniChar)(32 + draw(0xD7E0));
}

static CFStringRef draw_string(void)
{
    UniChar units[80];
    CFIndex length = (CFIndex)draw(draw(8) ? 12 : 76);
    bool is_ascii = draw(2);

    for (CFIndex i = 0; i < length; i++) {
        units[i] = is_ascii ? (UniChar)('a' + draw(26)) : draw_unit();
        if (!is_ascii && i + 1 < length && draw(20) == 0) {
            units[i++] = (UniChar)(0xD800 + draw(0x400));
            units[i] = (UniChar)(0xDC00 + draw(0x400));
        }
    }
    return CFStringCreateWithCharacters(NULL, units, length);
}

static CFNumberRef draw_integer(void)
{
    SInt64 integer = (SInt64)(draw_bits() >> draw(64)) * (draw(3) ? 1 : -1);

    return CFNumberCreate(NULL, kCFNumberSInt64Type, &integer);
}

static CFNumberRef draw_real(void)
{
    static const double odd[] = {0.0, -0.0, 1.0, 0.1, 1e15, 1e17, 1e300, 5e-324, 100.25, -3};
    uint64_t bits = draw_bits();
    double real = odd[draw(10)];
    float short_real;

    if (draw(2)) {
        memcpy(&real, &bits, sizeof real);
    }
    short_real = (float)real;
    if (draw(5) == 0) {
        return CFNumberCreate(NULL, kCFNumberFloatType, &short_real);
    }
    return CFNumberCreate(NULL, kCFNumberDoubleType, &real);
}

static CFDateRef draw_date(void)
{
    double seconds = (double)((int64_t)(draw_bits() >> (28 + draw(36))) * (draw(2) ? 1 : -1));

    return CFDateCreate(NULL, draw(3) ? seconds : seconds + 0.25);
}

static CFDataRef draw_data(void)
{
    UInt8 bytes[200];
    CFIndex length = (CFIndex)draw(draw(4) ? 10 : 200);

    for (CFIndex i = 0; i < length; i++) {
        bytes[i] = (UInt8)draw(256);
    }
    return CFDataCreate(NULL, bytes, length);
}

static CFTypeRef draw_tree(int depth, bool *has_order);

static CFTypeRef draw_container(int depth, bool is_array, bool *has_order)
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    CFMutableDictionaryRef dictionary =
        CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFIndex count = (CFIndex)draw(draw(30) ? 6 : 40);

    for (CFIndex i = 0; i < count; i++) {
        CFTypeRef value = draw_tree(depth + 1, has_order);
        CFStringRef key = draw_string();

        if (is_array) {
            CFArrayAppendValue(array, value);
            if (draw(10) == 0) {
                CFArrayAppendValue(array, value); /* one object twice */
            }
        } else if (!*has_order || CFDictionaryGetCount(dictionary) == 0) {
            CFDictionarySetValue(dictionary, key, value);
        }
        CFRelease(key);
        CFRelease(value);
    }
    CFRelease(is_array ? (CFTypeRef)dictionary : (CFTypeRef)array);
    return is_array ? (CFTypeRef)array : (CFTypeRef)dictionary;
}

/* With `*has_order`, no dictionary has more than one key: the order of its objects in the binary form is known. */
static CFTypeRef draw_tree(int depth, bool *has_order)
{
    uint32_t kind = depth == 0 ? 8 + draw(2) : draw(depth < 6 ? 10 : 8);

    switch (kind) {
    case 0:
    case 1:
    case 2:
        return draw_string();
    case 3:
        return draw_integer();
    case 4:
        return draw_real();
    case 5:
        return draw_date();
    case 6:
        return draw_data();
    case 7:
        return CFRetain(draw(2) ? kCFBooleanTrue : kCFBooleanFalse);
    default:
        return draw_container(depth, kind == 8, has_order);
    }
}

static void write_trees(unsigned long first, unsigned long last)
{
    for (unsigned long seed = first; seed <= last; seed++) {
        bool has_order = seed % 2;
        CFTypeRef tree;
        CFDataRef xml, binary;

        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        tree = draw_tree(0, &has_order);
        xml = CFPropertyListCreateData(NULL, tree, kCFPropertyListXMLFormat_v1_0, 0, NULL);
        binary = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
        print_tree(tree);
        printf("\n");
        print_data(xml);
        print_data(binary);
        CFRelease(xml);
        CFRelease(binary);
        CFRelease(tree);
    }
}

static int digit_value(int digit)
{
    return digit >= 'a' ? digit - 'a' + 10 : digit - '0';
}

static void read_trees(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    while ((length = getline(&line, &size, stdin)) > 0) {
        CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
        CFTypeRef tree;

        for (ssize_t i = 0; i + 1 < length; i += 2) {
            UInt8 byte = (UInt8)(digit_value(line[i]) << 4 | digit_value(line[i + 1]));

            CFDataAppendBytes(data, &byte, 1);
        }
        tree = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, NULL, NULL);
        if (tree) {
            print_tree(tree);
            CFRelease(tree);
        } else {
            printf("refused");
        }
        printf("\n");
        fflush(stdout);
        CFRelease(data);
    }
    free(line);
}

int main(int count, char **arguments)
{
    if (count == 4) {
        write_trees(strtoul(arguments[2], NULL, 10), strtoul(arguments[3], NULL, 10));
    } else {
        read_trees();
    }
    return 0;
}
