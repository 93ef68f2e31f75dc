/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery: the events that one perform of a socket's source has claimed, and what its callouts use.
 *
 * A delivery belongs to the thread of the loop that performs the source. An event is spent from the moment it is claimed. Neither a nested
 * run nor another loop then delivers it a second time (rule 276).
 *
 *   socket_claim -> delivery_keep -> callouts, each followed by delivery_end_callout -> delivery_end
 */
#ifndef CRL_SOCKET_SOCKET_DELIVERY_H
#define CRL_SOCKET_SOCKET_DELIVERY_H

#include "Socket/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "Socket/socket.h"

/*
 * Stands in memory that outlives the thread's stack, for the case that a callback does not return. Only if there is no memory does it stay
 * on the stack.
 */
struct delivery {
    struct delivery *memory; /* this delivery, if it is in memory of its own; NULL: on the stack */
    CFSocketRef s; /* a reference, from delivery_keep on */
    CFRunLoopSourceRef source;
    int native; /* the descriptor when the events were claimed; only a user of the descriptor (socket.h) may use it */
    uint32_t ready; /* of enum kernel_readiness */
    uint32_t events; /* claimed */
    uint32_t unused; /* claimed, but there was nothing to deliver: no longer spent afterwards */
    bool takes_error; /* asks for the pending error, which makes the kernel forget it */
    bool ends; /* the end of the data is being delivered: the socket is invalidated after the callout */
    bool has_retained; /* the context's `retain` was called for the info */
    void *info;
    CFDataRef address; /* for the callout that is under way; released by delivery_end_callout */
    CFDataRef data; /* likewise */
};

struct run;

/*
 * Claims the events that are both ready and wanted. Returns the delivery, in the socket's spare memory or else in `on_stack`; NULL if there
 * is nothing to deliver. The interest changes; the caller publishes it.
 */
EXCLUDES(the_item_lock)
struct delivery *socket_claim(CFSocketRef s, CFRunLoopSourceRef source, struct run *run, uint32_t ready, struct delivery *on_stack);

/* Retains the socket, and moves a delivery off the stack if there is memory. Returns the delivery to go on with. */
struct delivery *delivery_keep(struct delivery *claimed);

/* Retains the info for the callouts (rule 275), if the context has a function for it. */
void delivery_retain_info(struct delivery *delivery);

/* Calls the program. `type` is a kind whose event was claimed. */
void delivery_call(struct delivery *delivery, CFSocketCallBackType type, CFDataRef address, const void *data);

/* The callout is over, or does not return: releases what was made for it. */
void delivery_end_callout(struct delivery *delivery);

/* All callouts are over, or one does not return: a clean-up (callout_cleanup.h). Releases the socket. */
void delivery_end(const void *delivery);

#endif
