/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks of memory the process has asked for. Counts under glibc only; elsewhere always 0. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include "echo_port.h"
#include "echo_sockets.h"

unsigned long allocations_so_far(void);
/* Nanoseconds that the calling thread has had a processor for: what else the machine does is not in it. */
unsigned long thread_time_ns(void);
/* The same of all its threads. */
unsigned long process_time_ns(void);

#endif
