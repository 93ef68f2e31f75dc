/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of the bridges' messages as bytes; see bridge_frame.h. */
#include "Wire/bridge_frame.h"

#include <stdbool.h>

#include "Support/invariant.h"
#include "Wire/subject.h"

static void put_integer(uint8_t *bytes, int count, uint64_t value)
{
    for (int i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_integer(const uint8_t *bytes, int count)
{
    uint64_t value = 0;

    for (int i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

void bridge_frame_encode(const struct bridge_frame *frame, uint8_t ret_head[bridge_frame_size])
{
    put_integer(ret_head, 4, bridge_frame_magic);
    ret_head[4] = bridge_frame_version;
    ret_head[5] = (uint8_t)frame->type;
    put_integer(ret_head + 6, 2, frame->flags);
    put_integer(ret_head + 8, 4, (uint32_t)frame->message_id);
    put_integer(ret_head + 12, 4, frame->detail);
    put_integer(ret_head + 16, 8, frame->sender);
    put_integer(ret_head + 24, 8, frame->number);
}

/* Which fields a type may have. */
struct type_terms {
    uint16_t flags;
    bool has_id;
    bool has_detail;
    bool has_number; /* if so, it must not be 0; otherwise it must be */
    size_t data_min;
    size_t data_max;
};

static bool find_type_terms(enum bridge_frame_type type, struct type_terms *ret_terms)
{
    switch (type) {
    case bridge_request:
        *ret_terms = (struct type_terms){.has_id = true, .has_detail = true, .has_number = true, .data_max = SIZE_MAX};
        return true;
    case bridge_one_way:
        *ret_terms = (struct type_terms){.has_id = true, .has_number = true, .data_max = SIZE_MAX};
        return true;
    case bridge_reply:
        *ret_terms = (struct type_terms){.has_number = true, .data_max = SIZE_MAX};
        return true;
    case bridge_failed:
        *ret_terms = (struct type_terms){.has_detail = true, .has_number = true, .data_max = SIZE_MAX};
        return true;
    case bridge_cancel:
    case bridge_working:
    case bridge_taken:
        *ret_terms = (struct type_terms){.has_number = true};
        return true;
    case bridge_here:
    case bridge_bye:
        *ret_terms = (struct type_terms){
            .flags = bridge_shares | bridge_at_machine_only, .has_number = true, .data_min = 1, .data_max = machine_name_max};
        return true;
    case bridge_who:
        *ret_terms = (struct type_terms){.flags = 0};
        return true;
    default:
        return false;
    }
}

enum bridge_frame_error bridge_frame_check(const struct bridge_frame *frame)
{
    struct type_terms terms;

    if (!find_type_terms(frame->type, &terms)) {
        return bridge_frame_bad_type;
    }
    if (frame->flags & ~terms.flags) {
        return bridge_frame_bad_flags;
    }
    if ((frame->message_id != 0 && !terms.has_id) || (frame->detail != 0 && !terms.has_detail) || frame->sender == 0 ||
        (frame->number != 0) != terms.has_number) {
        return bridge_frame_bad_fields;
    }
    if (frame->length < terms.data_min || frame->length > terms.data_max) {
        return bridge_frame_bad_data;
    }
    return bridge_frame_ok;
}

enum bridge_frame_error bridge_frame_decode(const uint8_t *bytes, size_t size, struct bridge_frame *ret_frame)
{
    enum bridge_frame_error error;
    struct bridge_frame frame;

    if (size < bridge_frame_size) {
        return bridge_frame_short;
    }
    if (get_integer(bytes, 4) != bridge_frame_magic) {
        return bridge_frame_bad_magic;
    }
    if (bytes[4] != bridge_frame_version) {
        return bridge_frame_bad_version;
    }
    frame = (struct bridge_frame){.type = (enum bridge_frame_type)bytes[5],
                                  .flags = (uint16_t)get_integer(bytes + 6, 2),
                                  .message_id = (int32_t)(uint32_t)get_integer(bytes + 8, 4),
                                  .detail = (uint32_t)get_integer(bytes + 12, 4),
                                  .sender = get_integer(bytes + 16, 8),
                                  .number = get_integer(bytes + 24, 8),
                                  .data = size > bridge_frame_size ? bytes + bridge_frame_size : NULL,
                                  .length = size - bridge_frame_size};
    error = bridge_frame_check(&frame);
    if (error == bridge_frame_ok) {
        *ret_frame = frame;
    }
    return error;
}

const char *bridge_frame_error_text(enum bridge_frame_error error)
{
    static const char *const texts[] = {"right",
                                        "it is shorter than a head",
                                        "it is not a bridge's",
                                        "it is of another version",
                                        "its type is unknown",
                                        "it has unknown flags",
                                        "its fields do not agree with its type",
                                        "its data does not agree with its type"};

    invariant(error >= bridge_frame_ok && error <= bridge_frame_bad_data);
    return texts[error];
}
