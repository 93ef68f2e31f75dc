/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other side of a TLS connection on loopback, by OpenSSL alone, on a thread of its own; and certificates that are made for a test.
 */
#ifndef CRL_NET_TESTS_TLS_PEER_H
#define CRL_NET_TESTS_TLS_PEER_H

#include <openssl/ssl.h>

#include "Loop/loop_probe.h"
#include "harness.h"

/* A certificate and its key. */
struct credentials {
    EVP_PKEY *key;
    X509 *certificate;
};

enum { day_s = 86400 };

/* For a host, or an address. Signed by the issuer, or by itself if that is NULL; valid between two times in seconds from now. */
struct credentials credentials_create(const char *host, const struct credentials *issuer, long begins_s, long ends_s);
/* With these names, as OpenSSL writes alternatives ("DNS:a.test,IP:::1"); NULL: none. */
struct credentials credentials_create_named(const char *common_name, const char *alternative, const struct credentials *issuer,
                                            long begins_s, long ends_s);
void credentials_free(struct credentials *credentials);
/* An array of one CFData in PEM, as settings have it. */
CFArrayRef credentials_copy_pem(const struct credentials *credentials, bool with_key);

/* Set what the test needs before the start. With all zero it is a server that echoes until the client ends the session. */
struct tls_peer {
    struct credentials *own; /* NULL: a client without a certificate */
    const struct credentials *client_issuer; /* NULL: a server asks for no certificate */
    const char *protocol; /* for ALPN; NULL: none is chosen */
    int version; /* of TLS; 0: any */
    bool is_client; /* of TLS; the peer still listens */
    void (*greet)(struct tls_peer *peer, SSL *ssl, int socket); /* before the handshake; NULL: TLS from the start */
    void (*serve)(struct tls_peer *peer, SSL *ssl, int socket); /* after the handshake; NULL: echoes */
    int gate[2]; /* a pipe for the test and `serve`: see tls_peer_open_gate */
    UInt32 port; /* after the start */
    int listener;
    _Atomic int handshakes;
    _Atomic int ends;
    _Atomic long received;
    struct probe_thread thread;
};

void tls_peer_start(struct tls_peer *peer);
/* Waits until the one connection has been served and closed. */
void tls_peer_await_end(struct tls_peer *peer);
void tls_peer_stop(struct tls_peer *peer);

/* `serve` waits for the test here, which opens the gate once for each wait. */
void tls_peer_wait_at_gate(struct tls_peer *peer);
void tls_peer_open_gate(struct tls_peer *peer);

/* Sends all of the text in one record. */
void tls_peer_send(SSL *ssl, const char *text);

/* Starts the peer, opens a stream of this library to it and writes a byte, and stops the peer. Returns the error of TLS; 0: none. */
SInt32 tls_peer_try(struct tls_peer *peer, CFDictionaryRef settings);

#endif
