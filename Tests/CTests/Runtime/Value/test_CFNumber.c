/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and truth values: what is kept, what a conversion loses, exact order. */
#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

static CFNumberRef integer_of(SInt64 value)
{
    return CFNumberCreate(NULL, kCFNumberSInt64Type, &value);
}

static CFNumberRef double_of(double value)
{
    return CFNumberCreate(NULL, kCFNumberDoubleType, &value);
}

TEST(every_type_is_kept_as_one_of_six, "")
{
    const SInt64 value = 0x0102030405060708;
    const CFNumberType of_long = sizeof(long) == 8 ? kCFNumberSInt64Type : kCFNumberSInt32Type;
    const CFNumberType of_CGFloat = sizeof(long) == 8 ? kCFNumberFloat64Type : kCFNumberFloat32Type;
    const CFIndex long_size = sizeof(long);
    const struct {
        CFNumberType type;
        CFNumberType kept;
        CFIndex size;
    } table[] = {
        {kCFNumberSInt8Type, kCFNumberSInt8Type, 1},      {kCFNumberSInt16Type, kCFNumberSInt16Type, 2},
        {kCFNumberSInt32Type, kCFNumberSInt32Type, 4},    {kCFNumberSInt64Type, kCFNumberSInt64Type, 8},
        {kCFNumberFloat32Type, kCFNumberFloat32Type, 4},  {kCFNumberFloat64Type, kCFNumberFloat64Type, 8},
        {kCFNumberCharType, kCFNumberSInt8Type, 1},       {kCFNumberShortType, kCFNumberSInt16Type, 2},
        {kCFNumberIntType, kCFNumberSInt32Type, 4},       {kCFNumberLongType, of_long, long_size},
        {kCFNumberLongLongType, kCFNumberSInt64Type, 8},  {kCFNumberFloatType, kCFNumberFloat32Type, 4},
        {kCFNumberDoubleType, kCFNumberFloat64Type, 8},   {kCFNumberCFIndexType, of_long, long_size},
        {kCFNumberNSIntegerType, of_long, long_size},     {kCFNumberCGFloatType, of_CGFloat, long_size},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CFNumberRef number = CFNumberCreate(NULL, table[i].type, &value);
        EXPECT_EQ(CFGetTypeID(number), CFNumberGetTypeID());
        EXPECT_EQ(CFNumberGetType(number), table[i].kept);
        EXPECT_EQ(CFNumberGetByteSize(number), table[i].size);
        EXPECT_EQ(CFNumberIsFloatType(number), table[i].kept == kCFNumberFloat32Type || table[i].kept == kCFNumberFloat64Type);
        CFRelease(number);
    }
    EXPECT(CFNumberCreate(NULL, 0, &value) == NULL);
    EXPECT(CFNumberCreate(NULL, kCFNumberMaxType + 1, &value) == NULL);
    EXPECT(CFNumberCreate(NULL, -1, &value) == NULL);
    EXPECT(CFNumberCreate(NULL, kCFNumberIntType, NULL) == NULL);
}

TEST(a_number_comes_back_as_every_type_that_holds_it, "")
{
    SInt64 value = -5;
    CFNumberRef number = integer_of(value);
    for (CFNumberType type = 1; type <= kCFNumberMaxType; type++) {
        union {
            SInt8 s8;
            SInt16 s16;
            SInt32 s32;
            SInt64 s64;
            float f32;
            double f64;
        } got = {.s64 = 0};
        EXPECT(CFNumberGetValue(number, type, &got));
        CFNumberRef again = CFNumberCreate(NULL, type, &got);
        EXPECT(CFEqual(number, again));
        EXPECT_EQ(CFHash(number), CFHash(again));
        EXPECT_EQ(CFNumberCompare(number, again, NULL), kCFCompareEqualTo);
        CFRelease(again);
    }
    EXPECT(!CFNumberGetValue(number, 0, &value));
    EXPECT(!CFNumberGetValue(number, 99, &value));
    EXPECT_EQ(value, -5);
    CFRelease(number);
}

TEST(an_integer_that_does_not_fit_gives_its_lower_bits_and_false, "")
{
    CFNumberRef number = integer_of(300);
    SInt8 s8 = 0;
    SInt16 s16 = 0;
    SInt32 s32 = 0;
    EXPECT(!CFNumberGetValue(number, kCFNumberSInt8Type, &s8));
    EXPECT_EQ(s8, 44);
    EXPECT(CFNumberGetValue(number, kCFNumberSInt16Type, &s16));
    EXPECT_EQ(s16, 300);
    CFRelease(number);
    number = integer_of(0x100000002);
    EXPECT(!CFNumberGetValue(number, kCFNumberIntType, &s32));
    EXPECT_EQ(s32, 2);
    EXPECT(!CFNumberGetValue(number, kCFNumberShortType, &s16));
    EXPECT_EQ(s16, 2);
    CFRelease(number);
}

TEST(one_and_two_bytes_take_unsigned_integers, "431")
{
    static const struct {
        SInt64 value;
        Boolean fits_one;
        Boolean fits_two;
        Boolean fits_four;
    } table[] = {
        {128, true, true, true},
        {255, true, true, true},
        {256, false, true, true},
        {-128, true, true, true},
        {-129, false, true, true},
        {0x8000, false, true, true},
        {0xFFFF, false, true, true},
        {0x10000, false, false, true},
        {-0x8001, false, false, true},
        {0x80000000, false, false, false},
        {INT64_MIN, false, false, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CFNumberRef number = integer_of(table[i].value);
        UInt8 u8 = 0;
        UInt16 u16 = 0;
        SInt32 s32 = 0;
        EXPECT_EQ(CFNumberGetValue(number, kCFNumberSInt8Type, &u8), table[i].fits_one);
        EXPECT_EQ(u8, (UInt8)table[i].value);
        EXPECT_EQ(CFNumberGetValue(number, kCFNumberShortType, &u16), table[i].fits_two);
        EXPECT_EQ(u16, (UInt16)table[i].value);
        EXPECT_EQ(CFNumberGetValue(number, kCFNumberSInt32Type, &s32), table[i].fits_four);
        CFRelease(number);
    }
    CFNumberRef fraction = double_of(200.0);
    SInt8 s8 = 0;
    EXPECT(!CFNumberGetValue(fraction, kCFNumberSInt8Type, &s8));
    CFRelease(fraction);
}

TEST(a_fraction_is_cut_off_and_a_large_number_goes_to_the_limit, "")
{
    static const struct {
        double value;
        Boolean is_exact;
        SInt32 s32;
        SInt64 s64;
    } table[] = {
        {3.0, true, 3, 3},
        {3.7, false, 3, 3},
        {-3.7, false, -3, -3},
        {1e10, false, INT32_MAX, 10000000000},
        {-1e10, false, INT32_MIN, -10000000000},
        {1e300, false, INT32_MAX, INT64_MAX},
        {-1e300, false, INT32_MIN, INT64_MIN},
        {-2147483648.0, true, INT32_MIN, INT32_MIN},
        {(double)INFINITY, false, INT32_MAX, INT64_MAX},
        {-(double)INFINITY, false, INT32_MIN, INT64_MIN},
        {(double)NAN, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CFNumberRef number = double_of(table[i].value);
        SInt32 s32 = 99;
        SInt64 s64 = 99;
        EXPECT_EQ(CFNumberGetValue(number, kCFNumberSInt32Type, &s32), table[i].is_exact);
        EXPECT_EQ(s32, table[i].s32);
        CFNumberGetValue(number, kCFNumberSInt64Type, &s64);
        EXPECT_EQ(s64, table[i].s64);
        CFRelease(number);
    }
}

TEST(floating_point_conversions_tell_whether_digits_were_lost, "")
{
    float f32 = 0;
    double f64 = 0;
    CFNumberRef number = double_of(0.1);
    EXPECT(!CFNumberGetValue(number, kCFNumberFloatType, &f32));
    EXPECT_NEAR(f32, 0.1, 1e-8);
    EXPECT(CFNumberGetValue(number, kCFNumberDoubleType, &f64));
    CFRelease(number);
    number = double_of(0.5);
    EXPECT(CFNumberGetValue(number, kCFNumberFloatType, &f32));
    CFRelease(number);
    number = double_of(1e300);
    EXPECT(!CFNumberGetValue(number, kCFNumberFloatType, &f32));
    EXPECT(isinf(f32));
    CFRelease(number);
    number = double_of(-1e300);
    EXPECT(!CFNumberGetValue(number, kCFNumberFloatType, &f32));
    EXPECT(isinf(f32) && f32 < 0);
    CFRelease(number);
    number = double_of((double)NAN);
    EXPECT(CFNumberGetValue(number, kCFNumberFloatType, &f32));
    EXPECT(isnan(f32));
    CFRelease(number);
    number = integer_of(16777217);
    EXPECT(!CFNumberGetValue(number, kCFNumberFloatType, &f32));
    EXPECT(CFNumberGetValue(number, kCFNumberDoubleType, &f64));
    CFRelease(number);
    number = integer_of(INT64_MAX);
    EXPECT(!CFNumberGetValue(number, kCFNumberDoubleType, &f64));
    EXPECT_NEAR(f64, 9223372036854775808.0, 0);
    CFRelease(number);
}

static void expect_order(CFNumberRef one, CFNumberRef other, CFComparisonResult expected)
{
    EXPECT_EQ(CFNumberCompare(one, other, NULL), expected);
    EXPECT_EQ(CFNumberCompare(other, one, NULL), -expected);
    EXPECT_EQ(CFEqual(one, other), expected == kCFCompareEqualTo);
    if (expected == kCFCompareEqualTo) {
        EXPECT_EQ(CFHash(one), CFHash(other));
    }
    CFRelease(one);
    CFRelease(other);
}

TEST(numbers_are_ordered_by_their_exact_values, "")
{
    expect_order(integer_of(1), integer_of(2), kCFCompareLessThan);
    expect_order(integer_of(7), double_of(7), kCFCompareEqualTo);
    expect_order(integer_of(0), double_of(0.0), kCFCompareEqualTo);
    expect_order(integer_of(0), double_of(-0.0), kCFCompareGreaterThan);
    expect_order(double_of(0.0), double_of(-0.0), kCFCompareGreaterThan);
    expect_order(integer_of(-1), double_of(-0.0), kCFCompareLessThan);
    expect_order(integer_of(7), double_of(7.5), kCFCompareLessThan);
    expect_order(integer_of(-7), double_of(-7.5), kCFCompareGreaterThan);
    expect_order(double_of(1.5), double_of(2.5), kCFCompareLessThan);
    expect_order(integer_of(INT64_MAX), double_of(9223372036854775808.0), kCFCompareLessThan);
    expect_order(integer_of(INT64_MIN), double_of(-9223372036854775808.0), kCFCompareEqualTo);
    expect_order(integer_of(9007199254740993), double_of(9007199254740992.0), kCFCompareGreaterThan);
    expect_order(integer_of(INT64_MAX), double_of((double)INFINITY), kCFCompareLessThan);
    expect_order(integer_of(INT64_MIN), double_of(-(double)INFINITY), kCFCompareGreaterThan);
    expect_order(double_of((double)NAN), double_of(-(double)INFINITY), kCFCompareGreaterThan);
    expect_order(double_of((double)NAN), integer_of(INT64_MIN), kCFCompareGreaterThan);
    expect_order(double_of((double)NAN), double_of(-0.0), kCFCompareGreaterThan);
    expect_order(double_of((double)NAN), double_of(0.0), kCFCompareLessThan);
    expect_order(double_of((double)NAN), integer_of(0), kCFCompareLessThan);
    expect_order(double_of((double)NAN), double_of((double)NAN), kCFCompareEqualTo);
    expect_order(double_of(0.1), double_of(0.1), kCFCompareEqualTo);
}

static void expect_words(CFNumberRef number, CFStringRef expected)
{
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("%@"), number);
    EXPECT(CFEqual(text, expected));
    CFRelease(text);
    CFRelease(number);
}

TEST(numbers_are_written_with_the_fewest_digits, "")
{
    float f32 = 0.1F;
    expect_words(integer_of(INT64_MIN), CFSTR("-9223372036854775808"));
    expect_words(double_of(0.1), CFSTR("0.1"));
    expect_words(double_of(1.0 / 3.0), CFSTR("0.3333333333333333"));
    expect_words(double_of(5e-324), CFSTR("4.94065645841247e-324"));
    expect_words(double_of(1e100), CFSTR("1e+100"));
    expect_words(CFNumberCreate(NULL, kCFNumberFloatType, &f32), CFSTR("0.1"));
    expect_words(double_of((double)INFINITY), CFSTR("inf"));
    CFNumberRef number = integer_of(42);
    CFStringRef words = CFCopyDescription(number);
    EXPECT(CFStringHasSuffix(words, CFSTR("{value = 42, type = 4}")));
    CFRelease(words);
    CFRelease(number);
}

TEST(truth_values_are_two_objects, "")
{
    EXPECT_EQ(CFGetTypeID(kCFBooleanTrue), CFBooleanGetTypeID());
    EXPECT(CFBooleanGetValue(kCFBooleanTrue));
    EXPECT(!CFBooleanGetValue(kCFBooleanFalse));
    EXPECT(!CFEqual(kCFBooleanTrue, kCFBooleanFalse));
    CFNumberRef one = integer_of(1);
    EXPECT(!CFEqual(kCFBooleanTrue, one));
    CFRelease(one);
}

TEST(misuse_of_numbers_stops_with_a_sentence, "")
{
    CFNumberRef number = integer_of(1);
    EXPECT_STOPS("CFNumberGetValue: the value is NULL", { CFNumberGetValue(number, kCFNumberIntType, NULL); });
    EXPECT_STOPS("CFNumberGetType: the number is NULL", { CFNumberGetType(NULL); });
    EXPECT_STOPS("CFNumberCompare: the number is a CFNull", { CFNumberCompare(number, (CFNumberRef)(const void *)kCFNull, NULL); });
    EXPECT_STOPS("CFBooleanGetValue: the boolean is NULL", { CFBooleanGetValue(NULL); });
    CFRelease(number);
    int value = 1;
    EXPECT(CFNumberCreate(kCFAllocatorNull, kCFNumberIntType, &value) == NULL);
}

TEST(the_constants_that_are_no_finite_numbers, "")
{
    double value = 0;
    EXPECT(CFNumberGetValue(kCFNumberPositiveInfinity, kCFNumberDoubleType, &value) && isinf(value) && value > 0);
    EXPECT(CFNumberGetValue(kCFNumberNegativeInfinity, kCFNumberDoubleType, &value) && isinf(value) && value < 0);
    EXPECT(CFNumberGetValue(kCFNumberNaN, kCFNumberDoubleType, &value) && isnan(value));
    EXPECT_EQ(CFNumberCompare(kCFNumberNegativeInfinity, kCFNumberPositiveInfinity, NULL), kCFCompareLessThan);
    EXPECT(CFNumberIsFloatType(kCFNumberNaN));
    CFRelease(CFRetain(kCFNumberNaN));
    value = INFINITY;
    CFNumberRef infinity = CFNumberCreate(NULL, kCFNumberDoubleType, &value);
    EXPECT(CFEqual(infinity, kCFNumberPositiveInfinity));
    CFRelease(infinity);
}
