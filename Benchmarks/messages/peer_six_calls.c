/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message port needs of the kernel for a request and its reply in packets, and nothing else: a datagram with the sender's
 * credentials one way, a packet back, each waited for in epoll, one of the waits with a limit. A port's first replies come like this.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

enum { header_size = 64 };

static int requests[2]; /* the client's end, the server's */
static int replies[2];
static int client_set;
static char *client_buffer;

static bool prepare(struct place *place)
{
    int one = 1;

    (void)place;
    return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, requests) == 0 &&
           socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, replies) == 0 &&
           setsockopt(requests[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0;
}

static int set_of(int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);

    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 ? set : -1;
}

static void serve(const struct place *place)
{
    char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(2 * sizeof(int))];
    struct iovec piece = {malloc(place->size + header_size), place->size + header_size};
    struct epoll_event events[64];
    int set = set_of(requests[1]);

    serving();
    while (epoll_wait(set, events, 64, -1) == 1) {
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t size = recvmsg(requests[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (size <= 0 || send(replies[1], piece.iov_base, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) != size) {
            break;
        }
    }
}

static bool open_client(const struct place *place)
{
    client_set = set_of(replies[0]);
    client_buffer = malloc(place->size + header_size);
    return client_set >= 0 && client_buffer;
}

static bool exchange(const void *request, size_t size)
{
    static char header[header_size];
    struct iovec pieces[2] = {{header, sizeof header}, {(void *)request, size}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = size > 0 ? 2 : 1};
    const struct timespec limit = {.tv_sec = 10};
    struct epoll_event events[64];
    ssize_t whole = (ssize_t)(size + header_size);

    return sendmsg(requests[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL) == whole &&
           epoll_pwait2(client_set, events, 64, &limit, NULL) == 1 && recv(replies[0], client_buffer, (size_t)whole, MSG_DONTWAIT) == whole;
}

const struct peer six_calls_peer = {.name = "six-calls",
                                    .what = "packets both ways, six calls, by hand",
                                    .size_most = 65536,
                                    .prepare = prepare,
                                    .serve = serve,
                                    .open = open_client,
                                    .exchange = exchange};
