/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message port of a busy client needs of the kernel, and nothing else: a datagram with the sender's credentials one way, waited for
 * in epoll; the reply in a page that both sides share, and a bell only for who sleeps (Sources/CCoreRunLoop/Port/Wire/reply_page.h). What
 * the library adds to this is its own work.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

enum { header_size = 64, most = 3904 };

struct page {
    _Alignas(64) _Atomic size_t size; /* of the reply, with its header; 0: none */
    _Alignas(64) atomic_int is_awaited;
    _Alignas(64) char packet[header_size + most];
};

static struct page *page;
static int requests[2]; /* the client's end, the server's */
static int replies[2]; /* of the line, which carries nothing but its end */
static int bell;
static int bell_set;
static int client_set;
static char *client_buffer;

static int set_of(int descriptor, uint32_t events)
{
    struct epoll_event event = {.events = events};
    int set = epoll_create1(EPOLL_CLOEXEC);

    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 ? set : -1;
}

static bool prepare(struct place *place)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int one = 1;

    if (place->size > most) {
        return false;
    }
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return page != MAP_FAILED && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, requests) == 0 &&
           socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, replies) == 0 &&
           setsockopt(requests[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0 && (bell_set = set_of(replies[0], EPOLLIN)) >= 0 &&
           epoll_ctl(bell_set, EPOLL_CTL_ADD, bell, &event) == 0;
}

static bool answer(const char *packet, size_t size)
{
    const uint64_t one = 1;

    memcpy(page->packet, packet, size);
    atomic_store(&page->size, size);
    return !atomic_load(&page->is_awaited) || write(bell, &one, sizeof one) == sizeof one;
}

static void serve(const struct place *place)
{
    char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(2 * sizeof(int))];
    struct iovec piece = {malloc(place->size + header_size), place->size + header_size};
    struct epoll_event events[64];
    int set = set_of(requests[1], EPOLLIN);

    serving();
    while (epoll_wait(set, events, 64, -1) == 1) {
        struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t size = recvmsg(requests[1], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (size <= 0 || !answer(piece.iov_base, (size_t)size)) {
            break;
        }
    }
}

static bool open_client(const struct place *place)
{
    client_set = set_of(bell_set, EPOLLIN | EPOLLET);
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
    size_t whole = size + header_size;

    atomic_store_explicit(&page->is_awaited, 0, memory_order_relaxed);
    atomic_store_explicit(&page->size, 0, memory_order_relaxed);
    if (sendmsg(requests[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)whole) {
        return false;
    }
    atomic_store(&page->is_awaited, 1);
    while (atomic_load(&page->size) == 0) {
        if (epoll_pwait2(client_set, events, 64, &limit, NULL) != 1) {
            return false;
        }
    }
    memcpy(client_buffer, page->packet, whole);
    return atomic_load(&page->size) == whole;
}

const struct peer reply_page_peer = {.name = "reply-page",
                                     .what = "a message port's calls, by hand",
                                     .size_most = most,
                                     .prepare = prepare,
                                     .serve = serve,
                                     .open = open_client,
                                     .exchange = exchange};
