/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL's errors are called in kCFStreamErrorDomainSSL. No state, no locks. */
#ifndef CRL_NET_TLS_ERROR_H
#define CRL_NET_TLS_ERROR_H

#include "net_link_names.h"

#include <openssl/ssl.h>

#include "CoreFoundation/CFStream.h"

CFStreamError tls_error(int ssl_error); /* of SSL's domain */
/* The error that stands first in the calling thread's queue, which is emptied. `is_open`: after the handshake. */
CFStreamError tls_error_take(const SSL *ssl, bool is_open);

#endif
