/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are known without the add-on library: rule 330. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "CoreFoundation/CFData.h"
#include "Stream/Connection/host_address.h"
#include "harness.h"

/* The number of addresses of a host, and the text of the last one. */
static CFIndex parse(const char *host, char ret_text[INET6_ADDRSTRLEN], uint32_t *ret_scope)
{
    CFStringRef name = CFStringCreateWithCString(NULL, host, kCFStringEncodingUTF8);
    CFArrayRef addresses;
    CFIndex count;
    const struct sockaddr *last;

    REQUIRE(host_address_create(name, 80, &addresses));
    CFRelease(name);
    if (!addresses) {
        return 0;
    }
    count = CFArrayGetCount(addresses);
    last = (const struct sockaddr *)(const void *)CFDataGetBytePtr(CFArrayGetValueAtIndex(addresses, count - 1));
    if (last->sa_family == AF_INET) {
        const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)(const void *)last;

        EXPECT_EQ(ntohs(ipv4->sin_port), 80);
        inet_ntop(AF_INET, &ipv4->sin_addr, ret_text, INET6_ADDRSTRLEN);
    } else {
        const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)(const void *)last;

        EXPECT_EQ(ntohs(ipv6->sin6_port), 80);
        inet_ntop(AF_INET6, &ipv6->sin6_addr, ret_text, INET6_ADDRSTRLEN);
        *ret_scope = ipv6->sin6_scope_id;
    }
    CFRelease(addresses);
    return count;
}

TEST(numeric_hosts_of_streams_are_known, "330")
{
    char text[INET6_ADDRSTRLEN];
    char long_name[400];
    uint32_t scope = 0;

    EXPECT_EQ(parse("192.0.2.7", text, &scope), 1);
    EXPECT_STR(text, "192.0.2.7");
    EXPECT_EQ(parse("2001:db8::1", text, &scope), 1);
    EXPECT_STR(text, "2001:db8::1");
    EXPECT_EQ(parse("[2001:db8::2]", text, &scope), 1);
    EXPECT_STR(text, "2001:db8::2");
    EXPECT_EQ(scope, 0);
    EXPECT_EQ(parse("fe80::1%7", text, &scope), 1);
    EXPECT_EQ(scope, 7);
    if (if_nametoindex("lo")) {
        EXPECT_EQ(parse("fe80::1%lo", text, &scope), 1);
        EXPECT_EQ(scope, if_nametoindex("lo"));
    }
    EXPECT_EQ(parse("localhost", text, &scope), 2);
    EXPECT_STR(text, "127.0.0.1");
    EXPECT_EQ(parse("host.example", text, &scope), 0);
    EXPECT_EQ(parse("", text, &scope), 0);
    EXPECT_EQ(parse("192.0.2", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1%", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1%nosuchthing", text, &scope), 0);
    EXPECT_EQ(parse("[]", text, &scope), 0);
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    EXPECT_EQ(parse(long_name, text, &scope), 0);
}
