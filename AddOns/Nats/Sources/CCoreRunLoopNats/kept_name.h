/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-way messages that the server keeps, on the machine that sends them.
 *
 * A message is held here until the server has confirmed that it is stored, and is sent again until then; the server knows it by its id and
 * stores it once. Used by the bridge's thread.
 */
#ifndef CRL_NATS_KEPT_NAME_H
#define CRL_NATS_KEPT_NAME_H

#include "nats_link_names.h"

#include "bridge.h"

struct kept_name;

/* `has_moved` is called when a message was confirmed, or the stream is there. `machine` may be NULL. NULL without memory. */
struct kept_name *kept_name_create(struct CRLNatsBridge *bridge, const char *name, const char *machine, void (*has_moved)(void *info),
                                   void *info);
void kept_name_destroy(struct kept_name *kept);

/*
 * What the server counts beside the data: the frame's head, and the field with the id at its longest,
 * "NATS/1.0\r\nNats-Msg-Id: SENDER-NUMBER\r\n\r\n" with two numbers of 16 digits.
 */
enum { kept_head_max = bridge_frame_size + 60 };

/* Whether the server can keep messages, and there is room here for one more. */
bool kept_name_is_there(const struct kept_name *kept);
bool kept_name_has_room(const struct kept_name *kept);
/* Returns false if there is no memory. */
bool kept_name_send(struct kept_name *kept, SInt32 message_id, CFDataRef data);
/*
 * Sends all that was not confirmed again, in its order: the connection is new, and nothing newer was sent by it. What is too long for this
 * server is dropped. Without the server's streams a tick does it once they are there.
 */
void kept_name_send_again(struct kept_name *kept);
/* Does so after a while in any case. */
void kept_name_tick(struct kept_name *kept, int64_t now_ns);

/* Makes the streams, if they are not there yet. */
void kept_streams_make(struct CRLNatsBridge *bridge);

#endif
