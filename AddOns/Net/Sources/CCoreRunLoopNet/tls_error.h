/* SPDX-License-Identifier: Apache-2.0 */
/* Translates OpenSSL's errors to those of kCFStreamErrorDomainSSL. No state, no locks. */
#ifndef CRL_NET_TLS_ERROR_H
#define CRL_NET_TLS_ERROR_H

#include "net_link_names.h"

#include <openssl/ssl.h>

#include "CoreFoundation/CFStream.h"
#include "CoreFoundation/CFString.h"

/* The error of kCFStreamErrorDomainSSL with this number. */
CFStreamError tls_error(int ssl_error);
/*
 * Takes the first error of the calling thread's queue, and empties the queue. `is_open`: the handshake is done. `*ret_reason` says in words
 * what OpenSSL knows beyond the number; the caller releases it. NULL: nothing, or no memory.
 */
CFStreamError tls_error_take(SSL *ssl, bool is_open, CFStringRef *ret_reason);

#endif
