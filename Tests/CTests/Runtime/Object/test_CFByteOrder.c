/* SPDX-License-Identifier: Apache-2.0 */
/* The order of bytes, against the C library's conversions and by hand. */
#include <arpa/inet.h>
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

TEST(numbers_are_turned_round, "")
{
    EXPECT_EQ(CFSwapInt16(0x0102), 0x0201);
    EXPECT_EQ(CFSwapInt32(0x01020304), 0x04030201);
    EXPECT(CFSwapInt64(0x0102030405060708) == 0x0807060504030201);
    EXPECT_EQ(CFSwapInt16HostToBig(8080), htons(8080));
    EXPECT_EQ(CFSwapInt16BigToHost(htons(8080)), 8080);
    EXPECT_EQ(CFSwapInt32HostToBig(0x7F000001), htonl(0x7F000001));
    EXPECT_EQ(CFSwapInt32BigToHost(htonl(0x7F000001)), 0x7F000001);
    EXPECT(CFSwapInt64BigToHost(CFSwapInt64HostToBig(77)) == 77);
    UInt8 bytes[8];
    UInt64 number = CFSwapInt64HostToLittle(0x0102030405060708);
    memcpy(bytes, &number, sizeof bytes);
    EXPECT_EQ(bytes[0], 8);
    EXPECT(CFSwapInt64LittleToHost(number) == 0x0102030405060708);
    UInt32 word = CFSwapInt32HostToLittle(0x01020304);
    memcpy(bytes, &word, sizeof word);
    EXPECT_EQ(bytes[0], 4);
    EXPECT_EQ(CFSwapInt32LittleToHost(word), 0x01020304);
    UInt16 half = CFSwapInt16HostToLittle(0x0102);
    memcpy(bytes, &half, sizeof half);
    EXPECT_EQ(bytes[0], 2);
    EXPECT_EQ(CFSwapInt16LittleToHost(half), 0x0102);
    EXPECT_EQ(CFByteOrderGetCurrent(), htons(1) == 1 ? CFByteOrderBigEndian : CFByteOrderLittleEndian);
}

TEST(the_compilers_macro_says_which_byte_comes_first, "")
{
#if defined(__LITTLE_ENDIAN__) && !defined(__BIG_ENDIAN__)
    EXPECT_EQ(CFByteOrderGetCurrent(), CFByteOrderLittleEndian);
#elif defined(__BIG_ENDIAN__) && !defined(__LITTLE_ENDIAN__)
    EXPECT_EQ(CFByteOrderGetCurrent(), CFByteOrderBigEndian);
#else
    EXPECT_STR("none, or both", "one of the two");
#endif
}

TEST(floating_numbers_travel_with_the_most_significant_byte_first, "")
{
    UInt8 bytes[8];
    CFSwappedFloat64 swapped = CFConvertDoubleHostToSwapped(1.0);
    memcpy(bytes, &swapped, sizeof bytes);
    EXPECT_EQ(bytes[0], 0x3F);
    EXPECT_EQ(bytes[1], 0xF0);
    EXPECT(CFConvertDoubleSwappedToHost(swapped) == 1.0);
    EXPECT(CFConvertFloat64SwappedToHost(CFConvertFloat64HostToSwapped(-2.5)) == -2.5);
    CFSwappedFloat32 small = CFConvertFloatHostToSwapped(1.0F);
    memcpy(bytes, &small, sizeof small);
    EXPECT_EQ(bytes[0], 0x3F);
    EXPECT(CFConvertFloatSwappedToHost(small) == 1.0F);
    EXPECT(CFConvertFloat32SwappedToHost(CFConvertFloat32HostToSwapped(-0.5F)) == -0.5F);
}

/* What this file uses besides comes with CoreFoundation.h alone. */
TEST(the_umbrella_header_brings_what_sources_expect_of_it, "")
{
    OSStatus status = noErr;
    void *nothing = nil;
    ByteCount bytes = sizeof status;
    ItemCount items = 1;
    OptionBits options = 0;
    EXPECT(nothing == NULL && bytes == 4 && items == 1 && options == 0 && status == 0);
    int descriptor = open("/dev/null", O_RDONLY);
    EXPECT(descriptor >= 0);
    EXPECT_EQ(close(descriptor), 0);
}
