/* SPDX-License-Identifier: Apache-2.0 */
/* See error_text.h. */
#define _GNU_SOURCE
#include "Support/error_text.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#if !defined(__GLIBC__)

const char *known_error_text(int error)
{
    return strerror_l(error, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

#elif __GLIBC_PREREQ(2, 32)

const char *known_error_text(int error)
{
    return strerrordesc_np(error);
}

#else

/*
 * Without strerrordesc_np the constant texts are asked for when the library is loaded, as asking takes the lock of the locale. The
 * constructor writes them before anything reads.
 */
static const char *texts[EHWPOISON + 1];

static __attribute__((constructor)) void ask_for_texts(void)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    for (int error = 0; error <= EHWPOISON; error++) {
        const char *text = strerror_l(error, locale);

        texts[error] = strncmp(text, "Unknown error", strlen("Unknown error")) == 0 ? NULL : text;
    }
}

const char *known_error_text(int error)
{
    return error >= 0 && error <= EHWPOISON ? texts[error] : NULL;
}

#endif
