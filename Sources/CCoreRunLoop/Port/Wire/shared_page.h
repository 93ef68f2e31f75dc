/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of memory that two processes share for good. One makes it and hands it to the other, which trusts nothing in it.
 *
 * A page is sealed against shrinking and growing and has all of its bytes, or it is refused, so that no access to it can fail. A child does
 * not get it. No locks. The two layouts are in reply_page.h and ack_page.h.
 *
 * In both, the server writes news into the page, and calls the kernel only to wake a client that sleeps until them:
 *
 *     client                                     server
 *     awaited = not 0                            writes the news
 *     fence                                      fence
 *     reads the news; if there are none, sleeps  reads awaited; if it is not 0, wakes the client
 *
 * Each side writes before its fence and reads after it, so one of the two finds what the other wrote: no news is slept over. The models
 * Tests/Models/reply_page.pml and ack_page.pml check that for each layout.
 */
#ifndef CRL_PORT_WIRE_SHARED_PAGE_H
#define CRL_PORT_WIRE_SHARED_PAGE_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdint.h>

#include "Support/barrier.h"

enum { shared_page_size = 4096 };

/* Makes a page of zeros, and the descriptor to hand over. Returns 0, or a negative errno and makes neither. */
int shared_page_create(void **ret_page, int *ret_memory);

/* Maps a peer's page; the caller keeps the descriptor. Returns 0, -EINVAL for no such page, or another errno if it cannot be mapped now. */
int shared_page_adopt(int memory, void **ret_page);

void shared_page_release(void *page); /* NULL: nothing */

/* The client's: says which news it is about to sleep until. The caller reads the page afterwards, and sleeps only if they are not there. */
static inline void shared_page_await(_Atomic uint32_t *awaited, uint32_t news)
{
    atomic_store_explicit(awaited, news, memory_order_relaxed);
    barrier_full();
}

/* The server's, after it has written news: returns what the client sleeps until, or 0. */
static inline uint32_t shared_page_awaited(const _Atomic uint32_t *awaited)
{
    barrier_full();
    return atomic_load_explicit(awaited, memory_order_relaxed);
}

#endif
