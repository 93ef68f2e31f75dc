/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the one locale object of the library: made when first needed, by whichever thread comes first, or before the first fork, and kept.
 */
#include "Runtime/Text/plain_locale.h"

#include <pthread.h>
#include <stdatomic.h>

locale_t letter_locale(void)
{
    static _Atomic(locale_t) shared;
    locale_t locale = atomic_load_explicit(&shared, memory_order_acquire);

    if (locale != (locale_t)0) {
        return locale;
    }
    locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (locale == (locale_t)0) {
        locale = plain_locale();
    }
    locale_t expected = (locale_t)0;
    if (!atomic_compare_exchange_strong_explicit(&shared, &expected, locale, memory_order_acq_rel, memory_order_acquire)) {
        freelocale(locale);
        return expected;
    }
    return locale;
}

static void make_before_fork(void)
{
    (void)letter_locale();
}

static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(make_before_fork, NULL, NULL);
}
