/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has happened to the messages and names of a simulation, over all its processes, and whether it may have.
 *
 * Each request and one-way message is noted when it is sent, handled and answered. A contradiction fails the simulation where it shows.
 */
#ifndef CRL_TESTS_SIMULATION_HISTORY_H
#define CRL_TESTS_SIMULATION_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* The head of a message's data; the rest is filled with what the head says. */
struct letter {
    uint32_t id;
    uint32_t size; /* of all the data */
    uint32_t hops; /* how deep in requests of requests */
    uint32_t reply_size;
};

struct sending {
    int name;
    bool is_one_way;
    bool has_send_limit, has_receive_limit;
    bool may_be_late; /* a server sends it, perhaps when the others have ended */
    uint64_t ends; /* history_ends, before the connection was made */
};

/* A message is about to be sent. Its number. */
uint32_t history_send(const struct sending *sending);
/* What came of it: a kCFMessagePort code; `has_right_reply`: what came back is what the receiver gives back. */
void history_result(uint32_t id, int32_t result, bool has_right_reply);
/* The calling process handles it. */
void history_handle(uint32_t id, int name);

/* Ownership of names. Taking one that another has fails. */
void history_own(int name);
void history_disown(int name);
/* Between true and false, connections to the name end though its owner lives on. */
void history_cut(int name, bool begins);
uint64_t history_ends(int name);
/* The calling process wanted the name and did not get it. */
void history_refused(int name);

/* Each thread that sends, so that the end is known. */
void history_client_begins(int process);
void history_client_ends(void);
bool history_is_over(void *unused);

void history_check_end(void);

#endif
