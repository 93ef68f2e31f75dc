/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c-ares as this library uses it: makes channels, asks, and translates answers and errors. No state of its own, no locks: the caller guards
 * the channel.
 *
 * The sockets of a channel are not inherited, never wait, and raise no SIGPIPE.
 */
#ifndef CRL_NET_RESOLVER_H
#define CRL_NET_RESOLVER_H

#include "net_link_names.h"

#include <ares.h>
#include <netdb.h>
#include <stdbool.h>

#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFStream.h"
#include "dns_configuration.h"

struct resolver_terms {
    ares_sock_state_cb watch_socket;
    void *info;
    const char *lookups; /* as in struct dns_configuration */
    const struct dns_configuration *configuration;
};

/*
 * Whether servers may be asked for the name: labels of 1 to 63 letters, digits, hyphens and underscores, 253 characters in all, and
 * perhaps a dot at the end. Not all labels are numbers: those spell an address, which c-ares would read in its own way.
 */
bool resolver_name_is_valid(const char *name);
/* Returns a status of c-ares; after a failure there is no channel. */
int resolver_create(const struct resolver_terms *terms, ares_channel *ret_channel);
/* Asks for the addresses of a family, of no other name than this. The callback may come at once. */
void resolver_ask_addresses(ares_channel channel, const char *name, int family, ares_addrinfo_callback callback, void *info);
/* Asks for the names of a `struct sockaddr` of IPv4 or IPv6. The callback may come at once. */
void resolver_ask_names(ares_channel channel, CFDataRef address, ares_host_callback callback, void *info);
/* An array of CFData with addresses that have the port, of two answers of one family each, or NULL; NULL without memory. */
CFArrayRef resolver_create_addresses(const struct ares_addrinfo *found, const struct ares_addrinfo *other, UInt32 port);
/* An array of CFString with the name and its aliases; NULL without memory. Runs no code of a program's allocator: a lock may be held. */
CFArrayRef resolver_create_names(const struct hostent *host);
/* The error of getaddrinfo for a status, in kCFStreamErrorDomainNetDB; for success 0 in the domain 0. */
CFStreamError resolver_error(int status);

#endif
