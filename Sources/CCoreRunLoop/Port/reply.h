/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes back to who has asked a local port: the callout's reply, or word that there will be none. It goes by the line of the request,
 * in its page, a packet, the arena or memory of its own (docs/wire.md).
 */
#ifndef CRL_PORT_REPLY_H
#define CRL_PORT_REPLY_H

#include "Support/link_names.h"

#include <stdbool.h>

#include "Port/message_port.h"

/* What a reply has to know of its request. */
struct request {
    uint64_t conversation;
    SInt32 message_id;
    uint32_t sequence;
    struct server_line *line; /* NULL: nobody waits for a reply */
    bool keeps_line;
};

/* Ready to be sent. */
struct reply {
    struct wire_frame frame;
    const void *data; /* in the packet or the page; NULL: none, or elsewhere */
    int memory; /* a descriptor to send after it, or -1 */
};

/* The reply, or NULL for one that is too large (239). */
CFDataRef reply_within_limit(CFDataRef data);

/* Decides how `data`, or none, travels, and puts it there. No lock is held. What `ret_reply` has is to be released. */
void reply_load(const struct request *request, CFDataRef data, struct reply *ret_reply);
void reply_release(const struct reply *reply);

/* Sends it on the request's line, and ends the line's run; a client that does not read has lost its line. P */
void reply_send(struct local_port *local, const struct request *request, const struct reply *reply);

/* Tells who waits that the message was dropped. No lock is held. */
void reply_dropped(CFMessagePortRef port, const struct request *request, enum wire_drop_reason reason);

#endif
