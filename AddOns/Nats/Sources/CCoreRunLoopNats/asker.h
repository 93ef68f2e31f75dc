/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that send a request to an imported name may stop waiting, or die, before there is a reply. */
#ifndef CRL_NATS_ASKER_H
#define CRL_NATS_ASKER_H

#include "nats_link_names.h"

#include "bridge_link.h"

/*
 * Calls `left` on the bridge's thread if the request's sender stops waiting for the reply. It is not called once the entry was removed, or
 * the bridge has ended.
 */
void asker_watch(struct CRLNatsBridge *bridge, const struct pending_answer *pending,
                 void (*left)(struct CRLNatsBridge *bridge, struct pending_answer *pending));

#endif
