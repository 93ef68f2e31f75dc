/* SPDX-License-Identifier: Apache-2.0 */
/* See host_address.h. No state, no locks. */
#include "Stream/Connection/host_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "CoreFoundation/CFData.h"
#include "Runtime/Text/c_string.h"

/* The longest name in the domain name system is shorter, and so is a numeric address with an interface's name. */
enum { most_characters = 256 };

static bool append(CFMutableArrayRef addresses, const void *address, size_t length)
{
    CFDataRef data = CFDataCreate(NULL, address, (CFIndex)length);
    CFIndex count = CFArrayGetCount(addresses);

    if (!data) {
        return false;
    }
    CFArrayAppendValue(addresses, data);
    CFRelease(data);
    return CFArrayGetCount(addresses) > count;
}

/* The number of a scope: an interface's name or its number. 0: there is no such interface. */
static uint32_t scope_of(const char *text)
{
    uint32_t scope = if_nametoindex(text);
    char *end;
    unsigned long number;

    if (scope) {
        return scope;
    }
    number = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* Returns true for an IPv6 address, perhaps with the interface behind a percent sign, and perhaps in brackets. */
static bool parse_ipv6(char *text, uint16_t port, struct sockaddr_in6 *ret_address)
{
    size_t length = strlen(text);
    char *percent;

    *ret_address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        text++;
    }
    percent = strchr(text, '%');
    if (percent) {
        *percent = '\0';
        ret_address->sin6_scope_id = scope_of(percent + 1);
        if (ret_address->sin6_scope_id == 0) {
            return false;
        }
    }
    return inet_pton(AF_INET6, text, &ret_address->sin6_addr) == 1;
}

/* Old spellings (0177.0.0.1, 127.1, 0x7f000001) mean what they mean to getaddrinfo. inet_aton would pass over what is behind a space. */
static bool parse_ipv4(const char *text, struct in_addr *ret_address)
{
    return text[strspn(text, "0123456789abcdefABCDEFxX.")] == '\0' && inet_aton(text, ret_address) != 0;
}

/* Returns the number of known addresses that were appended; below 0: there is no memory. */
static int append_known(CFMutableArrayRef addresses, char *text, uint16_t port)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    if (strcasecmp(text, "localhost") == 0 || strcasecmp(text, "localhost.") == 0) {
        ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return append(addresses, &ipv6, sizeof ipv6) && append(addresses, &ipv4, sizeof ipv4) ? 2 : -1;
    }
    if (parse_ipv4(text, &ipv4.sin_addr)) {
        return append(addresses, &ipv4, sizeof ipv4) ? 1 : -1;
    }
    if (parse_ipv6(text, port, &ipv6)) {
        return append(addresses, &ipv6, sizeof ipv6) ? 1 : -1;
    }
    return 0;
}

bool host_address_create(CFStringRef host, UInt32 port, CFArrayRef *ret_addresses)
{
    char text[most_characters];
    CFMutableArrayRef addresses;
    int count;

    *ret_addresses = NULL;
    if (!c_string_copy(host, text, sizeof text, kCFStringEncodingASCII)) {
        return true; /* no address looks like this */
    }
    addresses = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    if (!addresses) {
        return false;
    }
    count = append_known(addresses, text, htons((uint16_t)port));
    if (count > 0) {
        *ret_addresses = addresses;
    } else {
        CFRelease(addresses);
    }
    return count >= 0;
}
