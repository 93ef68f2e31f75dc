/* SPDX-License-Identifier: Apache-2.0 */
/* Dictionaries: finding, adding, replacing, removing, callbacks, misuse, and what happens without memory. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static CFMutableDictionaryRef new_dictionary(void)
{
    return CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

static const void *pointer(intptr_t number)
{
    return (const void *)number;
}

TEST(a_dictionary_finds_values_by_equal_keys, "")
{
    const void *keys[] = {CFSTR("one"), CFSTR("two"), CFSTR("one")};
    const void *values[] = {CFSTR("1"), CFSTR("2"), CFSTR("other")};
    CFDictionaryRef dictionary =
        CFDictionaryCreate(NULL, keys, values, 3, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    EXPECT_EQ(CFGetTypeID(dictionary), CFDictionaryGetTypeID());
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 2);
    CFStringRef key = CFStringCreateWithCString(NULL, "one", kCFStringEncodingUTF8);
    EXPECT(CFDictionaryGetValue(dictionary, key) == values[0]);
    EXPECT(CFDictionaryContainsKey(dictionary, key));
    EXPECT_EQ(CFDictionaryGetCountOfKey(dictionary, key), 1);
    EXPECT_EQ(CFDictionaryGetCountOfKey(dictionary, CFSTR("three")), 0);
    EXPECT(CFDictionaryGetValue(dictionary, CFSTR("three")) == NULL);
    EXPECT(!CFDictionaryContainsKey(dictionary, CFSTR("three")));
    const void *value = pointer(77);
    EXPECT(!CFDictionaryGetValueIfPresent(dictionary, CFSTR("three"), &value));
    EXPECT(value == pointer(77));
    EXPECT(CFDictionaryGetValueIfPresent(dictionary, CFSTR("two"), &value));
    EXPECT(value == values[1]);
    EXPECT(CFDictionaryGetValueIfPresent(dictionary, CFSTR("two"), NULL));
    EXPECT_EQ(CFDictionaryGetCountOfValue(dictionary, CFSTR("2")), 1);
    EXPECT(CFDictionaryContainsValue(dictionary, CFSTR("1")));
    EXPECT(!CFDictionaryContainsValue(dictionary, CFSTR("other")));
    CFRelease(key);
    CFRelease(dictionary);
}

TEST(keys_are_added_set_replaced_and_removed, "")
{
    CFMutableDictionaryRef dictionary = new_dictionary();
    CFDictionaryAddValue(dictionary, CFSTR("k"), CFSTR("1"));
    CFDictionaryAddValue(dictionary, CFSTR("k"), CFSTR("2"));
    EXPECT(CFEqual(CFDictionaryGetValue(dictionary, CFSTR("k")), CFSTR("1")));
    CFDictionarySetValue(dictionary, CFSTR("k"), CFSTR("3"));
    EXPECT(CFEqual(CFDictionaryGetValue(dictionary, CFSTR("k")), CFSTR("3")));
    CFDictionaryReplaceValue(dictionary, CFSTR("k"), CFSTR("4"));
    CFDictionaryReplaceValue(dictionary, CFSTR("absent"), CFSTR("4"));
    EXPECT(CFEqual(CFDictionaryGetValue(dictionary, CFSTR("k")), CFSTR("4")));
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 1);
    CFDictionarySetValue(dictionary, CFSTR("l"), CFSTR("5"));
    CFDictionaryRemoveValue(dictionary, CFSTR("k"));
    CFDictionaryRemoveValue(dictionary, CFSTR("k"));
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 1);
    CFDictionaryRemoveAllValues(dictionary);
    CFDictionaryRemoveAllValues(dictionary);
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 0);
    CFDictionarySetValue(dictionary, CFSTR("m"), CFSTR("6"));
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 1);
    CFRelease(dictionary);
}

TEST(keys_and_values_are_counted, "")
{
    CFDataRef key = CFDataCreate(NULL, (const UInt8 *)"k", 1);
    CFDataRef same_key = CFDataCreate(NULL, (const UInt8 *)"k", 1);
    CFDataRef value = CFDataCreate(NULL, (const UInt8 *)"v", 1);
    CFMutableDictionaryRef dictionary = new_dictionary();
    CFDictionarySetValue(dictionary, key, value);
    CFDictionarySetValue(dictionary, same_key, value);
    CFDictionaryAddValue(dictionary, same_key, value);
    EXPECT_EQ(CFGetRetainCount(key), 1); /* the one that was set last has taken its place */
    EXPECT_EQ(CFGetRetainCount(same_key), 2);
    EXPECT_EQ(CFGetRetainCount(value), 2);
    CFDictionaryRef copy = CFDictionaryCreateCopy(NULL, dictionary);
    EXPECT_EQ(CFGetRetainCount(value), 3);
    CFDictionaryRemoveValue(dictionary, key);
    EXPECT_EQ(CFGetRetainCount(same_key), 2);
    CFRelease(copy);
    CFRelease(dictionary);
    EXPECT_EQ(CFGetRetainCount(same_key), 1);
    EXPECT_EQ(CFGetRetainCount(value), 1);
    CFRelease(key);
    CFRelease(same_key);
    CFRelease(value);
}

/* A value that has its key in it, as C programs keep them. */
struct entry {
    char name[8];
    int number;
};

static struct entry *new_entry(int number)
{
    struct entry *entry = calloc(1, sizeof *entry);
    REQUIRE(entry != NULL);
    *entry = (struct entry){"name", number};
    return entry;
}

static void free_entry(CFAllocatorRef allocator, const void *value)
{
    (void)allocator;
    free((void *)(uintptr_t)value);
}

static Boolean names_equal(const void *name1, const void *name2)
{
    return strcmp(name1, name2) == 0;
}

static CFHashCode hash_name(const void *name)
{
    return *(const unsigned char *)name;
}

TEST(a_key_that_is_a_part_of_its_value_goes_with_it, "")
{
    const CFDictionaryKeyCallBacks by_name = {.equal = names_equal, .hash = hash_name};
    const CFDictionaryValueCallBacks freed = {.release = free_entry};
    CFMutableDictionaryRef dictionary = CFDictionaryCreateMutable(NULL, 0, &by_name, &freed);
    struct entry *first = new_entry(1);
    struct entry *second = new_entry(2);
    struct entry *third = new_entry(3);
    const struct entry *found;
    CFDictionarySetValue(dictionary, first->name, first);
    CFDictionarySetValue(dictionary, second->name, second);
    found = CFDictionaryGetValue(dictionary, "name");
    EXPECT_EQ(found->number, 2);
    CFDictionaryReplaceValue(dictionary, third->name, third);
    found = CFDictionaryGetValue(dictionary, "name");
    EXPECT_EQ(found->number, 3);
    const void *key = NULL;
    CFDictionaryGetKeysAndValues(dictionary, &key, NULL);
    EXPECT(key == third->name);
    CFRelease(dictionary);
}

TEST(keys_that_are_texts_may_be_copied, "")
{
    CFMutableDictionaryRef dictionary = CFDictionaryCreateMutable(NULL, 0, &kCFCopyStringDictionaryKeyCallBacks, NULL);
    CFMutableStringRef key = CFStringCreateMutable(NULL, 0);
    CFStringAppend(key, CFSTR("key"));
    CFDictionarySetValue(dictionary, key, pointer(5));
    CFStringAppend(key, CFSTR(" changed"));
    EXPECT(CFDictionaryGetValue(dictionary, CFSTR("key")) == pointer(5));
    EXPECT(CFDictionaryGetValue(dictionary, key) == NULL);
    CFRelease(key);
    CFRelease(dictionary);
}

TEST(keys_without_callbacks_are_pointers, "")
{
    CFMutableDictionaryRef dictionary = CFDictionaryCreateMutable(NULL, 100, NULL, NULL);
    for (intptr_t i = -1; i < 5000; i++) {
        CFDictionarySetValue(dictionary, pointer(i * 64), pointer(i));
    }
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 5001);
    EXPECT(CFDictionaryContainsKey(dictionary, NULL));
    for (intptr_t i = -1; i < 5000; i++) {
        if (CFDictionaryGetValue(dictionary, pointer(i * 64)) != pointer(i)) {
            FAIL("a key is lost");
        }
    }
    for (intptr_t i = 0; i < 5000; i += 2) {
        CFDictionaryRemoveValue(dictionary, pointer(i * 64));
    }
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 2501);
    EXPECT(CFDictionaryGetValue(dictionary, pointer(4999 * 64)) == pointer(4999));
    CFRelease(dictionary);
}

static void add_up(const void *key, const void *value, void *context)
{
    *(intptr_t *)context += (intptr_t)key * 1000 + (intptr_t)value;
}

static void add_another(const void *key, const void *value, void *context)
{
    (void)value;
    if (CFDictionaryGetCount(context) < 1000) {
        CFDictionarySetValue(context, pointer((intptr_t)key + 100000), NULL);
    }
}

TEST(all_keys_and_values_can_be_seen, "")
{
    CFMutableDictionaryRef dictionary = CFDictionaryCreateMutable(NULL, 0, NULL, NULL);
    for (intptr_t i = 1; i <= 10; i++) {
        CFDictionarySetValue(dictionary, pointer(i), pointer(i * 2));
    }
    const void *keys[10];
    const void *values[10];
    CFDictionaryGetKeysAndValues(dictionary, keys, values);
    CFDictionaryGetKeysAndValues(dictionary, NULL, NULL);
    intptr_t sum = 0;
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ((intptr_t)values[i], (intptr_t)keys[i] * 2);
        sum += (intptr_t)keys[i];
    }
    EXPECT_EQ(sum, 55);
    sum = 0;
    CFDictionaryApplyFunction(dictionary, add_up, &sum);
    EXPECT_EQ(sum, 55 * 1000 + 110);
    CFDictionaryApplyFunction(dictionary, add_another, dictionary);
    EXPECT(CFDictionaryGetCount(dictionary) > 10);
    CFRelease(dictionary);
}

TEST(equal_dictionaries_have_equal_keys_with_equal_values, "")
{
    CFMutableDictionaryRef one = new_dictionary();
    CFMutableDictionaryRef other = new_dictionary();
    for (int i = 0; i < 50; i++) {
        CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("%d"), i);
        CFStringRef reversed = CFStringCreateWithFormat(NULL, NULL, CFSTR("%d"), 49 - i);
        CFDictionarySetValue(one, text, text);
        CFDictionarySetValue(other, reversed, reversed);
        CFRelease(text);
        CFRelease(reversed);
    }
    EXPECT(CFEqual(one, other));
    EXPECT_EQ(CFHash(one), CFHash(other));
    CFDictionarySetValue(other, CFSTR("7"), CFSTR("8"));
    EXPECT(!CFEqual(one, other));
    CFDictionaryRemoveValue(other, CFSTR("7"));
    EXPECT(!CFEqual(one, other));
    CFDictionarySetValue(other, CFSTR("x"), CFSTR("7"));
    EXPECT(!CFEqual(one, other));
    CFMutableDictionaryRef plain = CFDictionaryCreateMutableCopy(NULL, 0, one);
    EXPECT(CFEqual(one, plain));
    CFRelease(plain);
    CFRelease(one);
    CFRelease(other);
}

TEST(dictionaries_are_copied_when_they_could_change, "")
{
    CFMutableDictionaryRef dictionary = new_dictionary();
    CFDictionarySetValue(dictionary, CFSTR("k"), CFSTR("v"));
    CFDictionaryRef copy = CFDictionaryCreateCopy(NULL, dictionary);
    CFDictionaryRef again = CFDictionaryCreateCopy(NULL, copy);
    CFDictionaryRef elsewhere = CFDictionaryCreateCopy(kCFAllocatorMalloc, copy);
    EXPECT(again == copy && elsewhere != copy);
    CFDictionaryRemoveAllValues(dictionary);
    EXPECT_EQ(CFDictionaryGetCount(copy), 1);
    EXPECT(CFEqual(copy, elsewhere));
    CFRelease(elsewhere);
    CFRelease(again);
    CFRelease(copy);
    CFRelease(dictionary);
}

TEST(dictionaries_are_described, "")
{
    CFMutableDictionaryRef dictionary = new_dictionary();
    CFDictionarySetValue(dictionary, CFSTR("key"), kCFBooleanTrue);
    CFStringRef words = CFCopyDescription(dictionary);
    EXPECT(CFStringFind(words, CFSTR("{mutable, count = 1, entries = ("), 0).location != kCFNotFound);
    EXPECT(CFStringFind(words, CFSTR("\"key\"} = <CFBoolean"), 0).location != kCFNotFound);
    CFRelease(words);
    CFRelease(dictionary);
    const void *keys[] = {pointer(1)};
    const void *values[] = {pointer(2)};
    CFDictionaryRef plain = CFDictionaryCreate(NULL, keys, values, 1, NULL, NULL);
    words = CFCopyDescription(plain);
    EXPECT(CFStringFind(words, CFSTR("immutable"), 0).location != kCFNotFound);
    EXPECT(CFStringFind(words, CFSTR("<0x1> = <0x2>"), 0).location != kCFNotFound);
    CFRelease(words);
    CFRelease(plain);
}

TEST(dictionaries_that_cannot_be_made_are_null, "")
{
    const void *list[1] = {NULL};
    EXPECT(CFDictionaryCreate(NULL, list, list, -1, NULL, NULL) == NULL);
    EXPECT(CFDictionaryCreate(NULL, NULL, list, 1, NULL, NULL) == NULL);
    EXPECT(CFDictionaryCreate(NULL, list, NULL, 1, NULL, NULL) == NULL);
    CFDictionaryRef empty = CFDictionaryCreate(NULL, NULL, NULL, 0, NULL, NULL);
    EXPECT_EQ(CFDictionaryGetCount(empty), 0);
    CFRelease(empty);
    CFMutableDictionaryRef hinted = CFDictionaryCreateMutable(NULL, LONG_MAX, NULL, NULL);
    EXPECT(hinted != NULL);
    CFRelease(hinted);
}

TEST(misuse_of_dictionaries_stops_with_a_sentence, "")
{
    CFMutableDictionaryRef fixed = (CFMutableDictionaryRef)(uintptr_t)CFDictionaryCreate(NULL, NULL, NULL, 0, NULL, NULL);
    EXPECT_STOPS("CFDictionaryGetCount: the dictionary is NULL", { CFDictionaryGetCount(NULL); });
    EXPECT_STOPS("CFDictionaryGetValue: the dictionary is a CFNull",
                 { CFDictionaryGetValue((CFDictionaryRef)(const void *)kCFNull, NULL); });
    EXPECT_STOPS("CFDictionarySetValue: the dictionary cannot be changed", { CFDictionarySetValue(fixed, NULL, NULL); });
    EXPECT_STOPS("CFDictionaryRemoveAllValues: the dictionary is NULL", { CFDictionaryRemoveAllValues(NULL); });
    EXPECT_STOPS("CFDictionaryApplyFunction: the function is NULL", { CFDictionaryApplyFunction(fixed, NULL, NULL); });
    CFRelease(fixed);
}

TEST(dictionaries_without_memory_stay_as_they_are, "")
{
    struct counting counting;
    counting_open(&counting, 2, false);
    CFMutableDictionaryRef dictionary =
        CFDictionaryCreateMutable(counting.allocator, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFDataRef value = CFDataCreate(NULL, NULL, 0);
    for (int i = 0; i < 20; i++) {
        CFStringRef key = CFStringCreateWithFormat(NULL, NULL, CFSTR("%d"), i);
        CFDictionaryAddValue(dictionary, key, value);
        CFDictionarySetValue(dictionary, key, value);
        CFRelease(key);
    }
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 6);
    EXPECT_EQ(CFGetRetainCount(value), 7);
    EXPECT(CFDictionaryCreateCopy(counting.allocator, dictionary) == NULL);
    counting.allowance = 1;
    EXPECT(CFDictionaryCreateMutableCopy(counting.allocator, 0, dictionary) == NULL);
    EXPECT_EQ(CFGetRetainCount(value), 7);
    const void *list[] = {value};
    counting.allowance = 1;
    EXPECT(CFDictionaryCreate(counting.allocator, list, list, 1, NULL, NULL) == NULL);
    CFRelease(dictionary);
    EXPECT_EQ(CFGetRetainCount(value), 1);
    CFRelease(value);
    counting_close(&counting);
}
