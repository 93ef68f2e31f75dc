/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's wait on a 32-bit word, private to the process. Here and not behind the kernel table because the locks of every layer stand
 * on it; the loop's own sleep goes through the table.
 */
#ifndef CRL_SUPPORT_FUTEX_H
#define CRL_SUPPORT_FUTEX_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word == expected. `deadline_ns` is CLOCK_MONOTONIC; INT64_MAX for none. 0 or a negative errno; keeps errno. */
int futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wakes one sleeper. Safe in a signal handler; keeps errno. */
int futex_wake(_Atomic uint32_t *word);

#endif
