/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow parts of coalescing: announcements of several threads, the waits of a loop during a burst, and the shared fence.
 *
 * These take no lock. The loop's thread may hold its own lock. Callers of signals and wake-ups run the first part, also in signal
 * handlers. The loop's thread runs the rest.
 */
#include "Loop/Wake/coalesce.h"

#include "Kernel/kernel.h"
#include "Support/barrier.h"

__thread struct coalesce_record coalesce_record __attribute__((tls_model("initial-exec")));
atomic_bool coalesce_is_possible;

/* If the process has come to forbid the fence's system call: no processor holds a store back for a millisecond. */
static const int64_t store_buffer_limit_ns = 1000000;

/*
 * A signaller that has the cache line to itself signals in a few nanoseconds. Each look of the loop takes the line away, and costs both
 * sides a tenth of a microsecond or more. A microsecond between two looks is a third to a tenth of what the loop's shared fence takes.
 */
static const int64_t look_interval_ns = 1000;

/*
 * A thread that posts blocks in a flood does a little more than wake the loop, and is delayed now and then. After two microseconds there
 * are new blocks, and one pass serves them all. The fence that ends a burst takes longer than that, and delays the poster as well.
 */
static const int64_t last_wait_ns = 2000;
enum { most_looks = 200 }; /* ends a wait if the clock stands still */

static __attribute__((constructor)) void coalesce_prepare(void)
{
    atomic_init(&coalesce_is_possible, barrier_enable_everywhere());
}

/*
 * Announces a call where other threads have announced theirs. The first such call only replaces their tag. Later ones leave the word alone,
 * so that it stays in every cache; the fence takes the place of the store.
 */
static void announce_beside_others(_Atomic uint32_t *announced)
{
    if (atomic_load_explicit(announced, memory_order_relaxed) != announced_by_many) {
        atomic_store_explicit(announced, announced_by_many, memory_order_release);
        return;
    }
    barrier_full(); /* as without coalescing: whoever takes the announcement found after this sees what the caller wrote */
    if (!coalesce_is_announced(announced)) {
        atomic_store_explicit(announced, coalesce_thread_tag(), memory_order_release);
    }
}

bool coalesce_finish_announcing(enum coalesce_answer answer, _Atomic uint32_t *announced, const _Atomic uint32_t *word, uint32_t coalesced)
{
    if (answer == coalesce_has_others) {
        announce_beside_others(announced);
        atomic_signal_fence(memory_order_seq_cst);
        answer = atomic_load_explicit(word, memory_order_relaxed) & coalesced ? coalesce_is_announced_in_time : coalesce_is_over;
    }
    /* The burst is over. If the announcement can be taken back, no loop has taken it. */
    return answer == coalesce_is_announced_in_time || !coalesce_take_announced(announced);
}

/* Waits awake until `interval_ns` after `begin_ns`, without reading anything that others write. Returns the time. */
static int64_t wait_awake(int64_t begin_ns, int64_t interval_ns)
{
    int64_t now_ns = kernel.monotonic_ns();

    for (int i = 0; i < most_looks && now_ns - begin_ns < interval_ns; i++) {
        barrier_pause();
        now_ns = kernel.monotonic_ns();
    }
    return now_ns;
}

int64_t coalesce_await_look(int64_t last_ns)
{
    return wait_awake(last_ns, look_interval_ns);
}

void coalesce_await_more(void)
{
    (void)wait_awake(kernel.monotonic_ns(), last_wait_ns);
}

void coalesce_fence_threads(void)
{
    int64_t deadline_ns;

    if (kernel.fence_threads() == 0) {
        return;
    }
    atomic_store_explicit(&coalesce_is_possible, false, memory_order_relaxed);
    deadline_ns = kernel.monotonic_ns() + store_buffer_limit_ns;
    while (kernel.monotonic_ns() < deadline_ns) {
        kernel.yield();
    }
}
