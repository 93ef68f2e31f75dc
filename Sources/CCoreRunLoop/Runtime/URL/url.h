/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a URL: its string, its base and the places of its parts. URLs do not change; any thread. */
#ifndef CRL_RUNTIME_URL_H
#define CRL_RUNTIME_URL_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFURL.h"
#include "Runtime/Object/object.h"
#include "Runtime/URL/url_parts.h"

struct url {
    struct object object;
    CFStringRef string; /* retained, ASCII; constant */
    const char *bytes; /* of the string; constant */
    CFIndex count; /* constant */
    CFDataRef given; /* retained, the bytes that the URL was made of, or NULL where they are those of the string; constant */
    const struct url *base; /* retained, without a base of its own, or NULL; constant */
    CFStringEncoding encoding; /* of escaped bytes; constant */
    struct url_parts parts; /* constant */
};

/* The URL behind a reference. Stops with a sentence that names `function` when it is none. */
const struct url *url_of(CFURLRef reference, const char *function);
CFURLRef url_reference(const struct url *url);

/* A new URL with bytes in the form of url_write_canonical. A base is resolved, and is not kept when the bytes have a scheme.
 * `given` is what the URL was made of where that is something else, or NULL. NULL if there is no memory. */
const struct url *url_create(CFAllocatorRef allocator, const char *bytes, CFIndex count, CFStringEncoding encoding, const struct url *base,
                             CFDataRef given);

/* The URL resolved against its base, with a reference. NULL if there is no memory. */
const struct url *url_copy_absolute(CFAllocatorRef allocator, const struct url *url);

/* A part as it stands in the string; NULL if it is missing or there is no memory. */
CFStringRef url_copy_part(const struct url *url, CFRange part);

/* A part with its escapes replaced; NULL besides if these are not text. */
CFStringRef url_copy_text(const struct url *url, CFRange part);

#endif
