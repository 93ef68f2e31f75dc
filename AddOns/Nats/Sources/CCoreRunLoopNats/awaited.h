/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bridge has sent and waits for: requests until their reply, marked one-way messages until they were taken, and what the server was
 * asked, by their numbers.
 *
 * Used by the bridge's thread. The table holds a fixed number, so a number names its place. Numbers are never used twice.
 */
#ifndef CRL_NATS_AWAITED_H
#define CRL_NATS_AWAITED_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CRLMessagePort.h"

enum { awaited_max = 4096 };

struct imported_name;

/* The server has answered, which is no frame of a bridge. NULL: it has not for too long, or cannot. */
typedef void (*server_answered)(void *info, const char *text, size_t length);

struct awaited {
    uint64_t number; /* 0: the place is free */
    struct imported_name *name; /* NULL: the server is asked */
    CRLDeferredReplyRef reply; /* of a request; NULL: a marked one-way message */
    server_answered answered; /* with `info`, if the server is asked */
    void *info;
    int64_t heard_ns; /* when it was sent, or the last sign that it is under way */
};

struct awaited_table {
    struct awaited places[awaited_max];
    size_t count;
    uint64_t last_number;
};

/* Returns a number for a message of which nothing is awaited. */
uint64_t awaited_next_number(struct awaited_table *table);
/* Takes a place, whose number is set. Returns NULL if there is none. */
struct awaited *awaited_add(struct awaited_table *table);
/* Returns NULL if the number is not awaited, any more. */
struct awaited *awaited_find(struct awaited_table *table, uint64_t number);
void awaited_remove(struct awaited_table *table, struct awaited *awaited);

#endif
