/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of the domain name system on loopback, on a thread of its own. What it answers is in the first label of the name:
 *
 *   good       127.0.0.1, and no IPv6 address           both       ::1 and 127.0.0.1
 *   alias      the same behind another name             missing    there is no such name
 *   empty      the name has no addresses                failing    the server has a problem
 *   silent     no answer                                late       as good, once the test says so
 *   garbage    bytes that are no message                long       a truncated answer; all of it by TCP
 *   torn       a truncated answer; TCP is closed at once
 *   only4      127.0.0.1; AAAA is not answered          only6      ::1; A is not answered
 *   torn4      as torn for A, ::1 for AAAA              torn6      as torn for AAAA, 127.0.0.1 for A
 *
 * Nothing in a domain that begins with "nowhere" has a name. An address in in-addr.arpa or ip6.arpa has the name host.test.
 */
#ifndef CRL_NET_TESTS_DNS_SERVER_H
#define CRL_NET_TESTS_DNS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "Loop/loop_probe.h"
#include "dns_configuration.h"

struct dns_server {
    int udp;
    int tcp;
    int stop[2]; /* a pipe; a byte in it releases late answers, its end ends the thread */
    char address[32];
    struct dns_configuration configuration; /* of queries: asks this server once, with the patience of the tests */
    _Atomic int questions;
    struct probe_thread thread;
};

/* False in a container, or a folder that is its own root, whose hosts file names nobody. */
bool dns_hosts_file_has_localhost(void);

/* Starts the server, and has queries ask it. */
void dns_server_start(struct dns_server *server);
void dns_server_release_late(struct dns_server *server);
void dns_server_stop(struct dns_server *server);

#endif
