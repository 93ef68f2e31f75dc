/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name of other machines that programs reach on this one.
 *
 * As long as another machine is known to export the name, the bridge owns a local port for it, and publishes what comes there, in order.
 * The port takes messages only while few of them wait for the server or for an answer. Used by the bridge's thread.
 */
#ifndef CRL_NATS_IMPORTING_H
#define CRL_NATS_IMPORTING_H

#include "nats_link_names.h"

#include "bridge_link.h"

/* Adds the name to the bridge. `machine` may be NULL. Returns NULL if there is no memory. */
struct imported_name *importing_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, const char *local_name);
void importing_destroy(struct imported_name *imported);

/* The name of the port on this machine. */
const char *importing_local_name(const struct imported_name *imported);
struct imported_name *importing_next(const struct imported_name *imported);

/* The connection is up, perhaps to another server: the other bridges are asked for the name. */
void importing_handle_connected(struct imported_name *imported);
void importing_tick(struct imported_name *imported, int64_t now_ns);

/* An answer to a message of the name. Removes the entry, unless the answer says only that the message is under way. */
void importing_take_answer(struct CRLNatsBridge *bridge, struct pending_answer *pending, const struct bridge_frame *frame);
/* The server reports that nobody has the name. */
void importing_fail_unreachable(struct CRLNatsBridge *bridge, struct pending_answer *pending);
/* Nobody has reported the message to be under way for too long. */
void importing_fail_silent(struct CRLNatsBridge *bridge, struct pending_answer *pending);
/* Lets the port take messages, or stops it, by how much waits at present. */
void importing_update_intake(struct imported_name *imported);

#endif
