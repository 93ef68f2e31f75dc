/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's way to a socket: its own would raise SIGPIPE, and would wait on a socket that the program has left blocking.
 *
 * The socket's own errors are kept, since OpenSSL does not. Whoever uses the SSL object guards the BIO as well.
 */
#ifndef CRL_NET_SOCKET_BIO_H
#define CRL_NET_SOCKET_BIO_H

#include "net_link_names.h"

#include <openssl/bio.h>

struct socket_bio_state {
    int socket;
    int error; /* errno of the call that failed last, for good; 0: none has */
};

/* Returns a BIO that does not close the socket, or NULL without memory. The state outlives it. */
BIO *socket_bio_create(struct socket_bio_state *state);

#endif
