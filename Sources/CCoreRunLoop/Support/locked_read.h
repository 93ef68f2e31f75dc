/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one field of an object while its lock is held. The public functions that return such a field (validity, native descriptor, flags)
 * are one call of these.
 */
#ifndef CRL_SUPPORT_LOCKED_READ_H
#define CRL_SUPPORT_LOCKED_READ_H

#include "Support/link_names.h"

#include <stdbool.h>

#include "Support/lock.h"

static inline int locked_read_int(struct lock *lock, const int *field)
{
    int value;

    lock_take(lock);
    value = *field;
    lock_drop(lock);
    return value;
}

static inline bool locked_read_bool(struct lock *lock, const bool *field)
{
    bool value;

    lock_take(lock);
    value = *field;
    lock_drop(lock);
    return value;
}

static inline unsigned long locked_read_flags(struct lock *lock, const unsigned long *field)
{
    unsigned long value;

    lock_take(lock);
    value = *field;
    lock_drop(lock);
    return value;
}

#endif
