/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of the bridges' messages, byte by byte. */
#include <string.h>

#include "Wire/bridge_frame.h"
#include "harness.h"

static const uint8_t request[] = {0x43, 0x4C, 0x52, 0x62, 1, 1, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0x10, 0x27, 0, 0,  1,
                                  2,    3,    4,    5,    6, 7, 8, 9, 0,    0,    0,    0,    0,    0,    0, 'd'};

TEST(a_request_is_these_bytes, "1106")
{
    struct bridge_frame frame;
    uint8_t head[bridge_frame_size];

    EXPECT_EQ(bridge_frame_decode(request, sizeof request, &frame), bridge_frame_ok);
    EXPECT_EQ(frame.type, bridge_request);
    EXPECT_EQ(frame.message_id, -2);
    EXPECT_EQ(frame.detail, 10000);
    EXPECT_EQ(frame.sender, 0x0807060504030201);
    EXPECT_EQ(frame.number, 9);
    EXPECT(frame.length == 1 && frame.data[0] == 'd');
    bridge_frame_encode(&frame, head);
    EXPECT(memcmp(head, request, sizeof head) == 0);
}

static enum bridge_frame_error decode_with_byte(size_t at, uint8_t byte)
{
    struct bridge_frame frame = {.number = 77};
    uint8_t bytes[sizeof request];
    enum bridge_frame_error error;

    memcpy(bytes, request, sizeof bytes);
    bytes[at] = byte;
    error = bridge_frame_decode(bytes, sizeof bytes, &frame);
    EXPECT(error == bridge_frame_ok || frame.number == 77); /* nothing is stored */
    return error;
}

TEST(a_frame_that_is_wrong_anywhere_is_refused, "1106")
{
    struct bridge_frame frame;

    for (size_t size = 0; size < bridge_frame_size; size++) {
        EXPECT_EQ(bridge_frame_decode(request, size, &frame), bridge_frame_short);
    }
    EXPECT_EQ(bridge_frame_decode(request, bridge_frame_size, &frame), bridge_frame_ok);
    EXPECT_EQ(decode_with_byte(0, 0), bridge_frame_bad_magic);
    EXPECT_EQ(decode_with_byte(4, 2), bridge_frame_bad_version);
    EXPECT_EQ(decode_with_byte(5, 0), bridge_frame_bad_type);
    EXPECT_EQ(decode_with_byte(5, 99), bridge_frame_bad_type);
    EXPECT_EQ(decode_with_byte(6, 1), bridge_frame_bad_flags);
    EXPECT_EQ(decode_with_byte(5, bridge_reply), bridge_frame_bad_fields); /* it has no message id */
    EXPECT_EQ(decode_with_byte(24, 0), bridge_frame_bad_fields);
    EXPECT_EQ(decode_with_byte(5, bridge_one_way), bridge_frame_bad_fields); /* it has no time limit */
    for (int error = bridge_frame_ok; error <= bridge_frame_bad_data; error++) {
        EXPECT(bridge_frame_error_text((enum bridge_frame_error)error)[0] != '\0');
    }
}

TEST(a_word_about_a_name_has_the_machine_and_no_more, "1106")
{
    uint8_t bytes[bridge_frame_size + 65] = {0};
    struct bridge_frame frame = {.type = bridge_here, .flags = bridge_shares, .sender = 1, .number = 2};

    bridge_frame_encode(&frame, bytes);
    EXPECT_EQ(bridge_frame_decode(bytes, bridge_frame_size, &frame), bridge_frame_bad_data);
    EXPECT_EQ(bridge_frame_decode(bytes, bridge_frame_size + 65, &frame), bridge_frame_bad_data);
    EXPECT_EQ(bridge_frame_decode(bytes, bridge_frame_size + 64, &frame), bridge_frame_ok);
    frame = (struct bridge_frame){.type = bridge_who, .sender = 1};
    bridge_frame_encode(&frame, bytes);
    EXPECT_EQ(bridge_frame_decode(bytes, bridge_frame_size, &frame), bridge_frame_ok);
    EXPECT_EQ(bridge_frame_decode(bytes, bridge_frame_size + 1, &frame), bridge_frame_bad_data);
}
