/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding; see wire.h. Little endian whatever the machine. */
#include "Port/Wire/wire.h"

#include <endian.h>
#include <string.h>

/* Where the fields stand. */
enum wire_offset {
    at_magic = 0,
    at_version = 4,
    at_type = 5,
    at_flags = 6,
    at_message_id = 8,
    at_channel = 12,
    at_token = 16,
    at_conversation = 24,
    at_length = 32,
    at_extra = 40,
    at_sequence = 48,
    at_name_length = 52,
    at_reserved_16 = 54,
    at_deadline = 56,
};

/* Writes 1, 2, 4 or 8 bytes. A copy of known size is one instruction. */
static inline void put_little(uint8_t *bytes, uint64_t value, size_t size)
{
    uint64_t little = htole64(value);

    memcpy(bytes, &little, size); /* the lowest bytes come first */
}

static inline uint64_t get_little(const uint8_t *bytes, size_t size)
{
    uint64_t little = 0;

    memcpy(&little, bytes, size);
    return le64toh(little);
}

void wire_encode(const struct wire_frame *frame, uint8_t ret_header[wire_header_size])
{
    put_little(ret_header + at_magic, wire_magic, 4);
    put_little(ret_header + at_version, wire_version, 1);
    put_little(ret_header + at_type, (uint64_t)frame->type, 1);
    put_little(ret_header + at_flags, frame->flags, 2);
    put_little(ret_header + at_message_id, (uint32_t)frame->message_id, 4);
    put_little(ret_header + at_channel, frame->channel, 4);
    put_little(ret_header + at_token, frame->token, 8);
    put_little(ret_header + at_conversation, frame->conversation, 8);
    put_little(ret_header + at_length, frame->length, 8);
    put_little(ret_header + at_extra, frame->extra, 8);
    put_little(ret_header + at_sequence, frame->sequence, 4);
    put_little(ret_header + at_name_length, frame->name_length, 2);
    put_little(ret_header + at_reserved_16, 0, 2);
    put_little(ret_header + at_deadline, frame->deadline_ns, 8);
}

/* ---- names ---- */

/* The number of bytes of the UTF-8 character at `bytes`, or 0. */
static size_t character_size(const uint8_t *bytes, size_t left)
{
    uint8_t first = bytes[0];
    size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;

    if (size == 0 || size > left || first == 0) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xE0 && bytes[1] < 0xA0) || (first == 0xED && bytes[1] > 0x9F) || (first == 0xF0 && bytes[1] < 0x90) ||
        (first == 0xF4 && bytes[1] > 0x8F)) {
        return 0;
    }
    return size;
}

bool wire_name_is_valid(const char *name, size_t length)
{
    const uint8_t *bytes = (const uint8_t *)name;
    size_t place = 0;

    if (length == 0 || length > wire_name_max) {
        return false;
    }
    while (place < length) {
        size_t size = character_size(bytes + place, length - place);

        if (size == 0) {
            return false;
        }
        place += size;
    }
    return true;
}

/* ---- what each type may hold ---- */

struct wire_shape {
    uint16_t flags; /* that may be set */
    uint8_t route; /* 1 + enum wire_route; 0: there is no such type */
    bool has_data; /* length is the data's */
    bool names_channel; /* channel and token must not be zero */
    bool has_conversation;
    bool has_extra;
    bool has_message_id;
};

enum {
    data_flags = wire_no_data | wire_in_arena | wire_in_memory,
    request_flags = data_flags | wire_want_ack | wire_new_channel | wire_new_arena | wire_want_status,
    one_way_flags = wire_no_data | wire_in_memory | wire_want_ack,
    reply_flags = data_flags | wire_kept | wire_no_arena | wire_has_status,
    to_port = 1 + wire_to_port,
    to_client = 1 + wire_to_client,
};

/* By type. */
static const struct wire_shape shapes[] = {
    [wire_request] = {request_flags, to_port, true, true, true, true, true},
    [wire_one_way] = {one_way_flags, to_port, true, false, false, true, true},
    [wire_control] = {wire_new_channel, to_port, false, true, false, false, false},
    [wire_page] = {0, to_port, false, true, false, false, false},
    [wire_reply] = {reply_flags, to_client, true, false, true, false, true},
    [wire_ack] = {0, to_client, false, false, false, false, false},
    [wire_dropped] = {wire_kept, to_client, false, false, true, true, false},
    [wire_descriptor] = {0, to_client, false, false, true, false, false},
};

/* Returns NULL if the type is unknown, or not meant for this direction. */
static const struct wire_shape *shape_of(enum wire_route route, uint8_t type)
{
    bool is_known = type < sizeof shapes / sizeof shapes[0] && shapes[type].route == 1 + (uint8_t)route;

    return is_known ? &shapes[type] : NULL;
}

static bool flags_agree(const struct wire_frame *frame, const struct wire_shape *shape)
{
    uint16_t places = frame->flags & (wire_in_arena | wire_in_memory | wire_no_data);

    if (frame->flags & ~shape->flags) {
        return false;
    }
    if (places & (places - 1)) {
        return false; /* data is in one place */
    }
    if (frame->type == wire_control && !(frame->flags & wire_new_channel)) {
        return false;
    }
    /* Two descriptors at most: a channel's end, and one of arena and memory. */
    return !((frame->flags & wire_new_arena) && (frame->flags & wire_in_memory));
}

static bool fields_agree(const struct wire_frame *frame, const struct wire_shape *shape)
{
    bool names_channel = frame->channel != 0 && frame->token != 0;
    bool names_none = frame->channel == 0 && frame->token == 0;
    bool has_reason = shape->has_extra || (frame->flags & wire_has_status);

    return (shape->names_channel ? names_channel : names_none) && (shape->has_conversation == (frame->conversation != 0)) &&
           (has_reason || frame->extra == 0) && (!(frame->flags & wire_has_status) || frame->extra != 0) &&
           (shape->has_message_id || frame->message_id == 0) && frame->deadline_ns <= INT64_MAX;
}

static enum wire_error take_name(const uint8_t *packet, size_t size, struct wire_frame *frame)
{
    bool wants_name = (frame->flags & wire_new_channel) != 0;

    if ((frame->name_length != 0) != wants_name || frame->name_length > wire_name_max) {
        return wire_error_name;
    }
    if (size < wire_header_size + (size_t)frame->name_length) {
        return wire_error_name;
    }
    frame->name = (const char *)packet + wire_header_size;
    return !wants_name || wire_name_is_valid(frame->name, frame->name_length) ? wire_ok : wire_error_name;
}

static enum wire_error take_data(const uint8_t *packet, size_t size, const struct wire_shape *shape, struct wire_frame *frame)
{
    size_t before = wire_header_size + (size_t)frame->name_length;
    size_t in_packet = size - before;

    frame->data = NULL;
    if (!shape->has_data) {
        bool length_fits = frame->type == wire_ack ? frame->length <= UINT32_MAX : frame->length == 0;

        return in_packet == 0 && length_fits ? wire_ok : wire_error_length;
    }
    if (frame->length > wire_payload_max || ((frame->flags & wire_no_data) && frame->length != 0)) {
        return wire_error_length;
    }
    if (frame->flags & (wire_in_arena | wire_in_memory)) {
        return in_packet == 0 ? wire_ok : wire_error_length;
    }
    if (in_packet > wire_inline_max || frame->length != in_packet) {
        return wire_error_length;
    }
    frame->data = packet + before;
    return wire_ok;
}

enum wire_error wire_decode(enum wire_route route, const uint8_t *packet, size_t size, struct wire_frame *ret_frame)
{
    const struct wire_shape *shape;
    enum wire_error error;

    if (size < wire_header_size) {
        return wire_error_short;
    }
    if (get_little(packet + at_magic, 4) != wire_magic) {
        return wire_error_magic;
    }
    if (get_little(packet + at_version, 1) != wire_version) {
        return wire_error_version;
    }
    *ret_frame = (struct wire_frame){
        .type = (enum wire_type)get_little(packet + at_type, 1),
        .flags = (uint16_t)get_little(packet + at_flags, 2),
        .message_id = (int32_t)(uint32_t)get_little(packet + at_message_id, 4),
        .channel = (uint32_t)get_little(packet + at_channel, 4),
        .token = get_little(packet + at_token, 8),
        .conversation = get_little(packet + at_conversation, 8),
        .length = get_little(packet + at_length, 8),
        .extra = get_little(packet + at_extra, 8),
        .deadline_ns = get_little(packet + at_deadline, 8),
        .sequence = (uint32_t)get_little(packet + at_sequence, 4),
        .name_length = (uint16_t)get_little(packet + at_name_length, 2),
    };
    shape = shape_of(route, packet[at_type]);
    if (!shape) {
        return wire_error_type;
    }
    if (!flags_agree(ret_frame, shape)) {
        return wire_error_flags;
    }
    if (get_little(packet + at_reserved_16, 2) != 0 || (ret_frame->deadline_ns != 0 && !(ret_frame->flags & wire_want_status))) {
        return wire_error_reserved;
    }
    error = take_name(packet, size, ret_frame);
    if (error == wire_ok) {
        error = take_data(packet, size, shape, ret_frame);
    }
    return error != wire_ok ? error : fields_agree(ret_frame, shape) ? wire_ok : wire_error_fields;
}

int wire_descriptor_count(const struct wire_frame *frame)
{
    int count = frame->type == wire_descriptor || frame->type == wire_control ? 1 : frame->type == wire_page ? 2 : 0;

    count += frame->flags & wire_new_channel ? 1 : 0;
    count += frame->flags & wire_new_arena ? 1 : 0;
    /* A reply only announces its memory file, which comes in a packet of its own. So replies bring no descriptors, and recv reads them. */
    count += (frame->flags & wire_in_memory) && frame->type != wire_reply ? 1 : 0;
    return count;
}

const char *wire_error_text(enum wire_error error)
{
    static const char *const texts[wire_error_count] = {
        [wire_ok] = "nothing is wrong",
        [wire_error_short] = "it is shorter than a header",
        [wire_error_magic] = "it is not a frame of this protocol",
        [wire_error_version] = "it is of another version",
        [wire_error_type] = "its type is unknown or does not belong here",
        [wire_error_flags] = "its flags contradict its type or each other",
        [wire_error_reserved] = "its reserved bytes are not zero",
        [wire_error_name] = "its name is missing, not wanted or not a name",
        [wire_error_length] = "its length disagrees with its size",
        [wire_error_fields] = "a field holds what its type does not allow",
    };

    return error < wire_error_count ? texts[error] : "it is malformed";
}
