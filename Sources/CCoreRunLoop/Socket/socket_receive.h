/* SPDX-License-Identifier: Apache-2.0 */
/* Data callbacks: receives what has come, and hands it to the program (rules 256 and 257). On the loop's thread, without a lock. */
#ifndef CRL_SOCKET_SOCKET_RECEIVE_H
#define CRL_SOCKET_SOCKET_RECEIVE_H

#include "Socket/link_names.h"

#include "Socket/socket_delivery.h"

/* Receives once and calls the program. At the end of a connection the callback gets no bytes, and the socket is invalidated after it. */
void socket_deliver_data(struct delivery *delivery);

#endif
