/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of memory in which a server acknowledges what it has taken from its queue, for a client that has several messages under way.
 *
 * An acknowledgement in a packet takes one call to send and one or two to receive, as much as the message. In the page it is a store, and
 * what the client finds there is never behind. The server sends a packet only to wake a client that has said that it sleeps, and until
 * which number: so that there is room for several messages by then, and it is not woken for each.
 *
 *     client, whose queue is full                server
 *     awaited = the number to be woken for       taken = the number of what it has taken
 *     fence                                      fence
 *     taken says that there is room: sends       awaited is reached: awaited = 0, sends a packet
 *     otherwise: sleeps
 *
 * One of the two finds what the other wrote (Tests/Models/ack_page.pml). Since a client that is woken for several may sleep though there is
 * room for one, and of two threads one may take the packet for both, it looks once more when its time is over, and now and then.
 *
 * Neither side believes the other: the client takes no number that it has not sent, and what it writes wakes nobody but itself. The server
 * never reads what it has written. Each side calls these functions under a lock of its own, the port's.
 */
#ifndef CRL_PORT_ACK_PAGE_H
#define CRL_PORT_ACK_PAGE_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Port/shared_page.h"

/* As it stands in memory, on both sides; each side's words are in a cache line of their own. */
struct ack_page {
    _Atomic uint32_t taken; /* the server's: the number of a frame, which stands for all before it */
    _Atomic uint32_t queue_limit; /* the server's: how many messages its queue holds; 0: nothing has been taken yet */
    uint8_t unused_1[56];
    _Atomic uint32_t awaited; /* the client's: a number; 0: none. The server puts 0 in its place */
    uint8_t unused_2[shared_page_size - 68];
};

_Static_assert(sizeof(struct ack_page) == shared_page_size, "a page is a page");

/* ---- the client's ---- */

/* What the server has taken last, and how much its queue holds. False: nothing yet. */
bool ack_page_read(const struct ack_page *page, uint32_t *ret_taken, uint32_t *ret_queue_limit);

/* From now on a packet comes once that frame is taken; what has been taken already shows in the page, to be looked at after this. */
void ack_page_await(struct ack_page *page, uint32_t sequence);

/* ---- the server's ---- */

/* That frame and all before it are taken. True: the client is to be sent a packet. */
bool ack_page_note(struct ack_page *page, uint32_t sequence, uint32_t queue_limit);

#endif
