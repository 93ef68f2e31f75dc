/* SPDX-License-Identifier: Apache-2.0 */
/* The fence that one thread makes for all: membarrier's, which interrupts the processors on which this process runs. */
#include "Support/barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool succeeds(int command)
{
    int saved = errno;
    bool is_done = syscall(SYS_membarrier, command, 0, 0) == 0;

    errno = saved;
    return is_done;
}

bool barrier_enable_everywhere(void)
{
    enum { unknown, possible, impossible };
    /* That of the first call. In .data, which is written when a program starts in any case: elsewhere it would take a page of its own. */
    static __attribute__((section(".data"))) _Atomic int answer;

    if (atomic_load_explicit(&answer, memory_order_relaxed) == unknown) {
        bool is_possible = succeeds(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

        atomic_store_explicit(&answer, is_possible ? possible : impossible, memory_order_relaxed);
    }
    return atomic_load_explicit(&answer, memory_order_relaxed) == possible;
}

bool barrier_everywhere(void)
{
    return succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
