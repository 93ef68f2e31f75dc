/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns numbers and the two truth values. They do not change; any thread.
 *
 * A number is kept as a 64-bit integer or a double, and remembers which of the six types with a stated width it was made from. Numbers with
 * the same exact value are equal and have the same hash, whatever they are kept as.
 */
#include "CoreFoundation/CFNumber.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

struct number {
    struct object object;
    CFNumberType type; /* one of the six; constant */
    union {
        int64_t integer;
        double floating;
    } value; /* by `type`; constant */
};

/* 2 to the power 63: the first double that is too large for an int64_t. */
static const double integer_limit = 9223372036854775808.0;

/* Returns the type of stated width that another type equals here, or 0. */
static CFNumberType canonical_type(CFNumberType type)
{
    static const CFNumberType types[kCFNumberMaxType + 1] = {
        [kCFNumberSInt8Type] = kCFNumberSInt8Type,
        [kCFNumberSInt16Type] = kCFNumberSInt16Type,
        [kCFNumberSInt32Type] = kCFNumberSInt32Type,
        [kCFNumberSInt64Type] = kCFNumberSInt64Type,
        [kCFNumberFloat32Type] = kCFNumberFloat32Type,
        [kCFNumberFloat64Type] = kCFNumberFloat64Type,
        [kCFNumberCharType] = kCFNumberSInt8Type,
        [kCFNumberShortType] = kCFNumberSInt16Type,
        [kCFNumberIntType] = kCFNumberSInt32Type,
        [kCFNumberLongType] = sizeof(long) == 8 ? kCFNumberSInt64Type : kCFNumberSInt32Type,
        [kCFNumberLongLongType] = kCFNumberSInt64Type,
        [kCFNumberFloatType] = kCFNumberFloat32Type,
        [kCFNumberDoubleType] = kCFNumberFloat64Type,
        [kCFNumberCFIndexType] = sizeof(CFIndex) == 8 ? kCFNumberSInt64Type : kCFNumberSInt32Type,
        [kCFNumberNSIntegerType] = sizeof(long) == 8 ? kCFNumberSInt64Type : kCFNumberSInt32Type,
        [kCFNumberCGFloatType] = sizeof(void *) == 8 ? kCFNumberFloat64Type : kCFNumberFloat32Type,
    };

    return type > 0 && type <= kCFNumberMaxType ? types[type] : 0;
}

static bool is_floating(CFNumberType type)
{
    return type == kCFNumberFloat32Type || type == kCFNumberFloat64Type;
}

static CFIndex size_of(CFNumberType type)
{
    switch (type) {
    case kCFNumberSInt8Type:
        return 1;
    case kCFNumberSInt16Type:
        return 2;
    case kCFNumberSInt32Type:
    case kCFNumberFloat32Type:
        return 4;
    default:
        return 8;
    }
}

/* True if the double is a whole number that an int64_t holds. */
static bool is_integral(double value)
{
    return value >= -integer_limit && value < integer_limit && value == (double)(int64_t)value;
}

static CFComparisonResult order_of_integers(int64_t one, int64_t other)
{
    return one < other ? kCFCompareLessThan : one > other ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

/* Core Foundation's order: first values with a minus sign, minus zero included; then not-a-number; then the others. */
enum order_class { order_negative, order_not_a_number, order_positive };

static enum order_class order_class_of(double value)
{
    if (isnan(value)) {
        return order_not_a_number;
    }
    return signbit(value) ? order_negative : order_positive;
}

static CFComparisonResult order_of_doubles(double one, double other)
{
    if (order_class_of(one) != order_class_of(other)) {
        return order_of_integers(order_class_of(one), order_class_of(other));
    }
    return one < other ? kCFCompareLessThan : one > other ? kCFCompareGreaterThan : kCFCompareEqualTo;
}

/* Exact: an int64_t near its limits is not turned into a double. */
static CFComparisonResult order_of_mixed(int64_t integer, double floating)
{
    enum order_class class_of_integer = integer < 0 ? order_negative : order_positive;

    if (class_of_integer != order_class_of(floating)) {
        return order_of_integers(class_of_integer, order_class_of(floating));
    }
    if (floating < -integer_limit) {
        return kCFCompareGreaterThan;
    }
    if (floating >= integer_limit) {
        return kCFCompareLessThan;
    }
    CFComparisonResult result = order_of_integers(integer, (int64_t)floating);
    return result != kCFCompareEqualTo ? result : order_of_doubles(0, floating - (double)(int64_t)floating);
}

static CFComparisonResult order_of(const struct number *one, const struct number *other)
{
    if (is_floating(one->type)) {
        return is_floating(other->type) ? order_of_doubles(one->value.floating, other->value.floating)
                                        : -order_of_mixed(other->value.integer, one->value.floating);
    }
    return is_floating(other->type) ? order_of_mixed(one->value.integer, other->value.floating)
                                    : order_of_integers(one->value.integer, other->value.integer);
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    return order_of(one, other) == kCFCompareEqualTo;
}

static CFHashCode hash(CFTypeRef object)
{
    const struct number *number = object;

    if (!is_floating(number->type)) {
        return (CFHashCode)number->value.integer;
    }
    double value = number->value.floating;
    if (is_integral(value)) {
        return (CFHashCode)(int64_t)value;
    }
    if (isnan(value)) {
        return 0;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (CFHashCode)(bits ^ (bits >> 32));
}

static CFStringRef copy_text(CFTypeRef object)
{
    const struct number *number = object;

    if (!is_floating(number->type)) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("%lld"), (long long)number->value.integer);
    }
    /* The fewest digits that give the same number back. */
    double value = number->value.floating;
    bool is_single = number->type == kCFNumberFloat32Type;
    int digits_max = is_single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    CFStringRef text = NULL;
    for (int digits = is_single ? FLT_DIG : DBL_DIG; digits <= digits_max; digits++) {
        text = CFStringCreateWithFormat(NULL, NULL, CFSTR("%.*g"), digits, value);
        if (text == NULL || digits == digits_max) {
            break;
        }
        double read = CFStringGetDoubleValue(text);
        if ((is_single ? (double)(float)read : read) == value) {
            break;
        }
        CFRelease(text);
    }
    return text;
}

static CFStringRef copy_description(CFTypeRef object)
{
    CFStringRef text = copy_text(object);
    CFStringRef words = text != NULL ? CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFNumber %p>{value = %@, type = %ld}"), object, text,
                                                                (long)((const struct number *)object)->type)
                                     : NULL;

    object_release_if_any(text);
    return words;
}

static const struct object_class number_class = {
    .type_id = object_type_number,
    .name = "CFNumber",
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
    .copy_text = copy_text,
};

/* Constants, which are never counted. */
static const struct number positive_infinity = {{.isa = &number_class}, kCFNumberFloat64Type, {.floating = INFINITY}};
static const struct number negative_infinity = {{.isa = &number_class}, kCFNumberFloat64Type, {.floating = -INFINITY}};
static const struct number not_a_number = {{.isa = &number_class}, kCFNumberFloat64Type, {.floating = NAN}};

const CFNumberRef kCFNumberPositiveInfinity = (CFNumberRef)(const void *)&positive_infinity;
const CFNumberRef kCFNumberNegativeInfinity = (CFNumberRef)(const void *)&negative_infinity;
const CFNumberRef kCFNumberNaN = (CFNumberRef)(const void *)&not_a_number;

static const struct number *number_of(CFNumberRef number, const char *function)
{
    object_require(number, object_type_number, function, "number");
    return (const struct number *)(const void *)number;
}

CFTypeID CFNumberGetTypeID(void)
{
    return object_type_number;
}

CFNumberRef CFNumberCreate(CFAllocatorRef allocator, CFNumberType type, const void *value)
{
    CFNumberType canonical = canonical_type(type);
    struct number *number = canonical != 0 && value != NULL ? object_create(allocator, &number_class, sizeof *number) : NULL;

    if (number == NULL) {
        return NULL;
    }
    union {
        SInt8 s8;
        SInt16 s16;
        SInt32 s32;
        SInt64 s64;
        float f32;
        double f64;
    } given;
    memcpy(&given, value, (size_t)size_of(canonical));
    number->type = canonical;
    switch (canonical) {
    case kCFNumberSInt8Type:
        number->value.integer = given.s8;
        break;
    case kCFNumberSInt16Type:
        number->value.integer = given.s16;
        break;
    case kCFNumberSInt32Type:
        number->value.integer = given.s32;
        break;
    case kCFNumberFloat32Type:
        number->value.floating = given.f32;
        break;
    case kCFNumberFloat64Type:
        number->value.floating = given.f64;
        break;
    default:
        number->value.integer = given.s64;
        break;
    }
    return (CFNumberRef)(const void *)number;
}

CFNumberType CFNumberGetType(CFNumberRef number)
{
    return number_of(number, "CFNumberGetType")->type;
}

CFIndex CFNumberGetByteSize(CFNumberRef number)
{
    return size_of(number_of(number, "CFNumberGetByteSize")->type);
}

Boolean CFNumberIsFloatType(CFNumberRef number)
{
    return is_floating(number_of(number, "CFNumberIsFloatType")->type);
}

/* There are no unsigned types of one and two bytes: a program reads an unsigned number of that size as the signed type. */
static bool store_integer(int64_t value, CFIndex size, void *ret_value)
{
    switch (size) {
    case 1: {
        SInt8 stored = (SInt8)value;
        memcpy(ret_value, &stored, sizeof stored);
        return stored == value || (UInt8)stored == value;
    }
    case 2: {
        SInt16 stored = (SInt16)value;
        memcpy(ret_value, &stored, sizeof stored);
        return stored == value || (UInt16)stored == value;
    }
    case 4: {
        SInt32 stored = (SInt32)value;
        memcpy(ret_value, &stored, sizeof stored);
        return stored == value;
    }
    default:
        memcpy(ret_value, &value, sizeof value);
        return true;
    }
}

/* A double as an integer of `size` bytes: cut towards zero, and to the nearest possible value. */
static bool store_truncated(double value, CFIndex size, void *ret_value)
{
    double limit = 2.0 * (double)((uint64_t)1 << (size * 8 - 2));
    int64_t highest = size == 8 ? INT64_MAX : ((int64_t)1 << (size * 8 - 1)) - 1;
    int64_t truncated = isnan(value) ? 0 : value >= limit ? highest : value <= -limit ? -highest - 1 : (int64_t)value;

    store_integer(truncated, size, ret_value);
    return is_integral(value) && (int64_t)value == truncated;
}

static bool store_floating(double value, CFIndex size, void *ret_value)
{
    if (size == 8) {
        memcpy(ret_value, &value, sizeof value);
        return true;
    }
    float stored = isfinite(value) && fabs(value) > FLT_MAX ? copysignf(INFINITY, (float)(value > 0 ? 1 : -1)) : (float)value;
    memcpy(ret_value, &stored, sizeof stored);
    return (double)stored == value || isnan(value);
}

static bool store_integer_as_floating(int64_t value, CFIndex size, void *ret_value)
{
    double nearest = (double)value;

    return store_floating(nearest, size, ret_value) && is_integral(nearest) && (int64_t)nearest == value;
}

Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void *value)
{
    const struct number *read = number_of(number, "CFNumberGetValue");

    if (value == NULL) {
        fault_stop("CFNumberGetValue", "the value is NULL");
    }
    CFNumberType canonical = canonical_type(type);
    if (canonical == 0) {
        return false;
    }
    CFIndex size = size_of(canonical);
    if (is_floating(read->type)) {
        double floating = read->value.floating;

        return is_floating(canonical) ? store_floating(floating, size, value) : store_truncated(floating, size, value);
    }
    int64_t integer = read->value.integer;
    return is_floating(canonical) ? store_integer_as_floating(integer, size, value) : store_integer(integer, size, value);
}

CFComparisonResult CFNumberCompare(CFNumberRef number, CFNumberRef otherNumber, void *context)
{
    (void)context;
    return order_of(number_of(number, "CFNumberCompare"), number_of(otherNumber, "CFNumberCompare"));
}

static bool is_true(CFTypeRef boolean)
{
    return ((const struct object *)boolean)->info != 0;
}

static CFStringRef boolean_copy_text(CFTypeRef object)
{
    return is_true(object) ? CFSTR("true") : CFSTR("false");
}

static CFStringRef boolean_copy_description(CFTypeRef object)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFBoolean %p>{value = %@}"), object, object);
}

static const struct object_class boolean_class = {
    .type_id = object_type_boolean,
    .name = "CFBoolean",
    .copy_description = boolean_copy_description,
    .copy_text = boolean_copy_text,
};

static const struct object true_object = {.isa = &boolean_class, .info = 1};
static const struct object false_object = {.isa = &boolean_class, .info = 0};

const CFBooleanRef kCFBooleanTrue = (CFBooleanRef)(const void *)&true_object;
const CFBooleanRef kCFBooleanFalse = (CFBooleanRef)(const void *)&false_object;

CFTypeID CFBooleanGetTypeID(void)
{
    return object_type_boolean;
}

Boolean CFBooleanGetValue(CFBooleanRef boolean)
{
    object_require(boolean, object_type_boolean, "CFBooleanGetValue", "boolean");
    return is_true(boolean);
}
