/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message that has come in at a local port, by a packet (packet_intake.c) or by a letter (letter_intake.c): its place in the port's
 * budget, its callout, the reply. On the thread that received it; no lock is held while the callout runs.
 */
#ifndef CRL_PORT_INCOMING_H
#define CRL_PORT_INCOMING_H

#include "Support/link_names.h"

#include "Port/message_port.h"
#include "Port/reply.h"

/* One message, from its packet to its reply. In its callout it is where it outlasts the thread's stack, unless there is no memory. */
struct incoming {
    struct incoming *memory; /* that place, from when the call begins, or NULL */
    CFMessagePortRef port; /* in whose callout it is */
    CFDataRef data; /* NULL: there is nothing to run */
    uint64_t accepted; /* bytes that count against the budget */
    struct request request;
    struct letter *letter; /* it came through the inbox; its data and its line are the letter's */
    struct inbox *inbox; /* that one, with a reference */
    void *info; /* what the callout gets */
    struct callee *callee; /* whose that is; NULL: the context's */
    bool is_in_call; /* the callout has begun, as the port counts it */
    bool has_retained; /* the info, by the context's function */
};

/* Counts bytes against the port's budget; false if they are beyond it. P */
bool incoming_reserve(struct local_port *local, uint64_t length);
void incoming_log_over_budget(uint64_t length, pid_t pid);
/* The message's callout has begun, as the port counts it. P */
void incoming_begin(CFMessagePortRef port, struct incoming *message);
/* The call that was begun for the message does not come about. */
void incoming_give_up(CFMessagePortRef port, struct incoming *message);
/* Calls out, and replies. */
void incoming_run(CFMessagePortRef port, struct incoming *message);

#endif
