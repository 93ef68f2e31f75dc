/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BIO by which OpenSSL reads and writes a socket. OpenSSL's own would raise SIGPIPE, and would wait on a socket that the program has
 * left blocking.
 *
 * It keeps the socket's errors, because OpenSSL does not. It can hold what a full socket does not take: OpenSSL cannot read new keys that
 * ask for an answer while a record is half written. The lock of the session that has the BIO guards the state.
 */
#ifndef CRL_NET_SOCKET_BIO_H
#define CRL_NET_SOCKET_BIO_H

#include "net_link_names.h"

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>

struct socket_bio_state {
    int socket; /* constant */
    int error; /* errno of the last call that failed and cannot be made again; 0: none */
    int allowance; /* the bytes that may still be read; without any, reading answers as if there were none to read */
    bool is_read_out; /* the last reading got nothing: what OpenSSL holds is no whole record */
    bool may_hold; /* what the socket does not take is held; otherwise OpenSSL hears of it */
    unsigned char *held; /* what is sent before anything else; NULL: nothing */
    size_t held_begin;
    size_t held_end;
};

/* Sends what is held. Returns 0, -EAGAIN if something is left, or -1 after an error. */
int socket_bio_send_held(struct socket_bio_state *state);

/* Returns a BIO that does not close the socket, or NULL without memory. The state outlives it; its owner frees what it holds. */
BIO *socket_bio_create(struct socket_bio_state *state);

#endif
