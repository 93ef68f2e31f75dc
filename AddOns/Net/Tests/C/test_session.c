/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of streams with TLS: rules 1006 to 1015. The other side is OpenSSL on a thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Stream/stream_recorder.h"
#include "session.h"
#include "tls_peer.h"

/* ---- a client of this library, and its peer ---- */

struct client {
    struct credentials authority;
    struct credentials server;
    CFMutableDictionaryRef settings;
    struct tls_peer peer;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    struct stream_recorder recorder; /* of expect_refusal */
};

/* The peer is the host 127.0.0.1, with a certificate of an authority that the settings trust. */
static void prepare_client(struct client *client)
{
    CFArrayRef anchors;

    CRLNetworkInstall();
    client->authority = credentials_create("an authority", NULL, -day_s, day_s);
    client->server = credentials_create("127.0.0.1", &client->authority, -day_s, day_s);
    client->peer.own = &client->server;
    client->settings = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    anchors = credentials_copy_pem(&client->authority, false);
    CFDictionarySetValue(client->settings, kCRLStreamSSLAnchorCertificates, anchors);
    CFRelease(anchors);
}

static void connect_to(struct client *client, CFStringRef host)
{
    tls_peer_start(&client->peer);
    CFStreamCreatePairWithSocketToHost(NULL, host, client->peer.port, &client->reader, &client->writer);
    REQUIRE(client->reader && client->writer);
    EXPECT(CFReadStreamSetProperty(client->reader, kCFStreamPropertySSLSettings, client->settings));
}

static void connect_peer(struct client *client)
{
    connect_to(client, CFSTR("127.0.0.1"));
}

static void open_streams(struct client *client)
{
    (void)CFReadStreamOpen(client->reader);
    (void)CFWriteStreamOpen(client->writer);
}

/* Connects a client whose settings the test leaves as they are, and opens its streams on the loop. A recorder may be NULL. */
static void open_client(struct client *client, struct stream_recorder *reading, struct stream_recorder *writing)
{
    prepare_client(client);
    connect_peer(client);
    if (reading) {
        recorder_add_reader(reading, client->reader);
    }
    if (writing) {
        recorder_add_writer(writing, client->writer);
    }
    open_streams(client);
}

static void end_client(struct client *client)
{
    CFRelease(client->reader);
    CFRelease(client->writer);
    tls_peer_stop(&client->peer);
    CFRelease(client->settings);
    credentials_free(&client->authority);
    credentials_free(&client->server);
}

static void expect_error(CFStreamError error, CFIndex domain, SInt32 expected)
{
    EXPECT_EQ(error.domain, domain);
    EXPECT_EQ(error.error, expected);
}

/* The description of the error has these words. Releases the error. */
static void expect_words(CFErrorRef error, const char *words)
{
    CFStringRef description = CFErrorCopyDescription(error);
    char text[400] = "";

    EXPECT(CFStringGetCString(description, text, sizeof text, kCFStringEncodingUTF8));
    if (!strstr(text, words)) {
        EXPECT_STR(text, words);
    }
    CFRelease(description);
    CFRelease(error);
}

/* Opens the streams on the loop, and expects that they fail by this error of TLS. */
static void expect_refusal(struct client *client, SInt32 expected)
{
    recorder_add_reader(&client->recorder, client->reader);
    open_streams(client);
    run_until_count(&client->recorder.calls, 1);
    run_what_is_ready();
    EXPECT_TRACE(&client->recorder.trace, "error");
    expect_error(CFReadStreamGetError(client->reader), kCFStreamErrorDomainSSL, expected);
    EXPECT_EQ(CFWriteStreamGetStatus(client->writer), kCFStreamStatusError);
    expect_error(CFWriteStreamGetError(client->writer), kCFStreamErrorDomainSSL, expected);
}

/* As expect_refusal, with these words in the descriptions of both errors. */
static void expect_refusal_in_words(struct client *client, SInt32 expected, const char *words)
{
    expect_refusal(client, expected);
    expect_words(CFReadStreamCopyError(client->reader), words);
    expect_words(CFWriteStreamCopyError(client->writer), words);
}

/* ---- bytes ---- */

TEST(bytes_go_both_ways_through_tls, "1006 335")
{
    struct client client = {0};
    struct stream_recorder reading = {.reads = 100};
    struct stream_recorder writing = {.writes = "hello"};
    CFTypeRef value;

    open_client(&client, &reading, &writing);
    run_until_count(&writing.calls, 2);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 5\"hello\"");
    value = CFReadStreamCopyProperty(client.reader, kCRLStreamPropertySSLVersion);
    EXPECT(CFEqual(value, CFSTR("TLSv1.3")));
    CFRelease(value);
    value = CFReadStreamCopyProperty(client.reader, kCFStreamPropertySSLPeerCertificates);
    EXPECT_EQ(CFArrayGetCount(value), 1);
    CFRelease(value);
    EXPECT(!CFReadStreamCopyProperty(client.reader, kCRLStreamPropertySSLProtocol));
    end_client(&client);
    EXPECT_EQ(client.peer.received, 5);
}

TEST(streams_with_tls_wait_without_a_loop, "1006 323")
{
    struct client client = {0};
    struct trace trace = {0};

    open_client(&client, NULL, NULL);
    EXPECT_EQ(write_text(client.writer, "abc"), 3);
    note_read(&trace, client.reader, 2);
    note_read(&trace, client.reader, 2);
    EXPECT_TRACE(&trace, "2\"ab\" 1\"c\"");
    end_client(&client);
}

/* After the handshake the server sends tickets, which make the socket readable although there is nothing to read. */
TEST(what_is_no_bytes_of_the_peer_is_not_told_to_a_stream, "1007 321")
{
    struct client client = {0};
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};

    open_client(&client, &reading, &writing);
    run_until_count(&writing.calls, 2);
    run_until_count(&reading.calls, 1);
    while (client.peer.handshakes == 0) {
        sched_yield();
    }
    run_what_is_ready();
    EXPECT(!CFReadStreamHasBytesAvailable(client.reader));
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open");
    end_client(&client);
}

static void send_half_records(struct tls_peer *peer, SSL *ssl, int socket)
{
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes;
    long length;

    SSL_set0_wbio(ssl, out);
    tls_peer_send(ssl, "all of it");
    length = BIO_get_mem_data(out, &bytes);
    EXPECT_EQ(send(socket, bytes, (size_t)length / 2, 0), length / 2);
    tls_peer_wait_at_gate(peer);
    EXPECT_EQ(send(socket, bytes + length / 2, (size_t)(length - length / 2), 0), length - length / 2);
    tls_peer_wait_at_gate(peer);
}

TEST(a_part_of_a_record_is_not_told_to_a_stream, "1007")
{
    struct client client = {.peer.serve = send_half_records};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 1);
    while (client.peer.handshakes == 0) {
        sched_yield();
    }
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, false), kCFRunLoopRunTimedOut);
    EXPECT_TRACE(&reading.trace, "open");
    tls_peer_open_gate(&client.peer);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 9\"all of it\"");
    end_client(&client);
}

static void send_once_and_wait(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)socket;
    tls_peer_send(ssl, "abcdef");
    tls_peer_wait_at_gate(peer);
}

/* The session holds the rest of the record, so that the socket is not readable. */
TEST(the_rest_of_a_record_is_told_to_a_stream_again, "1007 312")
{
    struct client client = {.peer.serve = send_once_and_wait};
    struct stream_recorder reading = {.reads = 2};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 4);
    EXPECT_TRACE(&reading.trace, "open bytes 2\"ab\" bytes 2\"cd\" bytes 2\"ef\"");
    EXPECT(!CFReadStreamHasBytesAvailable(client.reader));
    end_client(&client);
}

static void send_when_asked(struct tls_peer *peer, SSL *ssl, int socket)
{
    tls_peer_wait_at_gate(peer);
    send_once_and_wait(peer, ssl, socket);
}

TEST(the_rest_of_what_was_read_without_an_event_is_told_to_a_stream, "1007 312")
{
    struct client client = {.peer.serve = send_when_asked};
    struct stream_recorder reading = {.reads = 100};
    struct trace trace = {0};

    open_client(&client, NULL, NULL);
    while (CFReadStreamGetStatus(client.reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    EXPECT(!CFReadStreamHasBytesAvailable(client.reader));
    tls_peer_open_gate(&client.peer);
    note_read(&trace, client.reader, 2);
    EXPECT_TRACE(&trace, "2\"ab\"");
    recorder_add_reader(&reading, client.reader);
    run_until_count(&reading.calls, 1);
    EXPECT_TRACE(&reading.trace, "bytes 4\"cdef\"");
    end_client(&client);
}

TEST(a_new_client_of_a_stream_hears_of_bytes_that_tls_holds, "1007 317")
{
    struct client client = {.peer.serve = send_once_and_wait};
    struct stream_recorder first = {0};
    struct stream_recorder second = {.reads = 100};

    open_client(&client, &first, NULL);
    run_until_count(&first.calls, 2);
    EXPECT_TRACE(&first.trace, "open bytes");
    recorder_watch_reader(&second, client.reader, events_all);
    run_until_count(&second.calls, 1);
    EXPECT_TRACE(&second.trace, "bytes 6\"abcdef\"");
    end_client(&client);
}

enum { long_length = 3000000 };

static void write_all(void *context)
{
    struct client *client = context;
    static UInt8 bytes[100000];
    CFIndex sent = 0;

    for (CFIndex i = 0; i < (CFIndex)sizeof bytes; i++) {
        bytes[i] = (UInt8)(i % 250);
    }
    while (sent < long_length) {
        CFIndex place = sent % (CFIndex)sizeof bytes;
        CFIndex taken = CFWriteStreamWrite(client->writer, bytes + place, (CFIndex)sizeof bytes - place);

        REQUIRE(taken > 0);
        sent += taken;
    }
}

TEST(two_threads_read_and_write_one_tls_connection, "1008 320")
{
    static UInt8 bytes[65536];
    struct client client = {0};
    struct probe_thread thread;
    CFIndex received = 0;

    open_client(&client, NULL, NULL);
    probe_thread_start(&thread, write_all, &client);
    while (received < long_length) {
        CFIndex count = CFReadStreamRead(client.reader, bytes, sizeof bytes);

        REQUIRE(count > 0);
        for (CFIndex i = 0; i < count; i++) {
            REQUIRE(bytes[i] == (UInt8)(received++ % 100000 % 250));
        }
    }
    probe_thread_join(&thread);
    EXPECT_EQ(received, long_length);
    end_client(&client);
}

static _Thread_local bool waits_late;
static atomic_bool is_waiting;
static atomic_bool may_wait;

/* Lets the other thread read what the peer has sent before this thread waits for it. */
static int wait_late(int socket, uint32_t interest, int64_t deadline_ns)
{
    if (waits_late && (interest & kernel_readable)) {
        atomic_store(&is_waiting, true);
        while (!atomic_load(&may_wait)) {
            sched_yield();
        }
    }
    return kernel_ports_linux.wait(socket, interest, deadline_ns);
}

static void write_one(void *context)
{
    struct client *client = context;

    waits_late = true;
    EXPECT_EQ(CFWriteStreamWrite(client->writer, (const UInt8 *)"x", 1), 1);
    atomic_store(&is_waiting, true); /* in case the handshake ended without a wait of this thread */
}

TEST(a_thread_that_waits_for_a_handshake_sees_that_another_has_ended_it, "1008 1006")
{
    struct client client = {.peer.serve = send_when_asked};
    struct probe_thread thread;

    kernel_ports.wait = wait_late;
    open_client(&client, NULL, NULL);
    probe_thread_start(&thread, write_one, &client);
    while (!atomic_load(&is_waiting)) {
        sched_yield();
    }
    while (CFReadStreamGetStatus(client.reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    for (int i = 0; i < 1000; i++) { /* reads the session tickets that follow the handshake */
        EXPECT(!CFReadStreamHasBytesAvailable(client.reader));
        sched_yield();
    }
    atomic_store(&may_wait, true);
    probe_thread_join(&thread);
    tls_peer_open_gate(&client.peer);
    end_client(&client);
}

static void stop_reading(struct tls_peer *peer, SSL *ssl, int socket)
{
    char byte;

    (void)socket;
    tls_peer_wait_at_gate(peer);
    while (SSL_read(ssl, &byte, 1) == 1) {
        peer->received++;
    }
}

TEST(a_tls_peer_that_stops_reading_holds_up_no_loop, "1009 312")
{
    enum { piece = 16384 };
    static UInt8 bytes[piece];
    struct client client = {.peer.serve = stop_reading};
    struct stream_recorder writing = {0};
    long sent = 0;

    open_client(&client, NULL, &writing);
    run_until_count(&writing.calls, 2);
    while (CFWriteStreamCanAcceptBytes(client.writer)) {
        CFIndex taken = CFWriteStreamWrite(client.writer, bytes, 100);

        REQUIRE(taken > 0);
        sent += taken;
    }
    run_what_is_ready();
    EXPECT_TRACE(&writing.trace, "open room");
    tls_peer_open_gate(&client.peer);
    run_until_count(&writing.calls, 3);
    EXPECT_TRACE(&writing.trace, "open room room");
    end_client(&client);
    EXPECT_EQ(client.peer.received, sent);
}

static void update_keys(struct tls_peer *peer, SSL *ssl, int socket)
{
    char bytes[8];

    (void)socket;
    for (int i = 0; i < 3; i++) {
        EXPECT(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED));
        tls_peer_send(ssl, "tick");
        EXPECT_EQ(SSL_read(ssl, bytes, sizeof bytes), 4);
        peer->received += 4;
    }
}

TEST(the_keys_of_tls_may_be_renewed, "1010")
{
    struct client client = {.peer = {.serve = update_keys, .version = TLS1_3_VERSION}};
    struct trace trace = {0};

    open_client(&client, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        note_read(&trace, client.reader, 4);
        EXPECT_EQ(write_text(client.writer, "tock"), 4);
    }
    EXPECT_TRACE(&trace, "4\"tick\" 4\"tick\" 4\"tick\"");
    end_client(&client);
    EXPECT_EQ(client.peer.received, 12);
}

enum { many_keys = 2500 }; /* some 67 KiB: more than a loop may take at once, less than a socket holds */

/* Sends at once so many new keys, and then a byte. */
static void send_many_keys(struct tls_peer *peer, SSL *ssl, int socket)
{
    BIO *flood = BIO_new(BIO_s_mem());
    char *bytes;
    char byte;

    SSL_set0_wbio(ssl, flood);
    for (int i = 0; i < many_keys; i++) {
        EXPECT(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) && SSL_do_handshake(ssl) == 1);
    }
    tls_peer_send(ssl, "a");
    for (long left = BIO_get_mem_data(flood, &bytes); left > 0;) {
        ssize_t sent = send(socket, bytes, (size_t)left, MSG_NOSIGNAL);

        REQUIRE(sent > 0);
        bytes += sent;
        left -= sent;
    }
    tls_peer_open_gate(peer);
    EXPECT(SSL_read(ssl, &byte, 1) <= 0);
}

static void count_pass(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    ++*(int *)info;
}

TEST(a_tls_peer_that_sends_new_keys_without_end_holds_no_loop, "1009 1010")
{
    struct client client = {.peer = {.serve = send_many_keys, .version = TLS1_3_VERSION}};
    struct stream_recorder recorder = {0};
    struct trace trace = {0};
    int passes = 0;
    CFRunLoopObserverContext context = {.info = &passes};
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeSources, true, 0, count_pass, &context);

    open_client(&client, &recorder, NULL);
    run_until_count(&recorder.calls, 1);
    tls_peer_wait_at_gate(&client.peer); /* until all has been sent */
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    run_until_count(&recorder.calls, 2);
    EXPECT(passes >= 3);
    EXPECT_TRACE(&recorder.trace, "open bytes");
    note_read(&trace, client.reader, 9);
    EXPECT_TRACE(&trace, "1\"a\"");
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    end_client(&client);
}

static _Atomic int other_handshakes;

static void count_handshakes(const SSL *ssl, int where, int result)
{
    (void)ssl;
    (void)result;
    other_handshakes += (where & SSL_CB_HANDSHAKE_DONE) != 0;
}

static void ask_for_renegotiation(struct tls_peer *peer, SSL *ssl, int socket)
{
    char bytes[8];

    (void)socket;
    EXPECT(SSL_renegotiate(ssl));
    (void)SSL_do_handshake(ssl); /* sends the request only */
    SSL_set_info_callback(ssl, count_handshakes);
    (void)SSL_write(ssl, "ab", 2);
    while (SSL_read(ssl, bytes, sizeof bytes) > 0 && SSL_write(ssl, "cd", 2) == 2) {
    }
    peer->received = 1;
}

/* The client refuses, which OpenSSL as a server may treat as a failure. */
TEST(another_handshake_is_refused_by_tls, "1010")
{
    struct client client = {.peer = {.serve = ask_for_renegotiation, .version = TLS1_2_VERSION}};
    struct trace trace = {0};

    open_client(&client, NULL, NULL);
    note_read(&trace, client.reader, 2);
    EXPECT(strcmp(trace.text, "2\"ab\"") == 0 || strcmp(trace.text, "-1") == 0);
    (void)write_text(client.writer, "x");
    note_read(&trace, client.reader, 2); /* a second handshake would have ended before the answer */
    end_client(&client);
    EXPECT_EQ(other_handshakes, 0);
}

/* ---- the end ---- */

static void say_farewell(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)socket;
    tls_peer_send(ssl, "bye");
    SSL_shutdown(ssl);
    tls_peer_wait_at_gate(peer);
}

TEST(a_farewell_of_tls_is_the_end_of_its_stream, "1011 313")
{
    struct client client = {.peer.serve = say_farewell};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 3);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open bytes 3\"bye\" end");
    end_client(&client);
}

/* ---- one direction ---- */

/* The close of the client's writer has sent nothing. */
static void send_late(struct tls_peer *peer, SSL *ssl, int socket)
{
    char byte;

    tls_peer_wait_at_gate(peer);
    EXPECT_EQ(recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN);
    tls_peer_send(ssl, "late");
    EXPECT_EQ(SSL_shutdown(ssl), 0);
}

TEST(a_tls_stream_reads_on_after_its_writer_was_closed, "1011 324")
{
    struct client client = {.peer.serve = send_late};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 1);
    CFWriteStreamClose(client.writer);
    tls_peer_open_gate(&client.peer);
    run_until_count(&reading.calls, 3);
    EXPECT_TRACE(&reading.trace, "open bytes 4\"late\" end");
    end_client(&client);
}

/* Sends close_notify, and reads what comes after it. */
static void say_farewell_and_read(struct tls_peer *peer, SSL *ssl, int socket)
{
    char text[5] = "";

    (void)socket;
    EXPECT_EQ(SSL_shutdown(ssl), 0);
    tls_peer_wait_at_gate(peer);
    EXPECT_EQ(SSL_read(ssl, text, 4), 4);
    EXPECT_STR(text, "more");
}

TEST(a_tls_stream_writes_on_after_its_peer_said_farewell, "1011 327")
{
    struct client client = {.peer.serve = say_farewell_and_read};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open end");
    EXPECT_EQ(write_text(client.writer, "more"), 4);
    tls_peer_open_gate(&client.peer);
    tls_peer_await_end(&client.peer);
    end_client(&client);
}

/* ---- torn and damaged ---- */

static void cut_off(struct tls_peer *peer, SSL *ssl, int socket)
{
    (void)peer;
    tls_peer_send(ssl, "bye");
    shutdown(socket, SHUT_WR);
    tls_peer_wait_at_gate(peer);
}

TEST(a_tls_connection_that_ends_without_farewell_is_an_error, "1011 326")
{
    struct client client = {.peer.serve = cut_off};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 3);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open bytes 3\"bye\" error");
    expect_error(CFReadStreamGetError(client.reader), kCFStreamErrorDomainSSL, errSSLClosedNoNotify);
    expect_words(CFReadStreamCopyError(client.reader), "without close_notify");
    end_client(&client);
}

static void send_damaged_record(struct tls_peer *peer, SSL *ssl, int socket)
{
    static const char record[] = {0x17, 3, 3, 0, 32};
    char bytes[sizeof record + 32] = {0};

    (void)ssl;
    memcpy(bytes, record, sizeof record);
    EXPECT_EQ(send(socket, bytes, sizeof bytes, 0), sizeof bytes);
    tls_peer_wait_at_gate(peer);
}

TEST(a_damaged_record_is_an_error_of_both_streams, "1011 311")
{
    struct client client = {.peer.serve = send_damaged_record};
    struct stream_recorder reading = {.reads = 100};

    open_client(&client, &reading, NULL);
    run_until_count(&reading.calls, 2);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open error");
    expect_error(CFReadStreamGetError(client.reader), kCFStreamErrorDomainSSL, errSSLBadRecordMac);
    EXPECT_EQ(write_text(client.writer, "a"), -1);
    expect_error(CFWriteStreamGetError(client.writer), kCFStreamErrorDomainSSL, errSSLBadRecordMac);
    end_client(&client);
}

static void go_away(struct tls_peer *peer, SSL *ssl, int socket)
{
    char byte;

    (void)peer;
    (void)socket;
    EXPECT_EQ(SSL_read(ssl, &byte, 1), 1);
}

TEST(writing_to_a_tls_peer_that_is_gone_raises_no_signal, "1011 327")
{
    struct client client = {.peer.serve = go_away};
    CFStreamError error;

    open_client(&client, NULL, NULL);
    EXPECT_EQ(write_text(client.writer, "a"), 1);
    tls_peer_await_end(&client.peer);
    signal(SIGPIPE, SIG_DFL);
    while (write_text(client.writer, "a") > 0) {
    }
    error = CFWriteStreamGetError(client.writer);
    EXPECT_EQ(error.domain, kCFStreamErrorDomainPOSIX);
    EXPECT(error.error == ECONNRESET || error.error == EPIPE);
    end_client(&client);
}

static void close_streams(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    struct client *client = recorder->context;

    (void)stream;
    if (type == kCFStreamEventHasBytesAvailable) {
        CFReadStreamClose(client->reader);
        CFWriteStreamClose(client->writer);
    }
}

TEST(no_event_comes_after_a_callback_has_closed_a_tls_stream, "1011 315")
{
    struct client client = {.peer.serve = send_once_and_wait};
    struct stream_recorder reading = {.action = close_streams, .context = &client};
    struct stream_recorder writing = {0};

    open_client(&client, &reading, &writing);
    run_until_count(&reading.calls, 2);
    tls_peer_open_gate(&client.peer);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "open bytes");
    EXPECT_EQ(CFReadStreamGetStatus(client.reader), kCFStreamStatusClosed);
    end_client(&client);
}

static void run_a_tls_client(void *context)
{
    static struct stream_recorder reading = {.reads = 100}; /* outlives the thread, as the stream does */
    struct client *client = context;

    recorder_add_reader(&reading, client->reader);
    open_streams(client);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 6\"abcdef\"");
}

TEST(tls_streams_run_on_the_loop_of_another_thread, "1006 318")
{
    struct client client = {.peer.serve = send_once_and_wait};

    prepare_client(&client);
    connect_peer(&client);
    probe_on_thread(run_a_tls_client, &client);
    end_client(&client);
}

TEST(tls_streams_may_be_closed_in_the_midst_of_a_handshake, "1011 315")
{
    UInt32 port;
    int listener = listener_open(&port); /* it accepts by itself, and says nothing */
    struct stream_recorder reading = {0};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CRLNetworkInstall();
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &reader, &writer);
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    recorder_add_reader(&reading, reader);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    run_what_is_ready();
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusOpening);
    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    run_what_is_ready();
    EXPECT_TRACE(&reading.trace, "");
    CFRelease(reader);
    CFRelease(writer);
    close(listener);
}

TEST(a_peer_that_does_not_speak_tls_is_an_error, "1012 311")
{
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_recorder reading = {0};
    CFReadStreamRef reader;
    int peer;

    CRLNetworkInstall();
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &reader, NULL);
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    recorder_add_reader(&reading, reader);
    EXPECT(CFReadStreamOpen(reader));
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(write(peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 28);
    run_until_count(&reading.calls, 1);
    EXPECT_TRACE(&reading.trace, "error");
    expect_error(CFReadStreamGetError(reader), kCFStreamErrorDomainSSL, errSSLProtocol);
    expect_words(CFReadStreamCopyError(reader), "does not speak TLS");
    CFRelease(reader);
    close(peer);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &reader, NULL);
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    EXPECT(CFReadStreamOpen(reader));
    peer = accept(listener, NULL, NULL);
    shutdown(peer, SHUT_WR);
    while (CFReadStreamGetStatus(reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    expect_error(CFReadStreamGetError(reader), kCFStreamErrorDomainSSL, errSSLClosedAbort);
    expect_words(CFReadStreamCopyError(reader), "in the handshake of TLS");
    CFRelease(reader);
    close(peer);
    close(listener);
}

/* Answers the first message of a stream by this alert, and expects these words of the stream's error. */
static void expect_words_of_alert(int listener, UInt32 port, char alert, const char *words)
{
    const char record[] = {0x15, 3, 3, 0, 2, 2, alert};
    CFReadStreamRef reader;
    int peer;

    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &reader, NULL);
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    EXPECT(CFReadStreamOpen(reader));
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(send(peer, record, sizeof record, 0), sizeof record);
    while (CFReadStreamGetStatus(reader) == kCFStreamStatusOpening) {
        sched_yield();
    }
    EXPECT_EQ(CFReadStreamGetError(reader).domain, kCFStreamErrorDomainSSL);
    expect_words(CFReadStreamCopyError(reader), words);
    CFRelease(reader);
    close(peer);
}

TEST(an_alert_of_the_peer_is_told_in_words, "1012 335")
{
    static const struct {
        char alert;
        const char *words;
    } cases[] = {
        {40, "handshake failure"},
        {42, "bad certificate"},
        {44, "certificate revoked"},
        {45, "certificate expired"},
        {48, "unknown ca"},
        {49, "access denied"},
        {70, "protocol version"},
        {71, "insufficient security"},
        {80, "internal error"},
        {112, "unrecognized name"},
        {116, "certificate required"},
        {120, "no application protocol"},
        {99, "The peer sent an alert of TLS"},
    };
    UInt32 port;
    int listener = listener_open(&port);

    CRLNetworkInstall();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_words_of_alert(listener, port, cases[i].alert, cases[i].words);
    }
    close(listener);
}

/* ---- certificates and settings ---- */

/* A client whose peer has the certificate that is described here. */
static void expect_certificate_refused(const char *name, bool is_self_signed, long begins_s, long ends_s, SInt32 expected,
                                       const char *words)
{
    struct client client = {0};

    prepare_client(&client);
    credentials_free(&client.server);
    client.server = credentials_create(name, is_self_signed ? NULL : &client.authority, begins_s, ends_s);
    connect_peer(&client);
    expect_refusal_in_words(&client, expected, words);
    end_client(&client);
}

TEST(a_wrong_certificate_is_refused_with_its_reason, "1012 335 404")
{
    expect_certificate_refused("127.0.0.2", false, -day_s, day_s, errSSLHostNameMismatch, "for another name than 127.0.0.1");
    expect_certificate_refused("example.test", false, -day_s, day_s, errSSLHostNameMismatch, "for another name than 127.0.0.1");
    expect_certificate_refused("127.0.0.1", false, -2 * day_s, -day_s, errSSLCertExpired, "refused: certificate has expired");
    expect_certificate_refused("127.0.0.1", false, day_s, 2 * day_s, errSSLCertNotYetValid, "refused: certificate is not yet valid");
    expect_certificate_refused("127.0.0.1", true, -day_s, day_s, errSSLUnknownRootCert, "refused: self-signed certificate");
}

TEST(an_authority_that_the_system_does_not_know_is_refused, "1012")
{
    struct client client = {0};

    prepare_client(&client);
    CFDictionaryRemoveValue(client.settings, kCRLStreamSSLAnchorCertificates);
    connect_peer(&client);
    expect_refusal_in_words(&client, errSSLNoRootCert, "issuer certificate");
    CFReadStreamClose(client.reader);
    CFWriteStreamClose(client.writer); /* and now only the number is known */
    expect_words(CFReadStreamCopyError(client.reader), "issuer of the peer's certificate is unknown");
    end_client(&client);
}

static void expect_open(struct client *client)
{
    struct trace trace = {0};

    open_streams(client);
    EXPECT_EQ(write_text(client->writer, "a"), 1);
    note_read(&trace, client->reader, 9);
    EXPECT_TRACE(&trace, "1\"a\"");
}

/* A client that connects although the certificate is wrong, because a setting allows that. */
static void expect_forgiven(const char *name, bool is_self_signed, long ends_s, CFStringRef key, CFTypeRef value)
{
    struct client client = {0};

    prepare_client(&client);
    credentials_free(&client.server);
    client.server = credentials_create(name, is_self_signed ? NULL : &client.authority, -2 * day_s, ends_s);
    CFDictionarySetValue(client.settings, key, value);
    connect_peer(&client);
    expect_open(&client);
    end_client(&client);
}

TEST(settings_forgive_what_they_name_and_nothing_else, "1013")
{
    struct client client = {0};

    expect_forgiven("127.0.0.1", false, -day_s, kCFStreamSSLAllowsExpiredCertificates, kCFBooleanTrue);
    expect_forgiven("127.0.0.1", true, day_s, kCFStreamSSLAllowsAnyRoot, kCFBooleanTrue);
    expect_forgiven("wrong.test", false, day_s, kCFStreamSSLPeerName, kCFNull);
    expect_forgiven("right.test", false, day_s, kCFStreamSSLPeerName, CFSTR("right.test."));
    expect_forgiven("::1", false, day_s, kCFStreamSSLPeerName, CFSTR("[::1]"));
    expect_forgiven("wrong.test", true, -day_s, kCFStreamSSLValidatesCertificateChain, kCFBooleanFalse);
    prepare_client(&client);
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, CFSTR("localhost")); /* the certificate is for an address */
    connect_peer(&client);
    expect_refusal_in_words(&client, errSSLHostNameMismatch, "for another name than localhost");
    end_client(&client);
    client = (struct client){0};
    prepare_client(&client);
    credentials_free(&client.server);
    client.server = credentials_create("wrong.test", NULL, -2 * day_s, day_s);
    CFDictionarySetValue(client.settings, kCFStreamSSLAllowsAnyRoot, kCFBooleanTrue);
    connect_peer(&client);
    expect_refusal(&client, errSSLHostNameMismatch);
    end_client(&client);
}

TEST(a_level_of_security_is_kept, "1013")
{
    static const struct {
        int version; /* of the peer */
        SInt32 expected; /* 0: it opens */
        const CFStringRef *level;
    } cases[] = {
        {TLS1_2_VERSION, 0, &kCFStreamSocketSecurityLevelNegotiatedSSL},
        {TLS1_2_VERSION, 0, &kCFStreamSocketSecurityLevelTLSv1},
        {TLS1_2_VERSION, 0, &kCRLStreamSocketSecurityLevelTLSv1_2},
        {TLS1_3_VERSION, 0, &kCRLStreamSocketSecurityLevelTLSv1_3},
        {TLS1_2_VERSION, errSSLPeerProtocolVersion, &kCRLStreamSocketSecurityLevelTLSv1_3},
        {TLS1_3_VERSION, errSSLPeerProtocolVersion, &kCRLStreamSocketSecurityLevelTLSv1_2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct client client = {.peer.version = cases[i].version};

        prepare_client(&client);
        CFDictionarySetValue(client.settings, kCFStreamSSLLevel, *cases[i].level);
        connect_peer(&client);
        if (cases[i].expected) {
            expect_refusal(&client, cases[i].expected);
        } else {
            expect_open(&client);
        }
        end_client(&client);
    }
}

/* A connection whose settings are refused before anything is sent. */
static void expect_settings_refused(CFStringRef host, CFStringRef key, CFTypeRef value, SInt32 expected)
{
    struct client client = {0};

    prepare_client(&client);
    CFDictionarySetValue(client.settings, key, value);
    connect_to(&client, host);
    expect_refusal(&client, expected);
    end_client(&client);
    EXPECT_EQ(client.peer.handshakes, 0);
}

TEST(settings_that_cannot_be_followed_are_refused, "1013")
{
    static const UInt8 no_pem[] = "no certificate";
    CFDataRef data = CFDataCreate(NULL, no_pem, sizeof no_pem);
    CFArrayRef datas = CFArrayCreate(NULL, (const void **)&data, 1, &kCFTypeArrayCallBacks);
    CFTypeRef texts[] = {CFSTR("")};
    CFArrayRef empty_text = CFArrayCreate(NULL, texts, 1, &kCFTypeArrayCallBacks);
    CFStringRef host = CFSTR("127.0.0.1");

    expect_settings_refused(host, kCFStreamSSLLevel, kCFStreamSocketSecurityLevelSSLv3, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLLevel, kCFStreamSocketSecurityLevelSSLv2, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLLevel, kCFStreamSocketSecurityLevelNone, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLLevel, kCFBooleanTrue, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLPeerName, kCFBooleanTrue, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLPeerName, CFSTR("caf\u00e9.test"), errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLPeerName, CFSTR(""), errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLIsServer, CFSTR("yes"), errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLIsServer, kCFBooleanTrue, errSSLBadConfiguration); /* without a certificate */
    expect_settings_refused(host, kCFStreamSSLAllowsAnyRoot, CFSTR("yes"), errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLCertificates, datas, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLCertificates, empty_text, errSSLBadConfiguration);
    expect_settings_refused(host, kCFStreamSSLCertificates, data, errSSLBadConfiguration);
    expect_settings_refused(host, kCRLStreamSSLAnchorCertificates, datas, errSSLBadConfiguration);
    expect_settings_refused(host, kCRLStreamSSLProtocols, datas, errSSLBadConfiguration);
    expect_settings_refused(host, kCRLStreamSSLProtocols, empty_text, errSSLBadConfiguration);
    CFRelease(datas);
    CFRelease(data);
    CFRelease(empty_text);
}

TEST(what_is_no_name_of_a_host_is_no_name_of_a_peer, "1013")
{
    static const char *const names[] = {
        ".good.test",    "localhost..",     "a..test", "a b.test", " ",       ".",         "*.good.test", "[good.test]",
        "good.test\n",   "1.2.3.4.5",       "[",       "[]",       "::1::",   "a/b",       "good.test%:", "good.test%:.trusted.test",
        "[good.test%:]", "good.test%25a:b", "[::1",    "::1]",     "[[::1]]", "1.2.3.4%lo"};
    const UniChar cut[] = {'g', 'o', 'o', 'd', '.', 't', 'e', 's', 't', 0, '.', 't', 'e', 's', 't'};
    CFStringRef name = CFStringCreateWithCharacters(NULL, cut, sizeof cut / sizeof cut[0]);
    CFArrayRef protocols = CFArrayCreate(NULL, (const void **)&name, 1, &kCFTypeArrayCallBacks);

    expect_settings_refused(CFSTR("127.0.0.1"), kCFStreamSSLPeerName, name, errSSLBadConfiguration);
    expect_settings_refused(CFSTR("127.0.0.1"), kCRLStreamSSLProtocols, protocols, errSSLBadConfiguration);
    CFRelease(protocols);
    CFRelease(name);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        name = CFStringCreateWithCString(NULL, names[i], kCFStringEncodingUTF8);
        expect_settings_refused(CFSTR("127.0.0.1"), kCFStreamSSLPeerName, name, errSSLBadConfiguration);
        CFRelease(name);
    }
}

static char sent_name[300];

static void note_sent_name(struct tls_peer *peer, SSL *ssl, int socket)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    char byte;

    (void)peer;
    (void)socket;
    (void)snprintf(sent_name, sizeof sent_name, "%s", name ? name : "");
    EXPECT_EQ(SSL_read(ssl, &byte, 1), 1);
    tls_peer_send(ssl, "a");
}

/* Connects to a peer of the name whose certificate has the alternatives, and returns what name was sent to it. */
static const char *name_sent_to(CFTypeRef peer_name, const char *alternatives)
{
    struct client client = {.peer.serve = note_sent_name};

    prepare_client(&client);
    credentials_free(&client.server);
    client.server = credentials_create_named("a peer", alternatives, &client.authority, -day_s, day_s);
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, peer_name);
    connect_peer(&client);
    expect_open(&client);
    end_client(&client);
    return sent_name;
}

TEST(a_peer_is_compared_and_told_its_name_without_what_is_of_this_machine, "1012 1013")
{
    EXPECT_STR(name_sent_to(CFSTR("Good.test"), "DNS:good.test"), "Good.test");
    EXPECT_STR(name_sent_to(CFSTR("good.test."), "DNS:*.test,DNS:good.test"), "good.test");
    EXPECT_STR(name_sent_to(CFSTR("fe80::1%lo"), "IP:fe80::1"), "");
    EXPECT_STR(name_sent_to(CFSTR("[fe80::1%25lo]"), "IP:fe80::1"), "");
    EXPECT_STR(name_sent_to(CFSTR("[::1]"), "IP:::1"), "");
    EXPECT_STR(name_sent_to(CFSTR("127.1"), "IP:127.0.0.1"), "");
    EXPECT_STR(name_sent_to(kCFNull, "DNS:another.test"), ""); /* the host is 127.0.0.1 */
}

TEST(the_subject_of_a_certificate_is_no_name_of_a_peer, "1012")
{
    struct client client = {0};

    prepare_client(&client);
    credentials_free(&client.server);
    client.server = credentials_create_named("good.test", NULL, &client.authority, -day_s, day_s);
    CFDictionarySetValue(client.settings, kCFStreamSSLPeerName, CFSTR("good.test"));
    connect_peer(&client);
    expect_refusal(&client, errSSLHostNameMismatch);
    end_client(&client);
}

TEST(a_given_socket_needs_the_name_of_its_peer_for_tls, "1013")
{
    CFReadStreamRef reader;
    int ends[2];

    CRLNetworkInstall();
    socket_pair_open(ends);
    CFStreamCreatePairWithSocket(NULL, ends[0], &reader, NULL);
    EXPECT(CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    (void)CFReadStreamOpen(reader);
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusError);
    expect_error(CFReadStreamGetError(reader), kCFStreamErrorDomainSSL, errSSLHostNameMismatch);
    expect_words(CFReadStreamCopyError(reader), "there is no name to compare");
    CFRelease(reader);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_client_shows_its_certificate_to_a_server_that_asks, "1014")
{
    for (int has_certificate = 0; has_certificate < 2; has_certificate++) {
        struct client client = {0};
        struct credentials own;
        CFArrayRef identity;

        prepare_client(&client);
        client.peer.client_issuer = &client.authority;
        own = credentials_create("a client", &client.authority, -day_s, day_s);
        identity = credentials_copy_pem(&own, true);
        if (has_certificate) {
            CFDictionarySetValue(client.settings, kCFStreamSSLCertificates, identity);
        }
        connect_peer(&client);
        if (has_certificate) {
            expect_open(&client);
        } else { /* in TLS 1.3 the server's alert comes after the client's handshake */
            struct trace trace = {0};

            open_streams(&client);
            note_read(&trace, client.reader, 9);
            EXPECT_TRACE(&trace, "-1");
            expect_error(CFReadStreamGetError(client.reader), kCFStreamErrorDomainSSL, errSSLPeerCertUnknown);
        }
        CFRelease(identity);
        end_client(&client);
        credentials_free(&own);
    }
}

static void send_and_receive(struct tls_peer *peer, SSL *ssl, int socket)
{
    char bytes[8];

    (void)socket;
    tls_peer_send(ssl, "hi");
    peer->received += SSL_read(ssl, bytes, sizeof bytes);
}

TEST(a_stream_can_be_the_server_of_tls, "1014")
{
    struct client client = {.peer = {.is_client = true, .serve = send_and_receive}};
    CFArrayRef identity;
    struct trace trace = {0};

    prepare_client(&client);
    client.peer.own = NULL;
    identity = credentials_copy_pem(&client.server, true);
    CFDictionarySetValue(client.settings, kCFStreamSSLCertificates, identity);
    CFDictionarySetValue(client.settings, kCFStreamSSLIsServer, kCFBooleanTrue);
    CFRelease(identity);
    connect_peer(&client);
    open_streams(&client);
    EXPECT_EQ(write_text(client.writer, "hello"), 5);
    note_read(&trace, client.reader, 9);
    EXPECT_TRACE(&trace, "2\"hi\"");
    EXPECT(!CFReadStreamCopyProperty(client.reader, kCFStreamPropertySSLPeerCertificates));
    end_client(&client);
    EXPECT_EQ(client.peer.received, 5);
}

TEST(both_sides_of_tls_agree_on_a_protocol, "1015")
{
    CFTypeRef names[] = {CFSTR("h2"), CFSTR("http/1.1")};
    CFArrayRef protocols = CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks);
    struct client client = {.peer.protocol = "http/1.1"};
    struct client refused = {.peer.protocol = "smtp"};
    CFTypeRef chosen;

    prepare_client(&client);
    CFDictionarySetValue(client.settings, kCRLStreamSSLProtocols, protocols);
    connect_peer(&client);
    expect_open(&client);
    chosen = CFWriteStreamCopyProperty(client.writer, kCRLStreamPropertySSLProtocol);
    EXPECT(chosen && CFEqual(chosen, CFSTR("http/1.1")));
    CFRelease(chosen);
    end_client(&client);
    prepare_client(&refused);
    CFDictionarySetValue(refused.settings, kCRLStreamSSLProtocols, protocols);
    connect_peer(&refused);
    expect_refusal(&refused, errSSLFatalAlert);
    end_client(&refused);
    CFRelease(protocols);
}

/* ---- the end of the process ---- */

static void leave_with_what_openssl_can_do(void)
{
    _exit(SSL_CTX_new(TLS_client_method()) ? 0 : 1);
}

/* Handlers of exit run last in, first out: this one after any that OpenSSL sets when it is first used. */
TEST(openssl_works_until_the_process_has_ended, "1005")
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        CFStreamError error;
        int ends[2];

        if (atexit(leave_with_what_openssl_can_do) != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
            _exit(2);
        }
        (void)session_create(ends[0], NULL, CFDictionaryCreate(NULL, NULL, NULL, 0, NULL, NULL), &error);
        exit(3);
    }
    (void)waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}
