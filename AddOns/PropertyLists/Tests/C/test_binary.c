/* SPDX-License-Identifier: Apache-2.0 */
/* Property lists in the binary format: what each file is, which are refused, and which bytes are written. */
#include <math.h>
#include <string.h>

#include "Failure/nth_failure.h"
#include "harness.h"
#include "plist_maker.h"

enum { objects_max = 8 };

struct file {
    unsigned char bytes[600000];
    size_t length;
    size_t offsets[600];
    size_t count;
};

static struct file file;

static void put(const void *bytes, size_t length)
{
    memcpy(file.bytes + file.length, bytes, length);
    file.length += length;
}

static void put_number(uint64_t number, size_t size)
{
    for (size_t i = size; i > 0; i--) {
        file.bytes[file.length++] = (unsigned char)(i > 8 ? 0 : number >> (8 * (i - 1)));
    }
}

static void begin(const char *header)
{
    file.length = file.count = 0;
    put(header, 8);
}

static void put_object(const void *bytes, size_t length)
{
    file.offsets[file.count++] = file.length;
    put(bytes, length);
}

/* What a trailer says that is not right. -1: what is right. */
struct trailer {
    int offset_size;
    int reference_size;
    int64_t count;
    int64_t root;
    int64_t table;
};

static void end(const struct trailer *given)
{
    size_t table = file.length;
    size_t offset_size = given->offset_size < 0 ? (table > 255 ? 2 : 1) : (size_t)given->offset_size;

    for (size_t i = 0; i < file.count; i++) {
        put_number(file.offsets[i], offset_size);
    }
    put_number(0, 6);
    put_number((uint64_t)offset_size, 1);
    put_number(given->reference_size < 0 ? (file.count > 255 ? 2 : 1) : (uint64_t)given->reference_size, 1);
    put_number(given->count < 0 ? file.count : (uint64_t)given->count, 8);
    put_number(given->root < 0 ? 0 : (uint64_t)given->root, 8);
    put_number(given->table == -1 ? table : (uint64_t)given->table, 8);
}

static const struct trailer right = {-1, -1, -1, -1, -1};

static void expect(const char *tree)
{
    plist_expect(file.bytes, file.length, kCFPropertyListBinaryFormat_v1_0, tree);
}

#define BYTES(_text) {_text, sizeof _text - 1}

/* ---- objects ---- */

static const struct row {
    struct {
        const char *bytes;
        size_t length;
    } objects[objects_max];
    const char *tree;
} rows[] = {
    {{BYTES("\x08")}, "false"},
    {{BYTES("\x09")}, "true"},
    {{BYTES("\x00")}, "null"},
    {{BYTES("\x10\xFF")}, "255"},
    {{BYTES("\x11\xFF\xFF")}, "65535"},
    {{BYTES("\x12\xFF\xFF\xFF\xFF")}, "4294967295"},
    {{BYTES("\x13\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}, "-1"},
    {{BYTES("\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\5")}, "5"},
    {{BYTES("\x14\0\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}, "r1.8446744073709552e+19"},
    {{BYTES("\x14\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}, "-1"},
    {{BYTES("\x22\x3F\x80\0\0")}, "f1"},
    {{BYTES("\x23\x3F\xF0\0\0\0\0\0\0")}, "r1"},
    {{BYTES("\x33\xBF\xE0\0\0\0\0\0\0")}, "d-0.5"},
    {{BYTES("\x42"
            "ab")},
     "<6162>"},
    {{BYTES("\x4F\x10\x02"
            "ab")},
     "<6162>"},
    {{BYTES("\x4F\x13\0\0\0\0\0\0\0\2"
            "ab")},
     "<6162>"},
    {{BYTES("\x52"
            "ab")},
     "'ab'"},
    {{BYTES("\x51\xE9")}, "'\xC3\xA9'"},
    {{BYTES("\x62\0a\x20\xAC")}, "'a\xE2\x82\xAC'"},
    {{BYTES("\x80\x07")}, "{CF$UID:7}"},
    {{BYTES("\x8F\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07")}, "{CF$UID:7}"},
    {{BYTES("\xA2\1\1"), BYTES("\x51"
                               "a")},
     "['a','a']"},
    {{BYTES("\xAF\x10\x01\1"), BYTES("\x51"
                                     "a")},
     "['a']"},
    {{BYTES("\xA2\1\1"), BYTES("\xA1\2"),
      BYTES("\x51"
            "a")},
     "[['a'],['a']]"},
    {{BYTES("\xD2\1\2\3\4"),
      BYTES("\x51"
            "a"),
      BYTES("\x51"
            "b"),
      BYTES("\x09"), BYTES("\xA0")},
     "{a:true,b:[]}"},
    {{BYTES("\xD2\1\1\2\3"),
      BYTES("\x51"
            "a"),
      BYTES("\x51"
            "b"),
      BYTES("\x51"
            "c")},
     "{a:'b'}"},
    {{BYTES("\xD1\1\1"), BYTES("\x51"
                               "a")},
     "{a:'a'}"},

    {{BYTES("\x0F")}, "!unknown type"},
    {{BYTES("\x70")}, "!unknown type"},
    {{BYTES("\xB1\1"), BYTES("\x51"
                             "a")},
     "!unknown type"},
    {{BYTES("\xC1\1"), BYTES("\x51"
                             "a")},
     "!unknown type"}, /* a set in Core Foundation */
    {{BYTES("\xE0")}, "!unknown type"},
    {{BYTES("\x15"
            "12345678901234567890123456789012")},
     "!integer"},
    {{BYTES("\x13\0")}, "!integer"},
    {{BYTES("\x21\0\0")}, "!real"},
    {{BYTES("\x23\0")}, "!real"},
    {{BYTES("\x32\0\0\0\0")}, "!real or a date"},
    {{BYTES("\x4E"
            "ab")},
     "!longer than what is there"},
    {{BYTES("\x4F\x12\x7F\xFF\xFF\xFF")}, "!longer than what is there"},
    {{BYTES("\x4F\x13\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}, "!longer than what is there"},
    {{BYTES("\x4F\x51"
            "ab")},
     "!count is no integer"},
    {{BYTES("\x4F")}, "!count is no integer"},
    {{BYTES("\x4F\x14\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"
            "ab")},
     "!count is no integer"},
    {{BYTES("\x62\0a\0")}, "!longer than what is there"},
    {{BYTES("\x6F\x13\x80\0\0\0\0\0\0\1\0\0")}, "!longer than what is there"},
    {{BYTES("\x87\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")}, "!more than 32 bits"},
    {{BYTES("\x8F\0")}, "!UID"},
    {{BYTES("\xA1\5")}, "!reference to no object"},
    {{BYTES("\xA1\0")}, "!contains itself"},
    {{BYTES("\xA1\1"), BYTES("\xA1\0")}, "!contains itself"},
    {{BYTES("\xD1\1\0"), BYTES("\x51"
                               "a")},
     "!contains itself"},
    {{BYTES("\xAF\x12\xFF\xFF\xFF\xFF")}, "!longer than what is there"},
    {{BYTES("\xDF\x13\x80\0\0\0\0\0\0\0")}, "!longer than what is there"},
    {{BYTES("\xD1\1\2"), BYTES("\x10\5"),
      BYTES("\x51"
            "b")},
     "!key is no string"}, /* a number as key in Core Foundation */
    {{BYTES("\xD1\1\2"), BYTES("\xA0"),
      BYTES("\x51"
            "b")},
     "!key is no string"},
    {{BYTES("\xD1\0\1"), BYTES("\x51"
                               "b")},
     "!key is no string"},
    {{BYTES("\xA2\1\2"), BYTES("\x08"), BYTES("\xD1\1\1")}, "!key is no string"},
};

TEST(each_object_of_the_binary_format_is_read_or_refused, "2202")
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("bplist00");
        for (size_t j = 0; j < objects_max && rows[i].objects[j].bytes; j++) {
            put_object(rows[i].objects[j].bytes, rows[i].objects[j].length);
        }
        end(&right);
        expect(rows[i].tree);
    }
}

/* ---- the trailer ---- */

static void expect_trailer(struct trailer trailer, const char *tree)
{
    begin("bplist00");
    put_object("\x51"
               "a",
               2);
    end(&trailer);
    expect(tree);
}

TEST(a_trailer_that_promises_what_is_not_there_is_refused, "2202")
{
    expect_trailer(right, "'a'");
    expect_trailer((struct trailer){3, 8, -1, -1, -1}, "'a'");
    expect_trailer((struct trailer){0, -1, -1, -1, -1}, "!no possible size");
    expect_trailer((struct trailer){9, -1, -1, -1, -1}, "!no possible size");
    expect_trailer((struct trailer){-1, 0, -1, -1, -1}, "!no possible size");
    expect_trailer((struct trailer){-1, 255, -1, -1, -1}, "!no possible size");
    expect_trailer((struct trailer){-1, -1, 0, -1, -1}, "!not where");
    expect_trailer((struct trailer){-1, -1, 2, -1, -1}, "!not where");
    expect_trailer((struct trailer){-1, -1, INT64_MAX, -1, -1}, "!not where");
    expect_trailer((struct trailer){8, -1, (int64_t)1 << 61, -1, -1}, "!not where");
    expect_trailer((struct trailer){-1, -1, -1, 1, -1}, "!root");
    expect_trailer((struct trailer){-1, -1, -1, INT64_MAX, -1}, "!root");
    expect_trailer((struct trailer){-1, -1, -1, -1, 0}, "!not where");
    expect_trailer((struct trailer){-1, -1, -1, -1, 9}, "!not where");
    expect_trailer((struct trailer){-1, -1, -1, -1, 1000}, "!not where");
    expect_trailer((struct trailer){-1, -1, -1, -1, -2}, "!not where");

    begin("bplist00");
    put_object("\x51"
               "a",
               2);
    file.offsets[0] = 7;
    end(&right);
    expect("!outside its place");
    begin("bplist00");
    put_object("\x51"
               "a",
               2);
    file.offsets[0] = 10;
    end(&right);
    expect("!outside its place");
    begin("bplist0x");
    put_object("\x51"
               "a",
               2);
    end(&right);
    expect("'a'");
    begin("bplist15");
    put_object("\x51"
               "a",
               2);
    end(&right);
    expect("!");
    plist_expect("bplist00", 8, kCFPropertyListOpenStepFormat, "'bplist00'");
}

TEST(sizes_that_cannot_hold_the_numbers_are_refused, "2202")
{
    begin("bplist00");
    put_object("\xA1\1", 2);
    for (int i = 0; i < 255; i++) {
        put_object("\x51"
                   "a",
                   2);
    }
    end(&(struct trailer){-1, 1, -1, -1, -1});
    expect("!too short");
    file.length = 8 + 2 + 255 * 2;
    end(&(struct trailer){1, 2, -1, -1, -1});
    expect("!too short");
}

/* ---- files that are made to hurt ---- */

/* Object n is an array of object n + 1, twice. */
static void make_doubling(unsigned count)
{
    begin("bplist00");
    for (unsigned i = 0; i + 1 < count; i++) {
        unsigned char array[3] = {0xA2, (unsigned char)(i + 1), (unsigned char)(i + 1)};

        put_object(array, sizeof array);
    }
    put_object("\xA0", 1);
    end(&right);
}

TEST(a_container_that_occurs_a_million_million_times_takes_no_more_than_the_file, "2203")
{
    CFDataRef data;
    CFErrorRef error = NULL;
    CFTypeRef tree;

    make_doubling(40);
    data = make_data(file.bytes, file.length);
    tree = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, NULL, NULL);
    REQUIRE(tree);
    EXPECT(CFArrayGetValueAtIndex(tree, 0) == CFArrayGetValueAtIndex(tree, 1));
    CFRelease(data);
    data = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL); /* it repeats some, and ends */
    EXPECT(data && CFDataGetLength(data) < 2000000);
    CFRelease(data);
    CFRelease(tree);

    data = make_data(file.bytes, file.length);
    EXPECT(!CFPropertyListCreateWithData(NULL, data, kCFPropertyListMutableContainers, NULL, &error));
    EXPECT(error);
    CFRelease(error);
    CFRelease(data);
}

/* Object n is an array of object n + 1, but for the last of `first`, which is empty, and the last of all, which has the first of all. */
static void make_two_chains(unsigned first, unsigned second)
{
    begin("bplist00");
    put_object("\xA2\0\1\0\0", 5);
    memcpy(file.bytes + file.length - 2, (unsigned char[]){(unsigned char)((first + 1) >> 8), (unsigned char)(first + 1)}, 2);
    for (unsigned i = 1; i <= first + second; i++) {
        unsigned next = i == first + second ? 1 : i + 1;
        unsigned char array[3] = {0xA1, (unsigned char)(next >> 8), (unsigned char)next};

        put_object(i == first ? (const void *)"\xA0" : array, i == first ? 1 : sizeof array);
    }
    end(&(struct trailer){2, 2, -1, -1, -1});
}

/* What was read where it is less deep counts where it occurs again. */
TEST(containers_are_nested_up_to_512_wherever_they_lie_in_the_file, "2203")
{
    make_two_chains(255, 256);
    expect(NULL);
    make_two_chains(255, 257);
    expect("!nested too deep");
    make_two_chains(256, 256);
    expect("!nested too deep");
}

TEST(objects_that_lie_over_each_other_are_refused_when_they_take_too_much, "2203")
{
    begin("bplist00");
    put_object("\xAF\x11\x01\x00", 4);
    for (int i = 1; i <= 256; i++) {
        put_number((uint64_t)i, 2);
    }
    for (int i = 0; i < 256; i++) { /* each is a string up to the last one's end */
        unsigned char start[] = {0x5F, 0x12, 0, 0, 0, 0};
        size_t length = 500000 - (size_t)i * 6;

        start[3] = (unsigned char)(length >> 16);
        start[4] = (unsigned char)(length >> 8);
        start[5] = (unsigned char)length;
        put_object(start, sizeof start);
    }
    file.length += 500000;
    end(&(struct trailer){3, 2, -1, -1, -1});
    expect("!lie over each other");
}

TEST(what_may_be_changed_is_no_other_object_where_it_occurs_again, "2205")
{
    begin("bplist00");
    put_object("\xA2\1\1", 3);
    put_object("\xA1\2", 2);
    put_object("\x51"
               "a",
               2);
    end(&right);
    for (CFOptionFlags options = 0; options < 3; options++) {
        CFDataRef data = make_data(file.bytes, file.length);
        CFArrayRef tree = CFPropertyListCreateWithData(NULL, data, options, NULL, NULL);
        CFArrayRef one = CFArrayGetValueAtIndex(tree, 0);
        CFArrayRef other = CFArrayGetValueAtIndex(tree, 1);

        EXPECT_EQ(one == other, options == kCFPropertyListImmutable);
        EXPECT_EQ(CFArrayGetValueAtIndex(one, 0) == CFArrayGetValueAtIndex(other, 0), options != kCFPropertyListMutableContainersAndLeaves);
        CFRelease(tree);
        CFRelease(data);
    }
}

TEST(a_string_is_a_key_and_a_value_that_may_be_changed, "2200")
{
    CFDataRef data;
    CFArrayRef tree;

    begin("bplist00");
    put_object("\xA3\1\2\1", 4);
    put_object("\x51"
               "a",
               2);
    put_object("\xD1\1\1", 3);
    end(&right);
    data = make_data(file.bytes, file.length);
    tree = CFPropertyListCreateWithData(NULL, data, kCFPropertyListMutableContainersAndLeaves, NULL, NULL);
    REQUIRE(tree);
    CFStringAppend((CFMutableStringRef)(uintptr_t)CFArrayGetValueAtIndex(tree, 2), CFSTR("b"));
    EXPECT(CFEqual(CFArrayGetValueAtIndex(tree, 0), CFSTR("a")));
    EXPECT(CFEqual(CFDictionaryGetValue(CFArrayGetValueAtIndex(tree, 1), CFSTR("a")), CFSTR("a")));
    CFRelease(tree);
    CFRelease(data);
}

/* ---- writing ---- */

/* Compares the objects, in hexadecimal, and the table's bytes. Releases the tree. */
static void expect_written(CFTypeRef tree, const char *objects)
{
    CFDataRef data = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    const UInt8 *bytes = CFDataGetBytePtr(data);
    CFIndex table = (CFIndex)bytes[CFDataGetLength(data) - 1] | (CFIndex)bytes[CFDataGetLength(data) - 2] << 8;
    char text[1000] = "";

    EXPECT(memcmp(bytes, "bplist00", 8) == 0);
    for (CFIndex i = 8; i < table && i < 400; i++) {
        snprintf(text + 2 * (i - 8), 3, "%02x", bytes[i]);
    }
    EXPECT_STR(text, objects);
    CFRelease(data);
    CFRelease(tree);
}

static CFNumberRef make_float(float value)
{
    return CFNumberCreate(NULL, kCFNumberFloatType, &value);
}

TEST(the_binary_format_has_the_bytes_of_core_foundation, "2201")
{
    static const UniChar half[] = {'a', 0xD800};
    CFTypeRef text = make_text("x");
    CFTypeRef inner = make_array(CFRetain(text), NULL);

    expect_written(make_integer(255), "10ff");
    expect_written(make_integer(256), "110100");
    expect_written(make_integer(4294967295), "12ffffffff");
    expect_written(make_integer(4294967296), "130000000100000000");
    expect_written(make_integer(-1), "13ffffffffffffffff");
    expect_written(make_real(-0.0), "238000000000000000");
    expect_written(make_float(1.1F), "223f8ccccd");
    expect_written(make_float((float)INFINITY), "237ff0000000000000");
    expect_written(CFDateCreate(NULL, -0.5), "33bfe0000000000000");
    expect_written(make_text("aaaaaaaaaaaaaaa"), "5f100f616161616161616161616161616161");
    expect_written(make_text("\xC3\xA9"), "6100e9");
    expect_written(CFStringCreateWithCharacters(NULL, half, 2), "620061d800");
    expect_written(make_data("ab", 2), "426162");
    expect_written(make_array(make_text("a"), make_text("a"), NULL), "a2010251615161");
    expect_written(make_array(make_integer(5), make_real(5), make_integer(5), make_real(5), NULL),
                   "a4010201031005234014000000000000234014000000000000");
    expect_written(make_array(make_real((double)NAN), make_real((double)NAN), make_text(""), make_text(""), NULL),
                   "a401010202237ff800000000000050");
    expect_written(make_array(CFRetain(kCFBooleanTrue), make_integer(1), CFRetain(kCFBooleanTrue), CFRetain(kCFBooleanFalse), NULL),
                   "a40102010409100109"
                   "08");
    expect_written(make_array(CFRetain(inner), inner, text, NULL), "a3010102a1025178a102");
    expect_written(make_dictionary("k", CFRetain(kCFBooleanTrue), NULL), "d10102516b09");
    expect_written(make_dictionary("CF$UID", make_integer(300), NULL), "81012c");
}

TEST(what_is_written_is_read_as_the_same_in_each_size_of_offsets, "2201")
{
    static const size_t sizes[] = {1, 200, 300, 70000, 200000};
    static const UInt8 zeros[200000];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CFMutableArrayRef tree = make_array(make_data(zeros, sizes[i]), NULL);
        CFDataRef data;
        CFTypeRef read;

        for (size_t j = 0; j < sizes[i] / 100; j++) {
            CFNumberRef number = make_integer((long long)j * 1000);

            CFArrayAppendValue(tree, number);
            CFRelease(number);
        }
        data = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
        read = CFPropertyListCreateWithData(NULL, data, kCFPropertyListImmutable, NULL, NULL);
        EXPECT(read && CFEqual(read, tree));
        CFRelease(read);
        CFRelease(data);
        CFRelease(tree);
    }
}

/* ---- failures ---- */

static CFDataRef written;

static bool read_and_write(void)
{
    CFErrorRef error = NULL;
    CFTypeRef tree = bag_keep(CFPropertyListCreateWithData(NULL, written, kCFPropertyListImmutable, NULL, &error));
    CFDataRef data;

    bag_keep(error);
    NEED(tree);
    data = bag_keep(CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL));
    NEED(data);
    MUST(CFEqual(data, written));
    return true;
}

TEST_LIMIT(nth_failure_of_the_binary_format, "2202", 120)
{
    CFTypeRef tree =
        make_array(make_text("x\xC3\xA9"), make_array(make_integer(1), make_real(1e30), CFDateCreate(NULL, 7), NULL), make_data("data", 4),
                   make_dictionary("key", CFRetain(kCFBooleanTrue), NULL), make_dictionary("CF$UID", make_integer(9), NULL), NULL);

    written = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    nth_failure_run("binary", read_and_write);
    CFRelease(written);
    CFRelease(tree);
}
