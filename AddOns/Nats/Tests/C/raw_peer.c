/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the server on a plain socket; see raw_peer.h. */
#include "raw_peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "harness.h"
#include "nats_place.h"

enum { buffer_size = 1 << 16 };

void peer_send(int peer, const void *bytes, size_t length)
{
    const char *rest = bytes;

    while (length > 0) {
        ssize_t sent = send(peer, rest, length, MSG_NOSIGNAL);

        REQUIRE(sent > 0);
        rest += sent;
        length -= (size_t)sent;
    }
}

int peer_connect(void)
{
    static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n";
    int peer = loopback_connect(server_port());

    REQUIRE(peer >= 0);
    peer_send(peer, hello, sizeof hello - 1);
    return peer;
}

size_t peer_format_message(char *text, const char *subject, const char *reply, const void *payload, size_t length)
{
    int size = sprintf(text, "PUB %s %s %zu\r\n", subject, reply, length);

    memcpy(text + size, payload, length);
    memcpy(text + (size_t)size + length, "\r\n", 2);
    return (size_t)size + length + 2;
}

void peer_publish(int peer, const char *subject, const char *reply, const void *payload, size_t length)
{
    char text[1024];

    peer_send(peer, text, peer_format_message(text, subject, reply, payload, length));
}

void peer_publish_frame(int peer, const char *subject, struct bridge_frame frame, const char *data)
{
    uint8_t bytes[256];

    bridge_frame_encode(&frame, bytes);
    (void)snprintf((char *)bytes + bridge_frame_size, sizeof bytes - bridge_frame_size, "%s", data);
    peer_publish(peer, subject, "", bytes, bridge_frame_size + strlen(data));
}

void peer_flush(int peer)
{
    char text[buffer_size];
    bool is_through = false;

    peer_send(peer, "PING\r\n", 6);
    while (!is_through) {
        ssize_t count = recv(peer, text, sizeof text - 1, 0);

        REQUIRE(count > 0);
        text[count] = '\0';
        is_through = strstr(text, "PONG") != NULL;
    }
}
