/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes certificates of any kind for a test, good and bad ones. Keys are made once and kept. For the test's main thread.
 */
#ifndef CRL_NET_TESTS_CERTIFICATE_BUILDER_H
#define CRL_NET_TESTS_CERTIFICATE_BUILDER_H

#include "tls_peer.h"

/* In texts '#' stands for a byte 0. What is 0 or NULL is left out, or usual. */
struct certificate_plan {
    const char *subject; /* the common name; NULL: an empty subject */
    const char *alternatives; /* as OpenSSL writes them: "DNS:a.test,IP:::1" */
    const char *extensions; /* "kind=value|kind=value" */
    const char *digest; /* NULL: SHA-256 */
    const char *serial; /* in hexadecimal digits; NULL: 1 */
    const char *key; /* see key_of */
    long begins_s, ends_s; /* from now */
    bool is_first_version;
    bool has_wrong_signature;
};

/* "RSA-2048" and other lengths, "ED25519", "ED448", or a curve such as "P-256", which NULL is. The caller does not free it. */
EVP_PKEY *key_of(const char *kind);
/* The issuer is NULL for a certificate that signs itself. The key has a reference of its own: free it with credentials_free. */
struct credentials certificate_make(const struct certificate_plan *plan, const struct credentials *issuer);

#endif
