/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the answer of a server of the domain name system, behind the number and the question of the add-on library's query; the last
 * byte says whether A, AAAA, both or neither are answered. The query tells an answer once: addresses that are whole, or an error.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "check.h"
#include "query.h"

enum { header_size = 12, most_bytes = 4096, type_a = 1 };

static int answers;

static void told(void *context, CFArrayRef found, CFStreamError error)
{
    (void)context;
    answers++;
    CHECK(found || error.domain == kCFStreamErrorDomainNetDB);
    for (CFIndex i = 0; found && i < CFArrayGetCount(found); i++) {
        CFDataRef data = CFArrayGetValueAtIndex(found, i);
        const struct sockaddr *address = (const void *)CFDataGetBytePtr(data);

        CHECK(CFDataGetLength(data) ==
              (address->sa_family == AF_INET ? (CFIndex)sizeof(struct sockaddr_in) : (CFIndex)sizeof(struct sockaddr_in6)));
    }
}

/* The socket of the server, which queries ask. */
static int server_socket(void)
{
    static int server = -1;
    static struct dns_configuration configuration = {.server_count = 1, .ndots = 1, .timeout_ms = 1, .attempts = 1, .lookups = "fb"};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    if (server < 0) {
        server = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        CHECK(bind(server, (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(getsockname(server, (struct sockaddr *)&address, &length) == 0);
        snprintf(configuration.servers[0], sizeof configuration.servers[0], "127.0.0.1:%d", ntohs(address.sin_port));
        query_set_configuration(&configuration);
    }
    return server;
}

/* Answers each question that has come. The first bytes replace the header after its number, the others follow the question. */
static void answer(int server, const uint8_t *bytes, size_t size)
{
    uint8_t message[most_bytes];
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    ssize_t count;

    while ((count = recvfrom(server, message, 512, 0, (struct sockaddr *)&peer, &length)) >= header_size) {
        size_t in_header = size < header_size - 2 ? size : header_size - 2;
        size_t behind = size - in_header < most_bytes - 512 ? size - in_header : most_bytes - 512;

        if (size > 0 && (bytes[size - 1] & (message[count - 3] == type_a ? 1 : 2))) {
            continue;
        }
        memcpy(message + 2, bytes, in_header);
        memcpy(message + count, bytes + in_header, behind);
        (void)sendto(server, message, (size_t)count + behind, 0, (struct sockaddr *)&peer, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int server = server_socket();
    void *query;

    answers = 0;
    query = query_resolve(CFSTR("a.test"), 80, told, NULL);
    CHECK(query && answers == 0);
    answer(server, bytes, size);
    query_wait(query);
    CHECK(answers == 1);
    query_free(query);
    answer(server, bytes, 0); /* a question that was asked meanwhile ends with its socket */
    return 0;
}
