/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way messages that the server keeps, on the machine that receives them.
 *
 * The server delivers each message to one of the bridges that export the name, and again after 5 s without an acknowledgement. Before a
 * bridge hands a message to the port it claims it: the server stores one claim for a message's id. So no bridge hands it over a second
 * time, not even after a crash.
 *
 *   state        what it means                                      what follows
 *   waiting      at most eight messages are begun at a time         claiming
 *   claiming     the server is asked to store the claim             claimed; or done, in doubt, if another bridge has the claim
 *   claimed      it can be handed to the port                       handed over
 *   handed over  the port's callback has not returned yet           done; done, in doubt, if the receiver died; claimed, if it got nothing
 *   done         the server is told once there is a connection      the message is freed
 *
 * If the port goes, messages that wait or are claimed go back to the server, and are freed. "In doubt" means that nobody knows whether the
 * receiver has handled the message: it is given up, and the program is told. Used by the bridge's thread.
 */
#ifndef CRL_NATS_KEPT_DELIVERY_H
#define CRL_NATS_KEPT_DELIVERY_H

#include "nats_link_names.h"

#include "bridge_link.h"

struct kept_delivery;

/* With a machine, for the messages that are sent to that machine only. Returns NULL if there is no memory. */
struct kept_delivery *kept_delivery_create(struct CRLNatsBridge *bridge, const char *name, const char *machine);
/* Messages that were not handed over go back to the server. The bridge's message sender has ended before. */
void kept_delivery_destroy(struct kept_delivery *delivery);

/* The name's port here, or NULL: it has gone. The caller has the reference. */
void kept_delivery_set_port(struct kept_delivery *delivery, CFMessagePortRef port);
/* The connection is up, perhaps to a server that does not have the consumer. */
void kept_delivery_handle_connected(struct kept_delivery *delivery);
void kept_delivery_tick(struct kept_delivery *delivery, int64_t now_ns);

#endif
