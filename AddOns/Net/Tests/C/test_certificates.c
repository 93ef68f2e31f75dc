/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which certificates of a server a client accepts: rules 1012 and 1013. Each row of the tables has the verdict of this library, and that of
 * the command `openssl s_client -verify_return_error` where it differs, with the reason. Where the command is installed it is asked too.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "certificate_builder.h"

/* What is unlike a leaf for good.test of an authority below the trusted root. */
enum oddity {
    no_middle = 1,
    middle_not_sent = 1 << 1,
    root_sent = 1 << 2,
    reversed = 1 << 3,
    unrelated_sent = 1 << 4,
    self_signed = 1 << 5,
    other_root = 1 << 6,
    leaf_old = 1 << 7,
    leaf_young = 1 << 8,
    leaf_long = 1 << 9, /* until after 2050, when dates have another form */
    leaf_far = 1 << 10, /* from after 2050 */
    middle_old = 1 << 11,
    middle_young = 1 << 12,
    root_old = 1 << 13,
    leaf_first_version = 1 << 14,
    middle_first_version = 1 << 15,
    root_first_version = 1 << 16,
    leaf_damaged = 1 << 17,
    middle_damaged = 1 << 18,
    many_names = 1 << 19,
    no_alternatives = 1 << 20,
    tls_1_2 = 1 << 21,
};

struct certificate_case {
    const char *what;
    const char *name; /* that the client wants; NULL: good.test */
    const char *alternatives; /* NULL: DNS:good.test, unless there are none */
    int expected; /* an error of TLS; 0: accepted */
    const char *differs; /* why the command's verdict is the opposite; NULL: it is the same */
    unsigned oddities;
    const char *subject; /* NULL: "a server" */
    const char *leaf, *middle, *root; /* their extensions; NULL: the usual ones */
    const char *key, *digest, *serial; /* of the leaf */
    int refused_from_level; /* OpenSSL's level of security of this system decides; 0: it does not matter */
    bool has_no_subject;
};

/* ---- the chain ---- */

struct chain {
    const struct certificate_case *row;
    struct credentials root, middle, leaf, stranger;
};

enum { decade_s = 315360000 };

static const char authority_extensions[] = "basicConstraints=critical,CA:TRUE|keyUsage=critical,keyCertSign";

static const char *pick(const char *text, const char *usual)
{
    return text ? text : usual;
}

/* A list of a thousand names, of which the last is good.test. */
static const char *list_many_names(void)
{
    static char text[20000];
    size_t length = 0;

    for (int i = 0; i < 1000; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "DNS:a%d.test,", i);
    }
    (void)snprintf(text + length, sizeof text - length, "DNS:good.test");
    return text;
}

static const char *alternatives_of(const struct certificate_case *row)
{
    if (row->oddities & many_names) {
        return list_many_names();
    }
    return row->oddities & (no_alternatives | leaf_first_version) ? NULL : pick(row->alternatives, "DNS:good.test");
}

static void make_authorities(struct chain *chain)
{
    const struct certificate_case *row = chain->row;
    bool root_is_first = row->oddities & root_first_version;
    bool middle_is_first = row->oddities & middle_first_version;
    struct certificate_plan root = {"a root", .key = "P-384", .begins_s = -2 * day_s, .is_first_version = root_is_first};
    struct certificate_plan middle = {"an authority", .key = "RSA-2048", .serial = "2", .is_first_version = middle_is_first};
    struct certificate_plan stranger = {"a stranger", .extensions = authority_extensions, .key = "P-521", .begins_s = -day_s};

    root.ends_s = row->oddities & root_old ? -day_s : day_s;
    root.extensions = root_is_first ? NULL : pick(row->root, authority_extensions);
    middle.begins_s = row->oddities & middle_young ? day_s : -2 * day_s;
    middle.ends_s = row->oddities & middle_old ? -day_s : 2 * day_s;
    middle.extensions = middle_is_first ? NULL : pick(row->middle, authority_extensions);
    middle.has_wrong_signature = row->oddities & middle_damaged;
    stranger.ends_s = day_s;
    chain->root = certificate_make(&root, NULL);
    chain->middle = certificate_make(&middle, &chain->root);
    chain->stranger = certificate_make(&stranger, NULL);
}

static void make_leaf(struct chain *chain)
{
    const struct certificate_case *row = chain->row;
    const struct credentials *issuer = row->oddities & no_middle ? &chain->root : &chain->middle;
    struct certificate_plan leaf = {.subject = row->has_no_subject ? NULL : pick(row->subject, "a server"),
                                    .alternatives = alternatives_of(row),
                                    .extensions = row->leaf,
                                    .digest = row->digest,
                                    .serial = pick(row->serial, "3"),
                                    .key = row->key,
                                    .begins_s = -2 * day_s,
                                    .ends_s = day_s,
                                    .is_first_version = row->oddities & leaf_first_version,
                                    .has_wrong_signature = row->oddities & leaf_damaged};

    if (row->oddities & leaf_old) {
        leaf.ends_s = -day_s;
    } else if (row->oddities & (leaf_long | leaf_far)) {
        leaf.ends_s = 5L * decade_s;
    }
    if (row->oddities & (leaf_young | leaf_far)) {
        leaf.begins_s = row->oddities & leaf_far ? 4L * decade_s : day_s / 2;
    }
    chain->leaf = certificate_make(&leaf, row->oddities & self_signed ? NULL : issuer);
}

static void free_chain(struct chain *chain)
{
    credentials_free(&chain->root);
    credentials_free(&chain->middle);
    credentials_free(&chain->leaf);
    credentials_free(&chain->stranger);
}

/* ---- the server ---- */

static struct chain *served; /* set before a peer starts */

static void send_also(SSL *ssl, const struct credentials *credentials)
{
    REQUIRE(SSL_add1_chain_cert(ssl, credentials->certificate));
}

static void use_chain(struct tls_peer *peer, SSL *ssl, int socket)
{
    unsigned oddities = served->row->oddities;

    (void)peer;
    (void)socket;
    SSL_set_security_level(ssl, 0); /* so that it can send what a client should refuse */
    (void)SSL_set_mode(ssl, SSL_MODE_NO_AUTO_CHAIN);
    REQUIRE(!(oddities & tls_1_2) || SSL_set_max_proto_version(ssl, TLS1_2_VERSION));
    REQUIRE(SSL_use_certificate(ssl, served->leaf.certificate) && SSL_use_PrivateKey(ssl, served->leaf.key));
    if (oddities & unrelated_sent) {
        send_also(ssl, &served->stranger);
    }
    if (oddities & (root_sent | reversed)) {
        send_also(ssl, &served->root);
    }
    if (!(oddities & (no_middle | middle_not_sent | self_signed))) {
        send_also(ssl, &served->middle);
    }
    if (oddities & unrelated_sent) {
        send_also(ssl, &served->stranger);
    }
}

/* ---- the verdicts ---- */

/* Returns the error of this library; 0: it accepts. */
static SInt32 judge(const struct chain *chain, const struct credentials *anchor)
{
    struct tls_peer peer = {.greet = use_chain};
    CFTypeRef keys[] = {kCFStreamSSLPeerName, kCRLStreamSSLAnchorCertificates};
    CFTypeRef values[] = {CFStringCreateWithCString(NULL, pick(chain->row->name, "good.test"), kCFStringEncodingUTF8),
                          credentials_copy_pem(anchor, false)};
    CFDictionaryRef settings = CFDictionaryCreate(NULL, keys, values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    SInt32 error = tls_peer_try(&peer, settings);

    CFRelease(settings);
    CFRelease(values[0]);
    CFRelease(values[1]);
    return error;
}

static int run_quietly(char *const words[])
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int status = -1;
    int error;

    posix_spawn_file_actions_init(&files);
    for (int i = 0; i < 3; i++) {
        posix_spawn_file_actions_addopen(&files, i, "/dev/null", i == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    error = posix_spawnp(&child, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    REQUIRE(error != 0 || waitpid(child, &status, 0) == child);
    return error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void touch_port(UInt32 port)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(end >= 0 && connect(end, (struct sockaddr *)&place, sizeof place) == 0);
    close(end);
}

/* Whether the command accepts. */
static bool ask_command(const struct chain *chain, const struct credentials *anchor)
{
    struct tls_peer peer = {.greet = use_chain};
    const char *name = pick(chain->row->name, "good.test");
    bool is_address = strchr(name, ':') || (name[0] >= '0' && name[0] <= '9');
    char place[32], file[] = "/tmp/anchor-XXXXXX";
    char *words[] = {"openssl",
                     "s_client",
                     "-connect",
                     place,
                     "-CAfile",
                     file,
                     "-no-CApath",
                     "-no-CAstore",
                     "-verify_return_error",
                     is_address ? "-verify_ip" : "-verify_hostname",
                     (char *)name,
                     NULL};
    FILE *pem = fdopen(mkstemp(file), "w");
    int status;

    REQUIRE(pem && PEM_write_X509(pem, anchor->certificate) && fclose(pem) == 0);
    tls_peer_start(&peer);
    (void)snprintf(place, sizeof place, "127.0.0.1:%u", (unsigned)peer.port);
    status = run_quietly(words);
    if (status != 0) {
        touch_port(peer.port); /* a command that refuses its words has not connected */
    }
    tls_peer_stop(&peer);
    unlink(file);
    return status == 0;
}

static bool there_is_a_command(void)
{
    char *words[] = {"openssl", "version", NULL};

    return run_quietly(words) == 0;
}

static int security_level(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    int level = SSL_CTX_get_security_level(context);

    SSL_CTX_free(context);
    return level;
}

static void check_row(const struct certificate_case *row, bool asks)
{
    struct chain chain = {.row = row};
    SInt32 expected = row->refused_from_level > security_level() ? 0 : row->expected;
    const struct credentials *anchor = row->oddities & other_root ? &chain.stranger : &chain.root;
    SInt32 verdict;

    make_authorities(&chain);
    make_leaf(&chain);
    served = &chain;
    verdict = judge(&chain, anchor);
    if (verdict != expected) {
        test_failed(__FILE__, __LINE__, "%s: %d instead of %d", row->what, (int)verdict, (int)expected);
    }
    if (asks && ask_command(&chain, anchor) != ((expected == 0) != (row->differs != NULL))) {
        test_failed(__FILE__, __LINE__, "%s: openssl s_client has another verdict", row->what);
    }
    free_chain(&chain);
}

static void check_table(const struct certificate_case *rows, size_t count)
{
    bool asks = there_is_a_command();

    CRLNetworkInstall();
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i], asks);
    }
}

#define CHECK_TABLE(rows) check_table(rows, sizeof(rows) / sizeof(rows)[0])

/* ---- the tables ---- */

enum {
    mismatch = errSSLHostNameMismatch,
    no_name = errSSLBadConfiguration,
    invalid = errSSLXCertChainInvalid,
    no_root = errSSLNoRootCert,
    unknown_root = errSSLUnknownRootCert,
};

#define BY_SUBJECT "the subject is no name of a host (RFC 9525, 2)"
#define BY_WHOLE_LABEL "an asterisk is a whole label (RFC 9525, 6.3)"

TEST(a_certificate_is_for_the_names_that_it_lists, "1012 1013")
{
    static const struct certificate_case rows[] = {
        {"the name", NULL, "DNS:good.test", .expected = 0},
        {"another name", NULL, "DNS:evil.test", .expected = mismatch},
        {"a longer name", NULL, "DNS:good.test.evil.test", .expected = mismatch},
        {"a name that ends alike", NULL, "DNS:verygood.test", .expected = mismatch},
        {"a name above", "a.good.test", "DNS:good.test", .expected = mismatch},
        {"capitals in the certificate", NULL, "DNS:GOOD.Test", .expected = 0},
        {"capitals in the wanted name", "Good.TEST", "DNS:good.test", .expected = 0},
        {"the second of two", NULL, "DNS:evil.test,DNS:good.test", .expected = 0},
        {"the same twice", NULL, "DNS:good.test,DNS:good.test", .expected = 0},
        {"a thousand names", NULL, NULL, .oddities = many_names},
        {"none of a thousand names", "evil.test", NULL, .expected = mismatch, .oddities = many_names},
        {"a wildcard", "a.good.test", "DNS:*.good.test", .expected = 0},
        {"a wildcard for an A-label", "xn--caf-dma.good.test", "DNS:*.good.test", .expected = 0},
        {"a wildcard for two labels", "a.b.good.test", "DNS:*.good.test", .expected = mismatch},
        {"a wildcard for no label", NULL, "DNS:*.good.test", .expected = mismatch},
        {"a wildcard for an underscore", "a_b.good.test", "DNS:*.good.test", .expected = mismatch},
        {"a wildcard in the middle", "a.good.test", "DNS:a.*.test", .expected = mismatch},
        {"two wildcards", "a.b.good.test", "DNS:*.*.good.test", .expected = mismatch},
        {"two asterisks", "a.good.test", "DNS:**.good.test", .expected = mismatch},
        {"a wildcard of a top level", NULL, "DNS:*.test", .expected = mismatch},
        {"only a wildcard", "good", "DNS:*", .expected = mismatch},
        {"a beginning and an asterisk", "abc.good.test", "DNS:a*.good.test", .expected = mismatch, .differs = BY_WHOLE_LABEL},
        {"an asterisk and an end", "abc.good.test", "DNS:*c.good.test", .expected = mismatch, .differs = BY_WHOLE_LABEL},
        {"an asterisk in a label", "abc.good.test", "DNS:a*c.good.test", .expected = mismatch},
        {"an asterisk in an A-label", "xn--caf-dma.good.test", "DNS:xn--*.good.test", .expected = mismatch},
        {"an A-label", "xn--caf-dma.test", "DNS:xn--caf-dma.test", .expected = 0},
        {"an underscore", "_a.good.test", "DNS:_a.good.test", .expected = 0},
        {"a dot at the end of the certificate's", NULL, "DNS:good.test.", .expected = mismatch},
        {"a dot at the end of the wanted name", "good.test.", "DNS:good.test", .differs = "the dot of the root is left out first"},
        {"a dot before the certificate's", "a.good.test", "DNS:.good.test", .expected = mismatch},
        {"a dot before the wanted name", ".good.test", "DNS:a.good.test", .expected = no_name,
         .differs = "no name of a host begins with a dot"},
        {"an asterisk in the wanted name", "*.good.test", "DNS:*.good.test", .expected = no_name,
         .differs = "no name of a host has an asterisk"},
        {"a byte 0 behind the name", NULL, "DNS:good.test#.evil.test", .expected = mismatch},
        {"a byte 0 at the end", NULL, "DNS:good.test#", .expected = mismatch},
        {"a byte 0 before the name", NULL, "DNS:#good.test", .expected = mismatch},
        {"a byte 0 and the name", NULL, "DNS:good.test#.evil.test,DNS:good.test", .expected = 0},
        {"a blank behind the name", NULL, "DNS:good.test .evil.test", .expected = mismatch},
    };

    CHECK_TABLE(rows);
}

TEST(a_certificate_is_for_a_host_by_the_kind_of_name, "1012 1013")
{
    static const struct certificate_case rows[] = {
        {"an address", "127.0.0.1", "IP:127.0.0.1", .expected = 0},
        {"another address", "127.0.0.1", "IP:127.0.0.2", .expected = mismatch},
        {"an address as a name", "127.0.0.1", "DNS:127.0.0.1", .expected = mismatch},
        {"a name beside another address", NULL, "IP:127.0.0.1,DNS:good.test", .expected = 0},
        {"a wildcard for an address", "127.0.0.1", "DNS:*.0.0.1", .expected = mismatch},
        {"an old spelling of an address", "127.1", "IP:127.0.0.1", .differs = "the command takes no such spelling"},
        {"an address of IPv6", "::1", "IP:::1", .expected = 0},
        {"a long spelling of IPv6", "0:0:0:0:0:0:0:1", "IP:::1", .expected = 0},
        {"another address of IPv6", "::1", "IP:::2", .expected = mismatch},
        {"IPv4 inside IPv6", "::ffff:127.0.0.1", "IP:127.0.0.1", .expected = mismatch},
        {"only an address of mail", NULL, "email:a@good.test", .expected = mismatch},
        {"only a URI", NULL, "URI:https://good.test/", .expected = mismatch},
        {"only a registered number", NULL, "RID:1.2.3.4", .expected = mismatch},
        {"only the subject", NULL, NULL, .expected = mismatch, .differs = BY_SUBJECT, .oddities = no_alternatives, .subject = "good.test"},
        {"the subject and mail", NULL, "email:a@good.test", .expected = mismatch, .differs = BY_SUBJECT, .subject = "good.test"},
        {"the subject and a URI", NULL, "URI:https://good.test/", .expected = mismatch, .differs = BY_SUBJECT, .subject = "good.test"},
        {"the subject and another name", NULL, "DNS:evil.test", .expected = mismatch, .subject = "good.test"},
        {"another subject and the name", NULL, "DNS:good.test", .subject = "evil.test"},
        {"a wildcard in the subject", "a.good.test", NULL, .expected = mismatch, .differs = BY_SUBJECT, .oddities = no_alternatives,
         .subject = "*.good.test"},
        {"an address in the subject", "127.0.0.1", NULL, .expected = mismatch, .oddities = no_alternatives, .subject = "127.0.0.1"},
        {"a byte 0 in the subject", NULL, NULL, .expected = mismatch, .oddities = no_alternatives, .subject = "good.test#.evil.test"},
        {"neither a subject nor a name", NULL, NULL, .expected = mismatch, .oddities = no_alternatives, .has_no_subject = true},
        {"no subject", NULL, "critical,DNS:good.test", .has_no_subject = true},
        {"a certificate of version 1", NULL, NULL, .expected = mismatch, .differs = BY_SUBJECT, .oddities = leaf_first_version,
         .subject = "good.test"},
    };

    CHECK_TABLE(rows);
}

TEST(a_chain_of_certificates_is_judged_as_a_whole, "1012")
{
    static const struct certificate_case rows[] = {
        {"of the root itself", .oddities = no_middle},
        {"with the root", .oddities = root_sent},
        {"in the wrong order", .oddities = reversed},
        {"with others", .oddities = unrelated_sent},
        {"the middle is missing", .expected = no_root, .oddities = middle_not_sent},
        {"the root is not trusted", .expected = no_root, .oddities = other_root},
        {"the root is sent and not trusted", .expected = unknown_root, .oddities = root_sent | other_root},
        {"signed by itself", .expected = unknown_root, .oddities = self_signed},
        {"expired", .expected = errSSLCertExpired, .oddities = leaf_old},
        {"not yet valid", .expected = errSSLCertNotYetValid, .oddities = leaf_young},
        {"valid for 50 years", .oddities = leaf_long},
        {"valid in 40 years", .expected = errSSLCertNotYetValid, .oddities = leaf_far},
        {"the middle has expired", .expected = errSSLCertExpired, .oddities = middle_old},
        {"the middle is not yet valid", .expected = errSSLCertNotYetValid, .oddities = middle_young},
        {"the root has expired", .expected = errSSLCertExpired, .oddities = root_old},
        {"a middle of version 1", .expected = invalid, .oddities = middle_first_version},
        {"a root of version 1", .oddities = root_first_version},
        {"a damaged leaf", .expected = invalid, .oddities = leaf_damaged},
        {"a damaged middle", .expected = invalid, .oddities = middle_damaged},
        {"a middle that is no authority", .expected = invalid, .middle = "basicConstraints=critical,CA:FALSE"},
        {"a middle that does not say so", .expected = invalid, .middle = "keyUsage=digitalSignature"},
        {"a middle that may not sign", .expected = invalid, .middle = "basicConstraints=CA:TRUE|keyUsage=digitalSignature"},
        {"a middle for clients", .expected = invalid, .middle = "basicConstraints=CA:TRUE|extendedKeyUsage=clientAuth"},
        {"longer than the root allows", .expected = invalid, .root = "basicConstraints=critical,CA:TRUE,pathlen:0"},
        {"as long as the root allows", .root = "basicConstraints=critical,CA:TRUE,pathlen:1"},
        {"as long as the middle allows", .middle = "basicConstraints=critical,CA:TRUE,pathlen:0"},
        {"a name that is permitted", .middle = "basicConstraints=CA:TRUE|nameConstraints=critical,permitted;DNS:good.test"},
        {"a name that is not permitted", .expected = invalid,
         .middle = "basicConstraints=CA:TRUE|nameConstraints=critical,permitted;DNS:evil.test"},
        {"a name that is excluded", .expected = invalid,
         .middle = "basicConstraints=CA:TRUE|nameConstraints=critical,excluded;DNS:good.test"},
        {"one of two names is not permitted", .alternatives = "DNS:good.test,DNS:evil.test", .expected = invalid,
         .middle = "basicConstraints=CA:TRUE|nameConstraints=critical,permitted;DNS:good.test"},
        {"an address that is excluded", .alternatives = "DNS:good.test,IP:10.0.0.1", .expected = invalid,
         .middle = "basicConstraints=CA:TRUE|nameConstraints=critical,excluded;IP:10.0.0.0/255.0.0.0"},
        {"an unknown critical extension of the middle", .expected = invalid,
         .middle = "basicConstraints=CA:TRUE|1.2.3.4=critical,DER:05:00"},
    };

    CHECK_TABLE(rows);
}

TEST(a_certificate_is_judged_by_its_use_and_its_keys, "1012")
{
    static const struct certificate_case rows[] = {
        {"for servers", .leaf = "extendedKeyUsage=serverAuth|keyUsage=critical,digitalSignature"},
        {"for clients only", .expected = invalid, .leaf = "extendedKeyUsage=clientAuth"},
        {"for code only", .expected = invalid, .leaf = "extendedKeyUsage=codeSigning"},
        {"for signing certificates only", .expected = invalid, .leaf = "keyUsage=critical,keyCertSign"},
        {"an authority as a server", .leaf = "basicConstraints=critical,CA:TRUE"},
        {"an unknown critical extension", .expected = invalid, .leaf = "1.2.3.4=critical,DER:05:00"},
        {"an unknown extension", .leaf = "1.2.3.4=DER:05:00"},
        {"two lists of names", .expected = no_root, .leaf = "subjectAltName=DNS:evil.test"},
        {"a serial of 0", .serial = "0"},
        {"a serial below 0", .serial = "-11"},
        {"a serial of 32 bytes", .serial = "7766554433221100776655443322110077665544332211007766554433221100"},
        {"RSA of 512 bits", .expected = invalid, .oddities = tls_1_2, .key = "RSA-512", .refused_from_level = 1},
        {"RSA of 1024 bits", .expected = invalid, .key = "RSA-1024", .refused_from_level = 2},
        {"RSA of 2048 bits", .key = "RSA-2048"},
        {"P-256", .key = "P-256"},
        {"P-384", .key = "P-384"},
        {"P-521", .key = "P-521"},
        {"a curve that is not offered", .expected = errSSLPeerHandshakeFail, .key = "secp256k1"},
        {"Ed25519", .key = "ED25519"},
        {"Ed448", .key = "ED448"},
        {"signed with SHA-512", .digest = "SHA512"},
        {"signed with SHA-1", .expected = invalid, .digest = "SHA1", .refused_from_level = 1},
        {"signed with MD5", .expected = invalid, .digest = "MD5", .refused_from_level = 1},
    };

    CHECK_TABLE(rows);
}
