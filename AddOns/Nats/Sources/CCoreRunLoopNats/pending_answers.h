/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bridge has sent and awaits an answer to, by number: requests until their reply, marked one-way messages until they are taken, and
 * questions to the server.
 *
 * Used by the bridge's thread, which owns every field. An entry's place is its number modulo the table's size. No number is used twice.
 */
#ifndef CRL_NATS_PENDING_ANSWERS_H
#define CRL_NATS_PENDING_ANSWERS_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CRLMessagePort.h"

enum { pending_answers_max = 4096 };

struct imported_name;

/* The server's answer, which is no frame of a bridge. `text` is NULL if it has not answered for too long, or nobody can answer. */
typedef void (*server_answer_callback)(void *info, const char *text, size_t length);

struct pending_answer {
    uint64_t number; /* 0: the place is free */
    struct imported_name *name; /* NULL: a question to the server */
    CRLDeferredReplyRef reply; /* of a request; NULL: a marked one-way message, or a question */
    server_answer_callback answered; /* of a question; NULL otherwise */
    void *info; /* for `answered` */
    int64_t heard_ns; /* when it was sent, or was last reported to be under way */
};

struct pending_answers {
    struct pending_answer places[pending_answers_max];
    size_t count; /* of the places that are taken */
    uint64_t last_number;
};

/* Returns a number for a message to which no answer is awaited. */
uint64_t pending_answers_next_number(struct pending_answers *table);
/* Takes a place and sets its number; the caller sets the rest. Returns NULL if all places are taken. */
struct pending_answer *pending_answers_add(struct pending_answers *table);
/* Returns NULL if no answer to the number is awaited, or not any more. */
struct pending_answer *pending_answers_find(struct pending_answers *table, uint64_t number);
void pending_answers_remove(struct pending_answers *table, struct pending_answer *pending);

#endif
