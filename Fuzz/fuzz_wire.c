/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of message ports' frames, and names as file leaves. What is decoded lies inside the packet, and encoding it again gives the
 * same header; names are valid or refused, and one name has one leaf.
 */
#include <string.h>

#include "Port/Names/port_name.h"
#include "Port/Wire/wire.h"
#include "check.h"

static void check_frame(enum wire_route channel, const uint8_t *packet, size_t size)
{
    struct wire_frame frame;
    uint8_t header[wire_header_size];
    enum wire_error error = wire_decode(channel, packet, size, &frame);

    CHECK(error < wire_error_count && wire_error_text(error));
    if (error != wire_ok) {
        return;
    }
    CHECK(size >= wire_header_size);
    CHECK(frame.length <= (frame.type == wire_ack ? UINT32_MAX : wire_payload_max)); /* an ack's is that of a queue */
    CHECK(wire_descriptor_count(&frame) >= 0 && wire_descriptor_count(&frame) <= wire_descriptors_max);
    if (frame.name_length > 0) {
        CHECK((const uint8_t *)frame.name >= packet && (const uint8_t *)frame.name + frame.name_length <= packet + size);
    }
    if (frame.data) {
        CHECK(frame.data >= packet && frame.data + frame.length <= packet + size);
    }
    wire_encode(&frame, header);
    CHECK(memcmp(header, packet, sizeof header) == 0);
}

static void check_name(const uint8_t *bytes, size_t size)
{
    struct port_name name;
    char leaf[port_leaf_size];

    if (!port_name_of_bytes((const char *)bytes, size, &name)) {
        return;
    }
    CHECK(name.length <= wire_name_max && wire_name_is_valid(name.bytes, name.length));
    memset(leaf, 1, sizeof leaf);
    port_name_leaf(&name, leaf);
    CHECK(memchr(leaf, 0, sizeof leaf) && leaf[0]);
    for (const char *at = leaf; *at; at++) {
        CHECK(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.%~", *at));
    }
}

/* A header that is right but for what the fuzzer changes: random bytes seldom get past the first checks. */
static void check_changed_header(const uint8_t *bytes, size_t size)
{
    static const enum wire_type types[] = {wire_request, wire_one_way, wire_control,    wire_reply,
                                           wire_ack,     wire_dropped, wire_descriptor, wire_page};
    struct wire_frame frame = {
        .type = types[bytes[0] % 8], .length = size - 8, .channel = bytes[1], .token = bytes[2], .sequence = bytes[3]};
    uint8_t *packet = malloc(wire_header_size + size - 8);

    CHECK(packet);
    wire_encode(&frame, packet);
    memcpy(packet + wire_header_size, bytes + 8, size - 8);
    packet[bytes[4] % wire_header_size] ^= bytes[5];
    packet[bytes[6] % wire_header_size] ^= bytes[7];
    check_frame(wire_to_port, packet, wire_header_size + size - 8);
    check_frame(wire_to_client, packet, wire_header_size + size - 8);
    free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 8) {
        return 0;
    }
    check_frame(bytes[0] & 1 ? wire_to_port : wire_to_client, bytes + 1, size - 1);
    check_name(bytes, size);
    check_changed_header(bytes, size);
    return 0;
}
