/* SPDX-License-Identifier: Apache-2.0 */
/* See certificate_builder.h. */
#define _GNU_SOURCE
#include "certificate_builder.h"

#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

EVP_PKEY *key_of(const char *kind)
{
    static struct {
        const char *kind;
        EVP_PKEY *key;
    } kept[16];
    size_t i = 0;

    kind = kind ? kind : "P-256";
    while (i < sizeof kept / sizeof kept[0] && kept[i].kind && strcmp(kept[i].kind, kind) != 0) {
        i++;
    }
    REQUIRE(i < sizeof kept / sizeof kept[0]);
    if (!kept[i].kind) {
        kept[i].kind = kind;
        if (strncmp(kind, "RSA-", 4) == 0) {
            kept[i].key = EVP_RSA_gen((unsigned int)atoi(kind + 4));
        } else {
            kept[i].key = strncmp(kind, "ED", 2) == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, kind) : EVP_EC_gen(kind);
        }
    }
    REQUIRE(kept[i].key);
    return kept[i].key;
}

static void put_zeros(unsigned char *bytes, int length)
{
    for (int i = 0; i < length; i++) {
        bytes[i] = bytes[i] == '#' ? 0 : bytes[i];
    }
}

static void add_extension(X509 *certificate, const char *kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf(NULL, NULL, kind, value);
    ASN1_OCTET_STRING *bytes = extension ? X509_EXTENSION_get_data(extension) : NULL;

    REQUIRE(bytes);
    if (memchr(value, '#', strlen(value))) {
        put_zeros(bytes->data, bytes->length);
    }
    REQUIRE(X509_add_ext(certificate, extension, -1));
    X509_EXTENSION_free(extension);
}

static void add_extensions(X509 *certificate, const char *list)
{
    char *copy = strdup(list);
    char *rest = copy;
    char *one;

    while ((one = strsep(&rest, "|"))) {
        char *value = strchr(one, '=');

        REQUIRE(value);
        *value = '\0';
        add_extension(certificate, one, value + 1);
    }
    free(copy);
}

static void set_subject(X509 *certificate, const char *common_name)
{
    unsigned char text[256];
    int length = (int)strlen(common_name);

    memcpy(text, common_name, (size_t)length + 1);
    put_zeros(text, length);
    REQUIRE(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, text, length, -1, 0));
}

static void set_serial(X509 *certificate, const char *digits)
{
    BIGNUM *number = NULL;

    REQUIRE(BN_hex2bn(&number, digits) && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)));
    BN_free(number);
}

static void damage_signature(X509 *certificate)
{
    const ASN1_BIT_STRING *signature;

    X509_get0_signature(&signature, NULL, certificate);
    signature->data[signature->length - 1] ^= 1;
}

struct credentials certificate_make(const struct certificate_plan *plan, const struct credentials *issuer)
{
    struct credentials made = {key_of(plan->key), X509_new()};
    EVP_PKEY *signer = issuer ? issuer->key : made.key;
    bool hashes_itself = EVP_PKEY_is_a(signer, "ED25519") || EVP_PKEY_is_a(signer, "ED448");
    const EVP_MD *digest = hashes_itself ? NULL : EVP_get_digestbyname(plan->digest ? plan->digest : "SHA256");

    REQUIRE(made.certificate && X509_set_version(made.certificate, plan->is_first_version ? 0 : 2));
    set_serial(made.certificate, plan->serial ? plan->serial : "1");
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), plan->begins_s);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), plan->ends_s);
    if (plan->subject) {
        set_subject(made.certificate, plan->subject);
    }
    REQUIRE(X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer ? issuer->certificate : made.certificate)));
    REQUIRE(X509_set_pubkey(made.certificate, made.key) && EVP_PKEY_up_ref(made.key));
    if (plan->alternatives) {
        add_extension(made.certificate, "subjectAltName", plan->alternatives);
    }
    if (plan->extensions) {
        add_extensions(made.certificate, plan->extensions);
    }
    REQUIRE(X509_sign(made.certificate, signer, digest));
    if (plan->has_wrong_signature) {
        damage_signature(made.certificate);
    }
    return made;
}
