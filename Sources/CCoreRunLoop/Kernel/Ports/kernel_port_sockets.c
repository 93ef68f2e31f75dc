/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of message ports' table on sockets and their peers. No state. */
#define _GNU_SOURCE
#include "Kernel/Ports/kernel_port_sockets.h"

#include <bsd/string.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

/* Headers from before Linux 6.16 do not have it. PA-RISC and SPARC count their options differently. */
#if !defined(SO_PASSRIGHTS) && !defined(__hppa__) && !defined(__sparc__)
#define SO_PASSRIGHTS 83
#endif

int kernel_port_datagram_create(bool takes_credentials)
{
    int saved = errno;
    int one = 1;
    int descriptor = kernel_above_streams(result_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), saved)); /* send_in_turn waits */

    /* Before bind: a packet that is queued earlier would come without its sender's credentials. */
    if (descriptor >= 0 && takes_credentials && setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) < 0) {
        int result = result_of(-1, saved);

        (void)uncancelled(close(descriptor));
        return result;
    }
    return descriptor;
}

static socklen_t address_of(const char *path, struct sockaddr_un *ret_address)
{
    ret_address->sun_family = AF_UNIX;
    if (strlcpy(ret_address->sun_path, path, sizeof ret_address->sun_path) >= sizeof ret_address->sun_path) {
        return 0;
    }
    return sizeof *ret_address;
}

int kernel_port_datagram_bind(int socket, const char *path)
{
    int saved = errno;
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);

    if (size == 0) {
        return -ENAMETOOLONG;
    }
    (void)fchmod(socket, 0600); /* before bind: the file gets this mode */
    return result_of(bind(socket, (struct sockaddr *)&address, size), saved);
}

int kernel_port_datagram_connect(int socket, const char *path)
{
    int saved = errno;
    struct sockaddr_un address;
    socklen_t size = address_of(path, &address);

    return size == 0 ? -ENAMETOOLONG : result_of(uncancelled(connect(socket, (struct sockaddr *)&address, size)), saved);
}

int kernel_port_channel_create(int ret_ends[2])
{
    int saved = errno;

    int result = result_of(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_ends), saved);

    for (int i = 0; result == 0 && i < 2; i++) {
        ret_ends[i] = kernel_above_streams(ret_ends[i]);
    }
    return result;
}

static int read_send_room(int socket)
{
    int saved = errno;
    int room = 0;
    socklen_t size = sizeof room;
    int result = result_of(getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, &size), saved);

    return result < 0 ? result : room;
}

int kernel_port_send_room(int socket, int wanted)
{
    int saved = errno;
    int half = wanted / 2; /* the kernel doubles what it is told */
    int room = read_send_room(socket);

    if (room < 0 || room >= wanted) {
        return room;
    }
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &half, sizeof half); /* net.core.wmem_max bounds it */
    errno = saved;
    return read_send_room(socket);
}

ssize_t kernel_port_send(int socket, const void *bytes, size_t size)
{
    int saved = errno;

    return long_result_of(uncancelled(send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL)), saved);
}

ssize_t kernel_port_send_message(int socket, const struct msghdr *message)
{
    int saved = errno;

    return long_result_of(uncancelled(sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL)), saved);
}

ssize_t kernel_port_send_in_turn(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    int saved = errno;
    struct timeval limit = {0, 1}; /* 0 would be no limit */

    if (limit_ns != *socket_limit_ns) {
        if (limit_ns > 1000) {
            limit = (struct timeval){(time_t)(limit_ns / kernel_second_ns), (suseconds_t)(limit_ns % kernel_second_ns / 1000)};
        }
        if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
            return long_result_of(-1, saved);
        }
        *socket_limit_ns = limit_ns;
    }
    return long_result_of(uncancelled(sendmsg(socket, message, MSG_NOSIGNAL)), saved);
}

ssize_t kernel_port_receive_message(int socket, struct msghdr *message)
{
    int saved = errno;

    return long_result_of(uncancelled(recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)), saved);
}

static bool has_option(int descriptor, int option, int value)
{
    int found = -1;
    socklen_t size = sizeof found;

    return getsockopt(descriptor, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

bool kernel_port_is_channel(int descriptor)
{
    int saved = errno;
    bool result = has_option(descriptor, SO_DOMAIN, AF_UNIX) && has_option(descriptor, SO_TYPE, SOCK_SEQPACKET) &&
                  has_option(descriptor, SO_ACCEPTCONN, 0);

    errno = saved;
    return result;
}

enum { so_passpidfd = 76, pidfs_magic = 0x50494446 }; /* SO_PASSPIDFD and PIDFS_MAGIC, which older headers lack */

int kernel_port_identify_senders(int socket)
{
    const int one = 1;
    int saved = errno;

    return result_of(setsockopt(socket, SOL_SOCKET, so_passpidfd, &one, sizeof one), saved);
}

/* Only a file system of pidfds has a number for each process. Before that, all had the same number. */
uint64_t kernel_port_process_number(int pidfd)
{
    int saved = errno;
    struct statfs system;
    struct stat status;
    bool is_numbered = fstatfs(pidfd, &system) == 0 && system.f_type == pidfs_magic && fstat(pidfd, &status) == 0;

    errno = saved;
    return is_numbered ? (uint64_t)status.st_ino : 0;
}

int kernel_port_hang_up(int socket)
{
    int saved = errno;

    return result_of(shutdown(socket, SHUT_RDWR), saved);
}

int kernel_port_refuse_descriptors(int socket)
{
#if defined(SO_PASSRIGHTS)
    int saved = errno;
    int off = 0;

    return result_of(setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off), saved);
#else
    (void)socket;
    return -ENOPROTOOPT;
#endif
}

/*
 * With SO_PASSCRED each packet comes with its sender's credentials. So the look tells an empty packet from the end of a channel. A look
 * takes the error that the end of a channel left behind, so a second one may be needed. Descriptors in the queue stay there.
 */
bool kernel_port_stop_receiving(int socket)
{
    int saved = errno;
    int on = 1;
    char byte;
    char room[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec piece = {&byte, sizeof byte};
    struct msghdr message;
    ssize_t size;
    int looks = 0;
    bool is_empty;

    if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0) {
        is_empty = errno == ENOTSOCK;
        errno = saved;
        return is_empty;
    }
    (void)shutdown(socket, SHUT_RD);
    do {
        message = (struct msghdr){.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        size = uncancelled(recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    } while (size < 0 && errno == ECONNRESET && looks++ == 0);
    is_empty = size < 0 ? errno == EAGAIN : size == 0 && message.msg_controllen == 0;
    errno = saved;
    return is_empty;
}

int kernel_port_stop_lingering(int descriptor)
{
    int saved = errno;
    struct linger off = {0, 0};

    return result_of(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &off, sizeof off), saved);
}

int kernel_port_wait(int socket, uint32_t interest, int64_t deadline_ns)
{
    int saved = errno;
    struct pollfd one = {.fd = socket};
    struct timespec limit = {0, 0};
    int count;

    one.events = (short)((interest & kernel_readable ? POLLIN : 0) | (interest & kernel_writable ? POLLOUT : 0));
    if (deadline_ns != kernel_never) {
        int64_t left_ns = deadline_ns - kernel.monotonic_ns();

        if (left_ns > 0) {
            limit.tv_sec = (time_t)(left_ns / kernel_second_ns);
            limit.tv_nsec = (long)(left_ns % kernel_second_ns);
        }
    }
    count = result_of(uncancelled(ppoll(&one, 1, deadline_ns == kernel_never ? NULL : &limit, NULL)), saved);
    if (count <= 0) {
        return count;
    }
    return (one.revents & POLLIN ? kernel_readable : 0) | (one.revents & POLLOUT ? kernel_writable : 0) |
           (one.revents & (POLLERR | POLLHUP | POLLNVAL) ? kernel_failed : 0);
}
