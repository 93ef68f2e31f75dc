/* SPDX-License-Identifier: Apache-2.0 */
/* TLS that begins on open streams: rule 1006. The other side is OpenSSL on a thread, which speaks plainly first. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Stream/stream_recorder.h"
#include "tls_peer.h"

/* ---- the two sides ---- */

struct client {
    struct credentials server;
    CFMutableDictionaryRef settings;
    struct tls_peer peer;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
};

/* Receives the text, and no byte after it. */
static void expect_plain(int socket, const char *text)
{
    char bytes[100] = "";

    EXPECT_EQ(recv(socket, bytes, strlen(text), MSG_WAITALL), strlen(text));
    EXPECT_STR(bytes, text);
}

static void say(int socket, const char *text)
{
    EXPECT_EQ(send(socket, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void greet(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)ssl;
    (void)peer;
    expect_plain(socket, "STARTTLS\n");
    say(socket, "go\n");
}

/* The host is 127.0.0.1, and the settings trust its certificate. */
static void prepare_client(struct client *client)
{
    CFArrayRef anchors;

    CRLNetworkInstall();
    client->server = credentials_create("127.0.0.1", NULL, -day_s, day_s);
    client->peer.own = &client->server;
    client->peer.greet = client->peer.greet ? client->peer.greet : greet;
    client->settings = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    anchors = credentials_copy_pem(&client->server, false);
    CFDictionarySetValue(client->settings, kCRLStreamSSLAnchorCertificates, anchors);
    CFRelease(anchors);
    tls_peer_start(&client->peer);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), client->peer.port, &client->reader, &client->writer);
    REQUIRE(client->reader && client->writer);
}

static void open_client(struct client *client)
{
    EXPECT(CFReadStreamOpen(client->reader) && CFWriteStreamOpen(client->writer));
}

static bool set_reader(struct client *client, CFStringRef property, CFTypeRef value)
{
    return CFReadStreamSetProperty(client->reader, property, value);
}

static bool set_writer(struct client *client, CFStringRef property, CFTypeRef value)
{
    return CFWriteStreamSetProperty(client->writer, property, value);
}

static bool set_both(struct client *client)
{
    return set_reader(client, kCFStreamPropertySSLSettings, client->settings) &&
           set_writer(client, kCFStreamPropertySSLSettings, client->settings);
}

static void expect_text(CFReadStreamRef reader, const char *text)
{
    char bytes[100] = "";
    size_t count = 0;

    while (count < strlen(text)) {
        CFIndex more = CFReadStreamRead(reader, (UInt8 *)bytes + count, (CFIndex)(strlen(text) - count));

        REQUIRE(more > 0);
        count += (size_t)more;
    }
    EXPECT_STR(bytes, text);
}

/* Opens the streams without a loop, and comes to where TLS may begin. */
static void ask_for_tls(struct client *client)
{
    open_client(client);
    EXPECT_EQ(write_text(client->writer, "STARTTLS\n"), 9);
    expect_text(client->reader, "go\n");
}

static void expect_echo(struct client *client, const char *text)
{
    EXPECT_EQ(write_text(client->writer, text), strlen(text));
    expect_text(client->reader, text);
}

static void end_client(struct client *client)
{
    CFRelease(client->reader);
    CFRelease(client->writer);
    tls_peer_stop(&client->peer);
    CFRelease(client->settings);
    credentials_free(&client->server);
}

static void expect_tls_error(CFStreamError error, SInt32 expected)
{
    EXPECT_EQ(error.domain, kCFStreamErrorDomainSSL);
    EXPECT_EQ(error.error, expected);
}

/* ---- where it begins ---- */

TEST(tls_begins_on_open_streams_without_a_loop, "1006 323")
{
    struct client client = {0};
    CFTypeRef version;

    prepare_client(&client);
    ask_for_tls(&client);
    EXPECT(!CFReadStreamCopyProperty(client.reader, kCRLStreamPropertySSLVersion));
    EXPECT(set_both(&client));
    EXPECT_EQ(CFReadStreamGetStatus(client.reader), kCFStreamStatusOpen);
    EXPECT_EQ(CFWriteStreamGetStatus(client.writer), kCFStreamStatusOpen);
    expect_echo(&client, "secret");
    version = CFReadStreamCopyProperty(client.reader, kCRLStreamPropertySSLVersion);
    EXPECT(version && CFEqual(version, CFSTR("TLSv1.3")));
    CFRelease(version);
    end_client(&client);
    EXPECT_EQ(client.peer.received, 6);
}

/* Begins TLS when the peer has agreed, and writes under it. */
static void follow_dialogue(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    struct client *client = recorder->context;

    (void)stream;
    if (type == kCFStreamEventHasBytesAvailable && recorder->calls == 1) {
        EXPECT(set_both(client));
        recorder->reads = 6;
    }
}

TEST(tls_begins_in_a_callback_of_a_loop, "1006 310 312")
{
    struct client client = {0};
    struct stream_recorder reading = {.reads = 3, .action = follow_dialogue, .context = &client};
    struct stream_recorder writing = {.writes = "STARTTLS\n"};

    prepare_client(&client);
    recorder_add_reader(&reading, client.reader);
    recorder_add_writer(&writing, client.writer);
    open_client(&client);
    run_until_count(&writing.calls, 3); /* room for "STARTTLS", then room, and room again after the handshake */
    run_until_count(&reading.calls, 2);
    writing.writes = NULL;
    while (client.peer.handshakes == 0) {
        run_what_is_ready();
        sched_yield();
    }
    EXPECT_EQ(write_text(client.writer, "secret"), 6);
    run_until_count(&reading.calls, 3);
    EXPECT_TRACE(&reading.trace, "open bytes 3\"go\n\" bytes 6\"secret\"");
    end_client(&client);
}

/* Waits with the handshake until the test has looked. */
static void greet_slowly(struct tls_peer *peer, SSL *ssl, int socket)
{
    greet(peer, ssl, socket);
    tls_peer_wait_at_gate(peer);
}

static void count_pass(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    ++*(int *)info;
}

TEST(room_is_told_again_once_the_handshake_on_an_open_stream_is_over, "1006 312")
{
    struct client client = {.peer.greet = greet_slowly};
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    int passes = 0;
    CFRunLoopObserverContext context = {.info = &passes};
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeTimers, true, 0, count_pass, &context);

    prepare_client(&client);
    ask_for_tls(&client);
    recorder_add_reader(&reading, client.reader);
    recorder_add_writer(&writing, client.writer);
    run_until_count(&writing.calls, 1);
    run_what_is_ready();
    EXPECT_TRACE(&writing.trace, "room");
    EXPECT(set_both(&client));
    EXPECT(!CFWriteStreamCanAcceptBytes(client.writer) && !CFReadStreamHasBytesAvailable(client.reader));
    run_what_is_ready();
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false), kCFRunLoopRunTimedOut);
    EXPECT(passes <= 2); /* it sleeps */
    EXPECT_TRACE(&writing.trace, "room");
    tls_peer_open_gate(&client.peer);
    run_until_count(&writing.calls, 2);
    run_what_is_ready();
    EXPECT_TRACE(&writing.trace, "room room");
    EXPECT_TRACE(&reading.trace, "");
    EXPECT(CFWriteStreamCanAcceptBytes(client.writer));
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    end_client(&client);
}

TEST(tls_that_is_asked_for_while_a_stream_opens_comes_before_it_is_open, "1006")
{
    struct client client = {0};
    struct stream_recorder reading = {0};

    prepare_client(&client);
    client.peer.greet = NULL;
    recorder_add_reader(&reading, client.reader);
    open_client(&client);
    EXPECT(set_reader(&client, kCFStreamPropertySSLSettings, client.settings)); /* the connection may be open by now, or not */
    EXPECT(set_writer(&client, kCFStreamPropertySSLSettings, client.settings));
    run_until_count(&reading.calls, 1);
    EXPECT_TRACE(&reading.trace, "open");
    expect_echo(&client, "secret");
    end_client(&client);
}

/* ---- plain bytes on either side of it ---- */

static void greet_with_more(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)ssl;
    (void)peer;
    expect_plain(socket, "STARTTLS\n");
    say(socket, "go\n250 everything is allowed\n");
}

/* Bytes of the peer's that came before TLS must not be read as if they had come under it. */
TEST(plain_bytes_that_wait_when_tls_begins_end_the_streams, "1006 311")
{
    for (int begins_at_server = 0; begins_at_server < 2; begins_at_server++) {
        struct client client = {.peer = {.greet = greet_with_more, .is_client = begins_at_server}};
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        CFArrayRef identity;

        prepare_client(&client);
        if (begins_at_server) {
            identity = credentials_copy_pem(&client.server, true);
            CFDictionarySetValue(client.settings, kCFStreamSSLCertificates, identity);
            CFDictionarySetValue(client.settings, kCFStreamSSLIsServer, kCFBooleanTrue);
            CFRelease(identity);
        }
        ask_for_tls(&client);
        EXPECT(set_both(&client));
        recorder_add_reader(&reading, client.reader);
        recorder_add_writer(&writing, client.writer);
        run_until_count(&reading.calls, 1);
        run_until_count(&writing.calls, 1);
        EXPECT_TRACE(&reading.trace, "error");
        EXPECT_TRACE(&writing.trace, "error");
        expect_tls_error(CFReadStreamGetError(client.reader), errSSLProtocol);
        EXPECT_EQ(write_text(client.writer, "secret"), -1);
        end_client(&client);
    }
}

static void greet_late(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)ssl;
    tls_peer_wait_at_gate(peer);
    expect_plain(socket, "one\ntwo\nSTARTTLS\n");
}

TEST(what_was_written_before_tls_goes_out_plain_before_it, "1006")
{
    struct client client = {.peer.greet = greet_late};

    prepare_client(&client);
    open_client(&client);
    EXPECT_EQ(write_text(client.writer, "one\n"), 4);
    EXPECT_EQ(write_text(client.writer, "two\nSTARTTLS\n"), 13);
    EXPECT(set_both(&client));
    tls_peer_open_gate(&client.peer);
    expect_echo(&client, "secret");
    end_client(&client);
}

/* ---- settings ---- */

TEST(equal_settings_may_be_set_again_and_others_are_refused_under_tls, "1006")
{
    struct client client = {0};

    prepare_client(&client);
    ask_for_tls(&client);
    EXPECT(set_reader(&client, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone));
    EXPECT(set_reader(&client, kCFStreamPropertySSLSettings, client.settings));
    for (int is_open = 0; is_open < 2; is_open++) {
        EXPECT(set_both(&client) && set_both(&client));
        EXPECT(!set_writer(&client, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
        EXPECT(!set_writer(&client, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone));
        EXPECT(!set_reader(&client, kCFStreamPropertySSLSettings, NULL));
        expect_echo(&client, "secret");
    }
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, CFSTR("another.test")); /* the dictionary that was set */
    EXPECT(!set_reader(&client, kCFStreamPropertySSLSettings, client.settings));
    expect_echo(&client, "secret");
    CFReadStreamClose(client.reader);
    EXPECT(!set_reader(&client, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone));
    end_client(&client);
}

TEST(settings_that_are_refused_leave_open_streams_as_they_are, "1006 1013")
{
    struct client client = {0};

    prepare_client(&client);
    ask_for_tls(&client);
    EXPECT(!set_reader(&client, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelSSLv3));
    EXPECT(!set_writer(&client, kCFStreamPropertySocketSecurityLevel, kCFBooleanTrue));
    EXPECT(!set_writer(&client, kCFStreamPropertySSLSettings, CFSTR("settings")));
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, CFSTR("no name"));
    EXPECT(!set_both(&client));
    CFDictionaryRemoveValue(client.settings, kCFStreamSSLPeerName);
    EXPECT_EQ(CFReadStreamGetStatus(client.reader), kCFStreamStatusOpen);
    EXPECT(set_both(&client));
    expect_echo(&client, "secret");
    end_client(&client);
}

TEST(a_certificate_that_is_refused_on_open_streams_is_the_error_of_both, "1006 1012 311")
{
    struct client client = {0};
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};

    prepare_client(&client);
    ask_for_tls(&client);
    recorder_add_reader(&reading, client.reader);
    recorder_add_writer(&writing, client.writer);
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, CFSTR("another.test"));
    EXPECT(set_both(&client));
    run_until_count(&reading.calls, 1);
    while (CFWriteStreamGetStatus(client.writer) == kCFStreamStatusOpen) {
        run_what_is_ready();
    }
    EXPECT_TRACE(&reading.trace, "error");
    expect_tls_error(CFReadStreamGetError(client.reader), errSSLHostNameMismatch);
    expect_tls_error(CFWriteStreamGetError(client.writer), errSSLHostNameMismatch);
    end_client(&client);
}

/* ---- given sockets ---- */

struct given {
    SSL_CTX *context;
    int socket;
};

static void connect_plain_then_tls(void *info)
{
    struct given *given = info;
    SSL *ssl = SSL_new(given->context);
    char bytes[10];

    say(given->socket, "STARTTLS\n");
    expect_plain(given->socket, "go\n");
    REQUIRE(ssl && SSL_set_fd(ssl, given->socket) && SSL_connect(ssl) == 1);
    tls_peer_send(ssl, "hello");
    EXPECT_EQ(SSL_read(ssl, bytes, sizeof bytes), 3);
    SSL_free(ssl);
}

/* A pair on one end of a socket pair. NULL for the writer makes none. */
static void given_pair(int ends[2], CFReadStreamRef *ret_reader, CFWriteStreamRef *ret_writer)
{
    CRLNetworkInstall();
    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], ret_reader, ret_writer);
    EXPECT(CFReadStreamOpen(*ret_reader) && CFWriteStreamOpen(*ret_writer));
}

TEST(a_server_begins_tls_on_a_socket_that_it_was_given, "1006 1014")
{
    struct credentials own = credentials_create("host.test", NULL, -day_s, day_s);
    CFArrayRef identity = credentials_copy_pem(&own, true);
    CFTypeRef keys[] = {kCFStreamSSLCertificates, kCFStreamSSLIsServer};
    CFTypeRef values[] = {identity, kCFBooleanTrue};
    CFDictionaryRef settings = CFDictionaryCreate(NULL, keys, values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    struct given given = {SSL_CTX_new(TLS_method()), -1};
    struct probe_thread thread;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int ends[2];

    given_pair(ends, &reader, &writer);
    given.socket = ends[1];
    probe_thread_start(&thread, connect_plain_then_tls, &given);
    expect_text(reader, "STARTTLS\n");
    EXPECT_EQ(write_text(writer, "go\n"), 3);
    EXPECT(CFWriteStreamSetProperty(writer, kCFStreamPropertySSLSettings, settings));
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySSLSettings, settings));
    expect_text(reader, "hello");
    EXPECT_EQ(write_text(writer, "bye"), 3);
    probe_thread_join(&thread);
    CFRelease(reader);
    CFRelease(writer);
    CFRelease(settings);
    CFRelease(identity);
    SSL_CTX_free(given.context);
    credentials_free(&own);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_given_socket_that_is_open_needs_the_name_of_its_peer_for_tls, "1006 1013")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int ends[2];

    given_pair(ends, &reader, &writer);
    EXPECT(!CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    EXPECT_EQ(write_text(writer, "plain"), 5);
    expect_plain(ends[1], "plain");
    say(ends[1], "too");
    expect_text(reader, "too");
    CFRelease(reader);
    CFRelease(writer);
    close(ends[0]);
    close(ends[1]);
}

/* ---- threads ---- */

struct reading_and_writing {
    struct client client;
    struct stream_recorder reading;
    struct stream_recorder writing;
    _Atomic int begun; /* the loop has told of room, and waits */
};

static void run_loop_of_client(void *context)
{
    struct reading_and_writing *both = context;

    recorder_add_reader(&both->reading, both->client.reader);
    recorder_add_writer(&both->writing, both->client.writer);
    run_until_count(&both->writing.calls, 1);
    both->begun = 1;
    run_until_count(&both->writing.calls, 2);
    run_until_count(&both->reading.calls, 1);
}

static void serve_hello(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)socket;
    tls_peer_send(ssl, "hello");
    tls_peer_wait_at_gate(peer);
}

TEST(another_thread_than_the_loops_begins_tls, "1006 320")
{
    struct reading_and_writing both = {.client.peer.serve = serve_hello, .reading.reads = 5};
    struct probe_thread thread;

    prepare_client(&both.client);
    ask_for_tls(&both.client);
    probe_thread_start(&thread, run_loop_of_client, &both);
    probe_await_count(&both.begun, 1);
    while (!set_both(&both.client)) { /* the loop's thread may be looking at a stream just now */
        sched_yield();
    }
    probe_thread_join(&thread);
    EXPECT_TRACE(&both.reading.trace, "bytes 5\"hello\"");
    EXPECT_TRACE(&both.writing.trace, "room room");
    tls_peer_open_gate(&both.client.peer);
    end_client(&both.client);
}

static _Thread_local bool waits_late;
static atomic_bool is_waiting;
static atomic_bool may_wait;

/* Lets the other thread go through the handshake before this thread waits for bytes of the peer. */
static int wait_late(int socket, uint32_t interest, int64_t deadline_ns)
{
    if (waits_late) {
        atomic_store(&is_waiting, true);
        while (!atomic_load(&may_wait)) {
            sched_yield();
        }
    }
    return kernel_ports_linux.wait(socket, interest, deadline_ns);
}

static void read_hello(void *context)
{
    struct client *client = context;

    waits_late = true;
    expect_text(client->reader, "hello");
}

static void set_cork(int socket, int is_corked)
{
    EXPECT_EQ(setsockopt(socket, IPPROTO_TCP, TCP_CORK, &is_corked, sizeof is_corked), 0);
}

static void cork_last_words(const SSL *ssl, int where, int result)
{
    (void)where;
    (void)result;
    if (SSL_get_state(ssl) == TLS_ST_SR_FINISHED) {
        set_cork(SSL_get_fd(ssl), 1);
    }
}

static void uncork_hello(struct tls_peer *peer, SSL *ssl, int socket)
{
    tls_peer_send(ssl, "hello");
    set_cork(socket, 0);
    tls_peer_wait_at_gate(peer);
}

static void greet_and_cork(struct tls_peer *peer, SSL *ssl, int socket)
{
    greet(peer, ssl, socket);
    SSL_set_info_callback(ssl, cork_last_words);
}

/* In TLS 1.2 the server's last words in the handshake can come together with the first bytes after it. */
TEST(a_read_that_waits_while_another_thread_begins_tls_returns_its_first_bytes, "1006 320 1008")
{
    struct client client = {.peer = {.greet = greet_and_cork, .serve = uncork_hello, .version = TLS1_2_VERSION}};
    struct probe_thread thread;

    prepare_client(&client);
    ask_for_tls(&client);
    kernel_ports.wait = wait_late;
    probe_thread_start(&thread, read_hello, &client);
    while (!atomic_load(&is_waiting)) {
        sched_yield();
    }
    EXPECT(set_writer(&client, kCFStreamPropertySSLSettings, client.settings));
    EXPECT(!set_reader(&client, kCFStreamPropertySSLSettings, client.settings)); /* it is reading */
    while (!CFWriteStreamCanAcceptBytes(client.writer)) {
        sched_yield();
    }
    atomic_store(&may_wait, true);
    probe_thread_join(&thread);
    tls_peer_open_gate(&client.peer);
    end_client(&client);
}
