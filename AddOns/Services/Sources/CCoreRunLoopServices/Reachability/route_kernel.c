/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's calls for route_kernel.h. Any thread, no state but the table. */
#include "Reachability/route_kernel.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "Support/uncancelled.h"

static int result_of(long result)
{
    return result < 0 ? -errno : (int)result;
}

static socklen_t size_of(const union route_end *end)
{
    return end->any.sa_family == AF_INET ? sizeof end->ipv4 : sizeof end->ipv6;
}

static int linux_changes_open(void)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                        .nl_groups =
                                            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE};
    int changes = result_of(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    int result = changes;

    if (changes >= 0 && bind(changes, (const struct sockaddr *)&address, sizeof address) < 0) {
        result = -errno;
        (void)uncancelled(close(changes));
    }
    return result;
}

static int linux_changes_read(int changes)
{
    char beginning;

    return result_of(uncancelled(recv(changes, &beginning, sizeof beginning, MSG_DONTWAIT)));
}

static int connect_with(int descriptor, const union route_end *local, const union route_end *remote, union route_end *ret_own)
{
    socklen_t size = sizeof *ret_own;

    if (local->any.sa_family != AF_UNSPEC && bind(descriptor, &local->any, size_of(local)) < 0) {
        return -errno;
    }
    if (uncancelled(connect(descriptor, &remote->any, size_of(remote))) < 0) {
        return -errno;
    }
    return result_of(getsockname(descriptor, &ret_own->any, &size));
}

static int linux_connect(const union route_end *local, const union route_end *remote, union route_end *ret_own)
{
    int descriptor = result_of(socket(remote->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int result = descriptor;

    if (descriptor >= 0) {
        result = connect_with(descriptor, local, remote, ret_own);
        (void)uncancelled(close(descriptor));
    }
    return result;
}

/* The kernel has answered when the call that asks returns. */
static ssize_t ask_with(int descriptor, const void *request, size_t request_size, void *answer, size_t answer_size)
{
    const struct sockaddr_nl kernel_address = {.nl_family = AF_NETLINK};
    struct sockaddr_nl from = {.nl_family = AF_NETLINK};
    socklen_t from_size = sizeof from;
    ssize_t count =
        uncancelled(sendto(descriptor, request, request_size, 0, (const struct sockaddr *)&kernel_address, sizeof kernel_address));

    if (count >= 0) {
        count = uncancelled(recvfrom(descriptor, answer, answer_size, MSG_TRUNC, (struct sockaddr *)&from, &from_size));
    }
    if (count < 0) {
        return -errno;
    }
    return from.nl_pid == 0 ? count : -EPROTO;
}

static ssize_t linux_ask(const void *request, size_t request_size, void *answer, size_t answer_size)
{
    int descriptor = result_of(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    ssize_t result = descriptor;

    if (descriptor >= 0) {
        result = ask_with(descriptor, request, request_size, answer, answer_size);
        (void)uncancelled(close(descriptor));
    }
    return result;
}

static int linux_interface_type(unsigned index)
{
    struct ifreq request = {.ifr_ifindex = (int)index};
    int descriptor = result_of(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int result = descriptor;

    if (descriptor >= 0) {
        result = result_of(ioctl(descriptor, SIOCGIFNAME, &request));
        result = result < 0 ? result : result_of(ioctl(descriptor, SIOCGIFHWADDR, &request));
        result = result < 0 ? result : request.ifr_hwaddr.sa_family;
        (void)uncancelled(close(descriptor));
    }
    return result;
}

#define CALLS_OF_LINUX linux_changes_open, linux_changes_read, linux_connect, linux_ask, linux_interface_type

const struct route_kernel route_kernel_linux = {CALLS_OF_LINUX};
struct route_kernel route_kernel = {CALLS_OF_LINUX};
