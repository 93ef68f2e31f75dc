/* SPDX-License-Identifier: Apache-2.0 */
/* Receives messages from a local port's socket. */
#ifndef CRL_PORT_MESSAGE_PORT_RECEIVE_H
#define CRL_PORT_MESSAGE_PORT_RECEIVE_H

#include "Port/link_names.h"

#include "CoreFoundation/CFMessagePort.h"

/*
 * Takes packets until one has led to a callout, none is left, or 64 were taken. The caller has a reference to the port, which may end
 * meanwhile.
 */
void local_port_receive(CFMessagePortRef port);

#endif
