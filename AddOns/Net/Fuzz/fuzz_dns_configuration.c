/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as resolv.conf and, behind the first zero byte, as nsswitch.conf. What is read lies within its bounds, and c-ares takes it.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "dns_configuration.h"
#include "resolver.h"

struct memory_file {
    int descriptor;
    char path[32];
};

static struct memory_file write_file(const uint8_t *bytes, size_t size)
{
    struct memory_file file = {.descriptor = memfd_create("configuration", MFD_CLOEXEC)};

    CHECK(file.descriptor >= 0 && write(file.descriptor, bytes, size) == (ssize_t)size);
    (void)snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.descriptor);
    return file;
}

static void check_bounds(const struct dns_configuration *c)
{
    const char *domain = c->domains;

    CHECK(c->server_count >= 1 && c->server_count <= most_dns_servers);
    CHECK(c->domain_count >= 0 && c->domain_count <= most_dns_domains);
    CHECK(c->ndots >= 0 && c->timeout_ms >= 1000 && c->attempts >= 1 && dns_configuration_patience_ms(c) > 0);
    CHECK(strspn(c->lookups, "fb") == strlen(c->lookups) && c->lookups[0]);
    for (int i = 0; i < c->domain_count; i++) {
        CHECK(*domain && memchr(domain, '\0', (size_t)(c->domains + sizeof c->domains - domain)));
        domain += strlen(domain) + 1;
    }
}

static void pass_over(void *info, ares_socket_t socket, int reads, int writes)
{
    (void)info;
    (void)socket;
    (void)reads;
    (void)writes;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t first = size ? strnlen((const char *)bytes, size) : 0;
    size_t behind = first < size ? first + 1 : size;
    struct memory_file resolv = write_file(bytes, first);
    struct memory_file nsswitch = write_file(bytes + behind, size - behind);
    struct dns_configuration configuration;
    const struct resolver_terms terms = {pass_over, NULL, configuration.lookups, &configuration};
    ares_channel channel;

    CHECK(dns_configuration_read(resolv.path, nsswitch.path, &configuration));
    check_bounds(&configuration);
    CHECK(resolver_create(&terms, &channel) == ARES_SUCCESS);
    ares_destroy(channel);
    (void)close(resolv.descriptor);
    (void)close(nsswitch.descriptor);
    return 0;
}
