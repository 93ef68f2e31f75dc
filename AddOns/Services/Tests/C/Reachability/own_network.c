/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "Reachability/own_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

/* ---- a message to the kernel ---- */

struct message {
    struct nlmsghdr header;
    char rest[256];
};

static void add(struct message *message, const void *bytes, size_t size)
{
    memcpy((char *)message + NLMSG_ALIGN(message->header.nlmsg_len), bytes, size);
    message->header.nlmsg_len = (unsigned)(NLMSG_ALIGN(message->header.nlmsg_len) + size);
}

static void add_attribute(struct message *message, unsigned short type, const void *bytes, size_t size)
{
    const struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = type};

    add(message, &attribute, sizeof attribute);
    memcpy((char *)message + message->header.nlmsg_len, bytes, size);
    message->header.nlmsg_len += (unsigned)size;
}

static const void *bytes_of(const struct sockaddr_storage *address, size_t *ret_size)
{
    *ret_size = address->ss_family == AF_INET ? 4 : 16;
    return address->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
                                         : &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static void add_address(struct message *message, unsigned short type, const char *text)
{
    struct sockaddr_storage address = own_network_address(text);
    size_t size;
    const void *bytes = bytes_of(&address, &size);

    add_attribute(message, type, bytes, size);
}

/* Returns 0 or the kernel's error, negative. */
static int ask(struct message *message)
{
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    message->header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    REQUIRE(descriptor >= 0);
    REQUIRE(send(descriptor, message, message->header.nlmsg_len, 0) == (ssize_t)message->header.nlmsg_len);
    REQUIRE(recv(descriptor, &answer, sizeof answer, 0) >= (ssize_t)NLMSG_LENGTH(sizeof answer.error));
    REQUIRE(answer.header.nlmsg_type == NLMSG_ERROR);
    (void)close(descriptor);
    return answer.error.error;
}

static void request(struct message *message)
{
    int error = ask(message);

    if (error != 0) {
        (void)printf("the kernel refuses message %d: %s\n", message->header.nlmsg_type, strerror(-error));
    }
    REQUIRE(error == 0);
}

/* ---- the network ---- */

struct sockaddr_storage own_network_address(const char *text)
{
    struct sockaddr_storage address;

    memset(&address, 0, sizeof address);
    address.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    REQUIRE(inet_pton(address.ss_family, text,
                      address.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)(void *)&address)->sin_addr
                                                   : &((struct sockaddr_in6 *)(void *)&address)->sin6_addr) == 1);
    return address;
}

static void write_text_to(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file >= 0) {
        (void)!write(file, text, strlen(text));
        (void)close(file);
    }
}

void own_network_enter(void)
{
    char map[32];
    uid_t user = getuid();

    if (unshare(CLONE_NEWNET) == 0) {
        return;
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        SKIP("the process may not have a network of its own");
    }
    (void)snprintf(map, sizeof map, "%d %d 1", (int)user, (int)user);
    write_text_to("/proc/self/uid_map", map);
}

static const char *route_link = "lo";

static void set_up(const char *name, bool is_up)
{
    struct ifreq flags;
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memset(&flags, 0, sizeof flags);
    (void)snprintf(flags.ifr_name, sizeof flags.ifr_name, "%s", name);
    REQUIRE(descriptor >= 0 && ioctl(descriptor, SIOCGIFFLAGS, &flags) == 0);
    flags.ifr_flags = (short)(is_up ? flags.ifr_flags | IFF_UP : flags.ifr_flags & ~IFF_UP);
    REQUIRE(ioctl(descriptor, SIOCSIFFLAGS, &flags) == 0);
    (void)close(descriptor);
}

void own_network_up(bool is_up)
{
    set_up("lo", is_up);
}

bool own_network_add_links(void)
{
    const struct ifinfomsg body = {.ifi_family = AF_UNSPEC};
    struct {
        struct rtattr attribute;
        char name[8];
    } kind = {{.rta_len = RTA_LENGTH(4), .rta_type = IFLA_INFO_KIND}, "veth"};
    struct message message = {
        .header = {.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL}};

    add(&message, &body, sizeof body);
    add_attribute(&message, IFLA_IFNAME, "link0", sizeof "link0");
    add_attribute(&message, IFLA_LINKINFO, &kind, kind.attribute.rta_len);
    if (ask(&message) != 0) {
        return false;
    }
    set_up("link0", true);
    set_up("veth0", true);
    route_link = "link0";
    return true;
}

void own_network_add_address(const char *address, int prefix, bool is_added)
{
    struct ifaddrmsg body = {.ifa_family = (unsigned char)own_network_address(address).ss_family,
                             .ifa_prefixlen = (unsigned char)prefix,
                             .ifa_flags = IFA_F_NODAD,
                             .ifa_index = if_nametoindex("lo")};
    struct message message = {.header = {.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = is_added ? RTM_NEWADDR : RTM_DELADDR}};

    message.header.nlmsg_flags = is_added ? NLM_F_CREATE | NLM_F_EXCL : 0;
    add(&message, &body, sizeof body);
    add_address(&message, IFA_LOCAL, address);
    request(&message);
}

void own_network_add_route(const char *destination, int prefix, const char *gateway, bool is_added)
{
    struct rtmsg body = {.rtm_family = (unsigned char)own_network_address(destination).ss_family,
                         .rtm_dst_len = (unsigned char)prefix,
                         .rtm_table = RT_TABLE_MAIN,
                         .rtm_protocol = RTPROT_STATIC,
                         .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                         .rtm_type = RTN_UNICAST,
                         .rtm_flags = gateway ? RTNH_F_ONLINK : 0};
    struct message message = {.header = {.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = is_added ? RTM_NEWROUTE : RTM_DELROUTE}};
    unsigned interface = if_nametoindex(route_link);

    message.header.nlmsg_flags = is_added ? NLM_F_CREATE | NLM_F_EXCL : 0;
    add(&message, &body, sizeof body);
    if (prefix > 0) {
        add_address(&message, RTA_DST, destination);
    }
    if (gateway) {
        add_address(&message, RTA_GATEWAY, gateway);
    }
    add_attribute(&message, RTA_OIF, &interface, sizeof interface);
    request(&message);
}
