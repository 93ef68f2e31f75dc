/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings that an add-on library brings (CRLAddOn.h). Each function also takes an encoding that nobody knows, and the library's own. */
#ifndef CRL_RUNTIME_ADDED_ENCODINGS_H
#define CRL_RUNTIME_ADDED_ENCODINGS_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFString.h"

/* As CFStringGetNameOfEncoding. */
CFStringRef added_encoding_name(CFStringEncoding encoding);

/* As encoding_bytes_per_unit; 0: no add-on library knows it. */
CFIndex added_bytes_per_unit(CFStringEncoding encoding);

/* As the add-on library's function; kCFNotFound also for an encoding that nobody knows. */
CFIndex added_decode(CFStringEncoding encoding, const UInt8 *bytes, CFIndex count, UniChar **ret_units);

/* As CFStringGetBytes. */
CFIndex added_encode(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                     CFIndex *ret_used);

#endif
