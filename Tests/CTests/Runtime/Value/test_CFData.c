/* SPDX-License-Identifier: Apache-2.0 */
/* Data: making, reading, changing, and what happens without memory. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFString.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static void expect_bytes(CFDataRef data, const char *expected)
{
    EXPECT_EQ(CFDataGetLength(data), strlen(expected));
    EXPECT(memcmp(CFDataGetBytePtr(data), expected, strlen(expected)) == 0);
}

static CFMutableDataRef mutable_of(const char *bytes)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    CFDataAppendBytes(data, (const UInt8 *)bytes, (CFIndex)strlen(bytes));
    return data;
}

TEST(data_holds_a_copy_of_bytes, "")
{
    UInt8 bytes[] = "hello";
    CFDataRef data = CFDataCreate(NULL, bytes, 5);
    bytes[0] = 'J';
    EXPECT_EQ(CFGetTypeID(data), CFDataGetTypeID());
    expect_bytes(data, "hello");
    UInt8 part[3];
    CFDataGetBytes(data, CFRangeMake(1, 3), part);
    EXPECT(memcmp(part, "ell", 3) == 0);
    CFDataGetBytes(data, CFRangeMake(5, 0), NULL);
    CFRelease(data);
}

TEST(empty_data_has_a_place_all_the_same, "")
{
    CFDataRef data = CFDataCreate(NULL, NULL, 0);
    EXPECT_EQ(CFDataGetLength(data), 0);
    EXPECT(CFDataGetBytePtr(data) != NULL);
    CFMutableDataRef changed = CFDataCreateMutable(NULL, 0);
    EXPECT(CFDataGetBytePtr(changed) != NULL);
    EXPECT(CFDataGetMutableBytePtr(changed) == NULL);
    EXPECT(CFEqual(data, changed));
    EXPECT_EQ(CFHash(data), CFHash(changed));
    CFDataRef external = CFDataCreateWithBytesNoCopy(NULL, NULL, 0, kCFAllocatorNull);
    EXPECT(CFDataGetBytePtr(external) != NULL);
    CFRelease(external);
    CFRelease(changed);
    CFRelease(data);
}

TEST(lengths_that_cannot_be_give_null, "")
{
    UInt8 byte = 0;
    EXPECT(CFDataCreate(NULL, &byte, -1) == NULL);
    EXPECT(CFDataCreate(NULL, NULL, 1) == NULL);
    EXPECT(CFDataCreate(NULL, &byte, LONG_MAX) == NULL);
    EXPECT(CFDataCreateWithBytesNoCopy(NULL, &byte, -1, kCFAllocatorNull) == NULL);
    EXPECT(CFDataCreateWithBytesNoCopy(NULL, NULL, 1, kCFAllocatorNull) == NULL);
}

static int bytes_freed;

static void free_bytes(void *bytes, void *info)
{
    (void)info;
    free(bytes);
    bytes_freed++;
}

TEST(bytes_used_in_place_are_freed_by_their_deallocator, "")
{
    CFAllocatorContext context = {.deallocate = free_bytes};
    CFAllocatorRef deallocator = CFAllocatorCreate(NULL, &context);
    UInt8 *bytes = calloc(1, 4);
    CFDataRef data = CFDataCreateWithBytesNoCopy(NULL, bytes, 4, deallocator);
    CFRelease(deallocator);
    EXPECT(CFDataGetBytePtr(data) == bytes);
    CFRelease(data);
    EXPECT_EQ(bytes_freed, 1);
    data = CFDataCreateWithBytesNoCopy(NULL, calloc(1, 4), 4, NULL);
    CFRelease(data);
    static const UInt8 nobodys[] = "abc";
    data = CFDataCreateWithBytesNoCopy(NULL, nobodys, 3, kCFAllocatorNull);
    expect_bytes(data, "abc");
    CFRelease(data);
}

TEST(a_copy_of_data_outlives_bytes_that_were_lent, "")
{
    UInt8 bytes[] = "abc";
    CFDataRef lent = CFDataCreateWithBytesNoCopy(NULL, bytes, 3, kCFAllocatorNull);
    CFDataRef copy = CFDataCreateCopy(NULL, lent);
    CFRelease(lent);
    memset(bytes, 'x', 3);
    expect_bytes(copy, "abc");
    CFRelease(copy);
}

TEST(data_is_copied_when_it_could_change, "")
{
    CFMutableDataRef changed = mutable_of("abc");
    CFDataRef copy = CFDataCreateCopy(NULL, changed);
    CFDataRef again = CFDataCreateCopy(NULL, copy);
    EXPECT(again == copy);
    CFDataRef elsewhere = CFDataCreateCopy(kCFAllocatorMalloc, copy);
    EXPECT(elsewhere != copy && CFEqual(elsewhere, copy));
    CFMutableDataRef other = CFDataCreateMutableCopy(NULL, 100, copy);
    CFDataGetMutableBytePtr(other)[0] = 'X';
    expect_bytes(other, "Xbc");
    expect_bytes(copy, "abc");
    EXPECT(!CFEqual(other, copy));
    CFRelease(other);
    CFRelease(elsewhere);
    CFRelease(again);
    CFRelease(copy);
    CFRelease(changed);
}

TEST(data_grows_and_shrinks_with_zeros, "")
{
    CFMutableDataRef data = mutable_of("abc");
    CFDataSetLength(data, 6);
    EXPECT(memcmp(CFDataGetBytePtr(data), "abc\0\0\0", 6) == 0);
    CFDataSetLength(data, 2);
    expect_bytes(data, "ab");
    CFDataIncreaseLength(data, 2);
    EXPECT(memcmp(CFDataGetBytePtr(data), "ab\0\0", 4) == 0);
    CFDataIncreaseLength(data, -3);
    expect_bytes(data, "a");
    CFDataSetLength(data, 100000);
    EXPECT_EQ(CFDataGetBytePtr(data)[99999], 0);
    CFDataSetLength(data, 0);
    CFDataSetLength(data, 0);
    EXPECT_EQ(CFDataGetLength(data), 0);
    CFRelease(data);
}

TEST(bytes_are_replaced_by_more_fewer_or_none, "")
{
    CFMutableDataRef data = mutable_of("0123456789");
    CFDataReplaceBytes(data, CFRangeMake(2, 3), (const UInt8 *)"ABCDE", 5);
    expect_bytes(data, "01ABCDE56789");
    CFDataReplaceBytes(data, CFRangeMake(0, 7), (const UInt8 *)"x", 1);
    expect_bytes(data, "x56789");
    CFDataReplaceBytes(data, CFRangeMake(6, 0), (const UInt8 *)"end", 3);
    expect_bytes(data, "x56789end");
    CFDataDeleteBytes(data, CFRangeMake(1, 5));
    expect_bytes(data, "xend");
    CFDataDeleteBytes(data, CFRangeMake(0, 4));
    CFDataDeleteBytes(data, CFRangeMake(0, 0));
    expect_bytes(data, "");
    CFDataAppendBytes(data, NULL, 0);
    CFRelease(data);
}

TEST(bytes_may_come_from_the_data_itself, "")
{
    CFMutableDataRef data = mutable_of("abcdef");
    for (int i = 0; i < 6; i++) {
        CFDataAppendBytes(data, CFDataGetBytePtr(data), CFDataGetLength(data));
    }
    EXPECT_EQ(CFDataGetLength(data), 6 * 64);
    EXPECT(memcmp(CFDataGetBytePtr(data) + 6 * 63, "abcdef", 6) == 0);
    CFDataSetLength(data, 6);
    CFDataReplaceBytes(data, CFRangeMake(0, 1), CFDataGetBytePtr(data) + 2, 4);
    expect_bytes(data, "cdefbcdef");
    CFRelease(data);
}

TEST(equal_bytes_are_equal_data, "")
{
    CFDataRef one = CFDataCreate(NULL, (const UInt8 *)"abc", 3);
    CFMutableDataRef other = mutable_of("abc");
    EXPECT(CFEqual(one, other));
    EXPECT_EQ(CFHash(one), CFHash(other));
    CFDataAppendBytes(other, (const UInt8 *)"d", 1);
    EXPECT(!CFEqual(one, other));
    EXPECT(CFHash(one) != CFHash(other));
    CFRelease(other);
    CFRelease(one);
}

TEST(data_is_described_by_its_first_bytes, "")
{
    CFMutableDataRef data = mutable_of("\x01\xAB");
    CFStringRef words = CFCopyDescription(data);
    EXPECT(CFStringHasSuffix(words, CFSTR("{length = 2, bytes = 0x01ab}")));
    CFRelease(words);
    CFDataSetLength(data, 100);
    words = CFCopyDescription(data);
    EXPECT(CFStringHasSuffix(words, CFSTR("00...}")));
    CFRelease(words);
    CFRelease(data);
}

TEST(misuse_of_data_stops_with_a_sentence, "")
{
    CFMutableDataRef fixed = (CFMutableDataRef)(uintptr_t)CFDataCreate(NULL, (const UInt8 *)"abc", 3);
    CFMutableDataRef data = mutable_of("abc");
    UInt8 byte = 0;
    EXPECT_STOPS("CFDataGetLength: the data is NULL", { CFDataGetLength(NULL); });
    EXPECT_STOPS("CFDataSetLength: the data cannot be changed", { CFDataSetLength(fixed, 1); });
    EXPECT_STOPS("CFDataGetMutableBytePtr: the data cannot be changed", { CFDataGetMutableBytePtr(fixed); });
    EXPECT_STOPS("CFDataSetLength: the length -1 is negative", { CFDataSetLength(data, -1); });
    EXPECT_STOPS("CFDataIncreaseLength: the length -1 is negative", { CFDataIncreaseLength(data, -4); });
    EXPECT_STOPS("CFDataAppendBytes: the length -1 is negative", { CFDataAppendBytes(data, &byte, -1); });
    EXPECT_STOPS("CFDataAppendBytes: the bytes are NULL", { CFDataAppendBytes(data, NULL, 1); });
    EXPECT_STOPS("CFDataReplaceBytes: the bytes are NULL", { CFDataReplaceBytes(data, CFRangeMake(0, 0), NULL, 1); });
    EXPECT_STOPS("CFDataReplaceBytes: the range {2, 2} is outside the data, whose length is 3",
                 { CFDataReplaceBytes(data, CFRangeMake(2, 2), &byte, 1); });
    EXPECT_STOPS("CFDataDeleteBytes: the range {-1, 1}", { CFDataDeleteBytes(data, CFRangeMake(-1, 1)); });
    EXPECT_STOPS("CFDataGetBytes: the range {4, 0}", { CFDataGetBytes(data, CFRangeMake(4, 0), &byte); });
    CFRelease(data);
    CFRelease(fixed);
}

/* Programs write a prefix, append, and then write through the pointer that they had before. */
TEST(data_stays_where_it_is_within_its_capacity, "")
{
    enum { length = 200 << 10 };
    CFDataRef original = CFDataCreate(NULL, (const UInt8 *)"abc", 3);
    CFMutableDataRef made[] = {CFDataCreateMutable(NULL, length), CFDataCreateMutableCopy(NULL, length, original)};
    for (int i = 0; i < 2; i++) {
        CFDataSetLength(made[i], 1);
        const UInt8 *bytes = CFDataGetBytePtr(made[i]);
        CFDataSetLength(made[i], length);
        EXPECT(CFDataGetBytePtr(made[i]) == bytes);
        CFRelease(made[i]);
    }
    CFRelease(original);
}

TEST(data_without_memory_stays_as_it_is, "")
{
    struct counting counting;
    counting_open(&counting, 2, false);
    CFMutableDataRef data = CFDataCreateMutable(counting.allocator, 0);
    CFDataAppendBytes(data, (const UInt8 *)"abc", 3);
    CFDataSetLength(data, 1000);
    expect_bytes(data, "abc");
    CFDataSetLength(data, LONG_MAX);
    CFDataIncreaseLength(data, LONG_MAX);
    CFDataAppendBytes(data, (const UInt8 *)"", LONG_MAX);
    CFDataAppendBytes(data, CFDataGetBytePtr(data), 1);
    expect_bytes(data, "abca");
    EXPECT(CFDataCreateMutable(counting.allocator, 0) == NULL);
    EXPECT(CFDataCreateMutableCopy(counting.allocator, 0, data) == NULL);
    counting.allowance = 1;
    EXPECT(CFDataCreateMutableCopy(counting.allocator, 0, data) == NULL);
    EXPECT(CFDataCreate(counting.allocator, NULL, 0) == NULL);
    EXPECT(CFDataCreateWithBytesNoCopy(counting.allocator, NULL, 0, NULL) == NULL);
    counting.allowance = 1;
    CFMutableDataRef hinted = CFDataCreateMutable(counting.allocator, 100);
    EXPECT(hinted != NULL);
    CFRelease(hinted);
    CFRelease(data);
    counting_close(&counting);
}

static void expect_found(CFDataRef data, const char *wanted, CFRange range, CFDataSearchFlags options, CFIndex location)
{
    CFDataRef bytes = CFDataCreate(NULL, (const UInt8 *)wanted, (CFIndex)strlen(wanted));
    CFRange found = CFDataFind(data, bytes, range, options);
    EXPECT_EQ(found.location, location);
    EXPECT_EQ(found.length, location == kCFNotFound ? 0 : (CFIndex)strlen(wanted));
    CFRelease(bytes);
}

TEST(bytes_are_found_in_data_from_both_ends, "")
{
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"abcabcab", 8);
    CFRange all = CFRangeMake(0, 8);
    expect_found(data, "abc", all, (CFDataSearchFlags)0, 0);
    expect_found(data, "abc", all, kCFDataSearchBackwards, 3);
    expect_found(data, "bc", CFRangeMake(2, 6), (CFDataSearchFlags)0, 4);
    expect_found(data, "bc", all, kCFDataSearchAnchored, kCFNotFound);
    expect_found(data, "ab", all, kCFDataSearchAnchored | kCFDataSearchBackwards, 6);
    expect_found(data, "abcabcabc", all, (CFDataSearchFlags)0, kCFNotFound);
    expect_found(data, "bc", CFRangeMake(7, 1), (CFDataSearchFlags)0, kCFNotFound);
    expect_found(data, "", all, (CFDataSearchFlags)0, kCFNotFound);
    CFRelease(data);
}
