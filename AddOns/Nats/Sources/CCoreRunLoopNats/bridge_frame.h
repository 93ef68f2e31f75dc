/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of what bridges send each other through the server, as bytes; docs/wire.md, section 8, describes each.
 *
 * Pure functions: no memory, no state. Whatever the bytes are, decoding ends with a frame whose fields agree with its type, or with the
 * reason why not.
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
    bridge_cancel = 3, /* nobody waits for the request of this number any more */
    /* to the inbox of whoever sent the message of this number */
    bridge_reply = 16,
    bridge_failed = 17, /* there is no answer: `detail` is the status, the data a text that says why */
    bridge_working = 18, /* the message is still under way to its receiver */
    bridge_taken = 19, /* the receiver has the one-way message */
    /* about a name */
    bridge_here = 32, /* it is exported: the data is the machine's name, the number the time since when, in ns since 1970 */
    bridge_bye = 33, /* it is exported no more by this sender */
    bridge_who = 34, /* who exports it? */
};

enum bridge_frame_flag {
    bridge_shares = 1, /* here: others may export the name, too */
    bridge_at_machine_only = 2, /* here: another one has the name; this one is reached by its machine */
};

struct bridge_frame {
    enum bridge_frame_type type;
    uint16_t flags;
    int32_t message_id;
    uint32_t detail; /* of a request its time limit in milliseconds, or 0: not known; of `failed` the status; else 0 */
    uint64_t sender; /* random, for as long as a bridge lives; not 0 */
    uint64_t number; /* counts what the sender sends, from 1; of what comes back, that of the message that it answers */
    const uint8_t *data; /* behind the head; NULL if there is none */
    size_t length;
};

enum bridge_frame_error {
    bridge_frame_ok,
    bridge_frame_short,
    bridge_frame_bad_magic,
    bridge_frame_bad_version,
    bridge_frame_bad_type,
    bridge_frame_bad_flags,
    bridge_frame_bad_fields, /* one that has no meaning in this type is not zero, or one that must not be is */
    bridge_frame_bad_data, /* there is some, or none, or too much for this type */
};

/* Writes the head; the data is for the caller to append. */
void bridge_frame_encode(const struct bridge_frame *frame, uint8_t ret_head[bridge_frame_size]);
enum bridge_frame_error bridge_frame_decode(const uint8_t *bytes, size_t size, struct bridge_frame *ret_frame);
const char *bridge_frame_error_text(enum bridge_frame_error error);

#endif
