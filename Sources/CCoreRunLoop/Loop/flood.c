/* SPDX-License-Identifier: Apache-2.0 */
/* The shared fence, and whether there is one; see flood.h. */
#include "Loop/flood.h"

#include "Kernel/kernel.h"
#include "Support/barrier.h"

__thread struct flood_record flood_record __attribute__((tls_model("initial-exec")));
atomic_bool flood_is_possible;

/* For a process that has forbidden the call since it was prepared: no processor holds a write back for so long. */
static const int64_t patience_ns = 1000000;

/*
 * Between two looks a signaller that has the line of the cache to itself signals in a few nanoseconds; each look takes the line away, and
 * costs both a tenth of a microsecond or more. A microsecond is a third to a tenth of what the loop's shared fence takes.
 */
static const int64_t look_interval_ns = 1000;

/*
 * Who posts in a flood makes a little more than a wake-up, and is held up now and then. So much later there are some again, all for one
 * pass; the fence that ends a flood takes longer, and holds up the poster as well.
 */
static const int64_t last_wait_ns = 2000;
enum { patience_looks = 200 }; /* of a clock that stands still */

static __attribute__((constructor)) void prepare(void)
{
    atomic_init(&flood_is_possible, barrier_enable_everywhere());
}

static void tell_beside_others(_Atomic uint32_t *told)
{
    if (atomic_load_explicit(told, memory_order_relaxed) != flood_told_by_many) {
        atomic_store_explicit(told, flood_told_by_many, memory_order_release);
        return;
    }
    barrier_full(); /* as without a flood: who takes what is found told after this sees what the caller wrote */
    if (!flood_is_told(told)) {
        atomic_store_explicit(told, flood_name(), memory_order_release);
    }
}

bool flood_finish_telling(enum flood_answer answer, _Atomic uint32_t *told, const _Atomic uint32_t *word, uint32_t flooded)
{
    if (answer == flood_has_others) {
        tell_beside_others(told);
        atomic_signal_fence(memory_order_seq_cst);
        answer = atomic_load_explicit(word, memory_order_relaxed) & flooded ? flood_is_heard : flood_is_over;
    }
    return answer == flood_is_heard || !flood_hear(told);
}

/* Awake, and without a look at anything that others write. Returns the time. */
static int64_t wait_out(int64_t begin_ns, int64_t interval_ns)
{
    int64_t now_ns = kernel.monotonic_ns();

    for (int i = 0; i < patience_looks && now_ns - begin_ns < interval_ns; i++) {
        barrier_pause();
        now_ns = kernel.monotonic_ns();
    }
    return now_ns;
}

int64_t flood_await_look(int64_t last_ns)
{
    return wait_out(last_ns, look_interval_ns);
}

void flood_await_more(void)
{
    (void)wait_out(kernel.monotonic_ns(), last_wait_ns);
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
