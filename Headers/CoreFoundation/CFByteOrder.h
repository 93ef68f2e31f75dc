/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Conversions between the machine's byte order and those of files and networks. All functions are inline, and may be called on any thread
 * and in signal handlers.
 */

#if !defined(__COREFOUNDATION_CFBYTEORDER__)
#define __COREFOUNDATION_CFBYTEORDER__ 1

#include "CFBase.h"

CF_EXTERN_C_BEGIN

/** Which byte of a number comes first. */
enum __CFByteOrder {
    CFByteOrderUnknown, /**< Not known. */
    CFByteOrderLittleEndian, /**< The least significant byte. */
    CFByteOrderBigEndian /**< The most significant byte. */
};
/** A byte order. */
typedef CFIndex CFByteOrder;

/** A Float32 in an order that is not the machine's, or not known to be. */
typedef struct {
    UInt32 v; /**< The bytes of the number. */
} CFSwappedFloat32;
/** A Float64 in an order that is not the machine's, or not known to be. */
typedef struct {
    UInt64 v; /**< The bytes of the number. */
} CFSwappedFloat64;

/** Returns the machine's own order. */
CF_INLINE CFByteOrder CFByteOrderGetCurrent(void) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return CFByteOrderBigEndian;
#else
    return CFByteOrderLittleEndian;
#endif
}

/** Returns a number of 16 bits with its bytes in the opposite order. */
CF_INLINE UInt16 CFSwapInt16(UInt16 arg) {
    return __builtin_bswap16(arg);
}

/** Returns a number of 32 bits with its bytes in the opposite order. */
CF_INLINE UInt32 CFSwapInt32(UInt32 arg) {
    return __builtin_bswap32(arg);
}

/** Returns a number of 64 bits with its bytes in the opposite order. */
CF_INLINE UInt64 CFSwapInt64(UInt64 arg) {
    return __builtin_bswap64(arg);
}

/** Converts 16 bits from the order with the most significant byte first to the machine's. */
CF_INLINE UInt16 CFSwapInt16BigToHost(UInt16 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt16(arg);
}

/** Converts 16 bits from the machine's order to the one with the most significant byte first. */
CF_INLINE UInt16 CFSwapInt16HostToBig(UInt16 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt16(arg);
}

/** Converts 16 bits from the order with the least significant byte first to the machine's. */
CF_INLINE UInt16 CFSwapInt16LittleToHost(UInt16 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt16(arg);
}

/** Converts 16 bits from the machine's order to the one with the least significant byte first. */
CF_INLINE UInt16 CFSwapInt16HostToLittle(UInt16 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt16(arg);
}

/** Converts 32 bits from the order with the most significant byte first to the machine's. */
CF_INLINE UInt32 CFSwapInt32BigToHost(UInt32 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt32(arg);
}

/** Converts 32 bits from the machine's order to the one with the most significant byte first. */
CF_INLINE UInt32 CFSwapInt32HostToBig(UInt32 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt32(arg);
}

/** Converts 32 bits from the order with the least significant byte first to the machine's. */
CF_INLINE UInt32 CFSwapInt32LittleToHost(UInt32 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt32(arg);
}

/** Converts 32 bits from the machine's order to the one with the least significant byte first. */
CF_INLINE UInt32 CFSwapInt32HostToLittle(UInt32 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt32(arg);
}

/** Converts 64 bits from the order with the most significant byte first to the machine's. */
CF_INLINE UInt64 CFSwapInt64BigToHost(UInt64 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt64(arg);
}

/** Converts 64 bits from the machine's order to the one with the most significant byte first. */
CF_INLINE UInt64 CFSwapInt64HostToBig(UInt64 arg) {
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? arg : CFSwapInt64(arg);
}

/** Converts 64 bits from the order with the least significant byte first to the machine's. */
CF_INLINE UInt64 CFSwapInt64LittleToHost(UInt64 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt64(arg);
}

/** Converts 64 bits from the machine's order to the one with the least significant byte first. */
CF_INLINE UInt64 CFSwapInt64HostToLittle(UInt64 arg) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? arg : CFSwapInt64(arg);
}

/** Converts a number to bytes with the most significant one first. */
CF_INLINE CFSwappedFloat32 CFConvertFloat32HostToSwapped(Float32 arg) {
    CFSwappedFloat32 result;
    __builtin_memcpy(&result.v, &arg, sizeof result.v);
    result.v = CFSwapInt32HostToBig(result.v);
    return result;
}

/** Converts bytes with the most significant one first to a number. */
CF_INLINE Float32 CFConvertFloat32SwappedToHost(CFSwappedFloat32 arg) {
    Float32 result;
    arg.v = CFSwapInt32BigToHost(arg.v);
    __builtin_memcpy(&result, &arg.v, sizeof result);
    return result;
}

/** Converts a number to bytes with the most significant one first. */
CF_INLINE CFSwappedFloat64 CFConvertFloat64HostToSwapped(Float64 arg) {
    CFSwappedFloat64 result;
    __builtin_memcpy(&result.v, &arg, sizeof result.v);
    result.v = CFSwapInt64HostToBig(result.v);
    return result;
}

/** Converts bytes with the most significant one first to a number. */
CF_INLINE Float64 CFConvertFloat64SwappedToHost(CFSwappedFloat64 arg) {
    Float64 result;
    arg.v = CFSwapInt64BigToHost(arg.v);
    __builtin_memcpy(&result, &arg.v, sizeof result);
    return result;
}

/** Converts a number to bytes with the most significant one first. */
CF_INLINE CFSwappedFloat32 CFConvertFloatHostToSwapped(float arg) {
    CFSwappedFloat32 result;
    __builtin_memcpy(&result.v, &arg, sizeof result.v);
    result.v = CFSwapInt32HostToBig(result.v);
    return result;
}

/** Converts bytes with the most significant one first to a number. */
CF_INLINE float CFConvertFloatSwappedToHost(CFSwappedFloat32 arg) {
    float result;
    arg.v = CFSwapInt32BigToHost(arg.v);
    __builtin_memcpy(&result, &arg.v, sizeof result);
    return result;
}

/** Converts a number to bytes with the most significant one first. */
CF_INLINE CFSwappedFloat64 CFConvertDoubleHostToSwapped(double arg) {
    CFSwappedFloat64 result;
    __builtin_memcpy(&result.v, &arg, sizeof result.v);
    result.v = CFSwapInt64HostToBig(result.v);
    return result;
}

/** Converts bytes with the most significant one first to a number. */
CF_INLINE double CFConvertDoubleSwappedToHost(CFSwappedFloat64 arg) {
    double result;
    arg.v = CFSwapInt64BigToHost(arg.v);
    __builtin_memcpy(&result, &arg.v, sizeof result);
    return result;
}

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFBYTEORDER__ */
