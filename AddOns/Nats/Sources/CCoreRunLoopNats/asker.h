/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever asks an imported name may give up, or die, before there is an answer. */
#ifndef CRL_NATS_ASKER_H
#define CRL_NATS_ASKER_H

#include "nats_link_names.h"

#include "bridge.h"

/*
 * Makes `left` be called on the bridge's thread if nobody waits any more for the reply that is awaited. It is not called once that has
 * ended, or the bridge has.
 */
void asker_watch(struct CRLNatsBridge *bridge, const struct awaited *awaited,
                 void (*left)(struct CRLNatsBridge *bridge, struct awaited *awaited));

#endif
