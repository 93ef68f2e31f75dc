/* SPDX-License-Identifier: Apache-2.0 */
/* A text whose control characters are to be seen, where there is no libbsd. */
#ifndef CRL_WITHOUT_BSD_VIS_H
#define CRL_WITHOUT_BSD_VIS_H

#include <stdio.h>
#include <string.h>

enum { VIS_CSTYLE = 2, VIS_TAB = 8, VIS_NL = 16 };

/* As with all three flags, and bytes beyond ASCII as they are. At most four characters and an end for each byte. */
static inline int without_bsd_strvis(char *ret_visible, const char *text, int flags)
{
    static const char letters[] = "\aa\bb\tt\nn\vv\ff\rr\\\\";
    char *to = ret_visible;

    (void)flags;
    for (; *text; text++) {
        const unsigned char byte = (unsigned char)*text;
        const char *found = NULL;

        for (size_t i = 0; letters[i] && !found; i += 2) {
            found = letters[i] == *text ? &letters[i + 1] : NULL;
        }
        if (found) {
            *to++ = '\\';
            *to++ = *found;
        } else if (byte < ' ' || byte == 0x7f) {
            to += snprintf(to, 5, "\\%03o", (unsigned)byte);
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return (int)(to - ret_visible);
}

#define strvis without_bsd_strvis

#endif
