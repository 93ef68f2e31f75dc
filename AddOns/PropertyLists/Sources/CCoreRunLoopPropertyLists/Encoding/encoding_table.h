/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each encoding: its names, and who converts it. Constant; sorted by numbers. */
#ifndef CRL_PLIST_ENCODING_TABLE_H
#define CRL_PLIST_ENCODING_TABLE_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFString.h"

struct encoding_row {
    CFStringEncoding encoding;
    const char *registered_name; /* by IANA, or as Core Foundation spells it; NULL: none */
    const char *library_name; /* by which the C library converts it; NULL: it does not */
    unsigned bytes_per_unit; /* the most, with what switches back and forth; 0: this add-on does not convert it */
    unsigned cocoa_number; /* an NSStringEncoding; 0: the number with the highest bit */
    int code_page; /* of Windows, or -1 */
    CFStringRef name; /* for people, of what this add-on converts; NULL: none */
};

enum { encoding_rows = 124 };
extern const struct encoding_row encoding_table[encoding_rows];

/* NULL: there is none. */
const struct encoding_row *encoding_find(CFStringEncoding encoding);

#endif
