/* SPDX-License-Identifier: Apache-2.0 */
/* Accept callbacks: accepts one connection, and hands it to the program (rule 259). On the loop's thread, without a lock. */
#ifndef CRL_SOCKET_SOCKET_ACCEPT_H
#define CRL_SOCKET_SOCKET_ACCEPT_H

#include "Socket/link_names.h"

#include "Socket/socket_delivery.h"

/* Accepts once and calls the program. If there is nothing to accept, or nothing to accept it with, there is no callback. */
void socket_deliver_accept(struct delivery *delivery);

#endif
