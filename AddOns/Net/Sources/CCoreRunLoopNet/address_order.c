/* SPDX-License-Identifier: Apache-2.0 */
/* See address_order.h. The order within one family is that of c-ares, so that the rules for two of one family are not here. */
#include "address_order.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "Support/uncancelled.h"

enum { scope_link = 2, scope_site = 5, scope_global = 14 };

/* RFC 6724, 2.1, the longest prefixes first. */
static const struct policy {
    uint8_t prefix[16];
    int bits;
    int precedence;
    int label;
} policies[] = {
    {{[15] = 1}, 128, 50, 0},  {{[10] = 0xff, 0xff}, 96, 35, 4}, {{0}, 96, 1, 3},    {{0x20, 0x01}, 32, 5, 5}, {{0x20, 0x02}, 16, 30, 2},
    {{0x3f, 0xfe}, 16, 1, 12}, {{0xfe, 0xc0}, 10, 1, 11},        {{0xfc}, 7, 3, 13}, {{0}, 0, 40, 1},
};

/* An IPv4 address is written as one of IPv6 (::ffff:0:0/96). */
static struct in6_addr as_ipv6(const struct sockaddr *address)
{
    struct in6_addr ipv6 = {.s6_addr = {[10] = 0xff, 0xff}};

    if (address->sa_family == AF_INET) {
        memcpy(ipv6.s6_addr + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else {
        ipv6 = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    }
    return ipv6;
}

static const struct policy *policy_of(const struct in6_addr *address)
{
    const struct policy *policy = policies;

    for (;; policy++) {
        int bytes = policy->bits / 8;
        uint8_t mask = (uint8_t)(0xff00 >> policy->bits % 8);

        if (memcmp(policy->prefix, address->s6_addr, (size_t)bytes) == 0 &&
            (bytes == 16 || ((policy->prefix[bytes] ^ address->s6_addr[bytes]) & mask) == 0)) {
            return policy; /* the last one has no bits */
        }
    }
}

static int scope_of(const struct in6_addr *address)
{
    const uint8_t *ipv4 = address->s6_addr + 12;

    if (IN6_IS_ADDR_V4MAPPED(address)) {
        return ipv4[0] == 127 || (ipv4[0] == 169 && ipv4[1] == 254) ? scope_link : scope_global;
    }
    if (IN6_IS_ADDR_MULTICAST(address)) {
        return address->s6_addr[1] & 0xf;
    }
    return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_LINKLOCAL(address) ? scope_link
           : IN6_IS_ADDR_SITELOCAL(address)                                ? scope_site
                                                                           : scope_global;
}

/* The address that packets to this one would come from. Returns false if there is no way to it. */
static bool find_source(const struct sockaddr *address, struct in6_addr *ret_source)
{
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } end = {.any.sa_family = AF_UNSPEC};
    socklen_t length = address->sa_family == AF_INET ? sizeof end.ipv4 : sizeof end.ipv6;
    int probe = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found;

    if (probe < 0) {
        return false;
    }
    memcpy(&end, address, length);
    end.ipv4.sin_port = htons(53); /* which lies where that of IPv6 does; any but 0 */
    is_found = uncancelled(connect(probe, &end.any, length)) == 0 && getsockname(probe, &end.any, &length) == 0;
    (void)uncancelled(close(probe));
    *ret_source = as_ipv6(&end.any);
    return is_found;
}

/* Greater is better: each rule counts for more than all that follow it. */
static int merit_of(const struct sockaddr *address)
{
    struct in6_addr ipv6 = as_ipv6(address);
    struct in6_addr source;
    int merit = policy_of(&ipv6)->precedence; /* rule 6 */
    bool is_reachable = find_source(address, &source);

    if (is_reachable) { /* rules 1, 2, 5 */
        merit += 400 + (scope_of(&source) == scope_of(&ipv6) ? 200 : 0) + (policy_of(&source)->label == policy_of(&ipv6)->label ? 100 : 0);
    }
    return merit;
}

bool address_is_preferred(const struct sockaddr *address, const struct sockaddr *other)
{
    return merit_of(address) > merit_of(other);
}
