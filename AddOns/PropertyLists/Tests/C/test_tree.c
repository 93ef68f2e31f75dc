/* SPDX-License-Identifier: Apache-2.0 */
/* Which trees are valid, and what a deep copy of one is. */
#include <stdint.h>

#include "Failure/nth_failure.h"
#include "harness.h"
#include "plist_maker.h"

/* ---- validity ---- */

static void expect_valid(CFTypeRef tree, bool in_old, bool in_others)
{
    EXPECT_EQ(CFPropertyListIsValid(tree, kCFPropertyListOpenStepFormat), in_old);
    EXPECT_EQ(CFPropertyListIsValid(tree, kCFPropertyListXMLFormat_v1_0), in_others);
    EXPECT_EQ(CFPropertyListIsValid(tree, kCFPropertyListBinaryFormat_v1_0), in_others);
    if (tree) {
        CFRelease(tree);
    }
}

TEST(a_property_list_has_seven_types_and_the_old_format_four_of_them, "2200")
{
    expect_valid(make_text("text"), true, true);
    expect_valid(make_data("\0\1", 2), true, true);
    expect_valid(make_array(make_text("a"), make_data("", 0), NULL), true, true);
    expect_valid(make_dictionary("key", make_array(NULL), NULL), true, true);
    expect_valid(make_integer(5), false, true);
    expect_valid(make_real(0.5), false, true);
    expect_valid(CFRetain(kCFBooleanTrue), false, true);
    expect_valid(CFDateCreate(NULL, 1), false, true);
    expect_valid(make_dictionary("key", make_array(make_integer(1), NULL), NULL), false, true);
}

TEST(no_other_object_is_part_of_a_property_list, "2200")
{
    CFNumberRef number = make_integer(1);

    expect_valid(NULL, false, false);
    expect_valid(CFRetain(kCFNull), false, false);
    expect_valid(CFUUIDCreate(NULL), false, false);
    expect_valid(make_array(make_text("a"), make_array(CFRetain(kCFNull), NULL), NULL), false, false);
    expect_valid(CFSetCreate(NULL, (const void **)&number, 1, &kCFTypeSetCallBacks), false, false);
    expect_valid(CFDictionaryCreate(NULL, (const void **)&number, (const void **)&number, 1, &kCFTypeDictionaryKeyCallBacks,
                                    &kCFTypeDictionaryValueCallBacks),
                 false, false);
    CFRelease(number);
}

TEST(a_container_may_be_twice_in_a_property_list_and_not_in_itself, "2200")
{
    CFMutableArrayRef shared = make_array(make_text("a"), NULL);
    CFMutableArrayRef inner = make_array(NULL);
    CFMutableDictionaryRef ring = make_dictionary("a", CFRetain(inner), NULL);

    expect_valid(make_array(CFRetain(shared), make_array(CFRetain(shared), NULL), shared, NULL), true, true);
    CFArrayAppendValue(inner, ring);
    EXPECT(!CFPropertyListIsValid(ring, kCFPropertyListXMLFormat_v1_0));
    EXPECT(!CFPropertyListIsValid(inner, kCFPropertyListBinaryFormat_v1_0));
    EXPECT(!CFPropertyListCreateDeepCopy(NULL, ring, kCFPropertyListImmutable));
    CFArrayRemoveAllValues(inner);
    CFRelease(ring);
    CFRelease(inner);
}

TEST(validity_of_a_container_that_occurs_a_million_million_times_is_found_at_once, "2200")
{
    CFArrayRef array = make_array(make_text("a"), NULL);

    for (int i = 0; i < 40; i++) {
        array = make_array(CFRetain(array), array, NULL);
    }
    EXPECT(!CFPropertyListCreateData(NULL, array, kCFPropertyListXMLFormat_v1_0, 0, NULL));
    expect_valid(array, true, true);
}

/* No reader makes such a tree, but a program may. */
TEST(a_tree_may_be_as_deep_as_memory_allows, "2204")
{
    CFArrayRef tree = make_array(make_text("a"), NULL);

    for (int i = 0; i < 100000; i++) {
        tree = make_array(tree, NULL);
    }
    CFTypeRef copy = CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListMutableContainers);
    CFDataRef data = CFPropertyListCreateData(NULL, tree, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    REQUIRE(copy && data);
    EXPECT(!CFPropertyListCreateWithData(NULL, data, 0, NULL, NULL));
    CFRelease(copy);
    CFRelease(data);
    CFArrayAppendValue((CFMutableArrayRef)(uintptr_t)tree, CFSTR("b"));
    expect_valid(tree, true, true);
}

/* ---- copies ---- */

TEST(a_deep_copy_is_equal_and_new_all_the_way_down, "2205")
{
    CFMutableArrayRef inner = make_array(make_integer(1), CFDateCreate(NULL, 5), CFRetain(kCFBooleanFalse), NULL);
    CFDictionaryRef tree = make_dictionary("list", CFRetain(inner), "text", make_text("t"), "data", make_data("12", 2), NULL);
    CFDictionaryRef copy = CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListImmutable);

    REQUIRE(copy);
    EXPECT(CFEqual(copy, tree));
    EXPECT(copy != tree && CFDictionaryGetValue(copy, CFSTR("list")) != inner);
    CFArrayAppendValue(inner, CFSTR("more"));
    EXPECT(!CFEqual(copy, tree));
    EXPECT_EQ(CFArrayGetCount(CFDictionaryGetValue(copy, CFSTR("list"))), 3);
    EXPECT_STOPS("cannot be changed",
                 { CFArrayAppendValue((CFMutableArrayRef)(uintptr_t)CFDictionaryGetValue(copy, CFSTR("list")), copy); });
    CFRelease(copy);
    CFRelease(tree);
    CFRelease(inner);
}

TEST(a_deep_copy_is_mutable_as_far_as_it_was_asked_for, "2205")
{
    CFDictionaryRef tree = make_dictionary("list", make_array(make_text("t"), make_data("12", 2), NULL), NULL);
    CFMutableDictionaryRef copy =
        (CFMutableDictionaryRef)(uintptr_t)CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListMutableContainers);
    CFMutableArrayRef list = (CFMutableArrayRef)(uintptr_t)CFDictionaryGetValue(copy, CFSTR("list"));

    CFDictionarySetValue(copy, CFSTR("new"), CFSTR("value"));
    CFArrayAppendValue(list, CFSTR("x"));
    EXPECT_EQ(CFArrayGetCount(list), 3);
    EXPECT_STOPS("cannot be changed", { CFStringAppend((CFMutableStringRef)(uintptr_t)CFArrayGetValueAtIndex(list, 0), CFSTR("x")); });
    CFRelease(copy);

    copy = (CFMutableDictionaryRef)(uintptr_t)CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListMutableContainersAndLeaves);
    list = (CFMutableArrayRef)(uintptr_t)CFDictionaryGetValue(copy, CFSTR("list"));
    CFArrayAppendValue(list, CFSTR("x"));
    CFStringAppend((CFMutableStringRef)(uintptr_t)CFArrayGetValueAtIndex(list, 0), CFSTR("x"));
    CFDataAppendBytes((CFMutableDataRef)(uintptr_t)CFArrayGetValueAtIndex(list, 1), (const UInt8 *)"3", 1);
    EXPECT(CFEqual(CFArrayGetValueAtIndex(list, 0), CFSTR("tx")));
    EXPECT_EQ(CFDataGetLength(CFArrayGetValueAtIndex(list, 1)), 3);
    CFRelease(copy);
    CFRelease(tree);
}

/* As a file of some hundred bytes has it. */
TEST(a_container_that_occurs_a_million_million_times_is_copied_at_once_or_not_at_all, "2205")
{
    CFArrayRef array = make_array(make_text("a"), NULL);

    for (int i = 0; i < 40; i++) {
        array = make_array(CFRetain(array), array, NULL);
    }
    CFArrayRef copy = CFPropertyListCreateDeepCopy(NULL, array, kCFPropertyListImmutable);

    REQUIRE(copy);
    EXPECT(CFArrayGetValueAtIndex(copy, 0) == CFArrayGetValueAtIndex(copy, 1));
    EXPECT(CFArrayGetValueAtIndex(copy, 0) != CFArrayGetValueAtIndex(array, 0));
    EXPECT(!CFPropertyListCreateDeepCopy(NULL, array, kCFPropertyListMutableContainers));
    CFRelease(copy);
    CFRelease(array);
}

/* Of which the copy keeps one. */
TEST(keys_that_are_equal_are_one_in_a_copy, "2205")
{
    CFDictionaryKeyCallBacks by_address = kCFTypeDictionaryKeyCallBacks;
    CFArrayRef value = make_array(make_integer(1), NULL);
    CFArrayRef other = make_array(make_integer(2), NULL);
    CFTypeRef keys[] = {make_text("a key in memory of its own"), make_text("a key in memory of its own")};
    CFDictionaryRef twice;

    by_address.equal = NULL;
    by_address.hash = NULL;
    twice = CFDictionaryCreate(NULL, keys, (const void *[]){value, other}, 2, &by_address, &kCFTypeDictionaryValueCallBacks);
    REQUIRE(CFDictionaryGetCount(twice) == 2);
    CFArrayRef tree = make_array(twice, value, other, NULL);
    CFArrayRef copy = CFPropertyListCreateDeepCopy(NULL, tree, kCFPropertyListImmutable);

    REQUIRE(copy);
    EXPECT_EQ(CFDictionaryGetCount(CFArrayGetValueAtIndex(copy, 0)), 1);
    EXPECT(CFEqual(CFArrayGetValueAtIndex(copy, 1), value) && CFEqual(CFArrayGetValueAtIndex(copy, 2), other));
    CFRelease(copy);
    CFRelease(tree);
    CFRelease(keys[0]);
    CFRelease(keys[1]);
}

static CFTypeRef copied;

static bool copy_deeply(void)
{
    CFTypeRef copy = bag_keep(CFPropertyListCreateDeepCopy(NULL, copied, kCFPropertyListMutableContainersAndLeaves));

    NEED(copy);
    MUST(CFEqual(copy, copied));
    return true;
}

static bool copy_at_once(void)
{
    CFTypeRef copy = bag_keep(CFPropertyListCreateDeepCopy(NULL, copied, kCFPropertyListImmutable));

    NEED(copy);
    MUST(CFEqual(copy, copied));
    return true;
}

TEST_LIMIT(nth_failure_a_deep_copy_of_what_occurs_twice, "2205", 120)
{
    CFArrayRef twice = make_array(make_text("text"), NULL);

    copied = make_array(CFRetain(twice), make_dictionary("a", twice, NULL), NULL);
    nth_failure_run("a_deep_copy_of_what_occurs_twice", copy_at_once);
    CFRelease(copied);
}

TEST_LIMIT(nth_failure_a_deep_copy, "2205", 120)
{
    copied = make_dictionary("list", make_array(make_text("text"), make_data("12", 2), NULL), "a", make_array(NULL), NULL);
    nth_failure_run("a_deep_copy", copy_deeply);
    CFRelease(copied);
}
