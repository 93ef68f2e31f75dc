/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BIO by which OpenSSL reads and writes a socket. OpenSSL's own would raise SIGPIPE, and would wait on a socket that the program has
 * left blocking.
 *
 * It keeps the socket's errors, because OpenSSL does not. The lock of the session that has the BIO guards the state.
 */
#ifndef CRL_NET_SOCKET_BIO_H
#define CRL_NET_SOCKET_BIO_H

#include "net_link_names.h"

#include <openssl/bio.h>
#include <stdbool.h>

struct socket_bio_state {
    int socket; /* constant */
    int error; /* errno of the last call that failed and cannot be made again; 0: none */
    int allowance; /* the bytes that may still be read; without any, reading answers as if there were none to read */
    bool is_read_out; /* the last reading got nothing: what OpenSSL holds is no whole record */
};

/* Returns a BIO that does not close the socket, or NULL without memory. The state outlives it. */
BIO *socket_bio_create(struct socket_bio_state *state);

#endif
