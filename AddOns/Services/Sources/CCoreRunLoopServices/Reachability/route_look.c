/* SPDX-License-Identifier: Apache-2.0 */
/* See route_look.h. A datagram socket that is connected says whether there is a way; the kernel's protocol of routes says how it begins. */
#include "Reachability/route_look.h"

#include <errno.h>
#include <net/if_arp.h>
#include <string.h>

#include "Reachability/route_message.h"

/* ---- addresses ---- */

bool route_end_make(union route_end *ret_end, const struct sockaddr *address)
{
    memset(ret_end, 0, sizeof *ret_end);
    if (address->sa_family == AF_INET) {
        memcpy(&ret_end->ipv4, address, sizeof ret_end->ipv4);
        ret_end->ipv4.sin_port = 0;
        return true;
    }
    if (address->sa_family != AF_INET6) {
        return false;
    }
    memcpy(&ret_end->ipv6, address, sizeof ret_end->ipv6);
    ret_end->ipv6.sin6_port = 0;
    if (IN6_IS_ADDR_V4MAPPED(&ret_end->ipv6.sin6_addr)) {
        struct sockaddr_in inner = {.sin_family = AF_INET};

        memcpy(&inner.sin_addr, &ret_end->ipv6.sin6_addr.s6_addr[12], sizeof inner.sin_addr);
        memset(ret_end, 0, sizeof *ret_end);
        ret_end->ipv4 = inner;
    }
    return true;
}

static bool is_same_address(const union route_end *one, const union route_end *other)
{
    if (one->any.sa_family != other->any.sa_family) {
        return false;
    }
    return one->any.sa_family == AF_INET ? one->ipv4.sin_addr.s_addr == other->ipv4.sin_addr.s_addr
                                         : IN6_ARE_ADDR_EQUAL(&one->ipv6.sin6_addr, &other->ipv6.sin6_addr);
}

static bool is_zero(const union route_end *end)
{
    return end->any.sa_family == AF_INET ? end->ipv4.sin_addr.s_addr == htonl(INADDR_ANY) : IN6_IS_ADDR_UNSPECIFIED(&end->ipv6.sin6_addr);
}

/* Addresses that are kept for documents, RFC 5737 and RFC 3849: no machine has one, so the way to them is the way to any. */
static union route_end end_of_documents(sa_family_t family)
{
    static const unsigned char ipv4[] = {192, 0, 2, 1};
    static const unsigned char ipv6[] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    union route_end end;

    memset(&end, 0, sizeof end);
    end.any.sa_family = family;
    if (family == AF_INET) {
        memcpy(&end.ipv4.sin_addr, ipv4, sizeof ipv4);
    } else {
        memcpy(&end.ipv6.sin6_addr, ipv6, sizeof ipv6);
    }
    return end;
}

/* ---- looking ---- */

/* Whether it says nothing of the way. */
static bool is_shortage(ssize_t result)
{
    return result == -EMFILE || result == -ENFILE || result == -ENOMEM || result == -ENOBUFS || result == -EAGAIN;
}

/* How the way begins. What the kernel does not tell, as in a sandbox, is no flag. */
static int look_at_beginning(const union route_end *local, const union route_end *remote, SCNetworkReachabilityFlags *flags)
{
    char question[route_question_most];
    char bytes[route_answer_most];
    struct route_answer answer;
    ssize_t count = route_kernel.ask(question, route_question_make(question, local, remote), bytes, sizeof bytes);

    if (is_shortage(count)) {
        return (int)count;
    }
    if (count < 0 || count > (ssize_t)sizeof bytes || !route_answer_read(&answer, bytes, (size_t)count)) {
        return 0;
    }
    *flags |= answer.is_local ? kSCNetworkReachabilityFlagsIsLocalAddress : 0;
    *flags |= answer.has_gateway ? 0 : kSCNetworkReachabilityFlagsIsDirect;
    if (answer.interface != 0) {
        int type = route_kernel.interface_type(answer.interface);

        *flags |= type == ARPHRD_PPP ? kSCNetworkReachabilityFlagsTransientConnection : 0;
        return is_shortage(type) ? type : 0;
    }
    return 0;
}

static int look_at_way(const union route_end *local, const union route_end *remote, SCNetworkReachabilityFlags *ret_flags)
{
    union route_end probe = *remote;
    union route_end own = {.any = {.sa_family = AF_UNSPEC}};
    int result;

    if (probe.any.sa_family == AF_INET) {
        probe.ipv4.sin_port = htons(9); /* for a route it does not matter, but must not be 0 */
    } else {
        probe.ipv6.sin6_port = htons(9);
    }
    *ret_flags = 0;
    result = route_kernel.connect(local, &probe, &own);
    if (result < 0) {
        return is_shortage(result) ? result : 0;
    }
    *ret_flags = kSCNetworkReachabilityFlagsReachable;
    *ret_flags |= is_same_address(&own, remote) ? kSCNetworkReachabilityFlagsIsLocalAddress : 0;
    return look_at_beginning(local, remote, ret_flags);
}

static int look_at_any(const union route_end *local, sa_family_t family, SCNetworkReachabilityFlags *ret_flags)
{
    union route_end remote = end_of_documents(family);
    int result = look_at_way(local, &remote, ret_flags);

    if (result == 0 && *ret_flags == 0 && family == AF_INET && local->any.sa_family == AF_UNSPEC) {
        remote = end_of_documents(AF_INET6);
        result = look_at_way(local, &remote, ret_flags);
    }
    return result;
}

static int look_at_own(const union route_end *local, SCNetworkReachabilityFlags *ret_flags)
{
    static const union route_end none = {.any = {.sa_family = AF_UNSPEC}};
    int result = look_at_way(&none, local, ret_flags);

    if (!(*ret_flags & kSCNetworkReachabilityFlagsIsLocalAddress)) {
        *ret_flags = 0;
    }
    return result;
}

int route_look(const union route_end *local, const union route_end *remote, SCNetworkReachabilityFlags *ret_flags)
{
    if (remote->any.sa_family == AF_UNSPEC) {
        return look_at_own(local, ret_flags);
    }
    return is_zero(remote) ? look_at_any(local, remote->any.sa_family, ret_flags) : look_at_way(local, remote, ret_flags);
}

int route_look_each(CFArrayRef addresses, SCNetworkReachabilityFlags *ret_flags)
{
    static const union route_end none = {.any = {.sa_family = AF_UNSPEC}};
    CFIndex count = addresses ? CFArrayGetCount(addresses) : 0;
    int result = 0;

    *ret_flags = 0;
    for (CFIndex i = 0; i < count && result == 0 && *ret_flags == 0; i++) {
        CFDataRef data = CFArrayGetValueAtIndex(addresses, i);
        union route_end remote;

        if (route_end_make(&remote, (const struct sockaddr *)(const void *)CFDataGetBytePtr(data))) {
            result = route_look(&none, &remote, ret_flags);
        }
    }
    return result;
}
