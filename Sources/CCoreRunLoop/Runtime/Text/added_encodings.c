/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of functions for encodings that the library does not know itself. It is set once, and read without a lock.
 */
#include "Runtime/Text/added_encodings.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "CRLAddOn.h"
#include "Runtime/Text/string_storage.h"

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

CFIndex added_bytes_per_unit(CFStringEncoding encoding)
{
    return functions() != NULL ? functions()->bytesPerUnit(encoding) : 0;
}

CFStringRef added_decode(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding)
{
    UniChar *units = NULL;
    CFIndex length = added_bytes_per_unit(encoding) != 0 ? functions()->decode(encoding, bytes, count, &units) : kCFNotFound;

    if (length == kCFNotFound) {
        return NULL;
    }
    struct text text = text_of_units(units, length);
    CFStringRef string = string_create(allocator, &text, CFRangeMake(0, length));
    free(units);
    return string;
}

CFIndex added_encode(const struct text *text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                     CFIndex *ret_used)
{
    *ret_used = 0;
    if (added_bytes_per_unit(encoding) == 0) {
        return 0;
    }
    const UniChar *units = (const UniChar *)text->units + (text->form == text_utf16 ? range.location : 0);
    UniChar *copy = NULL;
    if (text->form != text_utf16) {
        copy = malloc((size_t)range.length * sizeof *copy + 1);
        if (copy == NULL) {
            return 0;
        }
        text_copy_units(text, range, copy);
        units = copy;
    }
    CFIndex count = functions()->encode(encoding, units, range.length, loss_byte, buffer, size, ret_used);
    free(copy);
    return count;
}
