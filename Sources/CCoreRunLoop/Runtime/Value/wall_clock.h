/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock, behind one pointer that tests replace. */
#ifndef CRL_RUNTIME_WALL_CLOCK_H
#define CRL_RUNTIME_WALL_CLOCK_H

#include "Runtime/link_names.h"

#include <stdint.h>

/* Nanoseconds since 1970-01-01 00:00:00 UTC. Written before threads start, and only read afterwards. Safe in a signal handler. */
extern int64_t (*runtime_wall_clock)(void);

#endif
