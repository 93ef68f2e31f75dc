/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of Mach-style ports. Any thread; the functions take the table's lock, and no other inside it. */
#ifndef CRL_PORT_MACH_MACH_PORT_TABLE_H
#define CRL_PORT_MACH_MACH_PORT_TABLE_H

#include "Port/link_names.h"

#include "Port/Mach/mach_port.h"

/* Gives `port` a number. False if there is no memory. */
bool mach_port_table_add(CFMachPortRef port, mach_port_t *ret_number);
/* The valid port of a number, with a reference, or NULL. */
CFMachPortRef mach_port_table_find(mach_port_t number);
/* Does nothing if the port is not in the table. */
void mach_port_table_remove(CFMachPortRef port);

#endif
