/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name of other machines that programs reach on this one.
 *
 * As long as another machine is known to export the name, the bridge owns a local port for it. What comes there is published, in order.
 * Used by the bridge's thread.
 */
#ifndef CRL_NATS_IMPORTING_H
#define CRL_NATS_IMPORTING_H

#include "nats_link_names.h"

#include "bridge.h"

/* `machine` may be NULL. Returns NULL if there is no memory. */
struct imported_name *importing_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, const char *local_name);
void importing_destroy(struct imported_name *imported);

/* The name of the port on this machine. */
const char *importing_local_name(const struct imported_name *imported);
struct imported_name *importing_next(const struct imported_name *imported);

/* The connection is there again: the others are asked who exports the name. */
void importing_ask_who(struct imported_name *imported);
void importing_tick(struct imported_name *imported, int64_t now_ns);

/* What has come back for a message that was sent. Ends it unless it is only under way. */
void importing_take_answer(struct CRLNatsBridge *bridge, struct awaited *awaited, const struct bridge_frame *frame);
/* Nobody has the name: the server says so. */
void importing_take_nobody(struct CRLNatsBridge *bridge, struct awaited *awaited);
/* Nobody has given a sign of it for too long. */
void importing_take_silence(struct CRLNatsBridge *bridge, struct awaited *awaited);
/* Whether the port takes messages depends on how much waits. */
void importing_let_in(struct imported_name *imported);

#endif
