/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an escaped name back, for tests of subject.h. */
#ifndef CRL_TESTS_UNESCAPE_H
#define CRL_TESTS_UNESCAPE_H

#include <stdio.h>

/* `ret_text` has room for as many bytes as the token. */
static inline void unescape(const char *token, char *ret_text)
{
    unsigned byte;

    for (; *token != '\0'; token++) {
        if (*token == '%' && sscanf(token + 1, "%2X", &byte) == 1) {
            *ret_text++ = (char)byte;
            token += 2;
        } else {
            *ret_text++ = *token;
        }
    }
    *ret_text = '\0';
}

#endif
