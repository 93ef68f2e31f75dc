/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two addresses to try first: RFC 6724, 6, of an IPv4 and an IPv6 address. No state, no locks. */
#ifndef CRL_NET_ADDRESS_ORDER_H
#define CRL_NET_ADDRESS_ORDER_H

#include "net_link_names.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Whether the first one is better than the other. Asks the kernel for the ways to both; nothing is sent. */
bool address_is_preferred(const struct sockaddr *address, const struct sockaddr *other);

#endif
