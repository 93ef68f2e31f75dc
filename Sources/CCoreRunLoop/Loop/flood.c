/* SPDX-License-Identifier: Apache-2.0 */
/* The shared fence, and whether there is one; see flood.h. */
#include "Loop/flood.h"

#include "Kernel/kernel.h"
#include "Support/barrier.h"

__thread struct flood_record flood_record __attribute__((tls_model("initial-exec")));
atomic_bool flood_is_possible;

/* For a process that has forbidden the call since it was prepared: no processor holds a write back for so long. */
static const int64_t patience_ns = 1000000;

static __attribute__((constructor)) void prepare(void)
{
    atomic_init(&flood_is_possible, barrier_enable_everywhere());
}

void flood_fence(void)
{
    int64_t deadline_ns;

    if (kernel.fence_threads() == 0) {
        return;
    }
    atomic_store_explicit(&flood_is_possible, false, memory_order_relaxed);
    deadline_ns = kernel.monotonic_ns() + patience_ns;
    while (kernel.monotonic_ns() < deadline_ns) {
        kernel.yield();
    }
}
