/* SPDX-License-Identifier: Apache-2.0 */
/* See resolver.h. */
#define _GNU_SOURCE /* EAI_NODATA */
#include "resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CoreFoundation/CFData.h"
#include "Support/invariant.h"
#include "address_order.h"

/* ---- sockets ---- */

static ares_socket_t open_socket(int family, int type, int protocol, void *info)
{
    (void)info;
    return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
}

static int close_socket(ares_socket_t socket, void *info)
{
    (void)info;
    return close(socket);
}

static int connect_socket(ares_socket_t socket, const struct sockaddr *address, ares_socklen_t length, void *info)
{
    (void)info;
    return connect(socket, address, length);
}

static ares_ssize_t receive_bytes(ares_socket_t socket, void *bytes, size_t size, int flags, struct sockaddr *peer,
                                  ares_socklen_t *peer_length, void *info)
{
    (void)info;
    return recvfrom(socket, bytes, size, flags, peer, peer_length);
}

static ares_ssize_t send_parts(ares_socket_t socket, const struct iovec *parts, int count, void *info)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count};

    (void)info;
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* ---- the channel ---- */

bool resolver_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t length = strlen(name);
    bool has_word = false;

    if (length == 0 || length > (name[length - 1] == '.' ? 254 : 253)) {
        return false;
    }
    while (*name) {
        size_t label = strspn(name, letters);
        bool is_hex = name[0] == '0' && (name[1] == 'x' || name[1] == 'X');
        size_t digits = is_hex ? 2 + strspn(name + 2, "0123456789abcdefABCDEF") : strspn(name, "0123456789");

        if (label == 0 || label > 63 || (name[label] != '.' && name[label] != '\0')) {
            return false;
        }
        has_word |= digits < label;
        name += label + (name[label] == '.');
    }
    return has_word;
}

int resolver_create(const struct resolver_terms *terms, ares_channel *ret_channel)
{
    static const struct ares_socket_functions functions = {open_socket, close_socket, connect_socket, receive_bytes, send_parts};
    static char no_file[] = "/dev/null"; /* `configuration` has what it says */
    const struct dns_configuration *c = terms->configuration;
    char lookups[sizeof c->lookups];
    char servers[sizeof c->servers] = "";
    struct ares_options options = {
        .flags = (c->has_edns ? ARES_FLAG_EDNS : 0) | (c->uses_tcp ? ARES_FLAG_USEVC : 0),
        .timeout = dns_configuration_patience_ms(c),
        .tries = c->attempts,
        .ndots = 1,
        .lookups = lookups,
        .resolvconf_path = no_file,
        .sock_state_cb = terms->watch_socket,
        .sock_state_cb_data = terms->info,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
               ARES_OPT_RESOLVCONF | ARES_OPT_SOCK_STATE_CB;
    int status;

    (void)snprintf(lookups, sizeof lookups, "%s", terms->lookups);
    for (int i = 0; i < c->server_count; i++) {
        size_t used = strlen(servers);

        (void)snprintf(servers + used, sizeof servers - used, "%s%s", i ? "," : "", c->servers[i]);
    }
    status = ares_init_options(ret_channel, &options, mask);
    if (status != ARES_SUCCESS) {
        *ret_channel = NULL;
        return status;
    }
    invariant(*ret_channel);
    ares_set_socket_functions(*ret_channel, &functions, NULL);
    status = ares_set_servers_ports_csv(*ret_channel, servers);
    if (status != ARES_SUCCESS) {
        ares_destroy(*ret_channel); /* it would ask a server of its own choice */
        *ret_channel = NULL;
    }
    return status;
}

void resolver_ask_addresses(ares_channel channel, const char *name, int family, ares_addrinfo_callback callback, void *info)
{
    const struct ares_addrinfo_hints hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};

    ares_getaddrinfo(channel, name, NULL, &hints, callback, info);
}

void resolver_ask_names(ares_channel channel, CFDataRef address, ares_host_callback callback, void *info)
{
    const struct sockaddr *any = (const struct sockaddr *)(const void *)CFDataGetBytePtr(address);

    if (any->sa_family == AF_INET && CFDataGetLength(address) >= (CFIndex)sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)(const void *)any;

        ares_gethostbyaddr(channel, &ipv4->sin_addr, sizeof ipv4->sin_addr, AF_INET, callback, info);
    } else if (any->sa_family == AF_INET6 && CFDataGetLength(address) >= (CFIndex)sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)(const void *)any;

        ares_gethostbyaddr(channel, &ipv6->sin6_addr, sizeof ipv6->sin6_addr, AF_INET6, callback, info);
    } else {
        callback(info, ARES_EBADQUERY, 0, NULL);
    }
}

/* ---- answers ---- */

/* Passes over a name that is in the array already or is not ASCII. Returns false without memory. */
static bool append_name(CFMutableArrayRef names, const char *name)
{
    CFIndex count = CFArrayGetCount(names);
    CFStringRef text = CFStringCreateWithCString(kCFAllocatorSystemDefault, name, kCFStringEncodingASCII);
    bool is_new = text && !CFArrayContainsValue(names, CFRangeMake(0, count), text);

    if (is_new) {
        CFArrayAppendValue(names, text);
    }
    if (text) {
        CFRelease(text);
    }
    return !is_new || CFArrayGetCount(names) > count;
}

CFArrayRef resolver_create_names(const struct hostent *host)
{
    CFMutableArrayRef names = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    bool is_whole = names && append_name(names, host->h_name);

    for (char **alias = host->h_aliases; is_whole && *alias; alias++) {
        is_whole = append_name(names, *alias);
    }
    if (names && (!is_whole || CFArrayGetCount(names) == 0)) {
        CFRelease(names);
        names = NULL;
    }
    return names;
}

static bool append_address(CFMutableArrayRef addresses, const struct ares_addrinfo_node *node, UInt32 port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
    } address = {.any.sa_family = AF_UNSPEC};
    CFIndex count = CFArrayGetCount(addresses);
    CFDataRef data;

    if (node->ai_addrlen > sizeof address) {
        return true; /* of a family that was not asked for */
    }
    memcpy(&address, node->ai_addr, node->ai_addrlen);
    invariant(address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6);
    if (address.any.sa_family == AF_INET) {
        address.ipv4.sin_port = htons((uint16_t)port);
    } else {
        address.ipv6.sin6_port = htons((uint16_t)port);
    }
    data = CFDataCreate(NULL, (const UInt8 *)&address, (CFIndex)node->ai_addrlen);
    if (data) {
        CFArrayAppendValue(addresses, data);
        CFRelease(data);
    }
    return CFArrayGetCount(addresses) > count;
}

CFArrayRef resolver_create_addresses(const struct ares_addrinfo *found, const struct ares_addrinfo *other, UInt32 port)
{
    CFMutableArrayRef addresses = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    const struct ares_addrinfo_node *left[2] = {found ? found->nodes : NULL, other ? other->nodes : NULL};

    while (addresses && (left[0] || left[1])) {
        int next = !left[0] || (left[1] && address_is_preferred(left[1]->ai_addr, left[0]->ai_addr));

        if (!append_address(addresses, left[next], port)) {
            CFRelease(addresses);
            return NULL;
        }
        left[next] = left[next]->ai_next;
    }
    return addresses;
}

CFStreamError resolver_error(int status)
{
    static const struct {
        int status;
        int error;
    } errors[] = {
        {ARES_ENOTFOUND, EAI_NONAME}, {ARES_EBADNAME, EAI_NONAME},    {ARES_ENODATA, EAI_NODATA}, {ARES_ETIMEOUT, EAI_AGAIN},
        {ARES_ESERVFAIL, EAI_AGAIN},  {ARES_ECONNREFUSED, EAI_AGAIN}, {ARES_ENOMEM, EAI_MEMORY},  {ARES_EBADRESP, EAI_AGAIN},
        {ARES_EFORMERR, EAI_AGAIN},   {ARES_EREFUSED, EAI_AGAIN},
    };

    if (status == ARES_SUCCESS) {
        return (CFStreamError){0, 0};
    }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].status == status) {
            return (CFStreamError){kCFStreamErrorDomainNetDB, errors[i].error};
        }
    }
    return (CFStreamError){kCFStreamErrorDomainNetDB, EAI_FAIL};
}
