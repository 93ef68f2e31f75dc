/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the server, by hand; see raw_peer.h. */
#include "raw_peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "harness.h"
#include "nats_place.h"

enum { buffer_size = 1 << 16 };

void send_all(int peer, const void *bytes, size_t length)
{
    const char *rest = bytes;

    while (length > 0) {
        ssize_t sent = send(peer, rest, length, MSG_NOSIGNAL);

        REQUIRE(sent > 0);
        rest += sent;
        length -= (size_t)sent;
    }
}

int connect_peer(void)
{
    static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server_port()),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(peer >= 0 && connect(peer, (struct sockaddr *)&address, sizeof address) == 0);
    send_all(peer, hello, sizeof hello - 1);
    return peer;
}

size_t put_message(char *text, const char *subject, const void *payload, size_t length)
{
    int size = sprintf(text, "PUB %s %zu\r\n", subject, length);

    memcpy(text + size, payload, length);
    memcpy(text + (size_t)size + length, "\r\n", 2);
    return (size_t)size + length + 2;
}

void publish(int peer, const char *subject, const void *payload, size_t length)
{
    char text[1024];

    send_all(peer, text, put_message(text, subject, payload, length));
}

void publish_frame(int peer, const char *subject, struct bridge_frame frame, const char *data)
{
    uint8_t bytes[256];

    bridge_frame_encode(&frame, bytes);
    (void)snprintf((char *)bytes + bridge_frame_size, sizeof bytes - bridge_frame_size, "%s", data);
    publish(peer, subject, bytes, bridge_frame_size + strlen(data));
}

void flush_peer(int peer)
{
    char text[buffer_size];
    bool is_through = false;

    send_all(peer, "PING\r\n", 6);
    while (!is_through) {
        ssize_t count = recv(peer, text, sizeof text - 1, 0);

        REQUIRE(count > 0);
        text[count] = '\0';
        is_through = strstr(text, "PONG") != NULL;
    }
}
