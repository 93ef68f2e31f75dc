/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request that a local port has taken: the callout's reply, or a frame that says that there will be none. The answer goes
 * by the request's channel: in its page, a packet, the arena or a memory file (docs/wire.md).
 */
#ifndef CRL_PORT_MESSAGE_REPLY_H
#define CRL_PORT_MESSAGE_REPLY_H

#include "Port/link_names.h"

#include <stdbool.h>

#include "Port/Core/message_port.h"

/* The origin of a request, for its reply. */
struct asker {
    uint64_t conversation;
    SInt32 message_id;
    uint32_t sequence;
    struct server_channel *channel; /* NULL: nobody waits for a reply */
    bool has_left; /* the message is a request, but its channel is gone */
    bool keeps_channel;
    pid_t process; /* the sender's, as the kernel says; 0: not known */
    bool wants_status; /* the request says WANT_STATUS */
    int64_t deadline_ns; /* the instant after which the client waits no more; 0: not known, or never */
};

/* An answer, ready to be sent. */
struct reply {
    struct wire_frame frame;
    const void *data; /* travels in the packet or the page; NULL: no data, or it travels in the arena or in `memory` */
    int memory; /* the memory file to send after the frame, or -1 */
};

/* Returns `data`, or NULL if it is longer than a message may be: such a reply becomes an empty one (rule 239). */
CFDataRef reply_within_limit(CFDataRef data);

/*
 * Decides how the reply travels, and puts its bytes there. `data` may be NULL. With a status, of enum wire_status, it is a text that says
 * why there is no answer. An asker that does not understand statuses gets an empty reply then, or if the handler has failed, a frame that
 * says that the message was dropped. No lock is held. The caller calls reply_release later.
 */
void reply_load(const struct asker *asker, uint32_t status, CFDataRef data, struct reply *ret_reply);
void reply_release(const struct reply *reply);

/* Sends the reply on the request's channel, and ends the request there. A client that does not read loses the channel. */
REQUIRES(the_port_lock) void reply_send(struct local_port *local, const struct asker *asker, const struct reply *reply);

/* Answers a local message by the same rules, and ends it. No lock is held. */
void reply_by_local_queue(struct local_queue *local_queue, struct local_message *local_message, uint32_t status, CFDataRef data);

/* Tells a sender that waits for the reply that its message was dropped. No lock is held. */
void reply_dropped(CFMessagePortRef port, const struct asker *asker, enum wire_drop_reason reason);

#endif
