/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings that an add-on library brings (CRLAddOn.h). Each function also takes an encoding that nobody knows, and the library's own. */
#ifndef CRL_RUNTIME_ADDED_ENCODINGS_H
#define CRL_RUNTIME_ADDED_ENCODINGS_H

#include "Runtime/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFString.h"
#include "Runtime/Text/text.h"

/* As encoding_bytes_per_unit; 0: no add-on library knows it. */
CFIndex added_bytes_per_unit(CFStringEncoding encoding);

/* NULL: the bytes are not valid, the encoding is not known, or there is no memory. */
CFStringRef added_decode(CFAllocatorRef allocator, const UInt8 *bytes, CFIndex count, CFStringEncoding encoding);

/* As CFStringGetBytes. */
CFIndex added_encode(const struct text *text, CFRange range, CFStringEncoding encoding, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                     CFIndex *ret_used);

#endif
