/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements in memory; see ack_page.h. */
#include "Port/Wire/ack_page.h"

bool ack_page_read(const struct ack_page *page, uint32_t *ret_taken, uint32_t *ret_queue_limit)
{
    *ret_queue_limit = atomic_load_explicit(&page->queue_limit, memory_order_acquire);
    *ret_taken = atomic_load_explicit(&page->taken, memory_order_relaxed);
    return *ret_queue_limit != 0;
}

void ack_page_await(struct ack_page *page, uint32_t sequence)
{
    /* 0 would mean that no number is awaited. The number before 0 is asked for instead: its packet comes one message earlier, not later. */
    shared_page_await(&page->awaited, sequence != 0 ? sequence : UINT32_MAX);
}

bool ack_page_note(struct ack_page *page, uint32_t sequence, uint32_t queue_limit)
{
    uint32_t awaited;

    atomic_store_explicit(&page->taken, sequence, memory_order_relaxed);
    atomic_store_explicit(&page->queue_limit, queue_limit, memory_order_release); /* after `taken`: a client that sees it sees both */
    awaited = shared_page_awaited(&page->awaited);
    if (awaited == 0 || (int32_t)(sequence - awaited) < 0) {
        return false;
    }
    /* A client that has asked anew meanwhile asked after the fence, and so it finds the numbers that were written before. */
    return atomic_compare_exchange_strong_explicit(&page->awaited, &awaited, 0, memory_order_relaxed, memory_order_relaxed);
}
