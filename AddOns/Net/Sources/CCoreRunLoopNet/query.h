/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question for the addresses of a host, or for the names of an address: c-ares asks, on loops or on a thread that waits.
 *
 * Each query has a lookup of its own, which reads the system's configuration when it is made. Its sockets, and a timer of the kernel's for
 * its deadlines, are in a wait set (epoll), which is one descriptor for the loops. So a query can be in several loops, and
 * needs no thread.
 *
 *   asking -> answered    the lookup is over [note_progress]
 *   answered -> telling   a thread becomes the teller [take_turn] and calls the completion, without the lock
 *   telling -> told       the completion has returned [tell_answer]
 */
#ifndef CRL_NET_QUERY_H
#define CRL_NET_QUERY_H

#include "net_link_names.h"

#include "CRLStreamNetwork.h"
#include "dns_configuration.h"

/* The functions of CRLStreamNetwork for names; `query` is what the first two return. */
void *query_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context);
void *query_resolve_address(CFDataRef address, CRLStreamResolved completion, void *context);
void query_schedule(void *query, CFRunLoopRef loop, CFStringRef mode);
void query_unschedule(void *query, CFRunLoopRef loop, CFStringRef mode);
void query_wait(void *query);
void query_free(void *query);
void query_advance(void *query);
int query_descriptor(void *query);

/* For tests: what to take for the system's configuration, which must stay; NULL: the system's. */
void query_set_configuration(const struct dns_configuration *configuration);

#endif
