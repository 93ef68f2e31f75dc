/* SPDX-License-Identifier: Apache-2.0 */
/* See write_kernel.h. No state, no locks; any thread. */
#define _GNU_SOURCE
#include "Write/write_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Support/uncancelled.h"

static int socket_type(int socket)
{
    int saved = errno;
    int type = 0;
    socklen_t size = sizeof type;
    int result = getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 ? type : -errno;

    errno = saved;
    return result;
}

static int descriptor_copy(int descriptor)
{
    int saved = errno;
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int result = copy < 0 ? -errno : copy;

    errno = saved;
    return result == -EINVAL ? -EMFILE : result; /* the limit is below the standard streams */
}

static ssize_t socket_send(int socket, const void *bytes, size_t size)
{
    int saved = errno;
    ssize_t result;

    do {
        result = uncancelled(send(socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL));
        result = result < 0 ? -errno : result;
    } while (result == -EINTR);
    errno = saved;
    return result == -ENOBUFS || result == -ENOMEM ? -EAGAIN : result;
}

static void close_descriptor(int descriptor)
{
    int saved = errno;

    (void)uncancelled(close(descriptor));
    errno = saved;
}

struct write_kernel write_kernel = {
    .socket_type = socket_type,
    .descriptor_copy = descriptor_copy,
    .socket_send = socket_send,
    .close = close_descriptor,
};
