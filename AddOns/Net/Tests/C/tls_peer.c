/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_peer.h. */
#define _GNU_SOURCE
#include "tls_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "Stream/stream_recorder.h"

/* ---- certificates ---- */

static void add_extension(X509 *certificate, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

    REQUIRE(extension && X509_add_ext(certificate, extension, -1));
    X509_EXTENSION_free(extension);
}

static void name(X509 *certificate, const char *common_name, const struct credentials *issuer)
{
    X509_NAME *subject = X509_get_subject_name(certificate);

    REQUIRE(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0));
    REQUIRE(X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer->certificate) : subject));
}

struct credentials credentials_create(const char *host, const struct credentials *issuer, long begins_s, long ends_s)
{
    unsigned char address[16];
    bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    char alternative[256];

    snprintf(alternative, sizeof alternative, "%s:%s", is_address ? "IP" : "DNS", host);
    return credentials_create_named(host, alternative, issuer, begins_s, ends_s);
}

struct credentials credentials_create_named(const char *common_name, const char *alternative, const struct credentials *issuer,
                                            long begins_s, long ends_s)
{
    static long serial;
    struct credentials made = {EVP_EC_gen("P-256"), X509_new()};

    REQUIRE(made.key && made.certificate && X509_set_version(made.certificate, 2));
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), begins_s);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), ends_s);
    REQUIRE(X509_set_pubkey(made.certificate, made.key));
    name(made.certificate, common_name, issuer);
    if (alternative) {
        add_extension(made.certificate, NID_subject_alt_name, alternative);
    }
    if (!issuer) {
        add_extension(made.certificate, NID_basic_constraints, "critical,CA:TRUE");
    }
    REQUIRE(X509_sign(made.certificate, issuer ? issuer->key : made.key, EVP_sha256()));
    return made;
}

void credentials_free(struct credentials *credentials)
{
    EVP_PKEY_free(credentials->key);
    X509_free(credentials->certificate);
}

CFArrayRef credentials_copy_pem(const struct credentials *credentials, bool with_key)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *bytes;
    long length;
    CFDataRef data;
    CFArrayRef array;

    REQUIRE(text && PEM_write_bio_X509(text, credentials->certificate));
    if (with_key) {
        REQUIRE(PEM_write_bio_PrivateKey(text, credentials->key, NULL, NULL, 0, NULL, NULL));
    }
    length = BIO_get_mem_data(text, &bytes);
    data = CFDataCreate(NULL, (const UInt8 *)bytes, length);
    array = CFArrayCreate(NULL, (const void **)&data, 1, &kCFTypeArrayCallBacks);
    CFRelease(data);
    BIO_free(text);
    return array;
}

/* ---- the peer ---- */

static int choose_protocol(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_length, const unsigned char *offered,
                           unsigned int offered_length, void *info)
{
    struct tls_peer *peer = info;
    size_t length = strlen(peer->protocol);

    (void)ssl;
    for (unsigned int i = 0; i + 1 < offered_length; i += offered[i] + 1u) {
        if (offered[i] == length && memcmp(offered + i + 1, peer->protocol, length) == 0) {
            *ret_chosen = offered + i + 1;
            *ret_length = (unsigned char)length;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *make_context(struct tls_peer *peer)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());

    REQUIRE(context);
    if (peer->own) {
        REQUIRE(SSL_CTX_use_certificate(context, peer->own->certificate) && SSL_CTX_use_PrivateKey(context, peer->own->key));
    }
    if (peer->client_issuer) {
        REQUIRE(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), peer->client_issuer->certificate));
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    if (peer->protocol) {
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, peer);
    }
    if (peer->version) {
        REQUIRE(SSL_CTX_set_min_proto_version(context, peer->version) && SSL_CTX_set_max_proto_version(context, peer->version));
    }
    return context;
}

static void echo(struct tls_peer *peer, SSL *ssl)
{
    char bytes[16384];
    int count;

    while ((count = SSL_read(ssl, bytes, sizeof bytes)) > 0) {
        peer->received += count;
        if (SSL_write(ssl, bytes, count) != count) {
            return;
        }
    }
    if (SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN) {
        SSL_shutdown(ssl);
    }
}

static void serve_one(void *context)
{
    struct tls_peer *peer = context;
    int socket = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    SSL_CTX *tls = make_context(peer);
    SSL *ssl = SSL_new(tls);

    REQUIRE(socket >= 0 && ssl && SSL_set_fd(ssl, socket));
    if (peer->greet) {
        peer->greet(peer, ssl, socket);
    }
    if ((peer->is_client ? SSL_connect(ssl) : SSL_accept(ssl)) == 1) {
        peer->handshakes++;
        if (peer->serve) {
            peer->serve(peer, ssl, socket);
        } else {
            echo(peer, ssl);
        }
    }
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(tls);
    close(socket);
    peer->ends++;
}

void tls_peer_await_end(struct tls_peer *peer)
{
    probe_await_count(&peer->ends, 1);
}

void tls_peer_start(struct tls_peer *peer)
{
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's own sockets raise it; the tests of SIGPIPE take it back */
    peer->listener = listener_open(&peer->port);
    REQUIRE(pipe2(peer->gate, O_CLOEXEC) == 0);
    probe_thread_start(&peer->thread, serve_one, peer);
}

void tls_peer_stop(struct tls_peer *peer)
{
    close(peer->gate[1]);
    probe_thread_join(&peer->thread);
    close(peer->gate[0]);
    close(peer->listener);
}

void tls_peer_wait_at_gate(struct tls_peer *peer)
{
    char byte;

    (void)!read(peer->gate[0], &byte, 1);
}

void tls_peer_open_gate(struct tls_peer *peer)
{
    REQUIRE(write(peer->gate[1], "g", 1) == 1);
}

void tls_peer_send(SSL *ssl, const char *text)
{
    EXPECT_EQ(SSL_write(ssl, text, (int)strlen(text)), strlen(text));
}

SInt32 tls_peer_try(struct tls_peer *peer, CFDictionaryRef settings)
{
    CFWriteStreamRef writer;
    CFStreamError error = {0};

    tls_peer_start(peer);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), peer->port, NULL, &writer);
    REQUIRE(writer && CFWriteStreamSetProperty(writer, kCFStreamPropertySSLSettings, settings));
    (void)CFWriteStreamOpen(writer);
    if (write_text(writer, "a") != 1) {
        error = CFWriteStreamGetError(writer);
        EXPECT(error.error != 0 && error.domain == kCFStreamErrorDomainSSL);
    }
    CFRelease(writer);
    tls_peer_stop(peer);
    return error.error;
}
