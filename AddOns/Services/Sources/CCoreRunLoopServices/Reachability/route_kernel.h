/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reachability asks the kernel for, besides File/notify_kernel.h, in a table that tests replace. Functions return a negative errno
 * where they fail. None waits, none is a cancellation point.
 */
#ifndef CRL_SERVICES_ROUTE_KERNEL_H
#define CRL_SERVICES_ROUTE_KERNEL_H

#include "services_link_names.h"

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* An address of IP at one end of a way. AF_UNSPEC: none. */
union route_end {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

struct route_kernel {
    /* A socket that the kernel tells of links, addresses and routes. */
    int (*changes_open)(void);
    /* Takes one message, which may say anything. -EAGAIN: there is none; -ENOBUFS: some were lost. */
    int (*changes_read)(int changes);
    /* Looks the way up for a datagram socket, from `local` if it has an address, and stores the socket's own address. Sends nothing. */
    int (*connect)(const union route_end *local, const union route_end *remote, union route_end *ret_own);
    /* Asks the kernel in its protocol of routes. Returns how many bytes the answer has, of which at most `answer_size` were stored. */
    ssize_t (*ask)(const void *request, size_t request_size, void *answer, size_t answer_size);
    /* The type of an interface, of <net/if_arp.h>. */
    int (*interface_type)(unsigned index);
};

/* The one in use: Linux's, except in tests, which replace it before anything else runs. */
extern struct route_kernel route_kernel;
extern const struct route_kernel route_kernel_linux;

#endif
