/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's English text for an error. strerror is not used: glibc's takes locks on its way to a translation, which in the child of a
 * fork may stay taken for ever, and may overwrite a text that another thread still reads. Any thread.
 */
#ifndef CRL_SUPPORT_ERROR_TEXT_H
#define CRL_SUPPORT_ERROR_TEXT_H

#include "Support/link_names.h"

#include <stddef.h>

/* Constant. NULL for a number that is none of an error; musl has a text for it. */
const char *known_error_text(int error);

static inline const char *error_text(int error)
{
    const char *text = known_error_text(error);

    return text ? text : "unknown error";
}

#endif
