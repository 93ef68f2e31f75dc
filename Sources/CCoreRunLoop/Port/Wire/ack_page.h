/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of memory in which a server acknowledges the messages that it has taken, for a client that has several messages under way.
 *
 * An acknowledgement in a packet takes one call to send and one or two to receive, as much as the message. In the page it is a store, and
 * what the client finds there is never behind. A client that is about to sleep writes the number of the message that it waits for. The
 * server sends a packet when it has taken that message. By then there is room for several, so the client is not woken for each.
 *
 * The client, whose queue is full, awaits the number until which it sleeps (shared_page.h). The server that reaches the number puts 0 in
 * its place, and sends a packet. A client that is woken for several messages may sleep though there is room for one, and of two threads one
 * may take the packet for both. So the client looks once more when its time is over, and now and then.
 *
 * Neither side believes the other: the client takes no number that it has not sent, and what it writes wakes nobody but itself. The server
 * never reads what it has written. Each side calls these functions under a lock of its own, the port's.
 */
#ifndef CRL_PORT_WIRE_ACK_PAGE_H
#define CRL_PORT_WIRE_ACK_PAGE_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "Port/Wire/shared_page.h"

/* The page's layout in both processes. Each side's words have a cache line of their own. */
struct ack_page {
    _Atomic uint32_t taken; /* the server's: the number of a frame, which stands for all before it */
    _Atomic uint32_t queue_limit; /* the server's: the limit of its queue in messages; 0: nothing has been taken yet */
    uint8_t unused_1[56];
    _Atomic uint32_t awaited; /* the client's: a number; 0: none. The server puts 0 in its place */
    uint8_t unused_2[shared_page_size - 68];
};

_Static_assert(sizeof(struct ack_page) == shared_page_size, "a page is a page");

/* ---- the client's ---- */

/* Reads the number of the last frame taken, and the queue's limit. Returns false if the server has taken none yet. */
bool ack_page_read(const struct ack_page *page, uint32_t *ret_taken, uint32_t *ret_queue_limit);

/* Asks for a packet once that frame is taken. The caller reads the page afterwards: it shows the frames that were taken before. */
void ack_page_await(struct ack_page *page, uint32_t sequence);

/* ---- the server's ---- */

/* Notes that the frame and all before it are taken. Returns true if the client sleeps and has to be sent a packet. */
bool ack_page_note(struct ack_page *page, uint32_t sequence, uint32_t queue_limit);

#endif
