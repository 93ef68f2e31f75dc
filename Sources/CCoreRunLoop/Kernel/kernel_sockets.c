/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on sockets. No state. Nothing here raises SIGPIPE. */
#define _GNU_SOURCE /* accept4, ppoll */
#include "Kernel/kernel_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

static const int64_t socket_second_ns = 1000000000;
static const int64_t pause_longest_ns = 1000000;

/* The kernel says how long an address is, not how much of it fitted. */
static void set_length(struct kernel_address *address, socklen_t length)
{
    address->length = length < sizeof address->bytes ? (uint32_t)length : (uint32_t)sizeof address->bytes;
}

int kernel_socket_create(int family, int type, int protocol)
{
    int saved = errno;

    return result_of(socket(family, type | SOCK_CLOEXEC, protocol), saved);
}

static int read_option(int socket, int option)
{
    int saved = errno;
    int value = 0;
    socklen_t size = sizeof value;
    int result = result_of(getsockopt(socket, SOL_SOCKET, option, &value, &size), saved);

    return result < 0 ? result : value;
}

int kernel_socket_type(int socket)
{
    return read_option(socket, SO_TYPE);
}

int kernel_socket_take_error(int socket)
{
    return read_option(socket, SO_ERROR);
}

static int bind_once(int socket, const void *address, size_t length)
{
    int saved = errno;

    return result_of(bind(socket, address, (socklen_t)length), saved);
}

/* True if the address is IPv6's for all interfaces, and the socket would take IPv4's, too. */
static bool would_take_ipv4_too(int socket, const void *address, size_t length)
{
    const struct sockaddr_in6 *wanted = address;
    int saved = errno;
    int is_without = 1;
    socklen_t size = sizeof is_without;

    if (length < sizeof *wanted || wanted->sin6_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&wanted->sin6_addr)) {
        return false;
    }
    return result_of(getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &is_without, &size), saved) == 0 && !is_without;
}

static int leave_ipv4(int socket, bool is_left)
{
    int saved = errno;
    int value = is_left;

    return result_of(setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &value, sizeof value), saved);
}

/*
 * Apple's kernel lets an IPv6 socket bind the port of an IPv4 socket, which keeps its connections. Linux allows that only if the IPv6
 * socket leaves IPv4 out.
 */
int kernel_socket_bind(int socket, const void *address, size_t length)
{
    int result = bind_once(socket, address, length);

    if (result == -EADDRINUSE && would_take_ipv4_too(socket, address, length) && leave_ipv4(socket, true) == 0) {
        result = bind_once(socket, address, length);
        if (result < 0) {
            (void)leave_ipv4(socket, false);
        }
    }
    return result;
}

int kernel_socket_listen(int socket, int backlog)
{
    int saved = errno;

    return result_of(listen(socket, backlog), saved);
}

int kernel_make_non_blocking(int descriptor, bool is_non_blocking)
{
    int saved = errno;
    int flags = result_of(fcntl(descriptor, F_GETFL), saved);
    int wanted;
    int result;

    if (flags < 0) {
        return flags;
    }
    wanted = is_non_blocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    result = wanted == flags ? 0 : result_of(fcntl(descriptor, F_SETFL, wanted), saved);
    return result < 0 ? result : (flags & O_NONBLOCK) != 0;
}

static int64_t now_ns(void)
{
    return kernel.monotonic_ns();
}

static bool is_blocking(int socket)
{
    int saved = errno;
    int flags = result_of(fcntl(socket, F_GETFL), saved);

    return flags >= 0 && !(flags & O_NONBLOCK);
}

static void wait_for_room(int socket, int64_t left_ns)
{
    int saved = errno;
    const struct timespec limit = {(time_t)(left_ns / socket_second_ns), (long)(left_ns % socket_second_ns)};
    struct pollfd one = {.fd = socket, .events = POLLOUT};

    (void)uncancelled(ppoll(&one, 1, &limit, NULL));
    errno = saved;
}

static void pause_for(int64_t duration_ns)
{
    int saved = errno;
    const struct timespec duration = {0, (long)duration_ns};

    (void)uncancelled(nanosleep(&duration, NULL));
    errno = saved;
}

/* The socket is non-blocking for no longer than the call. -EINPROGRESS: the attempt goes on by itself; -EALREADY: it still does. */
static int connect_at_once(int socket, const void *address, size_t length)
{
    int saved = errno;
    int was_non_blocking = kernel_make_non_blocking(socket, true);
    int result;

    if (was_non_blocking < 0) {
        return was_non_blocking;
    }
    do {
        result = result_of(uncancelled(connect(socket, address, (socklen_t)length)), saved);
    } while (result == -EINTR);
    if (!was_non_blocking) {
        (void)kernel_make_non_blocking(socket, false);
    }
    return result;
}

/* Waits without a socket option, because options belong to the program. Connecting again tells how an attempt has ended. */
static int connect_until(int socket, const void *address, size_t length, int64_t deadline_ns)
{
    bool has_begun = false;

    for (;;) { /* at least once, however short the time is */
        int result = connect_at_once(socket, address, length);
        int64_t left_ns = deadline_ns - now_ns();

        if (has_begun && result == -EINPROGRESS) {
            return -ECONNREFUSED; /* some protocols begin a new attempt after a failure */
        }
        if (result != -EINPROGRESS && result != -EALREADY && result != -EAGAIN) {
            return has_begun && result == -EISCONN ? 0 : result;
        }
        if (left_ns <= 0) {
            return -ETIMEDOUT;
        }
        if (result == -EAGAIN) { /* the listener's queue is full, and the kernel does not report when there is room */
            pause_for(left_ns < pause_longest_ns ? left_ns : pause_longest_ns);
        } else {
            has_begun = true;
            wait_for_room(socket, left_ns);
        }
    }
}

int kernel_socket_connect(int socket, const void *address, size_t length, int64_t deadline_ns)
{
    int saved = errno;
    int result;

    if (deadline_ns == 0) {
        result = connect_at_once(socket, address, length);
        return result == -EALREADY ? -EINPROGRESS : result;
    }
    if (deadline_ns != kernel_never || !is_blocking(socket)) {
        return connect_until(socket, address, length, deadline_ns);
    }
    do { /* the attempt goes on; connecting again waits for it */
        result = result_of(uncancelled(connect(socket, address, (socklen_t)length)), saved);
    } while (result == -EINTR);
    return result == -EINPROGRESS || result == -EALREADY || result == -EAGAIN ? -ETIMEDOUT : result;
}

int kernel_socket_accept(int socket, struct kernel_address *ret_peer)
{
    int saved = errno;
    socklen_t length = sizeof ret_peer->bytes;
    int result = result_of(uncancelled(accept4(socket, (struct sockaddr *)(void *)ret_peer->bytes, &length, SOCK_CLOEXEC)), saved);

    if (result >= 0) {
        set_length(ret_peer, length);
    }
    return result;
}

int kernel_socket_receive(int socket, void *bytes, size_t size, struct kernel_address *ret_peer)
{
    int saved = errno;
    socklen_t length = sizeof ret_peer->bytes;
    int result;

    do {
        result =
            result_of(uncancelled(recvfrom(socket, bytes, size, MSG_DONTWAIT, (struct sockaddr *)(void *)ret_peer->bytes, &length)), saved);
    } while (result == -EINTR);
    set_length(ret_peer, result >= 0 ? length : 0);
    return result;
}

int kernel_socket_peek(int socket)
{
    int saved = errno;
    char byte;

    return result_of(uncancelled(recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT)), saved);
}

/* Waits without a socket option, because an option would hold for other sending threads, too. */
static int send_until(int socket, const char *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    bool has_polled = false;
    size_t sent = 0;

    for (;;) {
        const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
        int saved = errno;
        int result = result_of(uncancelled(sendto(socket, bytes + sent, size - sent, flags, address, (socklen_t)length)), saved);
        bool is_done = result != -EAGAIN && (result < 0 || sent + (size_t)result == size);
        int64_t left_ns;

        sent += result > 0 ? (size_t)result : 0;
        left_ns = is_done || !is_blocking(socket) ? 0 : deadline_ns - now_ns();
        if (left_ns <= 0) {
            return sent > 0 ? (int)sent : result;
        }
        has_polled = result >= 0 || !has_polled;
        if (has_polled) {
            wait_for_room(socket, left_ns);
        } else { /* the kernel calls a socket writable although the datagram's receiver has no room */
            pause_for(left_ns < pause_longest_ns ? left_ns : pause_longest_ns);
        }
    }
}

int kernel_socket_send(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    int saved = errno;

    if (deadline_ns != kernel_never) {
        return send_until(socket, bytes, size, address, length, deadline_ns);
    }
    return result_of(uncancelled(sendto(socket, bytes, size, MSG_NOSIGNAL, address, (socklen_t)length)), saved);
}

int kernel_socket_address(int socket, bool is_of_peer, struct kernel_address *ret_address)
{
    int saved = errno;
    socklen_t length = sizeof ret_address->bytes;
    struct sockaddr *address = (struct sockaddr *)(void *)ret_address->bytes;
    int result = result_of(is_of_peer ? getpeername(socket, address, &length) : getsockname(socket, address, &length), saved);

    if (result == 0) {
        set_length(ret_address, length);
    }
    return result;
}

bool kernel_socket_is_idle(int socket)
{
    struct kernel_address peer;
    int peeked;

    if (read_option(socket, SO_ACCEPTCONN) > 0 || kernel_socket_address(socket, true, &peer) != -ENOTCONN) {
        return false;
    }
    /* A socket whose connection is over reads as ended. Only a socket that never had a connection refuses to be read (EINVAL: Unix). */
    peeked = kernel_socket_peek(socket);
    return peeked == -ENOTCONN || peeked == -EINVAL;
}
