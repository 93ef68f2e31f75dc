/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locales that do not depend on what the program has set. Making one takes a lock of glibc's, which in the child of a fork stays taken for
 * ever if another thread held it; so there are two, of which one needs none, and the other is made before a process forks at the latest.
 */
#ifndef CRL_RUNTIME_PLAIN_LOCALE_H
#define CRL_RUNTIME_PLAIN_LOCALE_H

#include "Runtime/link_names.h"

#include <locale.h>

/* For numbers: a point, and no groups of digits. glibc and musl have it ready, and take no lock. Any thread; never freed. */
static inline locale_t plain_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* For capital and small letters of all scripts. (locale_t)0 when there is no memory for it. Any thread; never freed. */
locale_t letter_locale(void);

#endif
