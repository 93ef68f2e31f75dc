/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of NextStep, which the C library does not have. Pure. */
#ifndef CRL_PLIST_NEXTSTEP_H
#define CRL_PLIST_NEXTSTEP_H

#include "plist_link_names.h"

#include "CoreFoundation/CFString.h"

/* False: a byte has no character. */
bool nextstep_decode(const UInt8 *bytes, CFIndex count, UniChar *ret_units);
/* The byte of a unit, or -1. */
int nextstep_byte(UniChar unit);

#endif
