/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of memory that brings the replies of a busy channel, and the bell that wakes the client that waits for one.
 *
 * A reply in a packet takes one call to send and one to receive, and the kernel's memory in between. The client of a channel that has been
 * used reply_page_after times shares a page with the server, which from then on writes there what fits, and calls the kernel only if the
 * client has gone to sleep. Then it rings: it adds to an eventfd that stands in a wait set of the client's, beside the channel's socket.
 * Only the server has the eventfd: another process that had it could fill it, and the server's write would block.
 *
 * Before a request the client sets `size` and `is_awaited` to 0. The server writes the packet, then its size. The client that is about to
 * sleep sets `is_awaited`, and the server that finds it set rings (shared_page.h).
 *
 * Neither side believes the other. The server only writes, but for the flag, which a client can set wrong to nobody's harm but its own. The
 * client reads the size once, and decodes a copy of the packet as it does one from the socket. The page is made as an arena is (payload.h).
 */
#ifndef CRL_PORT_WIRE_REPLY_PAGE_H
#define CRL_PORT_WIRE_REPLY_PAGE_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Port/Wire/shared_page.h"
#include "Port/Wire/wire.h"

enum {
    reply_page_size = shared_page_size,
    reply_page_head = 128,
    reply_page_room = reply_page_size - reply_page_head, /* for a header and data */
    reply_page_after = 8, /* requests that a channel carries before it gets a page, which pays for itself after about twenty replies */
};

/* The page's layout in both processes. Each side's word has a cache line of its own. */
struct reply_page {
    _Atomic uint32_t size; /* of the packet; 0: none yet. The server's, but for the client's return to 0 */
    uint8_t unused_1[60];
    _Atomic uint32_t is_awaited; /* the client's */
    uint8_t unused_2[60];
    uint8_t packet[reply_page_room];
};

_Static_assert(sizeof(struct reply_page) == reply_page_size, "a page is a page");

/* ---- the client's ---- */

/*
 * Makes a page, its descriptor, and a wait set with the channel's socket in it. Returns 0, or a negative errno and makes none of them:
 * -EOPNOTSUPP also where a loop that stands on the set would spin.
 */
int reply_page_create(int channel, struct reply_page **ret_page, int *ret_memory, int *ret_set);

/* Empties the page before the request is sent. */
static inline void reply_page_clear(struct reply_page *page)
{
    atomic_store_explicit(&page->is_awaited, 0, memory_order_relaxed);
    atomic_store_explicit(&page->size, 0, memory_order_relaxed);
}

/* Asks for the bell. The caller reads `size` afterwards: a reply that came before shows there, and its bell may not ring. */
void reply_page_await(struct reply_page *page);

/* Copies the packet and returns its size, or 0 if there is none. A result above reply_page_room means that the packet is not valid. */
uint32_t reply_page_take(const struct reply_page *page, uint8_t *ret_packet);

/* ---- the server's ---- */

/* Maps the page, and puts a bell into the wait set. Returns 0, -EINVAL if either is not valid, or another errno if it fails for now. */
int reply_page_adopt(int memory, int set, struct reply_page **ret_page, int *ret_bell);

/* Writes the reply, and rings if the client waits. Returns false, and does nothing, if the reply does not fit. */
bool reply_page_put(struct reply_page *page, int bell, const struct wire_frame *frame, const void *data);

/* ---- both sides' ---- */

void reply_page_release(struct reply_page *page); /* NULL: nothing */

#endif
