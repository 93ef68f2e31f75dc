/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question for the addresses of a host, or for the names of an address: c-ares asks, on loops or on a thread that waits.
 *
 * Each query has a c-ares channel of its own, which reads the system's configuration when it is made. Its sockets, and a timer of the
 * kernel's for its deadlines, are in a wait set (epoll), which is one descriptor for the loops. So a query can be in several loops, and
 * needs no thread.
 *
 *   asking -> answered   c-ares has called back [note_answer]
 *   answered -> told     one thread takes the answer and calls the completion, without the lock [tell]
 */
#ifndef CRL_NET_QUERY_H
#define CRL_NET_QUERY_H

#include "net_link_names.h"

#include "CRLStreamNetwork.h"

/* The functions of CRLStreamNetwork for names; `query` is what the first two return. */
void *query_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context);
void *query_resolve_address(CFDataRef address, CRLStreamResolved completion, void *context);
void query_schedule(void *query, CFRunLoopRef loop, CFStringRef mode);
void query_unschedule(void *query, CFRunLoopRef loop, CFStringRef mode);
void query_wait(void *query);
void query_free(void *query);

/* For tests: the servers to ask in place of the system's, "127.0.0.1:5353", the patience with each in milliseconds, and how often. */
void query_set_servers(const char *servers, int patience_ms, int tries);

#endif
