/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's sockets alone, in buffers that are used again: what no design on top of them can beat without another way of passing data.
 * Packets block in recv, or wait in epoll before each one, as whatever is driven by a loop must; a stream says each message's size first.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "messages.h"

/* What one side has. */
struct side {
    int socket;
    int set; /* of the waited kind; -1 */
    char *buffer;
};

static struct side client;

/* ---- both kinds ---- */

static bool make_pair(struct place *place, int type)
{
    int size = place->size > 65536 ? (int)place->size * 2 + 65536 : 0;

    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, place->ends) != 0) {
        return false;
    }
    for (int i = 0; i < 2 && size > 0 && type == SOCK_SEQPACKET; i++) {
        if (setsockopt(place->ends[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) {
            (void)setsockopt(place->ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        }
    }
    return true;
}

static bool begin(struct side *side, const struct place *place, int end, bool waits)
{
    struct epoll_event event = {.events = EPOLLIN};

    side->socket = place->ends[end];
    side->buffer = malloc(place->size + 1);
    side->set = waits ? epoll_create1(EPOLL_CLOEXEC) : -1;
    if (!place->in_process) {
        (void)close(place->ends[1 - end]);
    }
    return side->buffer && (!waits || epoll_ctl(side->set, EPOLL_CTL_ADD, side->socket, &event) == 0);
}

/* ---- packets ---- */

static bool make_packets(struct place *place)
{
    return make_pair(place, SOCK_SEQPACKET);
}

static ssize_t receive_packet(const struct side *side, size_t room)
{
    struct epoll_event event;

    if (side->set >= 0 && epoll_wait(side->set, &event, 1, -1) != 1) {
        return -1;
    }
    return recv(side->socket, side->buffer, room, 0);
}

/* A packet without bytes looks like the end of the line; so one more byte goes along, and empty messages are one byte. */
static void serve_packets_from(const struct place *place, bool waits)
{
    struct side side;
    ssize_t size;

    if (!begin(&side, place, 1, waits)) {
        give_up("no memory");
    }
    serving();
    while (place->is_one_way && (size = receive_packet(&side, place->size + 1)) > 0) {
        was_told((size_t)size - 1);
    }
    while ((size = receive_packet(&side, place->size + 1)) > 0 && send(side.socket, side.buffer, (size_t)size, MSG_NOSIGNAL) == size) {
    }
}

static void serve_packets(const struct place *place)
{
    serve_packets_from(place, false);
}

static void serve_waited_packets(const struct place *place)
{
    serve_packets_from(place, true);
}

static bool open_packets(const struct place *place)
{
    return begin(&client, place, 0, false);
}

static bool open_waited_packets(const struct place *place)
{
    return begin(&client, place, 0, true);
}

static bool tell_by_packet(const void *message, size_t size)
{
    return send(client.socket, message, size + 1, MSG_NOSIGNAL) == (ssize_t)size + 1;
}

static bool exchange_packets(const void *request, size_t size)
{
    return tell_by_packet(request, size) && receive_packet(&client, size + 1) == (ssize_t)size + 1;
}

/* ---- streams ---- */

static bool make_stream(struct place *place)
{
    return make_pair(place, SOCK_STREAM);
}

static bool send_all(int socket, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);

        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool send_message(int socket, const void *bytes, uint64_t size)
{
    struct iovec pieces[2] = {{&size, sizeof size}, {(void *)(uintptr_t)bytes, size}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = size > 0 ? 2 : 1};
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);

    return sent >= (ssize_t)sizeof size &&
           send_all(socket, (const char *)bytes + (sent - (ssize_t)sizeof size), sizeof size + size - (size_t)sent);
}

/* The size and as much of the message as is there in one call, the rest in further ones. */
static bool receive_message(const struct side *side, size_t room, uint64_t *ret_size)
{
    struct iovec pieces[2] = {{ret_size, sizeof *ret_size}, {side->buffer, room}};
    ssize_t received = readv(side->socket, pieces, room > 0 ? 2 : 1);
    size_t have = received < (ssize_t)sizeof *ret_size ? 0 : (size_t)received - sizeof *ret_size;

    if (received < (ssize_t)sizeof *ret_size || *ret_size > room) {
        return false;
    }
    while (have < *ret_size) {
        received = recv(side->socket, side->buffer + have, *ret_size - have, 0);
        if (received <= 0) {
            return false;
        }
        have += (size_t)received;
    }
    return true;
}

static void serve_stream(const struct place *place)
{
    struct side side;
    uint64_t size;

    if (!begin(&side, place, 1, false)) {
        give_up("no memory");
    }
    serving();
    while (place->is_one_way && receive_message(&side, place->size, &size)) {
        was_told(size);
    }
    while (receive_message(&side, place->size, &size) && send_message(side.socket, side.buffer, size)) {
    }
}

static bool tell_by_stream(const void *message, size_t size)
{
    return send_message(client.socket, message, size);
}

static bool exchange_stream(const void *request, size_t size)
{
    uint64_t received;

    return tell_by_stream(request, size) && receive_message(&client, size, &received) && received == size;
}

/* ---- the three ---- */

const struct peer seqpacket_peer = {.name = "seqpacket",
                                    .what = "SOCK_SEQPACKET, blocking",
                                    .size_most = 1 << 20,
                                    .prepare = make_packets,
                                    .serve = serve_packets,
                                    .open = open_packets,
                                    .exchange = exchange_packets,
                                    .tell = tell_by_packet};
const struct peer waited_seqpacket_peer = {.name = "seqpacket-epoll",
                                           .what = "SOCK_SEQPACKET, epoll_wait before each recv",
                                           .size_most = 1 << 20,
                                           .prepare = make_packets,
                                           .serve = serve_waited_packets,
                                           .open = open_waited_packets,
                                           .exchange = exchange_packets,
                                           .tell = tell_by_packet};
const struct peer stream_peer = {.name = "stream",
                                 .what = "SOCK_STREAM, blocking",
                                 .prepare = make_stream,
                                 .serve = serve_stream,
                                 .open = open_packets,
                                 .exchange = exchange_stream,
                                 .tell = tell_by_stream};
