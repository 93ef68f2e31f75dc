/* SPDX-License-Identifier: Apache-2.0 */
/* See dns_server.h. The thread waits for the sockets and for the pipe, and keeps what it has not answered yet. */
#define _GNU_SOURCE
#include "dns_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "query.h"

enum { most_bytes = 1024, header_size = 12, most_late = 16, type_a = 1, type_cname = 5, type_ptr = 12, type_aaaa = 28 };
enum { flag_answer = 0x8180, flag_truncated = 0x0200, code_failure = 2, code_no_name = 3 };

struct message {
    uint8_t bytes[most_bytes];
    size_t length;
};

struct asked {
    char label[64];
    bool is_nowhere;
    size_t end; /* of the question */
    uint16_t type;
};

static bool parse(const struct message *query, struct asked *ret_asked)
{
    size_t i = header_size;

    if (query->length < header_size + 5 || query->bytes[i] > 63) {
        return false;
    }
    memcpy(ret_asked->label, query->bytes + i + 1, query->bytes[i]);
    ret_asked->label[query->bytes[i]] = '\0';
    i += query->bytes[i] + 1u;
    ret_asked->is_nowhere = i + 8 < query->length && memcmp(query->bytes + i, "\7nowhere", 8) == 0;
    while (i < query->length && query->bytes[i] != 0) {
        i += query->bytes[i] + 1u;
    }
    if (i + 5 > query->length) {
        return false;
    }
    ret_asked->type = (uint16_t)(query->bytes[i + 1] << 8 | query->bytes[i + 2]);
    ret_asked->end = i + 5;
    return true;
}

static void put16(struct message *message, unsigned value)
{
    message->bytes[message->length++] = (uint8_t)(value >> 8);
    message->bytes[message->length++] = (uint8_t)value;
}

static void put_record(struct message *answer, uint16_t type, const void *data, size_t size)
{
    put16(answer, 0xC00C); /* the name of the question */
    put16(answer, type);
    put16(answer, 1);
    put16(answer, 0);
    put16(answer, 60); /* seconds to live */
    put16(answer, (unsigned)size);
    memcpy(answer->bytes + answer->length, data, size);
    answer->length += size;
    answer->bytes[7]++;
}

static void put_addresses(struct message *answer, const struct asked *asked, bool has_ipv6)
{
    static const uint8_t ipv4[4] = {127, 0, 0, 1};
    static const struct in6_addr ipv6 = IN6ADDR_LOOPBACK_INIT;

    if (asked->type == type_a) {
        put_record(answer, type_a, ipv4, sizeof ipv4);
    } else if (asked->type == type_aaaa && has_ipv6) {
        put_record(answer, type_aaaa, &ipv6, sizeof ipv6);
    }
}

/* The question's name is an alias; the address belongs to the name that it stands for. */
static void put_alias(struct message *answer, const struct asked *asked)
{
    static const uint8_t target[] = "\4good\4test";
    size_t place;

    put_record(answer, type_cname, target, sizeof target);
    place = answer->length;
    put_addresses(answer, asked, false);
    if (answer->length > place) {
        unsigned pointer = 0xC000u | (unsigned)(place - sizeof target);

        answer->bytes[place] = (uint8_t)(pointer >> 8);
        answer->bytes[place + 1] = (uint8_t)pointer;
    }
}

static bool is(const struct asked *asked, const char *label)
{
    return strcmp(asked->label, label) == 0;
}

/* Returns false if nothing is answered. */
static bool make_answer(const struct message *query, bool is_tcp, struct message *ret_answer)
{
    static const uint8_t host[] = "\4host\4test";
    static const char *const silent[] = {"only6", "only4"};
    static const char *const torn[] = {"torn4", "torn6"};
    struct asked asked;
    unsigned flags = flag_answer;

    if (!parse(query, &asked) || is(&asked, "silent") || is(&asked, silent[asked.type == type_aaaa])) {
        return false;
    }
    *ret_answer = *query;
    ret_answer->length = asked.end;
    memset(ret_answer->bytes + 6, 0, 6); /* no records */
    if (is(&asked, "garbage")) {
        memset(ret_answer->bytes + 2, 0xFF, ret_answer->length - 2);
        return true;
    }
    if (is(&asked, "missing") || asked.is_nowhere) {
        flags |= code_no_name;
    } else if (is(&asked, "failing")) {
        flags |= code_failure;
    } else if ((is(&asked, "long") || is(&asked, "torn") || is(&asked, torn[asked.type == type_aaaa])) && !is_tcp) {
        flags |= flag_truncated;
    } else if (is(&asked, "alias")) {
        put_alias(ret_answer, &asked);
    } else if (asked.type == type_ptr) {
        put_record(ret_answer, type_ptr, host, sizeof host);
    } else if (!is(&asked, "empty")) {
        put_addresses(ret_answer, &asked, is(&asked, "both") || is(&asked, "only6") || is(&asked, "torn4"));
    }
    ret_answer->bytes[2] = (uint8_t)(flags >> 8);
    ret_answer->bytes[3] = (uint8_t)flags;
    return true;
}

struct late_question {
    struct message query;
    struct sockaddr_in peer;
};

static void answer_datagram(struct dns_server *server, const struct late_question *question)
{
    struct message answer;

    if (make_answer(&question->query, false, &answer)) {
        (void)sendto(server->udp, answer.bytes, answer.length, 0, (const struct sockaddr *)&question->peer, sizeof question->peer);
    }
}

/* Answers one question by TCP, if the name is not "torn". */
static void answer_connection(struct dns_server *server)
{
    int peer = accept4(server->tcp, NULL, NULL, SOCK_CLOEXEC);
    struct message query = {.length = 0};
    struct message answer;
    struct asked asked;
    uint8_t length[2];

    if (recv(peer, length, 2, MSG_WAITALL) == 2) {
        query.length = (size_t)(length[0] << 8 | length[1]) % most_bytes;
        query.length = (size_t)recv(peer, query.bytes, query.length, MSG_WAITALL);
    }
    if (parse(&query, &asked) && strncmp(asked.label, "torn", 4) != 0 && make_answer(&query, true, &answer)) {
        length[0] = (uint8_t)(answer.length >> 8);
        length[1] = (uint8_t)answer.length;
        (void)send(peer, length, 2, MSG_NOSIGNAL | MSG_MORE);
        (void)send(peer, answer.bytes, answer.length, MSG_NOSIGNAL);
    }
    close(peer);
}

static void serve(void *context)
{
    struct dns_server *server = context;
    struct late_question late[most_late];
    int late_count = 0;
    char byte;

    for (;;) {
        struct pollfd ready[3] = {{server->udp, POLLIN, 0}, {server->tcp, POLLIN, 0}, {server->stop[0], POLLIN, 0}};

        (void)poll(ready, 3, -1);
        if (ready[2].revents) {
            if (read(server->stop[0], &byte, 1) != 1) {
                return;
            }
            while (late_count > 0) {
                answer_datagram(server, &late[--late_count]);
            }
        }
        if (ready[1].revents) {
            answer_connection(server);
        }
        if (ready[0].revents) {
            struct late_question *question = &late[late_count];
            socklen_t length = sizeof question->peer;
            ssize_t count = recvfrom(server->udp, question->query.bytes, most_bytes, 0, (struct sockaddr *)&question->peer, &length);
            struct asked asked;

            question->query.length = count < 0 ? 0 : (size_t)count;
            if (parse(&question->query, &asked) && is(&asked, "late") && late_count < most_late - 1) {
                late_count++;
            } else {
                answer_datagram(server, question);
            }
            server->questions++; /* last, so that a test that waits for it finds the question stored */
        }
    }
}

/* Both sockets have one port. Another process may have the port of TCP: then another pair is tried. */
static bool open_sockets(struct dns_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(server->udp, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(getsockname(server->udp, (struct sockaddr *)&address, &length) == 0);
    snprintf(server->address, sizeof server->address, "127.0.0.1:%d", ntohs(address.sin_port));
    if (bind(server->tcp, (struct sockaddr *)&address, sizeof address) == 0 && listen(server->tcp, 8) == 0) {
        return true;
    }
    close(server->udp);
    close(server->tcp);
    return false;
}

void dns_server_start(struct dns_server *server)
{
    while (!open_sockets(server)) {
    }
    REQUIRE(pipe2(server->stop, O_CLOEXEC) == 0);
    server->questions = 0;
    server->configuration = (struct dns_configuration){
        .server_count = 1, .ndots = 1, .timeout_ms = (int)(test_patience_s() * 1000), .attempts = 1, .lookups = "fb"};
    memcpy(server->configuration.servers[0], server->address, sizeof server->address);
    query_set_configuration(&server->configuration);
    probe_thread_start(&server->thread, serve, server);
}

void dns_server_release_late(struct dns_server *server)
{
    REQUIRE(write(server->stop[1], "r", 1) == 1);
}

void dns_server_stop(struct dns_server *server)
{
    close(server->stop[1]);
    probe_thread_join(&server->thread);
    close(server->stop[0]);
    close(server->udp);
    close(server->tcp);
}

bool dns_hosts_file_has_localhost(void)
{
    FILE *file = fopen("/etc/hosts", "re");
    char line[512];
    bool has_it = false;

    while (file && !has_it && fgets(line, sizeof line, file)) {
        has_it = strncmp(line, "127.0.0.1", 9) == 0 && strstr(line, "localhost");
    }
    if (file) {
        (void)fclose(file);
    }
    return has_it;
}
