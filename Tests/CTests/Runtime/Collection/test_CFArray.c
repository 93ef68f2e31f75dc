/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: order, callbacks of every kind, sorting, misuse, and what happens without memory. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "Runtime/Object/object.h"
#include "harness.h"

static const void *pointer(intptr_t number)
{
    return (const void *)number;
}

static CFMutableArrayRef array_of_numbers(CFIndex count)
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, NULL);
    for (CFIndex i = 0; i < count; i++) {
        CFArrayAppendValue(array, pointer(i));
    }
    return array;
}

/* Small numbers as text: "0 1 2". */
static void expect_numbers(CFArrayRef array, const char *expected)
{
    char text[500] = "";
    size_t length = 0;
    for (CFIndex i = 0; i < CFArrayGetCount(array); i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, i == 0 ? "%ld" : " %ld",
                                   (long)(intptr_t)CFArrayGetValueAtIndex(array, i));
    }
    EXPECT_STR(text, expected);
}

TEST(an_array_keeps_its_values_in_order, "")
{
    const void *values[] = {CFSTR("a"), CFSTR("b"), CFSTR("a")};
    CFArrayRef array = CFArrayCreate(NULL, values, 3, &kCFTypeArrayCallBacks);
    EXPECT_EQ(CFGetTypeID(array), CFArrayGetTypeID());
    EXPECT_EQ(CFArrayGetCount(array), 3);
    EXPECT(CFArrayGetValueAtIndex(array, 1) == values[1]);
    const void *copied[2];
    CFArrayGetValues(array, CFRangeMake(1, 2), copied);
    EXPECT(copied[0] == values[1] && copied[1] == values[2]);
    CFArrayGetValues(array, CFRangeMake(3, 0), NULL);
    CFStringRef b = CFStringCreateWithCString(NULL, "b", kCFStringEncodingUTF8);
    EXPECT_EQ(CFArrayGetFirstIndexOfValue(array, CFRangeMake(0, 3), b), 1);
    EXPECT_EQ(CFArrayGetFirstIndexOfValue(array, CFRangeMake(1, 2), CFSTR("a")), 2);
    EXPECT_EQ(CFArrayGetFirstIndexOfValue(array, CFRangeMake(0, 1), b), kCFNotFound);
    EXPECT(CFArrayContainsValue(array, CFRangeMake(0, 3), b));
    EXPECT(!CFArrayContainsValue(array, CFRangeMake(0, 3), CFSTR("c")));
    CFRelease(b);
    CFRelease(array);
}

TEST(an_array_counts_its_values_by_its_callbacks, "")
{
    CFDataRef value = CFDataCreate(NULL, NULL, 0);
    const void *values[] = {value, value};
    CFArrayRef array = CFArrayCreate(NULL, values, 2, &kCFTypeArrayCallBacks);
    EXPECT_EQ(CFGetRetainCount(value), 3);
    CFMutableArrayRef copy = CFArrayCreateMutableCopy(NULL, 0, array);
    EXPECT_EQ(CFGetRetainCount(value), 5);
    CFArrayRemoveValueAtIndex(copy, 0);
    EXPECT_EQ(CFGetRetainCount(value), 4);
    CFArraySetValueAtIndex(copy, 0, kCFNull);
    EXPECT_EQ(CFGetRetainCount(value), 3);
    CFArraySetValueAtIndex(copy, 1, value);
    EXPECT_EQ(CFGetRetainCount(value), 4);
    CFArrayRemoveAllValues(copy);
    EXPECT_EQ(CFGetRetainCount(value), 3);
    CFRelease(copy);
    CFArrayRef plain = CFArrayCreate(NULL, values, 2, NULL);
    EXPECT_EQ(CFGetRetainCount(value), 3);
    CFRelease(plain);
    CFRelease(array);
    EXPECT_EQ(CFGetRetainCount(value), 1);
    CFRelease(value);
}

TEST(values_without_callbacks_may_be_any_pointers, "")
{
    CFMutableArrayRef array = array_of_numbers(3);
    CFArrayAppendValue(array, NULL);
    EXPECT_EQ(CFArrayGetFirstIndexOfValue(array, CFRangeMake(1, 3), NULL), 3);
    EXPECT(CFArrayGetValueAtIndex(array, 0) == NULL);
    CFStringRef words = CFCopyDescription(array);
    EXPECT(CFStringFind(words, CFSTR("mutable, count = 4"), 0).location != kCFNotFound);
    EXPECT(CFStringFind(words, CFSTR("\t2 : <0x2>\n"), 0).location != kCFNotFound);
    CFRelease(words);
    CFRelease(array);
}

struct counted {
    int retains;
    int releases;
};

static const void *note_retain(CFAllocatorRef allocator, const void *value)
{
    EXPECT(allocator == kCFAllocatorSystemDefault);
    ((struct counted *)(uintptr_t)value)->retains++;
    return value;
}

static void note_release(CFAllocatorRef allocator, const void *value)
{
    EXPECT(allocator == kCFAllocatorSystemDefault);
    ((struct counted *)(uintptr_t)value)->releases++;
}

static CFStringRef describe_nothing(const void *value)
{
    (void)value;
    return NULL;
}

static Boolean always_equal(const void *one, const void *other)
{
    (void)one;
    (void)other;
    return true;
}

TEST(a_callers_callbacks_are_called_once_for_each_value, "")
{
    const CFArrayCallBacks callbacks = {0, note_retain, note_release, describe_nothing, always_equal};
    struct counted one = {0, 0};
    struct counted other = {0, 0};
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 4, &callbacks);
    CFArrayAppendValue(array, &one);
    CFArrayInsertValueAtIndex(array, 0, &other);
    EXPECT(CFArrayGetValueAtIndex(array, 0) == &other);
    EXPECT_EQ(CFArrayGetFirstIndexOfValue(array, CFRangeMake(0, 2), &one), 0);
    CFArrayRef copy = CFArrayCreateCopy(NULL, array);
    EXPECT_EQ(one.retains, 2);
    EXPECT(CFEqual(array, copy));
    CFStringRef words = CFCopyDescription(copy);
    EXPECT(CFStringFind(words, CFSTR("immutable"), 0).location != kCFNotFound);
    CFRelease(words);
    CFRelease(copy);
    CFRelease(array);
    EXPECT_EQ(one.releases, 2);
    EXPECT_EQ(other.retains, 2);
    EXPECT_EQ(other.releases, 2);
}

TEST(values_are_inserted_replaced_and_removed_anywhere, "")
{
    CFMutableArrayRef array = array_of_numbers(5);
    CFArrayInsertValueAtIndex(array, 0, pointer(10));
    CFArrayInsertValueAtIndex(array, 3, pointer(11));
    CFArrayInsertValueAtIndex(array, 7, pointer(12));
    expect_numbers(array, "10 0 1 11 2 3 4 12");
    CFArrayRemoveValueAtIndex(array, 7);
    CFArrayRemoveValueAtIndex(array, 3);
    CFArrayRemoveValueAtIndex(array, 0);
    expect_numbers(array, "0 1 2 3 4");
    CFArraySetValueAtIndex(array, 2, pointer(20));
    CFArraySetValueAtIndex(array, 5, pointer(21));
    expect_numbers(array, "0 1 20 3 4 21");
    CFArrayRemoveAllValues(array);
    CFArrayRemoveAllValues(array);
    EXPECT_EQ(CFArrayGetCount(array), 0);
    for (int i = 0; i < 10000; i++) {
        CFArrayAppendValue(array, pointer(i));
    }
    EXPECT(CFArrayGetValueAtIndex(array, 9999) == pointer(9999));
    CFRelease(array);
}

/* ---- long arrays, whose values are moved at the nearer end ---- */

enum { longest = 600 };

struct row {
    CFMutableArrayRef array;
    uintptr_t values[longest]; /* what the array should hold */
    CFIndex count;
    uintptr_t next;
    uint32_t seed;
};

static uint32_t chance(struct row *row, uint32_t limit)
{
    row->seed = row->seed * 1664525u + 1013904223u;
    return (row->seed >> 8) % limit;
}

static void put(struct row *row, CFIndex index)
{
    memmove(row->values + index + 1, row->values + index, (size_t)(row->count - index) * sizeof row->values[0]);
    row->values[index] = row->next;
    row->count++;
    CFArrayInsertValueAtIndex(row->array, index, pointer((intptr_t)row->next));
    row->next++;
}

static void take(struct row *row, CFIndex index)
{
    row->count--;
    memmove(row->values + index, row->values + index + 1, (size_t)(row->count - index) * sizeof row->values[0]);
    CFArrayRemoveValueAtIndex(row->array, index);
}

static void expect_row(const struct row *row)
{
    REQUIRE(CFArrayGetCount(row->array) == row->count);
    for (CFIndex i = 0; i < row->count; i++) {
        REQUIRE((uintptr_t)CFArrayGetValueAtIndex(row->array, i) == row->values[i]);
    }
}

/* Mostly at the ends, so that free places are on both sides; growing and shrinking by turns. */
static void change_row(struct row *row, bool grows)
{
    uint32_t place = chance(row, 3);
    bool puts = row->count == 0 || (row->count < longest && chance(row, 100) < (grows ? 70 : 30));
    CFIndex last = puts ? row->count : row->count - 1;
    CFIndex index = place == 0 ? 0 : last;

    if (place == 1) {
        index = (CFIndex)chance(row, (uint32_t)last + 1);
    }
    if (puts) {
        put(row, index);
    } else {
        take(row, index);
    }
}

TEST(a_long_array_is_changed_at_either_end_and_in_between, "")
{
    static struct row row = {.next = 1, .seed = 3};

    row.array = CFArrayCreateMutable(NULL, 0, NULL);
    for (int i = 0; i < 20000; i++) {
        change_row(&row, i / 1500 % 2 == 0);
        if (i % 16 == 0) {
            expect_row(&row);
        }
        if (i % 5000 == 4999) {
            CFArrayReplaceValues(row.array, CFRangeMake(0, row.count), NULL, 0);
            row.count = 0;
        }
    }
    for (int i = 0; i < longest / 2; i++) {
        put(&row, row.count);
        put(&row, row.count);
        take(&row, 0);
    }
    expect_row(&row);
    CFArrayRemoveAllValues(row.array);
    row.count = 0;
    put(&row, 0);
    expect_row(&row);
    CFRelease(row.array);
}

TEST(arrays_are_copied_when_they_could_change, "")
{
    CFMutableArrayRef array = array_of_numbers(3);
    CFArrayRef copy = CFArrayCreateCopy(NULL, array);
    CFArrayRef again = CFArrayCreateCopy(NULL, copy);
    CFArrayRef elsewhere = CFArrayCreateCopy(kCFAllocatorMalloc, copy);
    EXPECT(again == copy);
    EXPECT(elsewhere != copy);
    CFArrayAppendValue(array, pointer(9));
    expect_numbers(copy, "0 1 2");
    expect_numbers(elsewhere, "0 1 2");
    EXPECT(CFEqual(copy, elsewhere));
    EXPECT_EQ(CFHash(copy), CFHash(elsewhere));
    EXPECT(!CFEqual(copy, array));
    CFArrayRemoveValueAtIndex(array, 0);
    EXPECT(!CFEqual(copy, array));
    CFArrayRef objects = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);
    CFArrayRef nothing = CFArrayCreate(NULL, NULL, 0, NULL);
    EXPECT(!CFEqual(objects, nothing));
    CFRelease(nothing);
    CFRelease(objects);
    CFRelease(elsewhere);
    CFRelease(again);
    CFRelease(copy);
    CFRelease(array);
}

static void add_up(const void *value, void *context)
{
    *(intptr_t *)context += (intptr_t)value;
}

static void remove_last(const void *value, void *context)
{
    (void)value;
    CFArrayRemoveValueAtIndex(context, CFArrayGetCount(context) - 1);
}

TEST(a_function_is_applied_to_a_part_of_an_array, "")
{
    CFMutableArrayRef array = array_of_numbers(10);
    intptr_t sum = 0;
    CFArrayApplyFunction(array, CFRangeMake(2, 3), add_up, &sum);
    EXPECT_EQ(sum, 2 + 3 + 4);
    CFArrayApplyFunction(array, CFRangeMake(0, 10), remove_last, array);
    EXPECT_EQ(CFArrayGetCount(array), 5);
    CFRelease(array);
}

static CFComparisonResult by_tens(const void *one, const void *other, void *context)
{
    intptr_t a = (intptr_t)one / 10;
    intptr_t b = (intptr_t)other / 10;
    ++*(int *)context;
    return a < b ? kCFCompareLessThan : a > b ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

TEST(sorting_keeps_the_order_of_equal_values, "")
{
    static const intptr_t numbers[] = {31, 12, 25, 11, 32, 20, 13, 5};
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        CFArrayAppendValue(array, pointer(numbers[i]));
    }
    int calls = 0;
    CFArraySortValues(array, CFRangeMake(0, 8), by_tens, &calls);
    expect_numbers(array, "5 12 11 13 25 20 31 32");
    EXPECT(calls > 0 && calls <= 8 * 3);
    CFArraySortValues(array, CFRangeMake(0, 1), by_tens, &calls);
    CFArraySetValueAtIndex(array, 0, pointer(99));
    CFArraySetValueAtIndex(array, 3, pointer(1));
    CFArraySortValues(array, CFRangeMake(1, 4), by_tens, &calls);
    expect_numbers(array, "99 1 12 11 25 20 31 32");
    CFRelease(array);
}

TEST(sorting_is_right_for_every_count, "")
{
    unsigned state = 3;
    for (CFIndex count = 0; count < 70; count++) {
        CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, NULL);
        for (CFIndex i = 0; i < count; i++) {
            state = state * 1103515245 + 12345;
            CFArrayAppendValue(array, pointer((intptr_t)(state >> 20) * 10));
        }
        int calls = 0;
        CFArraySortValues(array, CFRangeMake(0, count), by_tens, &calls);
        for (CFIndex i = 1; i < count; i++) {
            EXPECT((intptr_t)CFArrayGetValueAtIndex(array, i - 1) <= (intptr_t)CFArrayGetValueAtIndex(array, i));
        }
        CFRelease(array);
    }
}

TEST(counts_that_cannot_be_give_null, "")
{
    const void *value = NULL;
    EXPECT(CFArrayCreate(NULL, &value, -1, NULL) == NULL);
    EXPECT(CFArrayCreate(NULL, NULL, 1, NULL) == NULL);
    EXPECT(CFArrayCreate(NULL, &value, LONG_MAX, NULL) == NULL);
    EXPECT(CFArrayCreate(NULL, &value, LONG_MAX / (CFIndex)sizeof value + 1, NULL) == NULL);
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, LONG_MAX, NULL);
    EXPECT_EQ(CFArrayGetCount(array), 0);
    CFRelease(array);
    array = CFArrayCreateMutable(NULL, -1, NULL);
    CFRelease(array);
}

TEST(misuse_of_arrays_stops_with_a_sentence, "")
{
    CFMutableArrayRef array = array_of_numbers(3);
    CFMutableArrayRef fixed = (CFMutableArrayRef)(uintptr_t)CFArrayCreateCopy(NULL, array);
    EXPECT_STOPS("CFArrayGetValueAtIndex: the index 3 is outside the array, whose count is 3", { CFArrayGetValueAtIndex(array, 3); });
    EXPECT_STOPS("CFArrayGetValueAtIndex: the index -1 is outside", { CFArrayGetValueAtIndex(array, -1); });
    EXPECT_STOPS("CFArrayInsertValueAtIndex: the index 4 is outside", { CFArrayInsertValueAtIndex(array, 4, NULL); });
    EXPECT_STOPS("CFArraySetValueAtIndex: the index 4 is outside", { CFArraySetValueAtIndex(array, 4, NULL); });
    EXPECT_STOPS("CFArrayRemoveValueAtIndex: the index 3 is outside", { CFArrayRemoveValueAtIndex(array, 3); });
    EXPECT_STOPS("CFArrayContainsValue: the range {1, 3} is outside the array, whose count is 3",
                 { CFArrayContainsValue(array, CFRangeMake(1, 3), NULL); });
    EXPECT_STOPS("CFArrayGetValues: the range {0, -1}", { CFArrayGetValues(array, CFRangeMake(0, -1), NULL); });
    EXPECT_STOPS("CFArrayApplyFunction: the function is NULL", { CFArrayApplyFunction(array, CFRangeMake(0, 1), NULL, NULL); });
    EXPECT_STOPS("CFArraySortValues: the comparator is NULL", { CFArraySortValues(array, CFRangeMake(0, 1), NULL, NULL); });
    EXPECT_STOPS("CFArrayAppendValue: the array cannot be changed", { CFArrayAppendValue(fixed, NULL); });
    EXPECT_STOPS("CFArrayRemoveAllValues: the array is NULL", { CFArrayRemoveAllValues(NULL); });
    CFRelease(fixed);
    CFRelease(array);
}

TEST(arrays_without_memory_stay_as_they_are, "")
{
    struct counting counting;
    counting_open(&counting, 2, false);
    CFMutableArrayRef array = CFArrayCreateMutable(counting.allocator, 0, &kCFTypeArrayCallBacks);
    CFDataRef value = CFDataCreate(NULL, NULL, 0);
    for (int i = 0; i < 20; i++) {
        CFArrayAppendValue(array, value);
    }
    EXPECT_EQ(CFArrayGetCount(array), 8);
    EXPECT_EQ(CFGetRetainCount(value), 9);
    CFArrayInsertValueAtIndex(array, 0, value);
    EXPECT_EQ(CFArrayGetCount(array), 8);
    EXPECT(CFArrayCreateMutable(counting.allocator, 0, NULL) == NULL);
    EXPECT(CFArrayCreateMutableCopy(counting.allocator, 0, array) == NULL);
    EXPECT(CFArrayCreate(counting.allocator, NULL, 0, NULL) == NULL);
    counting.allowance = 1;
    EXPECT(CFArrayCreateMutableCopy(counting.allocator, 0, array) == NULL);
    CFRelease(array);
    EXPECT_EQ(CFGetRetainCount(value), 1);
    CFRelease(value);
    counting_close(&counting);
}

TEST(a_long_array_without_memory_for_free_places_in_front_moves_the_others, "")
{
    struct counting counting;
    counting_open(&counting, 2, false); /* the array and its places */
    CFMutableArrayRef array = CFArrayCreateMutable(counting.allocator, 200, NULL);
    for (intptr_t i = 1; i <= 100; i++) {
        CFArrayAppendValue(array, pointer(i));
    }
    for (intptr_t i = 1; i <= 100; i++) {
        CFArrayInsertValueAtIndex(array, 0, pointer(-i));
    }
    REQUIRE(CFArrayGetCount(array) == 200);
    for (CFIndex i = 0; i < 200; i++) {
        EXPECT_EQ((intptr_t)CFArrayGetValueAtIndex(array, i), i < 100 ? i - 100 : i - 99);
    }
    CFArrayInsertValueAtIndex(array, 0, pointer(7));
    EXPECT_EQ(CFArrayGetCount(array), 200);
    CFRelease(array);
    counting_close(&counting);
}

TEST(an_array_counts_and_finds_the_last_equal_value, "")
{
    const void *values[] = {CFSTR("a"), CFSTR("b"), CFSTR("a"), CFSTR("c")};
    CFArrayRef array = CFArrayCreate(NULL, values, 4, &kCFTypeArrayCallBacks);
    CFStringRef wanted = CFStringCreateWithCString(NULL, "a", kCFStringEncodingASCII);
    EXPECT_EQ(CFArrayGetLastIndexOfValue(array, CFRangeMake(0, 4), wanted), 2);
    EXPECT_EQ(CFArrayGetLastIndexOfValue(array, CFRangeMake(0, 2), wanted), 0);
    EXPECT_EQ(CFArrayGetLastIndexOfValue(array, CFRangeMake(1, 1), wanted), kCFNotFound);
    EXPECT_EQ(CFArrayGetCountOfValue(array, CFRangeMake(0, 4), wanted), 2);
    EXPECT_EQ(CFArrayGetCountOfValue(array, CFRangeMake(1, 3), wanted), 1);
    EXPECT_EQ(CFArrayGetCountOfValue(array, CFRangeMake(3, 0), wanted), 0);
    CFRelease(wanted);
    CFRelease(array);
}

static CFComparisonResult compare_pointers(const void *one, const void *other, void *context)
{
    ++*(int *)context;
    return one < other ? kCFCompareLessThan : one > other ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

TEST(a_sorted_array_is_searched_in_halves, "")
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, NULL);
    for (intptr_t i = 0; i < 1000; i++) {
        CFArrayAppendValue(array, pointer(2 * i));
    }
    int calls = 0;
    CFRange all = CFRangeMake(0, 1000);
    EXPECT_EQ(CFArrayBSearchValues(array, all, pointer(500), compare_pointers, &calls), 250);
    EXPECT_EQ(CFArrayBSearchValues(array, all, pointer(501), compare_pointers, &calls), 251);
    EXPECT(calls <= 22);
    EXPECT_EQ(CFArrayBSearchValues(array, CFRangeMake(1, 999), pointer(0), compare_pointers, &calls), 1);
    EXPECT_EQ(CFArrayBSearchValues(array, all, pointer(5000), compare_pointers, &calls), 1000);
    EXPECT_EQ(CFArrayBSearchValues(array, CFRangeMake(10, 5), pointer(0), compare_pointers, &calls), 10);
    EXPECT_EQ(CFArrayBSearchValues(array, CFRangeMake(10, 0), pointer(0), compare_pointers, &calls), 10);
    EXPECT_STOPS("CFArrayBSearchValues", { CFArrayBSearchValues(array, all, NULL, NULL, NULL); });
    CFRelease(array);
}

TEST(values_of_an_array_change_places, "")
{
    CFMutableArrayRef array = array_of_numbers(4);
    CFArrayExchangeValuesAtIndices(array, 0, 3);
    CFArrayExchangeValuesAtIndices(array, 1, 1);
    expect_numbers(array, "3 1 2 0");
    EXPECT_STOPS("CFArrayExchangeValuesAtIndices", { CFArrayExchangeValuesAtIndices(array, 0, 4); });
    CFRelease(array);
}

TEST(a_part_of_an_array_is_replaced_by_more_or_fewer_values, "")
{
    CFMutableArrayRef array = array_of_numbers(5);
    const void *values[] = {pointer(10), pointer(11), pointer(12)};
    CFArrayReplaceValues(array, CFRangeMake(1, 2), values, 3);
    expect_numbers(array, "0 10 11 12 3 4");
    CFArrayReplaceValues(array, CFRangeMake(0, 5), values, 1);
    expect_numbers(array, "10 4");
    CFArrayReplaceValues(array, CFRangeMake(2, 0), values, 2);
    expect_numbers(array, "10 4 10 11");
    CFArrayReplaceValues(array, CFRangeMake(0, 4), NULL, 0);
    EXPECT_EQ(CFArrayGetCount(array), 0);
    EXPECT_STOPS("CFArrayReplaceValues", { CFArrayReplaceValues(array, CFRangeMake(0, 1), NULL, 0); });
    EXPECT_STOPS("CFArrayReplaceValues", { CFArrayReplaceValues(array, CFRangeMake(0, 0), NULL, 1); });
    CFRelease(array);
}

TEST(replaced_values_are_released_and_new_ones_retained, "")
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    CFDataRef old = CFDataCreate(NULL, NULL, 0);
    CFDataRef new = CFDataCreate(NULL, NULL, 0);
    CFArrayAppendValue(array, old);
    const void *values[] = {new, new};
    CFArrayReplaceValues(array, CFRangeMake(0, 1), values, 2);
    EXPECT_EQ(CFGetRetainCount(old), 1);
    EXPECT_EQ(CFGetRetainCount(new), 3);
    CFRelease(array);
    EXPECT_EQ(CFGetRetainCount(new), 1);
    CFRelease(old);
    CFRelease(new);
}

TEST(an_array_is_added_to_another_and_to_itself, "")
{
    CFMutableArrayRef array = array_of_numbers(3);
    CFArrayRef other = CFArrayCreateCopy(NULL, array);
    CFArrayAppendArray(array, other, CFRangeMake(1, 2));
    expect_numbers(array, "0 1 2 1 2");
    for (int i = 0; i < 4; i++) {
        CFArrayAppendArray(array, array, CFRangeMake(0, CFArrayGetCount(array)));
    }
    EXPECT_EQ(CFArrayGetCount(array), 80);
    EXPECT_EQ((intptr_t)CFArrayGetValueAtIndex(array, 77), 2);
    CFArrayAppendArray(array, other, CFRangeMake(3, 0));
    EXPECT_EQ(CFArrayGetCount(array), 80);
    EXPECT_STOPS("CFArrayAppendArray", { CFArrayAppendArray(array, other, CFRangeMake(2, 2)); });
    EXPECT_STOPS("CFArrayAppendArray", { CFArrayAppendArray((CFMutableArrayRef)(uintptr_t)other, other, CFRangeMake(0, 0)); });
    CFRelease(other);
    CFRelease(array);
}

/* Arrays and dictionaries in turn, each in the next. */
static CFTypeRef create_nest(int depth)
{
    CFTypeRef inner = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);

    for (int i = 1; i < depth; i++) {
        const void *key = CFSTR("key");
        CFTypeRef outer =
            i % 2 ? (CFTypeRef)CFDictionaryCreate(NULL, &key, &inner, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks)
                  : (CFTypeRef)CFArrayCreate(NULL, &inner, 1, &kCFTypeArrayCallBacks);

        CFRelease(inner);
        inner = outer;
    }
    return inner;
}

TEST(collections_may_be_nested_as_deep_as_memory_allows, "2204")
{
    CFTypeRef nest = create_nest(300000);
    CFTypeRef other = create_nest(300000);
    CFTypeRef shallow = create_nest(1000);
    CFTypeRef equal = create_nest(1000);
    long live = object_live_count();
    CFStringRef words = CFCopyDescription(nest);
    EXPECT(words);
    CFRelease(words);
    EXPECT_EQ(CFHash(nest), 1);
    EXPECT(CFEqual(nest, nest));
    EXPECT(!CFEqual(nest, other));
    EXPECT(CFEqual(shallow, equal));
    CFRelease(shallow);
    CFRelease(equal);
    CFRelease(other);
    CFRelease(nest);
    EXPECT_EQ(object_live_count(), live - 602000);
}
