/* SPDX-License-Identifier: Apache-2.0 */
/* How a URL is resolved against a base: section 5.2 of RFC 3986. Pure: no allocation, no state. */
#ifndef CRL_RUNTIME_URL_RESOLVE_H
#define CRL_RUNTIME_URL_RESOLVE_H

#include "Runtime/link_names.h"

#include "Runtime/URL/url_parts.h"

struct url_view {
    const char *bytes;
    CFIndex count;
    const struct url_parts *parts;
};

/* Writes the URL that `reference`, which has no scheme, means when it stands in `base`. Returns how many bytes it has, which are at most
 * those of both and url_resolve_extra more. */
enum { url_resolve_extra = 4 };
CFIndex url_resolve(const struct url_view *base, const struct url_view *reference, char *ret_bytes);

#endif
