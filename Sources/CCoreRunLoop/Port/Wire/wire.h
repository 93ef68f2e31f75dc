/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes and decodes the frames of message ports. docs/wire.md describes every byte, and how a receiver treats frames that it refuses.
 *
 * Pure functions: no descriptors, no loop, no state, no allocation. Whatever the bytes are, decoding ends with a frame whose numbers agree
 * with one another and with the size of the packet, or with the reason why not.
 */
#ifndef CRL_PORT_WIRE_WIRE_H
#define CRL_PORT_WIRE_WIRE_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_limits {
    wire_version = 1,
    wire_header_size = 64,
    wire_name_max = 128, /* bytes of UTF-8 */
    wire_inline_max = 65536, /* bytes of data in the packet itself */
    wire_frame_max = wire_header_size + wire_name_max + wire_inline_max,
    wire_descriptors_max = 2,
};

static const uint32_t wire_magic = 0x70524C43; /* the bytes 43 4C 52 70, "CLRp" */
static const uint64_t wire_payload_max = 0x60000000; /* bytes of data in any form */

enum wire_type {
    /* to a port's socket */
    wire_request = 1,
    wire_one_way = 2,
    wire_control = 3, /* hands over a control channel and its page for acknowledgements (ack_page.h), or a watch channel */
    wire_page = 4, /* hands over a reply page, and the wait set that its bell is for (reply_page.h) */
    /* on channels */
    wire_reply = 16,
    wire_ack = 17,
    wire_dropped = 18,
    wire_descriptor = 19, /* carries the memory that the reply before it announced */
};

/* The channel's number in a wire_control frame. A receiver takes any other number, but 0, for the first. */
enum wire_control_purpose { wire_control_wakes = 1, wire_control_watches = 2 };

enum wire_flag {
    wire_no_data = 1, /* there is no data; senders set it whenever the length is 0 */
    wire_in_arena = 2,
    wire_in_memory = 4, /* in a memory file that comes with the packet */
    wire_kept = 8, /* reply: the channel stays open for the next request */
    wire_want_ack = 16,
    wire_new_channel = 32, /* a descriptor: the server's end of a reply channel */
    wire_new_arena = 64, /* a descriptor: the channel's arena */
    wire_no_arena = 128, /* reply: the server takes no arena on this channel */
    wire_want_status = 256, /* request: the client understands statuses; the frame has a deadline */
    wire_has_status = 512, /* reply: the request was not answered, and `extra` says why */
};

/* Why a request was dropped; stands in `extra` of a wire_dropped frame. */
enum wire_drop_reason {
    wire_drop_malformed = 1,
    wire_drop_budget = 2,
    wire_drop_memory = 3, /* no memory or descriptor, the reply could not be sent, or the callback did not return */
};

/* Why a request has no answer; stands in `extra` of a wire_reply frame with wire_has_status. */
enum wire_status {
    wire_answered = 0, /* never sent */
    wire_unhandled = 1, /* nobody handles messages of this number */
    wire_malformed = 2, /* the handler cannot read the request */
    wire_failed = 3, /* the handler has failed; the data is its text */
};

/* What the owner of a port understands beyond version 1, as bits of a number on its card (docs/wire.md, section 7). */
enum wire_feature { wire_takes_status = 1 };

enum wire_route { wire_to_port, wire_to_client };

/* At most 80 bytes: gcc clears a larger structure by an instruction that takes as long as the rest of making one. */
struct wire_frame {
    enum wire_type type;
    uint16_t flags;
    uint16_t name_length;
    int32_t message_id; /* of a reply: the request's, negated */
    uint32_t channel; /* the reply channel's number */
    uint64_t token; /* the channel's secret */
    uint64_t conversation;
    uint64_t length; /* bytes of data, wherever they are; of a wire_ack: the queue's limit in messages */
    uint64_t extra; /* to a port: the token of the sender's control channel, or 0; to the client: the reason or the status, or 0 */
    uint64_t deadline_ns; /* with wire_want_status: the instant after which the client waits no more, or 0; at most INT64_MAX */
    uint32_t sequence; /* counts the sender's requests and one-way messages on its socket; to the client: that of the frame it answers */
    const char *name; /* in the packet; not terminated */
    const uint8_t *data; /* in the packet; NULL when it is elsewhere */
};

enum wire_error {
    wire_ok,
    wire_error_short, /* less than a header */
    wire_error_magic,
    wire_error_version,
    wire_error_type, /* unknown, or not meant for this direction */
    wire_error_flags, /* unknown, or not for this type, or excluding each other */
    wire_error_reserved,
    wire_error_name, /* too long, missing, not wanted, not UTF-8, or with a zero */
    wire_error_length, /* disagrees with the packet's size, or above a limit */
    wire_error_fields, /* a field that has no meaning in this type is not zero, or one that must not be is */
    wire_error_count
};

/* Writes the header of `frame`; the name and the data are for the caller to append. */
void wire_encode(const struct wire_frame *frame, uint8_t ret_header[wire_header_size]);

enum wire_error wire_decode(enum wire_route route, const uint8_t *packet, size_t size, struct wire_frame *ret_frame);

/* Returns how many descriptors come with a frame that was decoded. */
int wire_descriptor_count(const struct wire_frame *frame);

/* Returns the error as a text for logs. */
const char *wire_error_text(enum wire_error error);

/* Returns true if the bytes are a name: UTF-8 without zeros, 1 to wire_name_max bytes. */
bool wire_name_is_valid(const char *name, size_t length);

#endif
