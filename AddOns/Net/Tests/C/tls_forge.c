/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_forge.h. The ciphers are those with AES-128-GCM and SHA-256; the keys are made of what OpenSSL tells for logs of keys. */
#include "tls_forge.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { secret_length = 32, header_length = 5, tag_length = 16, explicit_length = 8, random_length = 32 };

#define MUST(condition_) ((condition_) ? (void)0 : stop(#condition_))

static void stop(const char *condition)
{
    (void)fprintf(stderr, "tls_forge: not true: %s\n", condition);
    abort();
}

/* ---- the server ---- */

static void make_certificate(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_EXTENSION *name = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:host.test");

    MUST(key && name && X509_set_version(certificate, 2) && X509_add_ext(certificate, name, -1));
    MUST(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)"a forge", -1, -1, 0));
    MUST(X509_set_issuer_name(certificate, subject) && X509_set_pubkey(certificate, key));
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    MUST(X509_sign(certificate, key, EVP_sha256()));
    MUST(SSL_CTX_use_certificate(context, certificate) && SSL_CTX_use_PrivateKey(context, key));
    X509_EXTENSION_free(name);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* A line is a label, the client's random bytes and the secret, both in hexadecimal. */
static void note_secret(const SSL *ssl, const char *line)
{
    struct tls_forge *forge = SSL_get_app_data(ssl);
    const char *digits = strrchr(line, ' ') + 1;
    enum forge_keys keys;

    if (strncmp(line, "SERVER_HANDSHAKE_TRAFFIC_SECRET ", 32) == 0) {
        keys = forge_handshake_keys;
    } else if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0) {
        keys = forge_application_keys;
    } else {
        return;
    }
    for (size_t i = 0; i < secret_length; i++) {
        MUST(sscanf(digits + 2 * i, "%2hhx", &forge->secrets[keys][i]) == 1);
    }
}

static SSL_CTX *server_context(void)
{
    static SSL_CTX *context; /* for all sessions */

    if (!context) {
        context = SSL_CTX_new(TLS_server_method());
        MUST(context && SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"));
        MUST(SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256"));
        make_certificate(context);
        SSL_CTX_set_num_tickets(context, 0);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_keylog_callback(context, note_secret);
    }
    return context;
}

void tls_forge_create(struct tls_forge *forge, int version, int socket)
{
    *forge = (struct tls_forge){.ssl = SSL_new(server_context()), .out = BIO_new(BIO_s_mem()), .socket = socket};
    forge->is_1_3 = version == TLS1_3_VERSION;
    MUST(forge->ssl && forge->out && SSL_set_fd(forge->ssl, socket) && SSL_set_app_data(forge->ssl, forge));
    SSL_set0_wbio(forge->ssl, forge->out);
    MUST(SSL_set_min_proto_version(forge->ssl, version) && SSL_set_max_proto_version(forge->ssl, version));
    SSL_set_accept_state(forge->ssl);
}

void tls_forge_free(struct tls_forge *forge)
{
    SSL_free(forge->ssl);
}

bool tls_forge_shake_hands(struct tls_forge *forge)
{
    return SSL_do_handshake(forge->ssl) == 1;
}

void tls_forge_flush(struct tls_forge *forge)
{
    char *bytes;
    long length = BIO_get_mem_data(forge->out, &bytes);

    MUST(length == 0 || send(forge->socket, bytes, (size_t)length, MSG_NOSIGNAL) == length);
    (void)BIO_reset(forge->out);
}

size_t tls_forge_take_first(struct tls_forge *forge, unsigned char *bytes, size_t most)
{
    size_t length;

    MUST(most > header_length && BIO_read(forge->out, bytes, header_length) == header_length);
    length = (size_t)bytes[3] << 8 | bytes[4];
    MUST(header_length + length <= most && BIO_read(forge->out, bytes + header_length, (int)length) == (int)length);
    return header_length + length;
}

/* ---- keys ---- */

static void mac(const unsigned char *secret, size_t secret_size, const unsigned char *bytes, size_t length, unsigned char *ret_mac)
{
    MUST(HMAC(EVP_sha256(), secret, (int)secret_size, bytes, length, ret_mac, NULL));
}

/* HKDF-Expand-Label of TLS 1.3 (RFC 8446, 7.1) for at most one block, without a context. */
static void expand(const unsigned char secret[secret_length], const char *label, unsigned char *ret_bytes, size_t length)
{
    unsigned char info[64] = {0, (unsigned char)length, (unsigned char)(strlen(label) + 6)};
    unsigned char block[secret_length];
    size_t place = 3 + (size_t)snprintf((char *)info + 3, sizeof info - 3, "tls13 %s", label);

    info[place + 1] = 1; /* behind the length of the context; the number of the block */
    mac(secret, secret_length, info, place + 2, block);
    memcpy(ret_bytes, block, length);
}

static void use_secret(struct tls_forge *forge)
{
    expand(forge->secrets[forge->keys], "key", forge->key, sizeof forge->key);
    expand(forge->secrets[forge->keys], "iv", forge->iv, sizeof forge->iv);
    forge->sequence = 0;
}

/* The keys of TLS 1.2: the second and the fourth part of the block (RFC 5246, 6.3): the client's key, the server's, and their salts. */
static void use_master_secret(struct tls_forge *forge)
{
    unsigned char master[48];
    unsigned char seed[13 + 2 * random_length] = "key expansion";
    unsigned char chained[secret_length + sizeof seed];
    unsigned char block[2 * secret_length];

    MUST(SSL_SESSION_get_master_key(SSL_get_session(forge->ssl), master, sizeof master) == sizeof master);
    SSL_get_server_random(forge->ssl, seed + 13, random_length);
    SSL_get_client_random(forge->ssl, seed + 13 + random_length, random_length);
    mac(master, sizeof master, seed, sizeof seed, chained);
    memcpy(chained + secret_length, seed, sizeof seed);
    mac(master, sizeof master, chained, sizeof chained, block);
    mac(master, sizeof master, chained, secret_length, chained);
    mac(master, sizeof master, chained, sizeof chained, block + secret_length);
    memcpy(forge->key, block + 16, sizeof forge->key);
    memcpy(forge->iv, block + 36, 4);
    forge->sequence = 1; /* behind Finished */
}

void tls_forge_use(struct tls_forge *forge, enum forge_keys keys)
{
    forge->keys = keys;
    if (keys != forge_no_keys && forge->is_1_3) {
        use_secret(forge);
    } else if (keys != forge_no_keys) {
        use_master_secret(forge);
    }
}

void tls_forge_renew_keys(struct tls_forge *forge)
{
    expand(forge->secrets[forge->keys], "traffic upd", forge->secrets[forge->keys], secret_length);
    use_secret(forge);
}

/* ---- records ---- */

static void write_header(unsigned char *header, unsigned char type, size_t length)
{
    header[0] = type;
    header[1] = header[2] = 3;
    header[3] = (unsigned char)(length >> 8);
    header[4] = (unsigned char)length;
}

/* Encrypts in place, and puts the tag behind it. */
static void encrypt(struct tls_forge *forge, const unsigned char nonce[12], const unsigned char *added, int added_length,
                    unsigned char *bytes, int length)
{
    static EVP_CIPHER_CTX *context;
    int count;

    context = context ? context : EVP_CIPHER_CTX_new();
    MUST(context && EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), NULL, forge->key, nonce));
    MUST(EVP_EncryptUpdate(context, NULL, &count, added, added_length));
    MUST(EVP_EncryptUpdate(context, bytes, &count, bytes, length) && count == length);
    MUST(EVP_EncryptFinal_ex(context, bytes + length, &count));
    MUST(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, tag_length, bytes + length));
}

static size_t seal_1_3(struct tls_forge *forge, unsigned char type, size_t length, size_t padding, unsigned char *record)
{
    unsigned char nonce[12];
    size_t inner = length + 1 + padding;

    record[header_length + length] = type;
    memset(record + header_length + length + 1, 0, padding);
    write_header(record, forge_data, inner + tag_length);
    memcpy(nonce, forge->iv, sizeof nonce);
    for (int i = 0; i < 8; i++) {
        nonce[11 - i] ^= (unsigned char)(forge->sequence >> 8 * i);
    }
    encrypt(forge, nonce, record, header_length, record + header_length, (int)inner);
    return header_length + inner + tag_length;
}

static size_t seal_1_2(struct tls_forge *forge, unsigned char type, size_t length, unsigned char *record)
{
    unsigned char nonce[12];
    unsigned char added[explicit_length + header_length];

    memmove(record + header_length + explicit_length, record + header_length, length);
    for (int i = 0; i < 8; i++) {
        added[7 - i] = (unsigned char)(forge->sequence >> 8 * i);
    }
    write_header(added + explicit_length, type, length);
    memcpy(nonce, forge->iv, 4);
    memcpy(nonce + 4, added, explicit_length);
    write_header(record, type, explicit_length + length + tag_length);
    memcpy(record + header_length, added, explicit_length);
    encrypt(forge, nonce, added, sizeof added, record + header_length + explicit_length, (int)length);
    return header_length + explicit_length + length + tag_length;
}

size_t tls_forge_seal(struct tls_forge *forge, unsigned char type, const void *content, size_t length, size_t padding,
                      unsigned char *ret_record)
{
    size_t sealed;

    MUST(length + padding <= forge_most_content);
    memcpy(ret_record + header_length, content, length);
    if (forge->keys == forge_no_keys) {
        write_header(ret_record, type, length);
        return header_length + length;
    }
    sealed = forge->is_1_3 ? seal_1_3(forge, type, length, padding, ret_record) : seal_1_2(forge, type, length, ret_record);
    forge->sequence++;
    return sealed;
}
