/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local port, shared by local_port.c (its making, its source, its end), local_name.c (the name) and local_info.c (the context's info).
 */
#ifndef CRL_PORT_LOCAL_PORT_H
#define CRL_PORT_LOCAL_PORT_H

#include "Support/link_names.h"

#include "Port/message_port.h"

/* ---- local_port.c ---- */

/* Gives the port another inbox; the one that it had. P */
struct inbox *local_port_replace_inbox(struct local_port *local, struct inbox *fresh);
/* Closes an inbox that the port no longer has. */
void local_port_close_inbox(struct inbox *inbox);

/* ---- local_name.c ---- */

/* What others read of the port under that name. P, unless nobody else has the port yet. */
struct port_card local_port_card(const struct local_port *local, const struct port_name *name);
/* A new socket, registered under `name` if that is not NULL; or a negative errno. Creation lock. */
int local_port_open_socket(const char *function, const struct local_port *local, const struct port_name *name,
                           struct publication *ret_publication);

/* ---- local_info.c ---- */

/*
 * Of a new port whose context has a `retain`. The program is called without a lock, when others can find the port by its name, and may make
 * it invalid. The making of the port counts as a user of the info, so that it is not released before it was retained.
 */
void local_port_retain_info(CFMessagePortRef port, const CFMessagePortContext *context);

#endif
