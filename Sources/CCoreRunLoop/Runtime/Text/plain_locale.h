/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A locale that does not depend on what the program has set: a point in numbers, capital and small letters of all scripts.
 */
#ifndef CRL_RUNTIME_PLAIN_LOCALE_H
#define CRL_RUNTIME_PLAIN_LOCALE_H

#include "Runtime/link_names.h"

#include <locale.h>

/* (locale_t)0 when there is no memory for it. Any thread; never freed. */
locale_t plain_locale(void);

#endif
