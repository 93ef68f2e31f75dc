/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of memory that two processes share for good: made by the one, and handed to the other, which believes nothing of it.
 *
 * It is sealed against shrinking and growing and has all of its bytes, or it is refused, so that no access to it can fail. A child does not
 * get it. No locks; what stands in it says reply_page.h, and ack_page.h.
 */
#ifndef CRL_PORT_SHARED_PAGE_H
#define CRL_PORT_SHARED_PAGE_H

#include "Support/link_names.h"

enum { shared_page_size = 4096 };

/* A page of zeros, and the descriptor to be handed over. 0, or a negative errno and nothing. */
int shared_page_create(void **ret_page, int *ret_memory);

/* Maps what came from a peer; the descriptor stays the caller's. 0; -EINVAL: it is no such page; others: it cannot be done now. */
int shared_page_adopt(int memory, void **ret_page);

void shared_page_release(void *page); /* NULL: nothing */

#endif
