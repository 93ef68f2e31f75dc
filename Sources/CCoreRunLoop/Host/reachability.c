/* SPDX-License-Identifier: Apache-2.0 */
/* See reachability.h. Connecting a datagram socket looks the route up and sends nothing; it also gives the socket its own address. */
#include "Host/reachability.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "CFNetwork/CFHost.h"
#include "Kernel/kernel.h"

union address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* Returns the bytes of an address that identify the machine. */
static const void *address_bytes(const struct sockaddr *address, size_t *ret_size)
{
    if (address->sa_family == AF_INET) {
        *ret_size = sizeof(struct in_addr);
        return &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    *ret_size = sizeof(struct in6_addr);
    return &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static bool is_same_machine(const struct sockaddr *one, const struct sockaddr *other)
{
    size_t size;
    const void *bytes = address_bytes(one, &size);

    return one->sa_family == other->sa_family && memcmp(bytes, address_bytes(other, &size), size) == 0;
}

/* A port of 0 cannot be connected to, so another one is asked for: it does not matter for a route. */
static void copy_with_port(CFDataRef data, union address *ret_address, size_t *ret_length)
{
    *ret_length = (size_t)CFDataGetLength(data) < sizeof *ret_address ? (size_t)CFDataGetLength(data) : sizeof *ret_address;
    memset(ret_address, 0, sizeof *ret_address);
    memcpy(ret_address, CFDataGetBytePtr(data), *ret_length);
    if (ret_address->any.sa_family == AF_INET) {
        ret_address->ipv4.sin_port = htons(9);
    } else {
        ret_address->ipv6.sin6_port = htons(9);
    }
}

static uint32_t flags_of(CFDataRef data)
{
    union address address;
    struct kernel_address own;
    size_t length;
    uint32_t flags = 0;
    int descriptor;

    copy_with_port(data, &address, &length);
    descriptor = kernel.socket_create(address.any.sa_family, SOCK_DGRAM, 0);
    if (descriptor < 0) {
        return 0;
    }
    if (kernel.socket_connect(descriptor, &address, length, 0) == 0) {
        flags = kSCNetworkFlagsReachable;
        if (kernel.socket_address(descriptor, false, &own) >= 0 && own.length > 0 &&
            is_same_machine((const struct sockaddr *)(const void *)own.bytes, &address.any)) {
            flags |= kSCNetworkFlagsIsLocalAddress;
        }
    }
    (void)kernel.close(descriptor);
    return flags;
}

CFDataRef reachability_create(CFArrayRef addresses)
{
    uint32_t flags = 0;

    for (CFIndex i = 0; i < CFArrayGetCount(addresses); i++) {
        flags |= flags_of(CFArrayGetValueAtIndex(addresses, i));
    }
    return CFDataCreate(NULL, (const UInt8 *)&flags, sizeof flags);
}
