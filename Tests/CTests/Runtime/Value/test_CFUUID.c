/* SPDX-License-Identifier: Apache-2.0 */
/* Unique numbers: that they are unique, their text, and the constants. */
#include <pthread.h>
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

TEST(new_uuids_are_random_and_of_version_4, "")
{
    CFUUIDRef one = CFUUIDCreate(NULL);
    CFUUIDRef other = CFUUIDCreate(NULL);
    EXPECT(!CFEqual(one, other));
    CFUUIDBytes bytes = CFUUIDGetUUIDBytes(one);
    EXPECT_EQ(bytes.byte6 >> 4, 4);
    EXPECT_EQ(bytes.byte8 >> 6, 2);
    EXPECT_EQ(CFGetTypeID(one), CFUUIDGetTypeID());
    CFRelease(one);
    CFRelease(other);
}

TEST(a_uuid_and_its_text_are_the_same, "")
{
    char buffer[64];
    CFUUIDRef uuid = CFUUIDCreateFromString(NULL, CFSTR("68753a44-4d6f-1226-9c60-0050e4c00067"));
    CFUUIDRef same = CFUUIDCreateWithBytes(NULL, 0x68, 0x75, 0x3A, 0x44, 0x4D, 0x6F, 0x12, 0x26, 0x9C, 0x60, 0, 0x50, 0xE4, 0xC0, 0, 0x67);
    EXPECT(CFEqual(uuid, same));
    EXPECT_EQ(CFHash(uuid), CFHash(same));
    CFStringRef text = CFUUIDCreateString(NULL, same);
    EXPECT(CFStringGetCString(text, buffer, sizeof buffer, kCFStringEncodingASCII));
    EXPECT_STR(buffer, "68753A44-4D6F-1226-9C60-0050E4C00067");
    CFStringRef words = CFCopyDescription(uuid);
    EXPECT(CFStringHasSuffix(words, text));
    CFRelease(words);
    CFRelease(text);
    CFUUIDBytes bytes = CFUUIDGetUUIDBytes(uuid);
    EXPECT_EQ(bytes.byte0, 0x68);
    EXPECT_EQ(bytes.byte15, 0x67);
    CFRelease(uuid);
    CFRelease(same);
}

TEST(other_texts_are_no_uuids, "437")
{
    EXPECT(CFUUIDCreateFromString(NULL, CFSTR("")) == NULL);
    EXPECT(CFUUIDCreateFromString(NULL, CFSTR("68753A44-4D6F-1226-9C60-0050E4C0006")) == NULL);
    EXPECT(CFUUIDCreateFromString(NULL, CFSTR("68753A44-4D6F-1226-9C60-0050E4C0006g")) == NULL);
    EXPECT(CFUUIDCreateFromString(NULL, CFSTR("68753A4444D6F-1226-9C60-0050E4C00067")) == NULL);
    EXPECT(CFUUIDCreateFromString(NULL, CFSTR("68753A44-4D6F-1226-9C60-0050E4C0006\u0167")) == NULL);
    EXPECT_STOPS("CFUUIDCreateFromString", { CFUUIDCreateFromString(NULL, NULL); });
    EXPECT_STOPS("CFUUIDCreateString", { CFUUIDCreateString(NULL, NULL); });
}

static void *get_constants(void *results)
{
    for (UInt8 i = 0; i < 100; i++) {
        ((CFUUIDRef *)results)[i] = CFUUIDGetConstantUUIDWithBytes(NULL, i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    return NULL;
}

TEST(a_constant_uuid_is_one_object_for_all_threads, "")
{
    enum { threads = 4 };
    static CFUUIDRef results[threads][100];
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++) {
        pthread_create(&ids[i], NULL, get_constants, results[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    for (int i = 1; i < threads; i++) {
        EXPECT(memcmp(results[i], results[0], sizeof results[0]) == 0);
    }
    EXPECT_EQ(CFUUIDGetUUIDBytes(results[0][7]).byte0, 7);
    EXPECT(results[0][7] != results[0][8]);
    CFRelease(results[0][7]);
    EXPECT(CFUUIDGetConstantUUIDWithBytes(NULL, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) == results[0][7]);
}
