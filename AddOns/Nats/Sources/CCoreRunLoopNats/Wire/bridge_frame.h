/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of what bridges send each other through the server, as bytes; docs/wire.md, section 8, describes each.
 *
 * Pure functions: no memory, no state. Decoding any bytes gives either a frame whose fields agree with its type, or the reason why there
 * is none.
 */
#ifndef CRL_NATS_BRIDGE_FRAME_H
#define CRL_NATS_BRIDGE_FRAME_H

#include "nats_link_names.h"

#include <stddef.h>
#include <stdint.h>

enum { bridge_frame_size = 32, bridge_frame_version = 1 };

static const uint32_t bridge_frame_magic = 0x62524C43; /* the bytes 43 4C 52 62, "CLRb" */

enum bridge_frame_type {
    /* to a name */
    bridge_request = 1,
    bridge_one_way = 2,
    bridge_cancel = 3, /* nobody waits any more for the reply to the request of this number */
    /* to the inbox of the sender of the message of this number */
    bridge_reply = 16,
    bridge_failed = 17, /* there is no answer: `detail` is the status, the data a text that says why */
    bridge_working = 18, /* the message is still under way to its receiver */
    bridge_taken = 19, /* the receiver has the one-way message */
    /* about a name */
    bridge_here = 32, /* the sender exports it: the data is its machine's name, the number the time since when, in ns since 1970 */
    bridge_bye = 33, /* the sender does not export it any more; data and number as above */
    bridge_who = 34, /* each bridge that exports it is to announce it */
};

enum bridge_frame_flag {
    bridge_shares = 1, /* of bridge_here: others may export the name, too */
    bridge_at_machine_only = 2, /* of bridge_here: another machine has the name; this one is reached only by its machine's name */
};

struct bridge_frame {
    enum bridge_frame_type type;
    uint16_t flags;
    int32_t message_id;
    uint32_t detail; /* of a request its time limit in milliseconds (0: not known), of bridge_failed the status, else 0 */
    uint64_t sender; /* random and not 0: the bridge that sends, as long as it lives */
    uint64_t number; /* counts the sender's messages, from 1; an answer has the number of the message that it answers */
    const uint8_t *data; /* follows the head; NULL if there is none */
    size_t length;
};

enum bridge_frame_error {
    bridge_frame_ok,
    bridge_frame_short,
    bridge_frame_bad_magic,
    bridge_frame_bad_version,
    bridge_frame_bad_type,
    bridge_frame_bad_flags,
    bridge_frame_bad_fields, /* one that the type has not is not 0, or one that it must have is 0 */
    bridge_frame_bad_data, /* of a length that the type cannot have */
};

/* Writes the head. The caller appends the data. */
void bridge_frame_encode(const struct bridge_frame *frame, uint8_t ret_head[bridge_frame_size]);
/* Whether a receiver would take the frame. */
enum bridge_frame_error bridge_frame_check(const struct bridge_frame *frame);
enum bridge_frame_error bridge_frame_decode(const uint8_t *bytes, size_t size, struct bridge_frame *ret_frame);
const char *bridge_frame_error_text(enum bridge_frame_error error);

#endif
