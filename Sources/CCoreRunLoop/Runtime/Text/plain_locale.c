/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the one locale object of the library: made when first needed, by whichever thread comes first, and kept.
 */
#include "Runtime/Text/plain_locale.h"

#include <stdatomic.h>

locale_t plain_locale(void)
{
    static _Atomic(locale_t) shared;
    locale_t locale = atomic_load_explicit(&shared, memory_order_acquire);

    if (locale != (locale_t)0) {
        return locale;
    }
    locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (locale == (locale_t)0) {
        locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    }
    locale_t expected = (locale_t)0;
    if (!atomic_compare_exchange_strong_explicit(&shared, &expected, locale, memory_order_acq_rel, memory_order_acquire)) {
        freelocale(locale);
        return expected;
    }
    return locale;
}
