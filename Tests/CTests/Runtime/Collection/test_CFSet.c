/* SPDX-License-Identifier: Apache-2.0 */
/* Sets: members that are all different, callbacks, misuse, and what happens without memory. */
#include <stdint.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static const void *pointer(intptr_t number)
{
    return (const void *)number;
}

TEST(a_set_holds_each_value_once, "")
{
    CFStringRef a = CFStringCreateWithCString(NULL, "a", kCFStringEncodingUTF8);
    const void *values[] = {CFSTR("a"), CFSTR("b"), a};
    CFSetRef set = CFSetCreate(NULL, values, 3, &kCFTypeSetCallBacks);
    EXPECT_EQ(CFGetTypeID(set), CFSetGetTypeID());
    EXPECT_EQ(CFSetGetCount(set), 2);
    EXPECT_EQ(CFGetRetainCount(a), 1);
    EXPECT(CFSetContainsValue(set, a));
    EXPECT(CFSetGetValue(set, a) == values[0]);
    EXPECT(CFSetGetValue(set, CFSTR("c")) == NULL);
    EXPECT(!CFSetContainsValue(set, CFSTR("c")));
    const void *found[2];
    CFSetGetValues(set, found);
    EXPECT((found[0] == values[0] && found[1] == values[1]) || (found[1] == values[0] && found[0] == values[1]));
    CFRelease(set);
    CFRelease(a);
}

TEST(members_are_added_set_and_removed, "")
{
    CFStringRef one = CFStringCreateWithCString(NULL, "x", kCFStringEncodingUTF8);
    CFStringRef other = CFStringCreateWithCString(NULL, "x", kCFStringEncodingUTF8);
    CFMutableSetRef set = CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks);
    CFSetAddValue(set, one);
    CFSetAddValue(set, other);
    EXPECT(CFSetGetValue(set, other) == one);
    CFSetSetValue(set, one);
    EXPECT_EQ(CFGetRetainCount(one), 2);
    CFSetSetValue(set, other);
    EXPECT(CFSetGetValue(set, one) == other);
    EXPECT_EQ(CFGetRetainCount(one), 1);
    EXPECT_EQ(CFGetRetainCount(other), 2);
    CFSetSetValue(set, CFSTR("y"));
    EXPECT_EQ(CFSetGetCount(set), 2);
    CFSetRemoveValue(set, one);
    CFSetRemoveValue(set, one);
    EXPECT_EQ(CFSetGetCount(set), 1);
    CFSetRemoveAllValues(set);
    EXPECT_EQ(CFSetGetCount(set), 0);
    EXPECT_EQ(CFGetRetainCount(other), 1);
    CFRelease(set);
    CFRelease(one);
    CFRelease(other);
}

static void add_up(const void *value, void *context)
{
    *(intptr_t *)context += (intptr_t)value;
}

TEST(a_function_is_applied_to_all_members, "")
{
    CFMutableSetRef set = CFSetCreateMutable(NULL, 10, NULL);
    for (intptr_t i = 0; i <= 100; i++) {
        CFSetAddValue(set, pointer(i));
    }
    intptr_t sum = 0;
    CFSetApplyFunction(set, add_up, &sum);
    EXPECT_EQ(sum, 5050);
    EXPECT(CFSetContainsValue(set, NULL));
    CFRelease(set);
}

TEST(equal_sets_have_equal_members, "")
{
    const void *values[] = {CFSTR("a"), CFSTR("b"), CFSTR("c")};
    CFSetRef one = CFSetCreate(NULL, values, 3, &kCFTypeSetCallBacks);
    CFMutableSetRef other = CFSetCreateMutableCopy(NULL, 0, one);
    EXPECT(CFEqual(one, other));
    EXPECT_EQ(CFHash(one), CFHash(other));
    CFSetRemoveValue(other, CFSTR("a"));
    EXPECT(!CFEqual(one, other));
    CFSetAddValue(other, CFSTR("d"));
    EXPECT(!CFEqual(one, other));
    CFSetRef copy = CFSetCreateCopy(NULL, one);
    CFSetRef frozen = CFSetCreateCopy(NULL, other);
    EXPECT(copy == one && frozen != other && CFEqual(frozen, other));
    CFRelease(frozen);
    CFRelease(copy);
    CFRelease(other);
    CFRelease(one);
}

TEST(sets_are_described, "")
{
    const void *values[] = {CFSTR("member")};
    CFSetRef set = CFSetCreate(NULL, values, 1, &kCFTypeSetCallBacks);
    CFStringRef words = CFCopyDescription(set);
    EXPECT(CFStringFind(words, CFSTR("{immutable, count = 1, values = (\n\t<CFString"), 0).location != kCFNotFound);
    EXPECT(CFStringFind(words, CFSTR(" = <"), 0).location == kCFNotFound);
    CFRelease(words);
    CFRelease(set);
}

TEST(sets_that_cannot_be_made_are_null, "")
{
    const void *value = NULL;
    EXPECT(CFSetCreate(NULL, &value, -1, NULL) == NULL);
    EXPECT(CFSetCreate(NULL, NULL, 1, NULL) == NULL);
    CFSetRef empty = CFSetCreate(NULL, NULL, 0, NULL);
    EXPECT_EQ(CFSetGetCount(empty), 0);
    CFRelease(empty);
}

TEST(misuse_of_sets_stops_with_a_sentence, "")
{
    CFMutableSetRef fixed = (CFMutableSetRef)(uintptr_t)CFSetCreate(NULL, NULL, 0, NULL);
    EXPECT_STOPS("CFSetGetCount: the set is NULL", { CFSetGetCount(NULL); });
    EXPECT_STOPS("CFSetAddValue: the set cannot be changed", { CFSetAddValue(fixed, NULL); });
    EXPECT_STOPS("CFSetRemoveValue: the set is a CFNull", { CFSetRemoveValue((CFMutableSetRef)(uintptr_t)kCFNull, NULL); });
    EXPECT_STOPS("CFSetApplyFunction: the function is NULL", { CFSetApplyFunction(fixed, NULL, NULL); });
    CFRelease(fixed);
}

TEST(sets_without_memory_stay_as_they_are, "")
{
    struct counting counting;
    counting_open(&counting, 1, true);
    CFMutableSetRef set = CFSetCreateMutable(counting.allocator, 50, &kCFTypeSetCallBacks);
    CFDataRef value = CFDataCreate(NULL, NULL, 0);
    CFSetAddValue(set, value);
    CFSetSetValue(set, value);
    EXPECT_EQ(CFSetGetCount(set), 0);
    EXPECT_EQ(CFGetRetainCount(value), 1);
    EXPECT(CFSetCreateMutable(counting.allocator, 0, NULL) == NULL);
    const void *values[] = {value};
    counting.allowance = 1;
    EXPECT(CFSetCreate(counting.allocator, values, 1, &kCFTypeSetCallBacks) == NULL);
    CFRelease(value);
    CFRelease(set);
    counting_close(&counting);
}

TEST(a_set_hands_out_the_value_that_is_there_and_replaces_only_that, "")
{
    CFMutableSetRef set = CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks);
    CFStringRef first = CFStringCreateWithCString(NULL, "equal", kCFStringEncodingASCII);
    CFStringRef second = CFStringCreateWithCString(NULL, "equal", kCFStringEncodingASCII);
    const void *found = NULL;
    CFSetReplaceValue(set, first);
    EXPECT_EQ(CFSetGetCount(set), 0);
    EXPECT(!CFSetGetValueIfPresent(set, first, &found));
    EXPECT(found == NULL);
    CFSetAddValue(set, first);
    EXPECT_EQ(CFSetGetCountOfValue(set, second), 1);
    EXPECT_EQ(CFSetGetCountOfValue(set, CFSTR("other")), 0);
    EXPECT(CFSetGetValueIfPresent(set, second, NULL));
    EXPECT(CFSetGetValueIfPresent(set, second, &found));
    EXPECT(found == first);
    CFSetReplaceValue(set, second);
    EXPECT(CFSetGetValue(set, first) == second);
    EXPECT_EQ(CFGetRetainCount(first), 1);
    CFRelease(set);
    CFRelease(first);
    CFRelease(second);
}

TEST(a_set_of_copied_texts_keeps_what_they_were, "")
{
    CFMutableSetRef set = CFSetCreateMutable(NULL, 0, &kCFCopyStringSetCallBacks);
    CFMutableStringRef text = CFStringCreateMutable(NULL, 0);
    CFStringAppend(text, CFSTR("one"));
    CFSetAddValue(set, text);
    CFStringAppend(text, CFSTR(" more"));
    EXPECT(CFSetContainsValue(set, CFSTR("one")));
    EXPECT(!CFSetContainsValue(set, text));
    CFRelease(text);
    CFRelease(set);
}
