/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the parts of a URL stand in its bytes, after the grammar of RFC 3986. Pure: no allocation, no state.
 *
 * A part that is missing has the location kCFNotFound. One that is there may be empty. Every other byte of the URL is a separator.
 */
#ifndef CRL_RUNTIME_URL_PARTS_H
#define CRL_RUNTIME_URL_PARTS_H

#include "Runtime/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFBase.h"

struct url_parts {
    CFRange scheme;
    CFRange authority; /* the net location; the next five are in it */
    CFRange user_info;
    CFRange user;
    CFRange password;
    CFRange host; /* with the brackets of an IPv6 address */
    CFRange port;
    CFRange path; /* never missing */
    CFRange query;
    CFRange fragment;
    bool is_opaque; /* the scheme is not followed by a slash */
};

void url_parts_find(const char *bytes, CFIndex count, struct url_parts *ret_parts);

static inline bool url_part_is_missing(CFRange part)
{
    return part.location == kCFNotFound;
}

/* The last component of the path without a slash behind it; empty for an empty path and for the root. */
CFRange url_last_component(const char *bytes, CFRange path);

/* What follows the last dot of a component; missing when there is none. */
CFRange url_extension(const char *bytes, CFRange component);

bool url_is_dot_segment(const char *bytes, CFRange component);

#endif
