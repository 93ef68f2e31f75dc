/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word that reads as zero in the child of a fork, also of `_Fork` and `clone`, which run no handlers. The registry of loops writes into
 * it and looks at it when a thread asks for a loop.
 */
#ifndef CRL_KERNEL_FORK_MARK_H
#define CRL_KERNEL_FORK_MARK_H

#include "Kernel/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

enum fork_mark_state {
    fork_mark_wiped = 0, /* by the kernel: this is a child, and nobody has adapted the library to it yet */
    fork_mark_set,
};

/* Fills kernel.fork_mark. Call it through that table only. */
_Atomic uint32_t *kernel_fork_mark(void);

#endif
