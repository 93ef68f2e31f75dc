/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts are known without the add-on library: rule 330. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
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
    EXPECT_EQ(parse("192.0.2.7 x", text, &scope), 0);
    EXPECT_EQ(parse("192.0.2.7.", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1%", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1%nosuchthing", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1%-18446744073709551615", text, &scope), 0);
    EXPECT_EQ(parse("fe80::1% 7", text, &scope), 0);
    EXPECT_EQ(parse("[]", text, &scope), 0);
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    EXPECT_EQ(parse(long_name, text, &scope), 0);
}

TEST(old_spellings_of_addresses_mean_what_getaddrinfo_says, "330")
{
    static const char *const spellings[] = {
        "0177.0.0.1",   "010.0.0.1", "00127.0.0.1", "127.1",      "127.0.1",  "0x7f.1",    "0X7F.0.0.1", "0x7f000001", "2130706433",
        "017700000001", "0",         "4294967295",  "4294967296", "08.0.0.1", "1.2.3.256", "1.2.3.0400", "1.2.3.4.5",  "1.2.65536",
        "1.16777216",   "0x",        "1..2",        ".1.2.3.4",   "1.2.3.4.", "1.2.3.4 x", "1.2.3.4\t",  " 1.2.3.4",   "0x1.0x2.0x3.04",
        "+1.2.3.4",     "1.-2.3.4",  "1.2.3.4e1",
    };
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};

    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        char text[INET6_ADDRSTRLEN] = "";
        char expected[INET6_ADDRSTRLEN] = "";
        struct addrinfo *found = NULL;
        uint32_t scope = 0;

        if (getaddrinfo(spellings[i], NULL, &hints, &found) == 0) {
            REQUIRE(getnameinfo(found->ai_addr, found->ai_addrlen, expected, sizeof expected, NULL, 0, NI_NUMERICHOST) == 0);
            freeaddrinfo(found);
        }
        (void)parse(spellings[i], text, &scope);
        EXPECT_STR(text, expected);
    }
}

TEST(a_host_does_not_end_at_a_nul, "330")
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1", "[::1]", "fe80::1%1"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        CFStringRef host = CFStringCreateWithFormat(NULL, NULL, CFSTR("%s%C.trusted.test"), hosts[i], (UniChar)0);
        CFArrayRef addresses;

        REQUIRE(CFStringGetLength(host) == (CFIndex)strlen(hosts[i]) + 14);
        REQUIRE(host_address_create(host, 80, &addresses));
        EXPECT(!addresses);
        CFRelease(host);
    }
}
