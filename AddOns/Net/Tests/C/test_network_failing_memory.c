/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations fail, one at a time: those of this library and the core (the n-th failure), those of c-ares, and those of OpenSSL. A question
 * is answered, or not asked; a session carries bytes to its end, or fails with an error. Nothing is left of either.
 */
#include <ares.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Failure/nth_failure.h"
#include "Port/port_probe.h"
#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "query.h"
#include "session.h"
#include "tls_peer.h"

/* ---- queries ---- */

struct told {
    int times;
    bool has_addresses;
};

static void tell(void *context, CFArrayRef addresses, CFStreamError error)
{
    struct told *told = context;

    told->times++;
    told->has_addresses = addresses;
    EXPECT(addresses || error.domain != 0);
}

/* Returns false if there is no answer for want of memory. */
static bool ask_for(CFStringRef name)
{
    struct told told = {0, false};
    void *query = query_resolve(name, 80, tell, &told);

    if (!query) {
        return false;
    }
    query_schedule(query, CFRunLoopGetCurrent(), CFSTR("a mode"));
    query_wait(query);
    EXPECT_EQ(told.times, 1);
    query_unschedule(query, CFRunLoopGetCurrent(), CFSTR("a mode"));
    query_free(query);
    return told.has_addresses;
}

/* The hosts file has it. */
NTH_FAILURE(a_question_for_a_name, "1005")
{
    return ask_for(CFSTR("localhost")) || !dns_hosts_file_has_localhost();
}

/* With servers: two families, a name that is searched, an alias, and an answer by TCP. */
NTH_FAILURE(questions_for_names, "1005 1000")
{
    static const CFStringRef names[] = {CFSTR("both.test"), CFSTR("good"), CFSTR("long.test")};
    struct dns_server server;
    bool is_answered = true;

    dns_server_start(&server);
    memcpy(server.configuration.domains, "nowhere.test\0a.test", 20);
    server.configuration.domain_count = 2;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        is_answered = ask_for(names[i]) && is_answered;
    }
    dns_server_stop(&server);
    return is_answered;
}

/* From none that can be opened to all that a question needs. */
TEST(a_name_is_answered_or_refused_whichever_descriptor_is_missing, "1005")
{
    struct rlimit limit;
    struct dns_server server;
    int patience_ms;
    rlim_t first;

    dns_server_start(&server);
    REQUIRE(CFRunLoopGetCurrent() && ask_for(CFSTR("long.test")) && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    first = (rlim_t)port_probe_count_descriptors();
    patience_ms = server.configuration.timeout_ms;
    server.configuration.timeout_ms = 100; /* the server of the test may lack one, too */
    for (rlim_t most = first; most < first + 10; most++) {
        struct rlimit low = {most, limit.rlim_max};

        REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
        (void)ask_for(CFSTR("localhost"));
        (void)ask_for(CFSTR("long.test"));
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    server.configuration.timeout_ms = patience_ms;
    EXPECT(ask_for(CFSTR("long.test")));
    dns_server_stop(&server);
}

/* ---- sessions ---- */

static struct credentials own;
static CFDictionaryRef settings;
static CFDictionaryRef server_settings;

static void make_settings(void)
{
    CFTypeRef protocol = CFSTR("h2");
    CFTypeRef keys[] = {kCFStreamSSLCertificates, kCRLStreamSSLAnchorCertificates, kCRLStreamSSLProtocols, kCFStreamSSLPeerName,
                        kCFStreamSSLIsServer};
    CFTypeRef values[5];

    own = credentials_create("host.test", NULL, -day_s, day_s);
    values[0] = credentials_copy_pem(&own, true);
    values[1] = credentials_copy_pem(&own, false);
    values[2] = CFArrayCreate(NULL, &protocol, 1, &kCFTypeArrayCallBacks);
    values[3] = CFRetain(CFSTR("host.test"));
    values[4] = CFRetain(kCFBooleanTrue);
    settings = CFDictionaryCreate(NULL, keys, values, 4, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    server_settings = CFDictionaryCreate(NULL, keys, values, 5, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    for (int i = 0; i < 5; i++) {
        CFRelease(values[i]);
    }
}

static void free_settings(void)
{
    CFRelease(settings);
    CFRelease(server_settings);
    credentials_free(&own);
}

enum { most_turns = 100 };

/* Returns false after a failure, which has to have an error. */
static bool goes_on(CFIndex result, CFStreamError error)
{
    if (result == -EPROTO) {
        EXPECT(error.domain == kCFStreamErrorDomainPOSIX || error.domain == kCFStreamErrorDomainSSL);
        EXPECT(error.error != 0);
    }
    return result >= 0 || result == -EAGAIN;
}

static bool shake_hands(void *sessions[2])
{
    int results[2] = {-EAGAIN, -EAGAIN};
    int turns = 0;

    while ((results[0] != 0 || results[1] != 0) && turns++ < most_turns) {
        for (int i = 0; i < 2; i++) {
            CFStreamError error = {0, 0};
            UInt32 waits;

            results[i] = session_handshake(sessions[i], &waits, &error);
            if (!goes_on(results[i], error)) {
                return false;
            }
        }
    }
    EXPECT(turns < most_turns);
    return true;
}

/* Returns what the receiver gets: bytes, 0 for the end, or an error. */
static CFIndex await_bytes(void *session)
{
    UInt8 bytes[8];
    CFStreamError error = {0, 0};
    UInt32 waits;
    CFIndex count = -EAGAIN;

    for (int turns = 0; count == -EAGAIN && turns < most_turns; turns++) {
        count = session_receive(session, bytes, sizeof bytes, &waits, &error);
    }
    EXPECT(count != -EAGAIN);
    (void)goes_on(count, error);
    return count;
}

/* Two sessions make a connection, send bytes, tell what they know, and end. Returns false if that is refused, with an error. */
static bool use_sessions(void)
{
    int ends[2];
    CFStreamError error = {0, 0};
    UInt32 waits;
    void *sessions[2] = {NULL, NULL};
    bool is_done = false;

    socket_pair_open(ends);
    for (int i = 0; i < 2; i++) {
        sessions[i] = session_create(ends[i], NULL, i ? server_settings : settings, &error);
        if (!sessions[i]) {
            EXPECT(error.domain == kCFStreamErrorDomainPOSIX || error.domain == kCFStreamErrorDomainSSL);
        }
    }
    if (sessions[0] && sessions[1] && shake_hands(sessions)) {
        CFTypeRef chain = session_copy_property(sessions[0], kCFStreamPropertySSLPeerCertificates);
        CFIndex sent = session_send(sessions[0], (const UInt8 *)"hello", 5, &waits, &error);

        is_done = chain && sent == 5 && await_bytes(sessions[1]) == 5;
        (void)goes_on(sent, error);
        if (chain) {
            CFRelease(chain);
        }
        if (is_done) {
            session_free(sessions[0]);
            sessions[0] = NULL;
            close(ends[0]);
            is_done = await_bytes(sessions[1]) == 0;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (sessions[i]) {
            session_free(sessions[i]);
            close(ends[i]);
        } else if (i == 1 || !is_done) {
            close(ends[i]);
        }
    }
    return is_done;
}

/* ---- streams with TLS ---- */

static int ends; /* how many streams have ended, or failed */
static bool has_read;

static void take_bytes(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    UInt8 bytes[8];

    (void)info;
    if (type == kCFStreamEventHasBytesAvailable) {
        has_read = CFReadStreamRead(stream, bytes, sizeof bytes) == 5;
    } else {
        ends++;
    }
}

/* The reader is closed with the writer, as the farewell is sent when both are. */
static void send_bytes(CFWriteStreamRef stream, CFStreamEventType type, void *reader)
{
    if (type == kCFStreamEventCanAcceptBytes) {
        (void)write_text(stream, "hello");
        CFWriteStreamClose(stream);
        CFReadStreamClose(reader);
    } else {
        ends++;
    }
}

static const CFOptionFlags reader_events = events_all & ~(CFOptionFlags)kCFStreamEventOpenCompleted;
static const CFOptionFlags writer_events = kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred;

/* One end of a connection. Both streams are the bag's. */
struct end {
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
};

static bool make_end(int socket, struct end *ret_end)
{
    CFStreamCreatePairWithSocket(NULL, socket, &ret_end->reader, &ret_end->writer);
    MUST(!ret_end->reader == !ret_end->writer);
    return bag_keep(ret_end->reader) && bag_keep(ret_end->writer);
}

static bool open_end(const struct end *end)
{
    CFReadStreamScheduleWithRunLoop(end->reader, CFRunLoopGetCurrent(), CFSTR("a mode"));
    CFWriteStreamScheduleWithRunLoop(end->writer, CFRunLoopGetCurrent(), CFSTR("a mode"));
    return CFReadStreamOpen(end->reader) && CFWriteStreamOpen(end->writer);
}

/* Has it send, or read, from now on. */
static bool watch_end(const struct end *end, bool sends)
{
    CFStreamClientContext context = {.info = end->reader};

    return sends ? CFWriteStreamSetClient(end->writer, writer_events, send_bytes, &context)
                 : CFReadStreamSetClient(end->reader, reader_events, take_bytes, &context);
}

static void make_ends(int sockets[2])
{
    ends = 0;
    has_read = false;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
    (void)bag_keep_descriptor(sockets[0]);
    (void)bag_keep_descriptor(sockets[1]);
}

/* Runs what is ready: all that these streams wait for is in the kernel by then. */
static bool run_to_end(void)
{
    for (int i = 0; i < most_turns && ends == 0; i++) {
        (void)CFRunLoopRunInMode(CFSTR("a mode"), 0, true);
    }
    return has_read && ends > 0;
}

/* False: refused. */
static bool use_streams(void)
{
    int sockets[2];

    make_ends(sockets);
    for (int i = 0; i < 2; i++) {
        struct end end;

        NEED(make_end(sockets[i], &end));
        NEED(CFReadStreamSetProperty(end.reader, kCFStreamPropertySSLSettings, i ? server_settings : settings));
        NEED(watch_end(&end, i == 0) && open_end(&end));
    }
    return run_to_end();
}

/* Whether the end carries a byte in the clear to the other one, without a loop. Otherwise one of them has failed. */
static bool is_plain(const struct end *from, const struct end *to)
{
    UInt8 byte = 0;
    bool is_sent = write_text(from->writer, "p") == 1;
    bool is_read = is_sent && CFReadStreamRead(to->reader, &byte, 1) == 1 && byte == 'p';

    MUST(is_sent || CFWriteStreamGetStatus(from->writer) == kCFStreamStatusError);
    MUST(is_read || !is_sent || CFReadStreamGetStatus(to->reader) == kCFStreamStatusError);
    return is_read;
}

/* Begins TLS on an end that is open. What is refused changes nothing: the streams stay open, and bytes go in the clear to the other end;
 * NULL: that has TLS already. */
static bool begin_tls(const struct end *end, const struct end *other, CFDictionaryRef values)
{
    bool is_begun = CFReadStreamSetProperty(end->reader, kCFStreamPropertySSLSettings, values);

    if (!is_begun) {
        MUST(CFReadStreamGetStatus(end->reader) == kCFStreamStatusOpen && CFWriteStreamGetStatus(end->writer) == kCFStreamStatusOpen);
        (void)(other && is_plain(end, other));
    }
    return is_begun;
}

/* The server begins, as its hello is the second. */
static bool use_streams_in_the_clear_first(void)
{
    struct end made[2];
    int sockets[2];

    make_ends(sockets);
    for (int i = 0; i < 2; i++) {
        NEED(make_end(sockets[i], &made[i]) && open_end(&made[i]));
    }
    NEED(is_plain(&made[0], &made[1]));
    NEED(begin_tls(&made[1], &made[0], server_settings) && begin_tls(&made[0], NULL, settings));
    NEED(watch_end(&made[0], true) && watch_end(&made[1], false));
    return run_to_end();
}

TEST_LIMIT(nth_failure_streams_with_tls, "1005 1006 1011", 120)
{
    make_settings();
    CRLNetworkInstall();
    nth_failure_run_primed("streams_with_tls", use_streams, use_sessions);
    free_settings();
}

TEST_LIMIT(nth_failure_tls_on_open_streams, "1005 1006 1011", 120)
{
    make_settings();
    CRLNetworkInstall();
    nth_failure_run_primed("tls_on_open_streams", use_streams_in_the_clear_first, use_sessions);
    free_settings();
}

/* ---- the allocators of the others ---- */

static _Atomic long left = -1; /* allocations until one fails; below 0: none does */
static _Atomic long blocks; /* how many there are */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *allocate(size_t size)
{
    void *block = fails() ? NULL : malloc(size);

    blocks += block != NULL;
    return block;
}

static void *reallocate(void *block, size_t size)
{
    void *grown = fails() ? NULL : realloc(block, size);

    blocks += grown && !block;
    return grown;
}

static void deallocate(void *block)
{
    blocks -= block != NULL;
    free(block);
}

static void *allocate_for_openssl(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return allocate(size);
}

static void *reallocate_for_openssl(void *block, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return reallocate(block, size);
}

static void deallocate_for_openssl(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    deallocate(block);
}

/*
 * Calls the function until it needs no more allocations than succeed, and expects that no more blocks are left in all than what the other
 * library may make once and keep. Returns how often it was refused.
 */
static int refusals_of(bool (*use)(void), long step, long most_kept)
{
    long most = blocks + most_kept;
    int refusals = 0;

    for (long n = 0; left < 0; n += step) {
        left = n;
        refusals += !use();
        if (left >= 0) {
            break;
        }
    }
    left = -1;
    EXPECT(blocks <= most);
    return refusals;
}

TEST_LIMIT(a_session_works_or_fails_whichever_allocation_of_openssl_fails, "1013 1005", 300)
{
    const long step = test_is_soak() ? 1 : test_is_instrumented() ? 397 : 31; /* there are thousands */

    if (!CRYPTO_set_mem_functions(allocate_for_openssl, reallocate_for_openssl, deallocate_for_openssl)) {
        SKIP("OpenSSL has allocated already");
    }
    if (OpenSSL_version_num() >= 0x30500000UL) {
        SKIP("OpenSSL 3.5 goes on with a BIO that it had no memory for");
    }
    CRLNetworkInstall();
    make_settings();
    EXPECT(use_sessions()); /* OpenSSL makes here what it makes only once */
    EXPECT(use_sessions());
    EXPECT(refusals_of(use_sessions, step, 16) > 0); /* OpenSSL goes on without much of the memory that it asks for */
    EXPECT(use_sessions());
    free_settings();
}

static const char *asked_name; /* NULL: the name of an address */

static bool ask_server(void)
{
    struct told told = {0, false};
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFTypeRef asked = asked_name ? (CFTypeRef)CFStringCreateWithCString(NULL, asked_name, kCFStringEncodingASCII)
                                 : (CFTypeRef)CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    void *query = asked_name ? query_resolve(asked, 80, tell, &told) : query_resolve_address(asked, tell, &told);

    REQUIRE(query); /* c-ares makes no query */
    query_wait(query);
    EXPECT_EQ(told.times, 1);
    query_free(query);
    CFRelease(asked);
    return told.has_addresses;
}

TEST_LIMIT(a_name_is_answered_or_refused_whichever_allocation_of_c_ares_fails, "1005", 300)
{
    static const char *const names[] = {"both.test", "alias.test", "long.test", "torn6.test", "good", "localhost", NULL};
    static const char domains[] = "nowhere.test\0somewhere.test";
    struct dns_server server;
    int patience_ms;
    int version;

    (void)ares_version(&version);
    if (version >= 0x012000) {
        SKIP("c-ares 1.32 and later use a freed question when memory runs out");
    }
    REQUIRE(ares_library_init_mem(ARES_LIB_INIT_ALL, allocate, deallocate, reallocate) == ARES_SUCCESS);
    dns_server_start(&server);
    memcpy(server.configuration.domains, domains, sizeof domains);
    server.configuration.domain_count = 2;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        asked_name = names[i];
        patience_ms = server.configuration.timeout_ms;
        server.configuration.timeout_ms = 100; /* c-ares passes over an answer that it has no memory for, and waits for another */
        EXPECT(refusals_of(ask_server, 1, 0) > 0);
        server.configuration.timeout_ms = patience_ms;
        EXPECT(ask_server());
    }
    dns_server_stop(&server);
}
