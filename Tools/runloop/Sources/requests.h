/* SPDX-License-Identifier: Apache-2.0 */
/* How a story's requests are told: story.c passes on the events of each kind, with the name of the port. */
#ifndef RUNLOOP_REQUESTS_H
#define RUNLOOP_REQUESTS_H

#include "pair_table.h"
#include "runloop.h"

struct request_teller {
    struct story *story;
    uint32_t *innermost; /* by thread: its request plus 1; 0: none */
    struct pair_table servers; /* (name, process + 1, or 0 for any) -> the thread plus 1 that answered last */
};

void requests_begin(struct request_teller *teller, struct story *story);
void request_begins(struct request_teller *teller, const struct event *event, uint32_t name);
void request_ends(struct request_teller *teller, const struct event *event);
/* A callout has jumped out of a run, and so of the request that waited in it. */
void request_is_left(struct request_teller *teller, const struct event *event);
void request_port_is_served(struct request_teller *teller, const struct event *event, uint32_t name);
void requests_end(struct request_teller *teller);

#endif
