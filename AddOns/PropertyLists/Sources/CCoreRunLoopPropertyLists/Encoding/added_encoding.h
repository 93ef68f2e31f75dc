/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which the core's strings convert the encodings that it does not know (CRLAddOn.h): the C library's, and NextStep's.
 *
 * Bytes and units may be anything. Invalid and incomplete bytes are refused whole; memory is bounded by the input. Any thread.
 */
#ifndef CRL_PLIST_ADDED_ENCODING_H
#define CRL_PLIST_ADDED_ENCODING_H

#include "plist_link_names.h"

#include "CRLAddOn.h"

CFIndex added_encoding_bytes_per_unit(CFStringEncoding encoding);
CFIndex added_encoding_decode(CFStringEncoding encoding, const UInt8 *bytes, CFIndex count, UniChar **ret_units);
CFIndex added_encoding_encode(CFStringEncoding encoding, const UniChar *units, CFIndex count, UInt8 loss_byte, UInt8 *buffer, CFIndex size,
                              CFIndex *ret_used);

#endif
