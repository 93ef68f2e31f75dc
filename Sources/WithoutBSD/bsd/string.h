/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a text that never overflows, where there is no libbsd. */
#ifndef CRL_WITHOUT_BSD_STRING_H
#define CRL_WITHOUT_BSD_STRING_H

#include <string.h>

/* Returns the whole text's length, which is `size` or more if it was cut. */
static inline size_t without_bsd_strlcpy(char *ret_copy, const char *text, size_t size)
{
    size_t length = strlen(text);

    if (size > 0) {
        size_t copied = length < size ? length : size - 1;

        memcpy(ret_copy, text, copied);
        ret_copy[copied] = '\0';
    }
    return length;
}

/* The C library may have a function of this name. */
#undef strlcpy
#define strlcpy without_bsd_strlcpy

#endif
