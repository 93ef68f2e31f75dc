/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name that other machines reach on this one.
 *
 * As long as a local port has the name, the bridge subscribes to the name's subjects, says every second that it is here, and passes on what
 * comes, in order. Used by the bridge's thread.
 */
#ifndef CRL_NATS_EXPORTING_H
#define CRL_NATS_EXPORTING_H

#include "nats_link_names.h"

#include "bridge.h"

/* Returns NULL if there is no memory. It begins with the first tick. */
struct exported_name *exporting_create(struct CRLNatsBridge *bridge, const char *name, bool shares);
/* The bridge's sender has ended before. */
void exporting_destroy(struct exported_name *exported);

const char *exporting_name(const struct exported_name *exported);
struct exported_name *exporting_next(const struct exported_name *exported);

/* The connection is new. A tick has to follow. */
void exporting_begin_anew(struct exported_name *exported);
/* Looks after the port and the messages under way; with `says_here` the others are told that the name is here. */
void exporting_tick(struct exported_name *exported, int64_t now_ns, bool says_here);

#endif
