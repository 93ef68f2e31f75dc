/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way messages that the server keeps, on the machine that receives them.
 *
 * The server gives each to one of the bridges that export the name, and again after 5 s without a sign. Before a bridge hands a message to
 * the port it claims it: the server stores one claim for a message's id. So nobody hands it over a second time, not even after a crash.
 *
 *   WAITING    eight are begun before it
 *   CLAIMING   the server is asked for the claim
 *   CLAIMED    it can be handed to the port. If the port has gone, those of these three go back to the server
 *   HANDED OVER  until the port's callback has returned. If the receiver died meanwhile, or if another bridge had the claim and has not
 *              acknowledged it, nobody knows: it is given up, and told as in doubt
 *   DONE       the server is told so, as soon as there is a connection
 *
 * Used by the bridge's thread.
 */
#ifndef CRL_NATS_KEPT_DELIVERY_H
#define CRL_NATS_KEPT_DELIVERY_H

#include "nats_link_names.h"

#include "bridge.h"

struct kept_delivery;

/* With a machine, for the messages that are meant for that one. NULL without memory. */
struct kept_delivery *kept_delivery_create(struct CRLNatsBridge *bridge, const char *name, const char *machine);
/* Messages that were not handed over go back to the server. The bridge's sender has ended before. */
void kept_delivery_destroy(struct kept_delivery *delivery);

/* The port is there, or has gone (NULL). */
void kept_delivery_set_port(struct kept_delivery *delivery, CFMessagePortRef port);
/* The connection is new: its server may know nothing of the consumer. */
void kept_delivery_begin_anew(struct kept_delivery *delivery);
void kept_delivery_tick(struct kept_delivery *delivery, int64_t now_ns);

#endif
