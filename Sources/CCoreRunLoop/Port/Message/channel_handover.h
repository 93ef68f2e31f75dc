/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes over the objects that peers hand to a local port beside messages: reply channels, control channels with their pages, and pages for
 * replies. A packet's descriptors are checked before they are taken out of it. The caller does not hold the port's lock. Each function
 * takes it for each look at the table.
 */
#ifndef CRL_PORT_MESSAGE_CHANNEL_HANDOVER_H
#define CRL_PORT_MESSAGE_CHANNEL_HANDOVER_H

#include "Port/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFMessagePort.h"
#include "Port/Channel/channel_table.h"
#include "Port/Wire/packet.h"

/*
 * Installs a control channel and its page, and drops an old one if there are too many. If the page cannot be mapped now, closes the
 * packet's descriptors, which the client notices. Returns 0. Returns -EINVAL if the packet brings no channel or no page, or -ENOMEM if
 * there is no memory for the channel; the packet is unchanged then.
 */
int channel_handover_control(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame);

/*
 * Installs the channel that comes with a request, and begins the request on it. `ret_keeps` is true if later requests may use the channel,
 * too. Returns 0. Returns -EINVAL if the descriptor is no channel, or -ENOMEM; `*ret_channel` is NULL and the packet is unchanged then.
 */
int channel_handover_reply_channel(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame,
                                   struct server_channel **ret_channel, bool *ret_keeps);

/*
 * Gives a channel its page, and closes the packet. A channel that can have no page now, for whatever reason, goes on without one. Returns
 * false if the packet brings no page or no wait set; the packet is unchanged then.
 */
bool channel_handover_page(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame);

#endif
