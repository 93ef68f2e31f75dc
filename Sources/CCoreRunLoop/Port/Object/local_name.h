/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a local port that belong to its name: the socket, its registration, and the local queue.
 */
#ifndef CRL_PORT_OBJECT_LOCAL_NAME_H
#define CRL_PORT_OBJECT_LOCAL_NAME_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

/* Gives the port another local queue. Returns the old one. */
REQUIRES(the_port_lock) struct local_queue *local_port_replace_local_queue(struct local_port *local, struct local_queue *fresh);
/* Closes a local queue that was taken from the port. */
void local_port_close_queue(struct local_queue *local_queue);

/* Returns the card that other processes read under that name. The port lock is held, unless nobody else has the port yet. */
struct port_card local_port_card(const struct local_port *local, const struct port_name *name);
/* Makes a new socket, registered under `name` if that is not NULL. Returns it or a negative errno. The creation lock is held. */
int local_port_open_socket(const char *function, const struct local_port *local, const struct port_name *name,
                           struct publication *ret_publication);
/* Gives the port another name. Returns false if a port of this or another process has that name. */
bool local_port_rename(CFMessagePortRef port, const struct port_name *name);
/* Registers the name again after its files were removed. The creation lock is held. */
void local_port_republish(CFMessagePortRef port);

#endif
