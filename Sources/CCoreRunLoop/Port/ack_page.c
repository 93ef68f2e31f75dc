/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements in memory; see ack_page.h. */
#include "Port/ack_page.h"

#include "Support/barrier.h"

bool ack_page_read(const struct ack_page *page, uint32_t *ret_taken, uint32_t *ret_queue_limit)
{
    *ret_queue_limit = atomic_load_explicit(&page->queue_limit, memory_order_acquire);
    *ret_taken = atomic_load_explicit(&page->taken, memory_order_relaxed);
    return *ret_queue_limit != 0;
}

void ack_page_await(struct ack_page *page, uint32_t sequence)
{
    /* 0 says that none is awaited. For the one before it the packet comes no later. */
    atomic_store_explicit(&page->awaited, sequence != 0 ? sequence : UINT32_MAX, memory_order_relaxed);
    barrier_full();
}

bool ack_page_note(struct ack_page *page, uint32_t sequence, uint32_t queue_limit)
{
    uint32_t awaited;

    atomic_store_explicit(&page->taken, sequence, memory_order_relaxed);
    atomic_store_explicit(&page->queue_limit, queue_limit, memory_order_release); /* after `taken`: a client that sees it sees both */
    barrier_full();
    awaited = atomic_load_explicit(&page->awaited, memory_order_relaxed);
    if (awaited == 0 || (int32_t)(sequence - awaited) < 0) {
        return false;
    }
    /* A client that has asked anew meanwhile did so after the fence, and finds what was written before. */
    return atomic_compare_exchange_strong_explicit(&page->awaited, &awaited, 0, memory_order_relaxed, memory_order_relaxed);
}
