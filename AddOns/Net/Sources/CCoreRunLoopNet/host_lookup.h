/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to an answer: the hosts file and the servers in their order, the domains to search, and A and AAAA side by side.
 *
 * Each of the two has a channel, so that neither gets the other's errors: a torn answer, or ECONNREFUSED by the socket that both would
 * share. Addresses of one family wait 50 ms for those of the other (RFC 8305, 3), not for ever. Both are of one name: the next domain is
 * searched when neither has an address.
 *
 * The caller's lock guards a lookup, and is held in all of its functions.
 */
#ifndef CRL_NET_HOST_LOOKUP_H
#define CRL_NET_HOST_LOOKUP_H

#include "net_link_names.h"

#include <stdint.h>

#include "dns_configuration.h"
#include "resolver.h"

enum { longest_host_name = 256 };

struct host_lookup;

struct family_question {
    struct host_lookup *lookup; /* constant */
    ares_channel channel; /* NULL: not made yet */
    struct ares_addrinfo *found; /* NULL: nothing */
    int status; /* of c-ares, once it is not asking */
    bool is_asking;
};

struct host_lookup {
    int wait_set; /* constant: an epoll descriptor for the channels' sockets */
    struct dns_configuration configuration;
    struct family_question families[2]; /* A (or the names of an address) and AAAA */
    CFArrayRef names; /* a reference; NULL: none were asked for, or found */
    char name[longest_host_name];
    const char *stage; /* in `configuration.lookups`: what is asked now */
    int candidate; /* the number of the name that is asked for, among the domains and the name as it is */
    int64_t use_at_ns; /* when what one family has found is used without the other; 0: nothing is found */
    int status; /* of c-ares: the answer once it is over, else the most telling failure so far */
    bool is_over;
};

/* Reads the system's configuration, or takes the one that is given. */
void host_lookup_init(struct host_lookup *lookup, int wait_set, const struct dns_configuration *configuration);
void host_lookup_destroy(struct host_lookup *lookup);
/* They begin. It may be over at once. */
void host_lookup_ask_addresses(struct host_lookup *lookup, CFStringRef host);
void host_lookup_ask_names(struct host_lookup *lookup, CFDataRef address);
/* In the child of a fork, with a wait set of its own under the same number: lets go of the parent's sockets, and goes on with new ones. The
 * address is what names were asked for, or NULL. */
void host_lookup_ask_again(struct host_lookup *lookup, CFDataRef address);
/* Lets the channels read and write a socket; then, or with ARES_SOCKET_BAD, they give up what has taken too long. */
void host_lookup_process(struct host_lookup *lookup, ares_socket_t readable, ares_socket_t writable);
/* Goes on with the next question when those that were asked are answered. */
void host_lookup_advance(struct host_lookup *lookup);
/* How long to wait at most until the next host_lookup_process; below 0: for ever. */
int64_t host_lookup_wait_ns(const struct host_lookup *lookup);

#endif
