/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What peers hand to a local port beside messages: reply lines, control lines with their pages, and pages for replies. A packet's
 * descriptors are checked before they are taken out of it. The port's lock is not held by the caller; it is taken over each look at the
 * table.
 */
#ifndef CRL_PORT_LINE_INTAKE_H
#define CRL_PORT_LINE_INTAKE_H

#include "Support/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFMessagePort.h"
#include "Port/line_table.h"
#include "Port/packet.h"

/*
 * Installs a control line and its page, in the place of an old one if there are too many. Where the page cannot be had now, what came is
 * closed, which the client notices. False: it is no line, or no page, and the packet is as it was.
 */
bool line_intake_control(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame);

/* Installs the line that comes with a request, which begins on it; `ret_keeps`: for later ones, too. NULL: what comes is no line. */
struct server_line *line_intake_reply_line(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, bool *ret_keeps);

/*
 * Gives a line its page; one that can have none, for whatever reason, goes on without, and the packet is closed. False: it is no page, or
 * its wait set is none, and the packet is as it was.
 */
bool line_intake_page(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame);

#endif
