/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that break the rules of TLS in the handshake: rules 1010, 1014 and 1015. Each is refused at once, with an error. */
#define _GNU_SOURCE
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "certificate_builder.h"
#include "session.h"
#include "tls_forge.h"

struct hostile_case {
    const char *what;
    int expected; /* an error of TLS; 0: accepted */
    int version; /* of TLS; 0: any */
    const char *chosen; /* by ALPN; NULL: none */
    const char *offered; /* by the client, by ALPN; NULL: none */
    int authorities; /* how many the server names when it asks for a certificate; 0: it does not ask */
    int certificates; /* how many the server sends besides its own */
    bool (*spoil)(unsigned char *bytes, size_t length); /* changes what the server sends; NULL: nothing */
};

/* ---- the server ---- */

static const struct hostile_case *served; /* set before a peer starts */
static bool is_spoiled;

static int choose(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_length, const unsigned char *offered, unsigned int length,
                  void *info)
{
    (void)ssl;
    (void)offered;
    (void)length;
    (void)info;
    *ret_chosen = (const unsigned char *)served->chosen;
    *ret_length = (unsigned char)strlen(served->chosen);
    return SSL_TLSEXT_ERR_OK;
}

static long spoil_what_is_sent(BIO *bio, int what, const char *bytes, size_t length, int argument, long number, int result,
                               size_t *processed)
{
    (void)bio;
    (void)argument;
    (void)number;
    (void)processed;
    if (what == BIO_CB_WRITE && !is_spoiled) {
        is_spoiled = served->spoil((unsigned char *)bytes, length); /* OpenSSL's own buffer */
    }
    return result;
}

static void ask_for_certificate(SSL *ssl, int authorities)
{
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();

    for (int i = 0; i < authorities; i++) {
        X509_NAME *name = X509_NAME_new();

        REQUIRE(name && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"an authority", -1, -1, 0));
        REQUIRE(sk_X509_NAME_push(names, name));
    }
    SSL_set0_CA_list(ssl, names);
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
}

static void be_hostile(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)socket;
    for (int i = 0; i < served->certificates; i++) {
        REQUIRE(SSL_add1_chain_cert(ssl, peer->own->certificate));
    }
    if (served->chosen) {
        SSL_CTX_set_alpn_select_cb(SSL_get_SSL_CTX(ssl), choose, NULL);
    }
    if (served->authorities > 0) {
        ask_for_certificate(ssl, served->authorities);
    }
    if (served->spoil) {
        BIO_set_callback_ex(SSL_get_wbio(ssl), spoil_what_is_sent);
    }
}

/* ---- the client ---- */

static CFArrayRef create_offer(const char *protocol)
{
    CFTypeRef name = CFStringCreateWithCString(NULL, protocol, kCFStringEncodingUTF8);
    CFArrayRef offer = CFArrayCreate(NULL, &name, 1, &kCFTypeArrayCallBacks);

    CFRelease(name);
    return offer;
}

static void check_case(const struct hostile_case *row)
{
    struct credentials own = credentials_create("127.0.0.1", NULL, -day_s, day_s);
    struct tls_peer peer = {.own = &own, .greet = be_hostile, .version = row->version};
    CFMutableDictionaryRef settings = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFArrayRef anchors = credentials_copy_pem(&own, false);
    CFArrayRef offer = row->offered ? create_offer(row->offered) : NULL;
    SInt32 error;

    CFDictionarySetValue(settings, kCRLStreamSSLAnchorCertificates, anchors);
    if (offer) {
        CFDictionarySetValue(settings, kCRLStreamSSLProtocols, offer);
        CFRelease(offer);
    }
    served = row;
    is_spoiled = false;
    error = tls_peer_try(&peer, settings);
    if (error != row->expected) {
        test_failed(__FILE__, __LINE__, "%s: %d instead of %d", row->what, (int)error, row->expected);
    }
    EXPECT(!row->spoil || is_spoiled);
    CFRelease(anchors);
    CFRelease(settings);
    credentials_free(&own);
}

static void check_cases(const struct hostile_case *rows, size_t count)
{
    CRLNetworkInstall();
    for (size_t i = 0; i < count; i++) {
        check_case(&rows[i]);
    }
}

#define CHECK_CASES(rows) check_cases(rows, sizeof(rows) / sizeof(rows)[0])

/* ---- certificates of clients ---- */

/* The outer length of the first authority's name. */
static bool spoil_authority(unsigned char *bytes, size_t length)
{
    static const unsigned char name[] = {0x30, 0x17, 0x31, 0x15};
    unsigned char *found = memmem(bytes, length, name, sizeof name);

    if (found) {
        found[1] = 0x7f;
    }
    return found;
}

TEST(a_server_may_ask_for_the_certificate_of_many_authorities, "1014")
{
    static const struct hostile_case rows[] = {
        {"one authority", .authorities = 1},
        {"as many as there can be", .authorities = 2400, .version = TLS1_3_VERSION},
        {"as many in TLS 1.2", .authorities = 2400, .version = TLS1_2_VERSION},
        {"no name", .expected = errSSLBadCert, .authorities = 1, .version = TLS1_2_VERSION, .spoil = spoil_authority},
    };

    CHECK_CASES(rows);
}

static void ask_again(struct tls_peer *peer, SSL *ssl, int socket)
{
    char byte;

    (void)socket;
    EXPECT(!SSL_verify_client_post_handshake(ssl)); /* the client has not offered it */
    peer->received = SSL_read(ssl, &byte, 1);
}

/* ---- a server that keeps no rule ---- */

/* A session and its server, in turns. */
struct sitting {
    struct tls_forge forge;
    void *session;
    int ends[2];
    CFStreamError error; /* of the session */
};

/* The client trusts everybody, and has one setting more. NULL: none. */
static void sitting_begin(struct sitting *sitting, CFStringRef key, CFTypeRef value)
{
    CFTypeRef keys[] = {kCFStreamSSLValidatesCertificateChain, kCFStreamSSLPeerName, key};
    CFTypeRef values[] = {kCFBooleanFalse, CFSTR("host.test"), value};
    CFDictionaryRef settings =
        CFDictionaryCreate(NULL, keys, values, key ? 3 : 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sitting->ends) == 0);
    tls_forge_create(&sitting->forge, TLS1_3_VERSION, sitting->ends[1]);
    sitting->session = session_create(sitting->ends[0], NULL, settings, &sitting->error);
    REQUIRE(sitting->session);
    CFRelease(settings);
}

/* Returns what the session has last got from its handshake. */
static int sitting_shake_hands(struct sitting *sitting)
{
    bool is_done = false;
    int result = -EAGAIN;
    UInt32 waits;

    for (int turns = 0; turns < 10 && !(is_done && result != -EAGAIN); turns++) {
        result = session_handshake(sitting->session, &waits, &sitting->error);
        is_done = tls_forge_shake_hands(&sitting->forge);
        tls_forge_flush(&sitting->forge);
    }
    tls_forge_use(&sitting->forge, forge_application_keys);
    return result;
}

static void sitting_end(struct sitting *sitting)
{
    session_free(sitting->session);
    tls_forge_free(&sitting->forge);
    close(sitting->ends[0]);
    close(sitting->ends[1]);
}

/* The server asks all the same: for a certificate that was signed by ECDSA. */
static void expect_no_certificate(CFStringRef key, CFTypeRef identity)
{
    static const unsigned char request[] = {13, 0, 0, 12, 1, 'c', 0, 8, 0, 13, 0, 4, 0, 2, 4, 3};
    unsigned char record[sizeof request + forge_most_added];
    struct sitting sitting;
    UInt32 waits;
    UInt8 byte;
    size_t length;

    sitting_begin(&sitting, key, identity);
    EXPECT_EQ(sitting_shake_hands(&sitting), 0);
    length = tls_forge_seal(&sitting.forge, forge_handshake, request, sizeof request, 0, record);
    EXPECT_EQ(send(sitting.ends[1], record, length, 0), length);
    EXPECT_EQ(session_receive(sitting.session, &byte, 1, &waits, &sitting.error), -EPROTO);
    EXPECT_EQ(sitting.error.error, errSSLUnexpectedRecord);
    EXPECT_EQ(session_send(sitting.session, &byte, 1, &waits, &sitting.error), -EPROTO);
    EXPECT(SSL_read(sitting.forge.ssl, &byte, 1) <= 0);
    EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()), SSL_R_SSLV3_ALERT_UNEXPECTED_MESSAGE);
    EXPECT(!SSL_get0_peer_certificate(sitting.forge.ssl));
    sitting_end(&sitting);
}

TEST(a_certificate_that_is_asked_for_after_the_handshake_is_not_shown, "1014 1010")
{
    struct credentials own = credentials_create("a client", NULL, -day_s, day_s);
    CFArrayRef identity = credentials_copy_pem(&own, true);

    CRLNetworkInstall();
    expect_no_certificate(NULL, NULL);
    expect_no_certificate(kCFStreamSSLCertificates, identity);
    CFRelease(identity);
    credentials_free(&own);
}

TEST(more_certificates_than_a_message_may_have_are_refused, "1012")
{
    static const struct hostile_case rows[] = {
        {"too many", .expected = errSSLRecordOverflow, .certificates = 400, .version = TLS1_3_VERSION},
        {"too many in TLS 1.2", .expected = errSSLRecordOverflow, .certificates = 400, .version = TLS1_2_VERSION},
    };

    CHECK_CASES(rows);
}

TEST(no_certificate_can_be_asked_for_after_the_handshake, "1014 1010")
{
    static const struct hostile_case row = {.authorities = 1};
    struct credentials own = credentials_create("127.0.0.1", NULL, -day_s, day_s);
    struct tls_peer peer = {.own = &own, .greet = be_hostile, .serve = ask_again, .version = TLS1_3_VERSION};
    CFArrayRef anchors = credentials_copy_pem(&own, false);
    CFTypeRef key = kCRLStreamSSLAnchorCertificates;
    CFTypeRef value = anchors;
    CFDictionaryRef settings = CFDictionaryCreate(NULL, &key, &value, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    CRLNetworkInstall();
    served = &row;
    EXPECT_EQ(tls_peer_try(&peer, settings), 0);
    EXPECT_EQ(peer.received, 1);
    CFRelease(settings);
    CFRelease(anchors);
    credentials_free(&own);
}

/* ---- protocols ---- */

/* Makes the extension of renegotiation one of ALPN. */
static bool spoil_extension(unsigned char *bytes, size_t length)
{
    static const unsigned char extension[] = {0xff, 0x01, 0x00, 0x01, 0x00};
    unsigned char *found = memmem(bytes, length, extension, sizeof extension);

    if (found) {
        memcpy(found, (const unsigned char[]){0x00, 0x10}, 2);
    }
    return found;
}

static bool empty_choice(unsigned char *bytes, size_t length)
{
    static const unsigned char extension[] = {0x00, 0x10, 0x00, 0x05, 0x00, 0x03, 0x02, 'h', '2'};
    unsigned char *found = memmem(bytes, length, extension, sizeof extension);

    if (found) {
        found[6] = 0;
    }
    return found;
}

TEST(a_server_chooses_a_protocol_that_was_offered, "1015")
{
    static const struct hostile_case rows[] = {
        {"the one that was offered", .offered = "h2", .chosen = "h2"},
        {"one where none was offered", .expected = errSSLProtocol, .version = TLS1_2_VERSION, .spoil = spoil_extension},
        {"an empty one", .expected = errSSLProtocol, .offered = "h2", .chosen = "h2", .version = TLS1_2_VERSION, .spoil = empty_choice},
        {"another", .expected = errSSLProtocol, .offered = "h2", .chosen = "smtp"},
        {"another in TLS 1.2", .expected = errSSLProtocol, .offered = "h2", .chosen = "smtp", .version = TLS1_2_VERSION},
        {"the beginning of the one", .expected = errSSLProtocol, .offered = "h2", .chosen = "h"},
        {"one that is no UTF-8", .expected = errSSLProtocol, .offered = "h2", .chosen = "\xff"},
    };

    CHECK_CASES(rows);
}

/* OpenSSL takes the choice for one that was offered, as old versions take any: the offer is another one after it was sent. */
TEST(the_choice_of_a_protocol_is_compared_with_the_offer, "1015 335")
{
    static const struct hostile_case row = {.chosen = "h2"};
    CFMutableArrayRef offer = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    struct sitting sitting;
    CFTypeRef words;

    served = &row;
    CFArrayAppendValue(offer, CFSTR("h2"));
    sitting_begin(&sitting, kCRLStreamSSLProtocols, offer);
    SSL_CTX_set_alpn_select_cb(SSL_get_SSL_CTX(sitting.forge.ssl), choose, NULL);
    CFArraySetValueAtIndex(offer, 0, CFSTR("h2c"));
    CFArrayAppendValue(offer, CFSTR("h"));
    EXPECT_EQ(sitting_shake_hands(&sitting), -EPROTO);
    EXPECT_EQ(sitting.error.error, errSSLProtocol);
    words = session_copy_property(sitting.session, kCFErrorLocalizedFailureReasonKey);
    EXPECT(words && CFStringFind(words, CFSTR("not offered"), 0).length > 0);
    CFRelease(words);
    CFRelease(offer);
    sitting_end(&sitting);
}

/* ---- versions ---- */

enum { version_place = 9, random_end = 43 }; /* in the record of the server's hello */

static bool say_downgrade(unsigned char *bytes, size_t length)
{
    REQUIRE(length > random_end);
    memcpy(bytes + random_end - 8, "DOWNGRD\1", 8);
    return true;
}

static bool say_old_version(unsigned char *bytes, size_t length)
{
    REQUIRE(length > random_end);
    bytes[version_place + 1] = 1;
    return true;
}

static bool say_unknown_version(unsigned char *bytes, size_t length)
{
    REQUIRE(length > random_end);
    bytes[version_place] = 9;
    return true;
}

static bool choose_unknown_cipher(unsigned char *bytes, size_t length)
{
    REQUIRE(length > (size_t)random_end + 3 + bytes[random_end]);
    bytes[random_end + 1 + bytes[random_end]] = 0xee;
    return true;
}

TEST(a_version_that_somebody_has_lowered_is_refused, "1013")
{
    static const struct hostile_case rows[] = {
        {"TLS 1.2 of a server of 1.2", .version = TLS1_2_VERSION},
        {"a server of 1.3 speaks 1.2", .expected = errSSLProtocol, .version = TLS1_2_VERSION, .spoil = say_downgrade},
        {"TLS 1.0", .expected = errSSLProtocol, .version = TLS1_2_VERSION, .spoil = say_old_version},
        {"no version", .expected = errSSLProtocol, .version = TLS1_2_VERSION, .spoil = say_unknown_version},
        {"a cipher of nobody", .expected = errSSLNegotiation, .version = TLS1_2_VERSION, .spoil = choose_unknown_cipher},
    };

    CHECK_CASES(rows);
}
