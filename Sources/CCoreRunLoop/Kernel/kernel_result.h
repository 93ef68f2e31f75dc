/* SPDX-License-Identifier: Apache-2.0 */
/* Results of system calls as this layer gives them: the value, or the negative error. errno stays the caller's. */
#ifndef CRL_KERNEL_KERNEL_RESULT_H
#define CRL_KERNEL_KERNEL_RESULT_H

#include "Kernel/link_names.h"

#include <errno.h>
#include <stdint.h>

/* For results that may not fit an int: sizes, and places in files. */
static inline int64_t long_result_of(int64_t result, int saved_errno)
{
    if (result < 0) {
        result = -errno;
    }
    errno = saved_errno;
    return result;
}

static inline int result_of(long result, int saved_errno)
{
    return (int)long_result_of(result, saved_errno);
}

#endif
