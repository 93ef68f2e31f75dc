/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on a descriptor of any kind. No state. */
#define _GNU_SOURCE
#include "Kernel/kernel_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "Kernel/kernel_result.h"
#include "Support/uncancelled.h"

int kernel_above_streams(int descriptor)
{
    int saved = errno;
    int moved;

    if (descriptor < 0 || descriptor > STDERR_FILENO) {
        return descriptor;
    }
    moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (moved >= 0) {
        (void)uncancelled(close(descriptor));
    }
    errno = saved;
    return moved >= 0 ? moved : descriptor;
}

static const short ended_mask = EPOLLRDHUP; /* poll's constant has the same value, but is declared for GNU sources only */

uint32_t kernel_descriptor_ready(int descriptor, uint32_t interest)
{
    int saved = errno;
    struct pollfd one = {.fd = descriptor};
    uint32_t ready = 0;

    one.events = (short)((interest & kernel_readable ? POLLIN | ended_mask : 0) | (interest & kernel_writable ? POLLOUT : 0) |
                         (interest & kernel_priority ? POLLPRI : 0));
    if (uncancelled(poll(&one, 1, 0)) > 0) {
        ready = (one.revents & (POLLIN | ended_mask) ? kernel_readable : 0u) | (one.revents & POLLOUT ? kernel_writable : 0u) |
                (one.revents & POLLPRI ? kernel_priority : 0u) | (one.revents & (POLLERR | POLLHUP | POLLNVAL) ? kernel_failed : 0u) |
                (one.revents & (ended_mask | POLLHUP) ? kernel_ended : 0u) | (one.revents & POLLERR ? kernel_error : 0u);
    }
    errno = saved;
    return ready;
}

bool kernel_descriptor_is_open(int descriptor)
{
    int saved = errno;

    return result_of(fcntl(descriptor, F_GETFD), saved) >= 0;
}

int kernel_descriptor_name(int descriptor, char *ret_name, size_t size)
{
    int saved = errno;
    char path[32];
    int length;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    length = result_of((int)readlink(path, ret_name, size - 1), saved);
    ret_name[length > 0 ? length : 0] = '\0';
    return length;
}

/*
 * The name in /proc tells the kind of file behind a descriptor. Without /proc the kind is unknown, and the descriptor is not read: only
 * known counters are.
 */
enum kernel_descriptor_kind kernel_descriptor_kind(int descriptor)
{
    char name[32];

    (void)kernel_descriptor_name(descriptor, name, sizeof name);
    return strcmp(name, "anon_inode:[eventfd]") == 0 || strcmp(name, "anon_inode:[timerfd]") == 0 ? kernel_descriptor_counter
                                                                                                  : kernel_descriptor_other;
}

int kernel_descriptor_close(int descriptor)
{
    int saved = errno;

    return result_of(uncancelled(close(descriptor)), saved);
}
