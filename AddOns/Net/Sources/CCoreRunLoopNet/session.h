/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS on a connected socket, by OpenSSL: the handshake, bytes in and out, and what can be asked of it.
 *
 * A session has a lock, because OpenSSL's object may be used by one thread at a time, and a pair of streams may read on one thread and
 * write on another. The lock is held for one call of OpenSSL, which never waits; nobody waits for the socket with it. The first failure is
 * kept and returned by all later calls, because OpenSSL reports it only once.
 */
#ifndef CRL_NET_SESSION_H
#define CRL_NET_SESSION_H

#include "net_link_names.h"

#include "CRLStreamNetwork.h"

/* The functions of CRLStreamNetwork for TLS. */
void *session_create(int socket, CFStringRef host, CFDictionaryRef settings, CFStreamError *error);
int session_handshake(void *session, UInt32 *waits, CFStreamError *error);
CFIndex session_receive(void *session, UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error);
CFIndex session_send(void *session, const UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error);
CFIndex session_look(void *session, CFStreamError *error);
Boolean session_holds_bytes(void *session);
CFTypeRef session_copy_property(void *session, CFStringRef name);
void session_free(void *session);

#endif
