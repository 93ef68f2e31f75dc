/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See security_settings.h. All sessions share one context of OpenSSL, which is made for the first one and never freed. What differs is set
 * on the session's own object. A setting that cannot be applied refuses the session, so that nothing is less safe than the program asked.
 */
#include "security_settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "CFNetwork/CFSocketStream.h"
#include "CoreFoundation/CFArray.h"
#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFNumber.h"
#include "Runtime/Text/c_string.h"
#include "Support/invariant.h"
#include "resolver.h"
#include "tls_error.h"

enum { longest_name = 256, most_protocol_bytes = 1024 };

/* ---- the context ---- */

static SSL_CTX *shared_context; /* constant once made; NULL: no memory */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Bits: the errors that a verification passes over. They are in the application's data of the session's object. */
enum forgiven { forgiven_expired = 1, forgiven_expired_roots = 2, forgiven_any_root = 4 };

static bool is_forgiven(uintptr_t forgiven, int error, int depth)
{
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return forgiven & (depth == 0 ? forgiven_expired : forgiven_expired | forgiven_expired_roots);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return forgiven & forgiven_any_root;
    default:
        return false;
    }
}

static int judge_certificate(int is_good, X509_STORE_CTX *verification)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx());

    if (!is_good && is_forgiven((uintptr_t)SSL_get_app_data(ssl), X509_STORE_CTX_get_error(verification),
                                X509_STORE_CTX_get_error_depth(verification))) {
        X509_STORE_CTX_set_error(verification, X509_V_OK);
        return 1;
    }
    return is_good;
}

static void make_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());

    if (!context) {
        return;
    }
    if (!SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)) {
        SSL_CTX_free(context);
        return;
    }
    (void)SSL_CTX_set_default_verify_paths(context); /* after a failure no authority is trusted */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    shared_context = context;
}

/* ---- settings ---- */

/* What a session's object is made of. On the stack of security_settings_create. */
struct making {
    SSL *ssl;
    CFDictionaryRef settings;
    CFStringRef host; /* NULL: none */
    CFStreamError *error;
    bool is_server;
};

static bool refuse_setting(const struct making *m, int error)
{
    *m->error = tls_error(error);
    return false;
}

/* Refuses a setting that OpenSSL has rejected. Without memory the error stays ENOMEM. */
static bool refuse_after_error(const struct making *m)
{
    bool is_memory = ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE;

    return is_memory ? false : refuse_setting(m, errSSLBadConfiguration);
}

/* Stores the value of a key, or NULL. Refuses a value of another type. */
static bool get_setting(const struct making *m, CFStringRef key, CFTypeID type, CFTypeRef *ret_value)
{
    *ret_value = CFDictionaryGetValue(m->settings, key);
    return !*ret_value || CFGetTypeID(*ret_value) == type || refuse_setting(m, errSSLBadConfiguration);
}

static bool get_flag(const struct making *m, CFStringRef key, bool *ret_flag)
{
    CFTypeRef value;

    if (!get_setting(m, key, CFBooleanGetTypeID(), &value)) {
        return false;
    }
    *ret_flag = value ? CFBooleanGetValue(value) : *ret_flag;
    return true;
}

static bool set_level(const struct making *m)
{
    CFTypeRef level;
    int version;

    if (!get_setting(m, kCFStreamSSLLevel, CFStringGetTypeID(), &level)) {
        return false;
    }
    if (!level && !get_setting(m, kCFStreamPropertySocketSecurityLevel, CFStringGetTypeID(), &level)) {
        return false;
    }
    if (!level || CFEqual(level, kCFStreamSocketSecurityLevelNegotiatedSSL) || CFEqual(level, kCFStreamSocketSecurityLevelTLSv1)) {
        return true;
    }
    if (CFEqual(level, kCRLStreamSocketSecurityLevelTLSv1_2)) {
        version = TLS1_2_VERSION;
    } else if (CFEqual(level, kCRLStreamSocketSecurityLevelTLSv1_3)) {
        version = TLS1_3_VERSION;
    } else {
        return refuse_setting(m, errSSLBadConfiguration);
    }
    return SSL_set_min_proto_version(m->ssl, version) && SSL_set_max_proto_version(m->ssl, version);
}

/* ---- the name of the peer ---- */

/* A name of a host, or a numeric address, as certificates have it. */
struct peer_name {
    char text[longest_name]; /* empty: none */
    bool is_address;
};

/*
 * Changes an address to the form of certificates, if it is one: it may be written in brackets, with a zone, which is of this machine (RFC
 * 6874), or in an old spelling of IPv4.
 */
static bool parse_address(char text[longest_name])
{
    struct in6_addr ipv6;
    struct in_addr ipv4;
    char address[longest_name];
    size_t length = strlen(text);
    bool has_brackets = text[0] == '[' && text[length - 1] == ']';

    memcpy(address, text + has_brackets, length + 1 - has_brackets);
    address[strcspn(address, has_brackets ? "%]" : "%")] = '\0';
    if (inet_pton(AF_INET6, address, &ipv6) == 1) {
        return inet_ntop(AF_INET6, &ipv6, text, longest_name);
    }
    if (text[strspn(text, "0123456789abcdefABCDEFxX.")] != '\0' || inet_aton(text, &ipv4) == 0) {
        return false;
    }
    return inet_ntop(AF_INET, &ipv4, text, longest_name);
}

/* Returns false, with an empty text, for what is neither an address nor the name of a host. */
static bool parse_peer_name(CFStringRef string, struct peer_name *ret_name)
{
    char *text = ret_name->text;
    bool is_name;

    *ret_name = (struct peer_name){.text = ""};
    if (CFGetTypeID(string) != CFStringGetTypeID() || !c_string_copy(string, text, longest_name, kCFStringEncodingASCII)) {
        return false;
    }
    ret_name->is_address = parse_address(text);
    if (ret_name->is_address) {
        return true;
    }
    is_name = resolver_name_is_valid(text);
    if (!is_name) {
        text[0] = '\0';
    } else if (text[strlen(text) - 1] == '.') {
        text[strlen(text) - 1] = '\0'; /* the dot of the root domain, which certificates leave out */
    }
    return is_name;
}

/* Stores the name that the certificate must have: the setting's, or the host's. `*ret_is_any`: any will do; the name is the host's. */
static bool get_peer_name(const struct making *m, struct peer_name *ret_name, bool *ret_is_any)
{
    CFTypeRef value = CFDictionaryGetValue(m->settings, kCFStreamSSLPeerName);
    CFStringRef text = value && value != kCFNull ? value : m->host;

    *ret_is_any = value == kCFNull;
    *ret_name = (struct peer_name){.text = ""};
    if (text ? parse_peer_name(text, ret_name) : *ret_is_any) {
        return true;
    }
    return *ret_is_any || refuse_setting(m, text ? errSSLBadConfiguration : errSSLHostNameMismatch);
}

/*
 * A numeric address is compared with the certificate's addresses, and not sent to the server as its name (RFC 6066, 3). The subject's name
 * is never compared (RFC 9525, 6.3).
 */
static bool set_peer_name(const struct making *m, bool verifies)
{
    struct peer_name name;
    bool is_any;

    if (!get_peer_name(m, &name, &is_any)) {
        return !verifies && !CFDictionaryGetValue(m->settings, kCFStreamSSLPeerName);
    }
    if (name.text[0] != '\0' && !name.is_address && !SSL_set_tlsext_host_name(m->ssl, name.text)) {
        return refuse_after_error(m);
    }
    if (is_any || !verifies) {
        return true;
    }
    SSL_set_hostflags(m->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (name.is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(m->ssl), name.text) : SSL_set1_host(m->ssl, name.text)) {
        return true;
    }
    return refuse_after_error(m);
}

/* ---- certificates ---- */

static bool set_verification(const struct making *m, bool *ret_verifies)
{
    bool expired = false;
    bool expired_roots = false;
    bool any_root = false;
    bool verifies = !m->is_server;

    if (!get_flag(m, kCFStreamSSLAllowsExpiredCertificates, &expired) || !get_flag(m, kCFStreamSSLAllowsExpiredRoots, &expired_roots) ||
        !get_flag(m, kCFStreamSSLAllowsAnyRoot, &any_root) || !get_flag(m, kCFStreamSSLValidatesCertificateChain, &verifies)) {
        return false;
    }
    verifies = verifies && !m->is_server;
    SSL_set_app_data(m->ssl, (void *)(uintptr_t)((expired ? forgiven_expired : 0) | (expired_roots ? forgiven_expired_roots : 0) |
                                                 (any_root ? forgiven_any_root : 0)));
    SSL_set_verify(m->ssl, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, judge_certificate);
    *ret_verifies = verifies;
    return true;
}

/* What a PEM text holds: certificates and keys, in its order. */
typedef STACK_OF(X509_INFO) pem_parts;

/* Joins the data of an array. Returns NULL if a value is no data, which is refused, or without memory. */
static BIO *pem_text_create(const struct making *m, CFArrayRef array)
{
    BIO *text = BIO_new(BIO_s_mem());

    for (CFIndex i = 0; text && i < CFArrayGetCount(array); i++) {
        CFDataRef data = CFArrayGetValueAtIndex(array, i);

        if (!data || CFGetTypeID(data) != CFDataGetTypeID() || CFDataGetLength(data) > INT_MAX / 2) {
            (void)refuse_setting(m, errSSLBadConfiguration);
            BIO_free(text);
            return NULL;
        }
        if (BIO_write(text, CFDataGetBytePtr(data), (int)CFDataGetLength(data)) < 0) {
            BIO_free(text);
            return NULL;
        }
        (void)BIO_write(text, "\n", 1);
    }
    return text;
}

static int no_password(char *buffer, int size, int is_for_writing, void *info)
{
    (void)buffer;
    (void)size;
    (void)is_for_writing;
    (void)info;
    return -1; /* OpenSSL would ask at the terminal */
}

/* Uses the key and the first certificate. The other certificates are sent with it. */
static bool use_identity(const struct making *m, const pem_parts *parts)
{
    const X509_INFO *key = NULL;
    bool has_own = false;

    for (int i = 0; i < sk_X509_INFO_num(parts); i++) {
        const X509_INFO *part = sk_X509_INFO_value(parts, i);

        key = part->x_pkey && part->x_pkey->dec_pkey ? part : key;
        if (part->x509 && !has_own) {
            has_own = SSL_use_certificate(m->ssl, part->x509);
        } else if (part->x509 && !SSL_add1_chain_cert(m->ssl, part->x509)) {
            return refuse_after_error(m);
        }
    }
    if (!key || !has_own) {
        return refuse_setting(m, errSSLBadConfiguration);
    }
    return SSL_use_PrivateKey(m->ssl, key->x_pkey->dec_pkey) && SSL_check_private_key(m->ssl) ? true : refuse_after_error(m);
}

static bool use_anchors(const struct making *m, const pem_parts *parts)
{
    X509_STORE *store = X509_STORE_new();
    bool is_whole = store;
    bool has_any = false;

    for (int i = 0; is_whole && i < sk_X509_INFO_num(parts); i++) {
        X509 *certificate = sk_X509_INFO_value(parts, i)->x509;

        has_any = has_any || certificate;
        is_whole = !certificate || X509_STORE_add_cert(store, certificate);
    }
    if (!is_whole || !has_any) {
        X509_STORE_free(store);
        return store && !has_any ? refuse_setting(m, errSSLBadConfiguration) : false;
    }
    return SSL_set0_verify_cert_store(m->ssl, store); /* takes the store */
}

/* Calls `use` with the PEM text of a setting. `*ret_is_there`: the settings have it. */
static bool read_parts(const struct making *m, CFStringRef key, bool (*use)(const struct making *m, const pem_parts *parts),
                       bool *ret_is_there)
{
    CFTypeRef array;
    pem_parts *parts = NULL;
    BIO *text;
    bool is_used = false;

    if (!get_setting(m, key, CFArrayGetTypeID(), &array)) {
        return false;
    }
    *ret_is_there = array;
    if (!array) {
        return true;
    }
    text = pem_text_create(m, array);
    if (text) {
        parts = PEM_X509_INFO_read_bio(text, NULL, no_password, NULL);
        is_used = parts ? use(m, parts) : refuse_after_error(m);
    }
    sk_X509_INFO_pop_free(parts, X509_INFO_free);
    BIO_free(text);
    return is_used;
}

static bool set_certificates(const struct making *m)
{
    bool has_identity;
    bool has_anchors;

    if (!read_parts(m, kCFStreamSSLCertificates, use_identity, &has_identity) ||
        !read_parts(m, kCRLStreamSSLAnchorCertificates, use_anchors, &has_anchors)) {
        return false;
    }
    return has_identity || !m->is_server || refuse_setting(m, errSSLBadConfiguration);
}

/* ---- ALPN ---- */

/* Adds a protocol as TLS writes it: its length in a byte, then its name. Returns the list's new length; 0 if it is no valid protocol. */
static size_t add_protocol(unsigned char list[most_protocol_bytes], size_t length, CFStringRef protocol)
{
    char name[longest_name];
    size_t count;

    if (!protocol || CFGetTypeID(protocol) != CFStringGetTypeID() || !c_string_copy(protocol, name, sizeof name, kCFStringEncodingUTF8)) {
        return 0;
    }
    count = strlen(name);
    invariant(count < longest_name && length <= most_protocol_bytes);
    if (count == 0 || length + 1 + count > most_protocol_bytes) {
        return 0;
    }
    list[length] = (unsigned char)count;
    memcpy(list + length + 1, name, count);
    return length + 1 + count;
}

static bool set_protocols(const struct making *m)
{
    unsigned char list[most_protocol_bytes];
    size_t length = 0;
    CFTypeRef array;

    if (!get_setting(m, kCRLStreamSSLProtocols, CFArrayGetTypeID(), &array)) {
        return false;
    }
    for (CFIndex i = 0; array && i < CFArrayGetCount(array); i++) {
        length = add_protocol(list, length, CFArrayGetValueAtIndex(array, i));
        if (length == 0) {
            return refuse_setting(m, errSSLBadConfiguration);
        }
    }
    return length == 0 || SSL_set_alpn_protos(m->ssl, list, (unsigned int)length) == 0;
}

bool security_settings_offer(CFDictionaryRef settings, const unsigned char *protocol, size_t length)
{
    CFArrayRef offered = CFDictionaryGetValue(settings, kCRLStreamSSLProtocols);
    bool is_offered = false;

    for (CFIndex i = 0; offered && i < CFArrayGetCount(offered); i++) {
        char name[longest_name];
        bool is_name = c_string_copy(CFArrayGetValueAtIndex(offered, i), name, sizeof name, kCFStringEncodingUTF8);

        is_offered = is_offered || (is_name && strlen(name) == length && memcmp(name, protocol, length) == 0);
    }
    return is_offered;
}

/* ---- the session's object ---- */

static bool apply_settings(struct making *m)
{
    bool verifies;

    if (!get_flag(m, kCFStreamSSLIsServer, &m->is_server)) {
        return false;
    }
    if (m->is_server) {
        SSL_set_accept_state(m->ssl);
    } else {
        SSL_set_connect_state(m->ssl);
    }
    return set_level(m) && set_verification(m, &verifies) && (m->is_server || set_peer_name(m, verifies)) && set_certificates(m) &&
           set_protocols(m);
}

SSL *security_settings_create(CFStringRef host, CFDictionaryRef settings, CFStreamError *error)
{
    struct making m = {.host = host, .settings = settings, .error = error};

    *error = (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
    (void)pthread_once(&once, make_context);
    m.ssl = shared_context ? SSL_new(shared_context) : NULL;
    if (m.ssl && !apply_settings(&m)) {
        invariant(error->error != 0);
        SSL_free(m.ssl);
        return NULL;
    }
    return m.ssl;
}
