/* SPDX-License-Identifier: Apache-2.0 */
/* Names of languages as "de", "de_CH", "zh-Hans", "German", and how well they fit. No state; any thread. */
#ifndef CRL_PLIST_LANGUAGE_H
#define CRL_PLIST_LANGUAGE_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"

struct language {
    char base[9]; /* in small letters; "" if the name is that of no language */
    char script[5]; /* as "Hans", or "": the usual one */
    char region[4]; /* as "CH" or "419", or "" */
};

struct language language_parse(const char *name);
/* The same of a string. */
struct language language_of(CFTypeRef name);

/* How well what there is fits what is wanted, from 1 on; 0: it is another language. */
int language_fit(const struct language *there, const struct language *wanted);

/*
 * Of the names that there are, those that fit the first wanted one that any fits: the best, and then that of the language without a region.
 * The caller releases the array, which is NULL without memory, and empty if none fits.
 */
CFMutableArrayRef language_choose(CFArrayRef there, CFArrayRef wanted);

/* What the user wants: the preference AppleLanguages, or else the environment. NULL without memory. The caller releases it. */
CFArrayRef language_copy_wanted(void);

#endif
