/* SPDX-License-Identifier: Apache-2.0 */
/* The message ports of this process by name, and their invalidation in the child of a fork. */
#ifndef CRL_PORT_CORE_PORT_TABLE_H
#define CRL_PORT_CORE_PORT_TABLE_H

#include "Port/link_names.h"

#include "Port/Core/message_port.h"

/* Begin and end a creation: one thread at a time finds or makes a port. The end may call user code. */
void port_table_begin_creation(void);
void port_table_end_creation(void);
/* Returns the valid port of that name, with a reference, or NULL. */
CFMessagePortRef port_table_find(bool is_remote, const struct port_name *name);
void port_table_add(CFMessagePortRef port);
/* Takes the port out of the table, if it is in it. Until then the child of a fork closes the port's descriptors, valid or not. */
void port_table_remove(CFMessagePortRef port);
/* Called before and after a change of a port's name; the port lock is taken between them. They take and drop the table lock. */
void port_table_begin_change(void);
void port_table_end_change(CFMessagePortRef port);
/*
 * Registers again the ports that others can no longer find, because their files are gone. The port called `name`, which may be NULL, is
 * registered at once, and all ports are if the directory is gone. Otherwise, if there are many ports, the rest follows within some
 * creations. Called between the beginning and the end of a creation.
 */
void port_table_republish(const struct port_name *name);

#endif
