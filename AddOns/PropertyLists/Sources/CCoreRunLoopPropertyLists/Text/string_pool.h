/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings that a reader has made, so that equal ones are one object: keys occur again and again. It looks at a few places for each text
 * only, so a text that somebody made to collide with others is made anew instead of searched for.
 *
 * A pool belongs to one thread. It borrows the bytes, which stay where they are as long as the pool is used.
 */
#ifndef CRL_PLIST_STRING_POOL_H
#define CRL_PLIST_STRING_POOL_H

#include "plist_link_names.h"

#include <stddef.h>
#include <stdint.h>

#include "CoreFoundation/CoreFoundation.h"

struct string_pool {
    CFAllocatorRef allocator;
    struct pooled_string {
        const uint8_t *bytes;
        size_t length;
        CFStringRef string; /* owned; NULL: the place is free */
    } *places;
    size_t place_count; /* a power of two, or 0 */
    size_t count;
};

/* The string of bytes in UTF-8. The caller releases it. NULL if the bytes are no UTF-8 or there is no memory. */
CFStringRef string_pool_copy(struct string_pool *pool, const uint8_t *bytes, size_t length);
void string_pool_free(struct string_pool *pool);

#endif
