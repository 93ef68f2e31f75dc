/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way messages that the server keeps, on the machine that sends them.
 *
 * A message is held here until the server confirms that it is stored, and is sent again until then. The server knows it by its id and
 * stores it once. Used by the bridge's thread.
 */
#ifndef CRL_NATS_KEPT_NAME_H
#define CRL_NATS_KEPT_NAME_H

#include "nats_link_names.h"

#include "bridge_link.h"

struct kept_name;

/* `on_progress` is called when a message was confirmed. `machine` may be NULL. Returns NULL if there is no memory. */
struct kept_name *kept_name_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, void (*on_progress)(void *info),
                                   void *info);
void kept_name_destroy(struct kept_name *kept);

/*
 * What the server counts besides the data: the frame's head, and the field with the id at its longest,
 * "NATS/1.0\r\nNats-Msg-Id: SENDER-NUMBER\r\n\r\n" with two numbers of 16 digits.
 */
enum { kept_head_max = bridge_frame_size + 60 };

/* Whether the server can keep messages; and whether there is also room here for one more. */
bool kept_name_is_available(const struct kept_name *kept);
bool kept_name_has_room(const struct kept_name *kept);
/* Returns false if there is no memory. */
bool kept_name_send(struct kept_name *kept, SInt32 message_id, CFDataRef data);
/*
 * Sends all messages that are not confirmed again, in order. For a new connection, over which nothing newer was sent. Messages that are too
 * long for the server are dropped. If the server's streams are not there yet, a tick sends them once they are.
 */
void kept_name_send_again(struct kept_name *kept);
/* Sends the messages again if the first was not confirmed for 2 s. */
void kept_name_tick(struct kept_name *kept, int64_t now_ns);

/* Asks the server to make the streams, unless it has them or was asked. */
void kept_streams_request(struct CRLNatsBridge *bridge);

#endif
