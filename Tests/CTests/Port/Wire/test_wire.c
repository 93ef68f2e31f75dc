/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format against the frames in Tests/Wire, each with what a receiver makes of it, and names.
 */
#define _GNU_SOURCE
#include "Port/Wire/wire.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Port/Names/port_name.h"
#include "harness.h"

static const char folder[] = "Tests/Wire";

static const char *const verdicts[wire_error_count] = {"ok",    "short",    "magic", "version", "type",
                                                       "flags", "reserved", "name",  "length",  "fields"};

static size_t read_file(const char *name, const char *suffix, void *ret_bytes, size_t size)
{
    char path[512];
    FILE *file;
    size_t length;

    (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    file = fopen(path, "rb");
    REQUIRE(file != NULL);
    length = fread(ret_bytes, 1, size, file);
    (void)fclose(file);
    return length;
}

/* What decoding gives, encoded again, is the header it came from. */
static void expect_same_bytes(const char *name, const struct wire_frame *frame, const uint8_t *bytes)
{
    uint8_t header[wire_header_size];

    wire_encode(frame, header);
    if (memcmp(header, bytes, sizeof header) != 0) {
        printf("%s\n", name);
        test_failed(__FILE__, __LINE__, "%s", "the encoded frame is the golden one");
    }
}

static void check(const char *name)
{
    static uint8_t bytes[2 * wire_frame_max];
    size_t size = read_file(name, ".bin", bytes, sizeof bytes);
    char text[512] = "";
    char route[16] = "";
    char verdict[16] = "";
    struct wire_frame frame;
    enum wire_error error;
    uint8_t *exact = malloc(size ? size : 1); /* so that a byte read beyond the end is noticed */

    (void)read_file(name, ".txt", text, sizeof text - 1);
    REQUIRE(sscanf(text, "to: %15s\nverdict: %15s\n", route, verdict) == 2);
    REQUIRE(strcmp(route, "port") == 0 || strcmp(route, "client") == 0);
    memcpy(exact, bytes, size);
    error = wire_decode(strcmp(route, "port") == 0 ? wire_to_port : wire_to_client, exact, size, &frame);
    if (strcmp(verdicts[error], verdict) != 0) {
        printf("%s: %s, not %s\n", name, verdicts[error], verdict);
        test_failed(__FILE__, __LINE__, "%s", "the verdict is the golden one");
    }
    if (error == wire_ok) {
        expect_same_bytes(name, &frame, exact);
        EXPECT(wire_descriptor_count(&frame) <= wire_descriptors_max);
    }
    EXPECT(strlen(wire_error_text(error)) > 5);
    free(exact);
}

TEST(golden_frames_decode_as_they_should, "241 H1 H2 H3 H5")
{
    DIR *stream = opendir(folder);
    int count = 0;

    if (!stream) {
        SKIP("runs from the repository's folder only");
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char name[256];
        size_t length = strlen(entry->d_name);

        if (length > 4 && strcmp(entry->d_name + length - 4, ".bin") == 0) {
            (void)snprintf(name, sizeof name, "%.*s", (int)(length - 4), entry->d_name);
            check(name);
            count++;
        }
    }
    (void)closedir(stream);
    EXPECT(count > 40);
}

TEST(every_single_bit_flip_is_decoded_or_refused, "241 H2 H3")
{
    const struct wire_frame frame = {.type = wire_request,
                                     .flags = wire_new_channel,
                                     .message_id = 1,
                                     .channel = 3,
                                     .token = 5,
                                     .conversation = 7,
                                     .length = 4,
                                     .name_length = 2};
    uint8_t bytes[wire_header_size + 6];
    int accepted = 0;

    wire_encode(&frame, bytes);
    memcpy(bytes + wire_header_size, "nmdata", 6);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        struct wire_frame found;
        uint8_t *flipped = malloc(sizeof bytes);

        memcpy(flipped, bytes, sizeof bytes);
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (wire_decode(wire_to_port, flipped, sizeof bytes, &found) == wire_ok) {
            accepted++;
            EXPECT(!found.data || found.data + found.length == flipped + sizeof bytes);
        }
        free(flipped);
    }
    EXPECT(accepted > 100); /* numbers and data may be anything */
    EXPECT(accepted < (int)(8 * sizeof bytes) - 100);
}

/* Each condition of the decoder decides a verdict alone in one of these and the golden frames: `make coverage` counts that. */
TEST(names_are_utf8_in_its_shortest_form, "241 H5")
{
    static const char *const valid[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",         "\xE0\xA0\x80",    "\xED\x9F\xBF",
                                        "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF1\x80\x80\x80", "\xF4\x8F\xBF\xBF"};
    static const char *const wrong[] = {"\x80",
                                        "\xC1\x80",
                                        "\xC2",
                                        "\xC2z",
                                        "\xE0\x9F\x80",
                                        "\xE1\x80",
                                        "\xE1\x80z",
                                        "\xED\xA0\x80",
                                        "\xF0\x8F\x80\x80",
                                        "\xF4\x90\x80\x80",
                                        "\xF5\x80\x80\x80",
                                        "\xFF"};
    char longest[wire_name_max + 1];

    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        EXPECT(wire_name_is_valid(valid[i], strlen(valid[i])));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT(!wire_name_is_valid(wrong[i], strlen(wrong[i])));
    }
    memset(longest, 'n', sizeof longest);
    EXPECT(wire_name_is_valid(longest, wire_name_max));
    EXPECT(!wire_name_is_valid(longest, wire_name_max + 1));
    EXPECT(!wire_name_is_valid(longest, 0));
    EXPECT(!wire_name_is_valid("a\0b", 3));
}

static enum wire_error verdict_on(enum wire_route channel, const struct wire_frame *frame, size_t size)
{
    uint8_t bytes[wire_header_size + 8] = {0};
    struct wire_frame found;

    wire_encode(frame, bytes);
    return wire_decode(channel, bytes, size, &found);
}

TEST(each_field_alone_can_make_a_frame_wrong, "241 H2 H3")
{
    const struct wire_frame ack = {.type = wire_ack, .length = 5};
    const struct wire_frame dropped = {.type = wire_dropped, .conversation = 7, .extra = wire_drop_memory};
    const struct wire_frame one_way = {.type = wire_one_way, .flags = wire_no_data, .message_id = 3, .extra = 9};
    struct wire_frame frame;

    EXPECT_EQ(verdict_on(wire_to_client, &ack, wire_header_size), wire_ok);
    EXPECT_EQ(verdict_on(wire_to_client, &dropped, wire_header_size), wire_ok);
    EXPECT_EQ(verdict_on(wire_to_port, &one_way, wire_header_size), wire_ok);
    frame = ack, frame.extra = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = ack, frame.message_id = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = ack, frame.channel = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = ack, frame.token = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = ack, frame.conversation = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = dropped, frame.message_id = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_fields);
    frame = dropped, frame.length = 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_length);
    frame = ack, frame.length = (uint64_t)UINT32_MAX + 1;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_length);
    EXPECT_EQ(verdict_on(wire_to_client, &ack, wire_header_size + 1), wire_error_length);
    frame = one_way, frame.length = 1;
    EXPECT_EQ(verdict_on(wire_to_port, &frame, wire_header_size), wire_error_length);
    frame = ack, frame.type = (enum wire_type)99;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_type);
    frame = ack, frame.type = wire_request;
    EXPECT_EQ(verdict_on(wire_to_client, &frame, wire_header_size), wire_error_type);
    EXPECT_EQ(verdict_on(wire_to_port, &ack, wire_header_size), wire_error_type);
    EXPECT_STR(wire_error_text(wire_error_count), "it is malformed");
}

TEST(a_length_of_exactly_the_limit_is_possible, "239 M15")
{
    struct wire_frame frame = {.type = wire_one_way, .flags = wire_in_memory, .length = wire_payload_max};
    struct wire_frame found;
    uint8_t bytes[wire_header_size];

    wire_encode(&frame, bytes);
    EXPECT_EQ(wire_decode(wire_to_port, bytes, sizeof bytes, &found), wire_ok);
    EXPECT_EQ(found.length, 0x60000000);
    frame.length++;
    wire_encode(&frame, bytes);
    EXPECT_EQ(wire_decode(wire_to_port, bytes, sizeof bytes, &found), wire_error_length);
}

TEST(leaves_are_short_and_different, "191")
{
    static const char *const names[] = {"a", "A", "%41", "a/b", "a%2Fb", ".", "..", "...", "~", "a~b", "\xC3\xA9", "e\xCC\x81"};
    enum { count = sizeof names / sizeof names[0] };
    char leaves[count][port_leaf_size];
    struct port_name longest = {.length = wire_name_max};
    struct port_name other;
    char leaf[port_leaf_size];
    char other_leaf[port_leaf_size];

    for (int i = 0; i < count; i++) {
        struct port_name name;

        REQUIRE(port_name_of_bytes(names[i], strlen(names[i]), &name));
        port_name_leaf(&name, leaves[i]);
        EXPECT(leaves[i][0] != '.' && !strchr(leaves[i], '/') && !strchr(leaves[i], '~'));
        for (int j = 0; j < i; j++) {
            EXPECT(strcmp(leaves[i], leaves[j]) != 0);
        }
    }
    memset(longest.bytes, '/', wire_name_max);
    other = longest;
    other.bytes[wire_name_max - 1] = '.';
    port_name_leaf(&longest, leaf);
    port_name_leaf(&other, other_leaf);
    EXPECT_EQ(strlen(leaf), port_leaf_size - 1);
    EXPECT(strcmp(leaf, other_leaf) != 0);
}
