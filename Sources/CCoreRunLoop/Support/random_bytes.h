/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes of the kernel. libbsd's arc4random_buf takes a lock that stays taken in the child of a fork if another thread held it, and
 * may end the process where getrandom is refused. Any thread; no state.
 */
#ifndef CRL_SUPPORT_RANDOM_BYTES_H
#define CRL_SUPPORT_RANDOM_BYTES_H

#include "Support/link_names.h"

#include <stddef.h>

/* `size` is at most 256: the kernel gives so many at once, or none. */
void random_bytes_fill(void *ret_bytes, size_t size);

#endif
