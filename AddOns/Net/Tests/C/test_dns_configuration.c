/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of resolv.conf and nsswitch.conf, and which of two addresses is tried first: rule 1000. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address_order.h"
#include "dns_configuration.h"
#include "harness.h"
#include "resolver.h"

/* `count` times `filler`, then the text. */
static struct dns_configuration read_text(const char *filler, int count, const char *text, const char *hosts)
{
    char paths[2][32] = {"/tmp/resolv.XXXXXX", "/tmp/nsswitch.XXXXXX"};
    FILE *resolv = fdopen(mkstemp(paths[0]), "w");
    FILE *nsswitch = fdopen(mkstemp(paths[1]), "w");
    struct dns_configuration configuration;

    REQUIRE(resolv && nsswitch);
    for (int i = 0; i < count; i++) {
        fputs(filler, resolv);
    }
    fputs(text, resolv);
    fputs(hosts, nsswitch);
    fclose(resolv);
    fclose(nsswitch);
    unsetenv("RES_OPTIONS");
    unsetenv("LOCALDOMAIN");
    REQUIRE(dns_configuration_read(paths[0], paths[1], &configuration));
    unlink(paths[0]);
    unlink(paths[1]);
    return configuration;
}

TEST(the_options_of_resolv_conf_are_read, "1000")
{
    struct dns_configuration c =
        read_text("", 0,
                  "# nameserver 192.0.2.9\n; options timeout:9\n nameserver 192.0.2.8\nnameservers 192.0.2.7\n"
                  "nameserver 192.0.2.1\t# one\nnameserver fe80:::1\nnameserver 2001:db8::1\nnameserver 192.0.2.3\n"
                  "nameserver 192.0.2.4\ndomain old.test other.test\nsearch a.test  b.test .\n"
                  "options timeout:2 attempts:3 rotate\noptions ndots:4 edns0 use-vc unknown",
                  "passwd: files\nhosts: dns [NOTFOUND=return] files # mdns\n");

    EXPECT_EQ(c.server_count, 3);
    EXPECT_STR(c.servers[0], "192.0.2.1");
    EXPECT_STR(c.servers[1], "[2001:db8::1]:53");
    EXPECT_STR(c.servers[2], "192.0.2.3");
    EXPECT_EQ(c.domain_count, 2);
    EXPECT_STR(c.domains, "a.test");
    EXPECT_STR(c.domains + 7, "b.test");
    EXPECT_EQ(c.timeout_ms, 2000);
    EXPECT_EQ(c.attempts, 3);
    EXPECT_EQ(c.ndots, 4);
    EXPECT(c.rotates && c.has_edns && c.uses_tcp);
    EXPECT_STR(c.lookups, "bf");
}

static void pass_over(void *info, ares_socket_t socket, int reads, int writes)
{
    (void)info;
    (void)socket;
    (void)reads;
    (void)writes;
}

TEST(all_servers_of_resolv_conf_are_those_that_are_asked, "1000")
{
    const struct dns_configuration c = read_text("", 0, "nameserver 2001:db8::1\nnameserver 192.0.2.1\nnameserver ::ffff:1.2.3.4\n", "");
    const struct resolver_terms terms = {pass_over, NULL, "b", &c};
    struct ares_addr_port_node *servers = NULL;
    ares_channel channel;
    int count = 0;

    REQUIRE(resolver_create(&terms, &channel) == ARES_SUCCESS);
    REQUIRE(ares_get_servers_ports(channel, &servers) == ARES_SUCCESS);
    EXPECT_EQ(servers->family, AF_INET6);
    for (const struct ares_addr_port_node *server = servers; server; server = server->next) {
        EXPECT(server->udp_port == 53 || server->udp_port == 0);
        count++;
    }
    EXPECT_EQ(count, 3);
    ares_free_data(servers);
    ares_destroy(channel);
}

TEST(options_out_of_bounds_are_made_to_fit, "1000")
{
    struct dns_configuration c = read_text("", 0, "options timeout:99999999999 attempts:-1 ndots:x\nsearch\n", "hosts: mymachines\n");

    EXPECT_EQ(c.timeout_ms, 30000);
    EXPECT_EQ(c.attempts, 1);
    EXPECT_EQ(c.ndots, 0);
    EXPECT_EQ(c.domain_count, 0);
    EXPECT_STR(c.servers[0], "127.0.0.1");
    EXPECT_STR(c.lookups, "fb");
}

TEST(a_resolv_conf_of_a_megabyte_has_bounds, "1000")
{
    static const char options[] = "\noptions timeout:1 attempts:1\nnameserver 192.0.2.2\n";

    EXPECT_EQ(read_text("nameserver 192.0.2.1\n", 50000, options, "").server_count, 3);
    EXPECT_EQ(read_text("nameserver 192.0.2.1\n", 50000, options, "").timeout_ms, 1000);
    EXPECT_EQ(read_text("search a.test\n", 70000, options, "").domain_count, 1);
    EXPECT_STR(read_text("# nothing\n", 100000, options, "").servers[0], "192.0.2.2");
    EXPECT_STR(read_text("# nameserver 192.0.2.1 ", 43000, options, "").servers[0], "192.0.2.2"); /* one line */
    EXPECT_STR(read_text("search \nnameserver 192.0.2.3\n", 1, options, "").servers[0], "192.0.2.3");
    EXPECT_STR(read_text("search a.very.long.domain.test", 34000, options, "").servers[0], "192.0.2.2");
}

/* The lines of others are passed over, and so is all that follows the longest line that is read. */
TEST(nonsense_in_nsswitch_conf_is_passed_over, "1000")
{
    static const char *const nonsense[] = {
        "", "\n\n", "hosts", "hosts:", "hosts: \t#files", ":hosts: dns", "hosts: [NOTFOUND=return", "\xFF\xFE\x01"};
    const struct dns_configuration both = read_text("", 0, "", "hosts:dns files dns files\n");
    char *longest = malloc(1 << 20);

    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        const struct dns_configuration c = read_text("", 0, "", nonsense[i]);

        EXPECT_STR(c.lookups, "fb");
    }
    EXPECT_STR(both.lookups, "bf");
    memset(longest, 'x', 1 << 20);
    memcpy(longest, "hosts: dns ", 11);
    longest[(1 << 20) - 1] = '\0';
    EXPECT_STR(read_text("", 0, "", longest).lookups, "b");
    free(longest);
}

TEST(what_is_no_file_is_an_empty_configuration, "1000")
{
    char fifo[] = "/tmp/resolv.XXXXXX";
    const char *const paths[] = {fifo, "/tmp", "/dev/zero", "/dev/null", "/nosuchfile"};
    struct dns_configuration c;
    int descriptor = mkstemp(fifo);

    close(descriptor);
    REQUIRE(unlink(fifo) == 0 && mkfifo(fifo, 0600) == 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        REQUIRE(dns_configuration_read(paths[i], paths[i], &c));
        EXPECT_EQ(c.server_count, 1);
        EXPECT_EQ(c.timeout_ms, 5000);
        EXPECT(!dns_hosts_file_is_fit(paths[i]));
    }
    unlink(fifo);
}

TEST(a_hosts_file_has_bounds, "1000")
{
    char path[] = "/tmp/hosts.XXXXXX";
    int descriptor = mkstemp(path);

    EXPECT(dns_hosts_file_is_fit(path));
    REQUIRE(ftruncate(descriptor, 64 << 20) == 0);
    EXPECT(dns_hosts_file_is_fit(path));
    REQUIRE(ftruncate(descriptor, (64 << 20) + 1) == 0);
    EXPECT(!dns_hosts_file_is_fit(path));
    close(descriptor);
    unlink(path);
}

/* All rounds of c-ares, which doubles its patience, take no longer than those of the C library. */
TEST(a_silent_server_costs_no_more_than_the_c_library_waits, "1000")
{
    static const int expected_s[3][5] = {{5, 10, 15, 20, 25}, {10, 20, 30, 40, 50}, {14, 28, 42, 56, 70}};

    for (int servers = 1; servers <= 3; servers++) {
        for (int attempts = 1; attempts <= 5; attempts++) {
            const struct dns_configuration c = {.server_count = servers, .timeout_ms = 5000, .attempts = attempts};
            int total_ms = dns_configuration_patience_ms(&c) * servers * ((1 << attempts) - 1);

            EXPECT(total_ms <= expected_s[servers - 1][attempts - 1] * 1000);
            EXPECT(total_ms > expected_s[servers - 1][attempts - 1] * 1000 - 200);
        }
    }
}

TEST(an_address_that_fits_its_source_is_preferred, "1000")
{
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 unique_local = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0xfc, [15] = 1}};
    struct sockaddr_in6 old_testbed = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x3f, 0xfe}};
    const struct sockaddr *best = (const struct sockaddr *)&loopback;

    EXPECT(address_is_preferred(best, (const struct sockaddr *)&unique_local));
    EXPECT(!address_is_preferred((const struct sockaddr *)&unique_local, best));
    EXPECT(!address_is_preferred((const struct sockaddr *)&old_testbed, best));
    EXPECT(!address_is_preferred(best, best));
}
