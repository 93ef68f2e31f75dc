/* SPDX-License-Identifier: Apache-2.0 */
/* What a search takes of a range that reaches beyond what is there: programs pass such ranges, which Core Foundation's searches clip. */
#ifndef CRL_RUNTIME_RANGE_H
#define CRL_RUNTIME_RANGE_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFBase.h"

/* The part of the range that lies within `length` items. A range that begins outside, or has no length, has none. */
static inline CFRange range_clipped(CFRange range, CFIndex length)
{
    if (range.location < 0 || range.location > length || range.length < 0) {
        return CFRangeMake(0, 0);
    }
    return CFRangeMake(range.location, range.length < length - range.location ? range.length : length - range.location);
}

#endif
