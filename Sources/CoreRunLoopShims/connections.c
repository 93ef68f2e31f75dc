/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of byte streams that the C library has no function for. Nothing is kept here. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CoreRunLoopShims.h"
#include "Overlay/overlay.h"

int shim_connections_listen(int family, const uint8_t *address, intptr_t length)
{
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    int error;

    if (listener < 0) {
        return -errno;
    }
    if (family != AF_UNIX) {
        (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (bind(listener, (const struct sockaddr *)(const void *)address, (socklen_t)length) == 0 && listen(listener, SOMAXCONN) == 0) {
        return listener;
    }
    error = errno;
    (void)close(listener);
    return -error;
}

int shim_connections_accept(int listener)
{
    int accepted;

    do {
        accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (accepted < 0 && (errno == EINTR || errno == ECONNABORTED));
    return accepted < 0 ? -errno : accepted;
}

intptr_t shim_stream_write_now(CFWriteStreamRef stream, const uint8_t *bytes, intptr_t size)
{
    return overlay_stream_write_now(stream, bytes, size);
}

int shim_connection_end_sending(int socket)
{
    return shutdown(socket, SHUT_WR) == 0 ? 0 : -errno;
}

int shim_descriptor_access(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);

    return flags < 0 ? -errno : flags & O_ACCMODE;
}

int shim_descriptor_copy(int descriptor)
{
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);

    return copy < 0 ? -errno : copy;
}
