/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing off: a socket that has no descriptor for a new connection, or no memory for new bytes, does not read for an eighth of a second.
 * Connections and bytes stay with the system meanwhile, and the loop does not spin over them (rule 260).
 */
#ifndef CRL_SOCKET_SOCKET_BACKOFF_H
#define CRL_SOCKET_SOCKET_BACKOFF_H

#include "Socket/link_names.h"

#include "Socket/socket_delivery.h"

/* Stops reading, and sets a timer in the modes of the delivery's source that starts it again. The caller publishes the interest. */
void socket_back_off(struct delivery *delivery);

#endif
