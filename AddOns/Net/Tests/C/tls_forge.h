/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of TLS 1.2 or 1.3 that can send what OpenSSL never would: records of any type and content, sealed with the keys of a real
 * session. It belongs to one thread, and waits for nothing: the test, or the fuzz target, gives both sides their turns.
 */
#ifndef CRL_NET_TESTS_TLS_FORGE_H
#define CRL_NET_TESTS_TLS_FORGE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    forge_changes_cipher = 20,
    forge_alert = 21,
    forge_handshake = 22,
    forge_data = 23,
    forge_most_content = 16384,
    forge_most_added = 64, /* to the content, by a record */
};

/* What a record is sealed with. */
enum forge_keys { forge_no_keys, forge_handshake_keys, forge_application_keys };

struct tls_forge {
    SSL *ssl; /* reads the socket; what it writes is in `out` */
    BIO *out;
    int socket;
    bool is_1_3;
    enum forge_keys keys;
    unsigned char secrets[forge_application_keys + 1][32]; /* of TLS 1.3 */
    unsigned char key[16];
    unsigned char iv[12];
    uint64_t sequence; /* of the next record */
};

/* A server on a socket that does not wait, which stays the caller's. Its certificate is signed by itself, for host.test. */
void tls_forge_create(struct tls_forge *forge, int version, int socket);
void tls_forge_free(struct tls_forge *forge);
/* Goes on with the handshake. Returns whether it is done. What is to be sent is in `out`. */
bool tls_forge_shake_hands(struct tls_forge *forge);
/* Takes the first record of what is in `out`. Returns its length. */
size_t tls_forge_take_first(struct tls_forge *forge, unsigned char *bytes, size_t most);
/* Sends what is in `out`, for which the socket has to have room. */
void tls_forge_flush(struct tls_forge *forge);

/* From now on records are sealed with these keys, which both sides have agreed on. */
void tls_forge_use(struct tls_forge *forge, enum forge_keys keys);
/* Makes a record. Returns its length, which is at most that of the content and the padding (of TLS 1.3) with forge_most_added. */
size_t tls_forge_seal(struct tls_forge *forge, unsigned char type, const void *content, size_t length, size_t padding,
                      unsigned char *ret_record);
/* The keys of TLS 1.3 that come after a message KeyUpdate. */
void tls_forge_renew_keys(struct tls_forge *forge);

#endif
