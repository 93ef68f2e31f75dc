/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message that a local port has received, as a packet (port_receive.c) or as a local message (local_receive.c): its share of the port's
 * budget, its callout, its reply. All of it happens on the receiving thread. No lock is held while the callout runs.
 */
#ifndef CRL_PORT_MESSAGE_RECEIVED_MESSAGE_H
#define CRL_PORT_MESSAGE_RECEIVED_MESSAGE_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"
#include "Port/Message/reply.h"

/* One message, from its packet to its reply. With memory, it is on the heap during the callout, so that it outlasts a jump. */
struct received_message {
    struct received_message *memory; /* the place on the heap, from the beginning of the call; or NULL */
    CFMessagePortRef port; /* the port whose callout has the message */
    CFDataRef data; /* NULL: there is nothing to run */
    uint64_t accepted; /* bytes that count against the budget */
    struct asker asker;
    struct local_message *local_message; /* not NULL: the message came by the local queue, and `data` belongs to the local message */
    struct local_queue *local_queue; /* the queue of `local_message`, with a reference */
    uint64_t traced; /* the message's number in a trace; 0: no trace was on when it came */
    void *info; /* the callout's argument */
    struct receiver *receiver; /* the owner of `info`; NULL: the port's context */
    uint32_t status; /* of enum wire_status; not 0: the callout's reply is a text that says why there is no answer */
    bool is_in_call; /* the port counts a callout for this message */
    bool has_retained; /* the context's `retain` was called for `info` */
};

/* Counts bytes against the port's budget. Returns false if they exceed it. */
REQUIRES(the_port_lock) bool received_message_reserve(struct local_port *local, uint64_t length);
void received_message_log_over_budget(uint64_t length, pid_t pid);
/* Makes the port count a callout for the message, and takes the info for it. The callout itself comes in received_message_run. */
REQUIRES(the_port_lock) void received_message_begin(CFMessagePortRef port, struct received_message *message);
/* Ends a call that was begun for the message, without a callout. */
void received_message_give_up(CFMessagePortRef port, struct received_message *message);
/* Calls out, replies, and ends the call. */
void received_message_run(CFMessagePortRef port, struct received_message *message);

#endif
