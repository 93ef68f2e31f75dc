/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name that other machines reach on this one.
 *
 * As long as a local port has the name, the bridge subscribes to the name's subjects, announces the name every second, and hands what comes
 * to the port, in order. Used by the bridge's thread.
 *
 * Several machines may export a name. If not all of them share it, the one that exported it first has it. The others give up its common
 * subject, and are reached only by their machine's name, until they hear no more of the first.
 */
#ifndef CRL_NATS_EXPORTING_H
#define CRL_NATS_EXPORTING_H

#include "nats_link_names.h"

#include "bridge_link.h"

/* Adds the name to the bridge. Returns NULL if there is no memory. The first tick looks for the port. */
struct exported_name *exporting_create(struct CRLNatsBridge *bridge, const char *name, bool shares);
/* The bridge's message sender has ended before. */
void exporting_destroy(struct exported_name *exported);

const char *exporting_name(const struct exported_name *exported);
struct exported_name *exporting_next(const struct exported_name *exported);

/* The connection is up, perhaps to another server. A tick has to follow. */
void exporting_handle_connected(struct exported_name *exported);
/* Looks for the port, or whether it has gone, and reports messages that are under way. With `announces` the name is announced. */
void exporting_tick(struct exported_name *exported, int64_t now_ns, bool announces);

#endif
