/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that a program gives a bridge: they are checked, and what is wrong is a line on standard error. */
#ifndef CRL_NATS_CONFIGURATION_H
#define CRL_NATS_CONFIGURATION_H

#include "nats_link_names.h"

#include "bridge.h"

/* Gives the bridge its machine's name and its connection, which begins to connect. Returns false if one of them cannot be. */
bool configuration_follow(struct CRLNatsBridge *bridge, const CRLNatsConfiguration *configuration, connection_told told);

#endif
