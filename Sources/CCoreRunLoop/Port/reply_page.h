/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of memory that brings the replies of a busy line, and the bell that wakes who waits for one.
 *
 * A reply in a packet takes one call to send and one to receive, and the kernel's memory in between. The client of a line that has been
 * used reply_page_after times shares a page with the server, which from then on writes there what fits, and calls the kernel only if the
 * client has gone to sleep. Then it rings: it adds to an eventfd that stands in a wait set of the client's, beside the line's socket. The
 * eventfd is the server's alone, for whoever else had it could make the server wait when it writes.
 *
 *     client                                     server
 *     size = 0, is_awaited = 0; request  ----->
 *     is_awaited = 1                             packet; size = its size
 *     fence                                      fence
 *     size != 0: takes the packet                is_awaited != 0: rings
 *     size == 0: sleeps
 *
 * One of the two finds what the other wrote, so that no reply is slept over (Tests/Models/reply_page.pml).
 *
 * Neither side believes the other. The server only writes, but for the flag, which a client can set wrong to nobody's harm but its own. The
 * client reads the size once, and decodes a copy of the packet as it does one from the socket. The page is made as an arena is (payload.h).
 */
#ifndef CRL_PORT_REPLY_PAGE_H
#define CRL_PORT_REPLY_PAGE_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Port/shared_page.h"
#include "Port/wire.h"

enum {
    reply_page_size = shared_page_size,
    reply_page_head = 128,
    reply_page_room = reply_page_size - reply_page_head, /* for a header and data */
    reply_page_after = 8, /* requests that a line carries before it has a page: what that costs is saved by about twenty */
};

/* As it stands in memory, on both sides; each side's word is in a cache line of its own. */
struct reply_page {
    _Atomic uint32_t size; /* of the packet; 0: none yet. The server's, but for the client's return to 0 */
    uint8_t unused_1[60];
    _Atomic uint32_t is_awaited; /* the client's */
    uint8_t unused_2[60];
    uint8_t packet[reply_page_room];
};

_Static_assert(sizeof(struct reply_page) == reply_page_size, "a page is a page");

/* ---- the client's ---- */

/* A page, its descriptor, and a wait set with the line's socket in it. 0, or a negative errno and nothing. */
int reply_page_create(int line, struct reply_page **ret_page, int *ret_memory, int *ret_set);

/* Before the request is sent. */
static inline void reply_page_clear(struct reply_page *page)
{
    atomic_store_explicit(&page->is_awaited, 0, memory_order_relaxed);
    atomic_store_explicit(&page->size, 0, memory_order_relaxed);
}

/* From now on the bell is rung for what comes; what is there already shows in `size`, to be looked at after this. */
void reply_page_await(struct reply_page *page);

/* Copies the packet, of at most reply_page_room bytes. Its size, or 0 if there is none; more than that much: it is none. */
uint32_t reply_page_take(const struct reply_page *page, uint8_t *ret_packet);

/* ---- the server's ---- */

/* Maps the page, and puts a bell into the wait set. 0; -EINVAL: they are not what they should be; others: it cannot be done now. */
int reply_page_adopt(int memory, int set, struct reply_page **ret_page, int *ret_bell);

/* Writes the reply, and rings if somebody waits. False, and nothing is done, if it does not fit. */
bool reply_page_put(struct reply_page *page, int bell, const struct wire_frame *frame, const void *data);

/* ---- both sides' ---- */

void reply_page_release(struct reply_page *page); /* NULL: nothing */

#endif
