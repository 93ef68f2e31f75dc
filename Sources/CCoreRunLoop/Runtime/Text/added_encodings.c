/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of functions for encodings that the library does not know itself. It is set once, and read without a lock.
 */
#include "Runtime/Text/added_encodings.h"

#include <stdatomic.h>

#include "CRLAddOn.h"

static _Atomic(const CRLStringEncodings *) encodings;

void CRLStringSetEncodings(const CRLStringEncodings *installed)
{
    const CRLStringEncodings *none = NULL;

    (void)atomic_compare_exchange_strong_explicit(&encodings, &none, installed, memory_order_acq_rel, memory_order_relaxed);
}

static const CRLStringEncodings *functions(void)
{
    return atomic_load_explicit(&encodings, memory_order_acquire);
}

CFStringRef added_encoding_name(CFStringEncoding encoding)
{
    return functions() != NULL ? functions()->name(encoding) : NULL;
}

CFIndex added_bytes_per_unit(CFStringEncoding encoding)
{
    return functions() != NULL ? functions()->bytesPerUnit(encoding) : 0;
}

CFIndex added_decode(CFStringEncoding encoding, const UInt8 *bytes, CFIndex count, UniChar **ret_units)
{
    return added_bytes_per_unit(encoding) != 0 ? functions()->decode(encoding, bytes, count, ret_units) : kCFNotFound;
}

CFIndex added_encode(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                     CFIndex *ret_used)
{
    *ret_used = 0;
    return added_bytes_per_unit(encoding) != 0 ? functions()->encode(encoding, units, count, loss_byte, buffer, size, ret_used) : 0;
}
