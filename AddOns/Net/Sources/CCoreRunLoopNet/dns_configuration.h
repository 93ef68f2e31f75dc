/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system says about names: /etc/resolv.conf, the line of hosts in /etc/nsswitch.conf, and the variables RES_OPTIONS and
 * LOCALDOMAIN, as the C library reads them. It is read here because c-ares 1.18 knows neither `timeout` nor `attempts` nor `edns0`, has no
 * bound on servers, and begins with the first one in each channel, whatever `rotate` says. Values only: any thread, no locks.
 */
#ifndef CRL_NET_DNS_CONFIGURATION_H
#define CRL_NET_DNS_CONFIGURATION_H

#include "net_link_names.h"

#include <stdbool.h>

enum { most_dns_servers = 3, most_dns_domains = 32, most_bytes_of_domains = 2048 };

struct dns_configuration {
    char servers[most_dns_servers][64]; /* as ares_set_servers_ports_csv reads them */
    int server_count; /* at least 1 */
    char domains[most_bytes_of_domains]; /* to search, each with its NUL */
    int domain_count;
    int ndots; /* a name with as many dots is asked for as it is before the domains are searched */
    int timeout_ms; /* for the first server */
    int attempts; /* how often each server is asked */
    bool rotates;
    bool has_edns;
    bool uses_tcp;
    char lookups[3]; /* 'f': the hosts file, 'b': the servers, in their order */
};

/* Returns false if there is no memory or no descriptor. A file that is missing is an empty one; no more of it is read than 4 MiB. */
bool dns_configuration_read(const char *resolv_conf, const char *nsswitch_conf, struct dns_configuration *ret_configuration);
/* Whether c-ares may open the hosts file: it would wait for the writer of a pipe, and read a file without end to its end. */
bool dns_hosts_file_is_fit(const char *path);
/*
 * How long c-ares may wait for the first answer, in milliseconds. It doubles the time in each round, so this makes all rounds take as long
 * as the C library's.
 */
int dns_configuration_patience_ms(const struct dns_configuration *configuration);

#endif
