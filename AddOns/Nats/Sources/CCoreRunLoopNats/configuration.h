/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and applies the settings that a program gives a bridge. A wrong one is told by a line on standard error. */
#ifndef CRL_NATS_CONFIGURATION_H
#define CRL_NATS_CONFIGURATION_H

#include "nats_link_names.h"

#include "bridge_link.h"

/* Gives the bridge its machine's name and its connection, which begins to connect. Returns false if the settings cannot be followed. */
bool configuration_apply(struct CRLNatsBridge *bridge, const CRLNatsConfiguration *configuration, nats_connection_callback callback);

#endif
