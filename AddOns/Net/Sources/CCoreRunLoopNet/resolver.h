/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares as this library uses it: how a channel is made, what is asked, what its answers and errors mean. No state, no locks.
 *
 * The sockets of a channel are not inherited, never wait, and raise no SIGPIPE.
 */
#ifndef CRL_NET_RESOLVER_H
#define CRL_NET_RESOLVER_H

#include "net_link_names.h"

#include <ares.h>
#include <netdb.h>

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFStream.h"

struct resolver_terms {
    ares_sock_state_cb watch_socket;
    void *info;
    const char *servers; /* NULL: those of the system; the two below count only with them */
    int patience_ms;
    int tries;
};

/* Returns a status of c-ares. */
int resolver_create(const struct resolver_terms *terms, ares_channel *ret_channel);
/* Asks the hosts file and servers for the IPv4 and IPv6 addresses. The callback may come at once. */
void resolver_ask_addresses(ares_channel channel, const char *name, ares_addrinfo_callback callback, void *info);
/* Asks for the names of a `struct sockaddr` of IPv4 or IPv6. The callback may come at once. */
void resolver_ask_names(ares_channel channel, CFDataRef address, ares_host_callback callback, void *info);
/* An array of CFData with addresses that have the port; NULL without memory. */
CFArrayRef resolver_create_addresses(const struct ares_addrinfo *found, UInt32 port);
/* An array of CFString with the name and its aliases; NULL without memory. The default allocator is not used, since a lock may be held. */
CFArrayRef resolver_create_names(const struct hostent *host);
/* The error of a status: of getaddrinfo, in kCFStreamErrorDomainNetDB. 0 in the domain 0 for success. */
CFStreamError resolver_error(int status);

#endif
