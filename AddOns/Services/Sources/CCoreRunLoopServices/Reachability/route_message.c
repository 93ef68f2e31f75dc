/* SPDX-License-Identifier: Apache-2.0 */
/* See route_message.h. Messages and their attributes begin at multiples of 4 bytes, and each says its own length, which is judged. */
#include "Reachability/route_message.h"

#include <linux/rtnetlink.h>
#include <string.h>

#include "Support/invariant.h"

enum { header_size = NLMSG_LENGTH(sizeof(struct rtmsg)) };

/* ---- the question ---- */

static const void *bytes_of(const union route_end *end, size_t *ret_size)
{
    *ret_size = end->any.sa_family == AF_INET ? sizeof end->ipv4.sin_addr : sizeof end->ipv6.sin6_addr;
    return end->any.sa_family == AF_INET ? (const void *)&end->ipv4.sin_addr : &end->ipv6.sin6_addr;
}

static size_t add_attribute(char question[route_question_most], size_t used, unsigned short type, const void *bytes, size_t size)
{
    const struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = type};

    invariant(used + RTA_SPACE(size) <= route_question_most);
    memcpy(question + used, &attribute, sizeof attribute);
    memcpy(question + used + RTA_LENGTH(0), bytes, size);
    return used + RTA_SPACE(size);
}

size_t route_question_make(char question[route_question_most], const union route_end *local, const union route_end *remote)
{
    struct nlmsghdr header = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST};
    struct rtmsg route = {.rtm_family = (unsigned char)remote->any.sa_family};
    size_t used = header_size;
    size_t size;
    const void *bytes = bytes_of(remote, &size);

    memset(question, 0, route_question_most);
    route.rtm_dst_len = (unsigned char)(size * 8);
    used = add_attribute(question, used, RTA_DST, bytes, size);
    if (local->any.sa_family != AF_UNSPEC) {
        bytes = bytes_of(local, &size);
        route.rtm_src_len = (unsigned char)(size * 8);
        used = add_attribute(question, used, RTA_SRC, bytes, size);
    }
    if (remote->any.sa_family == AF_INET6 && remote->ipv6.sin6_scope_id != 0) {
        used = add_attribute(question, used, RTA_OIF, &remote->ipv6.sin6_scope_id, sizeof remote->ipv6.sin6_scope_id);
    }
    header.nlmsg_len = (unsigned)used;
    memcpy(question, &header, sizeof header);
    memcpy(question + NLMSG_HDRLEN, &route, sizeof route);
    return used;
}

/* ---- the answer ---- */

static void read_attribute(struct route_answer *answer, const struct rtattr *attribute, const char *bytes, size_t size)
{
    if (attribute->rta_type == RTA_GATEWAY || attribute->rta_type == RTA_VIA) {
        answer->has_gateway = true;
    }
    if (attribute->rta_type == RTA_OIF && size == sizeof answer->interface) {
        memcpy(&answer->interface, bytes, size);
    }
}

bool route_answer_read(struct route_answer *ret_answer, const void *bytes, size_t size)
{
    const char *message = bytes;
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;

    if (size < header_size) {
        return false;
    }
    memcpy(&header, message, sizeof header);
    if (header.nlmsg_type != RTM_NEWROUTE || header.nlmsg_len < header_size || header.nlmsg_len > size) {
        return false;
    }
    memcpy(&route, message + NLMSG_HDRLEN, sizeof route);
    *ret_answer = (struct route_answer){.is_local = route.rtm_type == RTN_LOCAL};
    for (size_t place = header_size; place + sizeof attribute <= header.nlmsg_len; place += RTA_ALIGN(attribute.rta_len)) {
        memcpy(&attribute, message + place, sizeof attribute);
        if (attribute.rta_len < sizeof attribute || attribute.rta_len > header.nlmsg_len - place) {
            return false;
        }
        read_attribute(ret_answer, &attribute, message + place + RTA_LENGTH(0), attribute.rta_len - RTA_LENGTH(0));
    }
    return true;
}
