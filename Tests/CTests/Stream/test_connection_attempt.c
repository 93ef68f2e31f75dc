/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of streams that connect: rules 329 to 335. The add-on library is a fake one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "CFNetwork/CFSocketStream.h"
#include "CRLStreamNetwork.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

static struct stream_pair pair_to(const char *host, UInt32 port)
{
    CFStringRef name = CFStringCreateWithCString(NULL, host, kCFStringEncodingUTF8);
    struct stream_pair pair = stream_pair_to(name, port);

    CFRelease(name);
    return pair;
}

static void expect_echo(struct stream_pair pair, int listener)
{
    struct trace trace = {0};
    char byte;
    int peer;

    EXPECT_EQ(write_text(pair.writer, "a"), 1); /* waits for the connection */
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(read(peer, &byte, 1), 1);
    EXPECT_EQ(write(peer, &byte, 1), 1);
    note_read(&trace, pair.reader, 10);
    EXPECT_TRACE(&trace, "1\"a\"");
    close(peer);
}

TEST(a_pair_of_streams_connects_to_a_numeric_host, "329 330 333")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = pair_to("127.0.0.1", port);
    CFTypeRef value;
    SInt32 number = 0;

    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle));
    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    run_until_count(&reading.calls, 1);
    run_until_count(&writing.calls, 2);
    EXPECT_TRACE(&reading.trace, "open");
    EXPECT_TRACE(&writing.trace, "open room");
    expect_echo(pair, listener);
    value = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle);
    EXPECT_EQ(CFDataGetLength(value), sizeof(CFSocketNativeHandle));
    CFRelease(value);
    value = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketRemoteHostName);
    EXPECT(CFEqual(value, CFSTR("127.0.0.1")));
    CFRelease(value);
    value = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketRemotePortNumber);
    EXPECT(CFNumberGetValue(value, kCFNumberSInt32Type, &number) && number == (SInt32)port);
    CFRelease(value);
    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertyDataWritten));
    stream_pair_release(pair);
    close(listener);
}

TEST(streams_without_a_loop_wait_until_they_are_connected, "329 323")
{
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = pair_to("127.0.0.1", port);

    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    expect_echo(pair, listener);
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpen);
    stream_pair_release(pair);
    close(listener);
}

TEST(a_refused_connection_is_the_error_of_both_streams, "329 331 311")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    struct stream_pair pair = pair_to("127.0.0.1", refusing_port);

    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader));
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_until_count(&reading.calls, 1);
    run_until_count(&writing.calls, 1);
    EXPECT_TRACE(&reading.trace, "error");
    EXPECT_TRACE(&writing.trace, "error");
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ECONNREFUSED);
    EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), ECONNREFUSED);
    EXPECT_EQ(write_text(pair.writer, "a"), -1);
    stream_pair_release(pair);
}

TEST(a_host_that_no_connection_can_reach_fails_in_the_background, "329 331")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to("255.255.255.255", 80); /* connect(2) itself fails */

    recorder_add_writer(&recorder, pair.writer);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_until_count(&recorder.calls, 1);
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_EQ(CFWriteStreamGetError(pair.writer).domain, kCFStreamErrorDomainPOSIX);
    EXPECT(!CFWriteStreamOpen(pair.writer)); /* it was opened before */
    stream_pair_release(pair);
}

TEST(the_addresses_of_localhost_are_tried_in_their_order, "330 331")
{
    struct stream_recorder recorder = {0};
    struct trace trace = {0};
    UInt32 port;
    int listener = listener_open(&port); /* IPv4 alone: the address of IPv6, which comes first, is refused */
    struct stream_pair pair = pair_to("LocalHost", port);
    int peer;

    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader));
    run_until_count(&recorder.calls, 1);
    EXPECT_TRACE(&recorder.trace, "open");
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(write(peer, "abc", 3), 3);
    run_until_count(&recorder.calls, 2); /* the loop watches the second socket */
    note_read(&trace, pair.reader, 10);
    EXPECT_TRACE(&trace, "3\"abc\"");
    close(peer);
    stream_pair_release(pair);
    close(listener);
}

TEST(a_pair_of_streams_connects_to_a_signature, "329 333")
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CFSocketSignature signature = {PF_UNIX, SOCK_STREAM, 0, NULL};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stream_pair pair;

    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/crl-stream-%d", (int)getpid());
    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    CFStreamCreatePairWithPeerSocketSignature(NULL, &signature, &pair.reader, &pair.writer);
    EXPECT(!pair.reader && !pair.writer);
    CFStreamCreatePairWithPeerSocketSignature(NULL, NULL, NULL, &pair.writer);
    EXPECT(!pair.writer);
    signature.address = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    CFStreamCreatePairWithPeerSocketSignature(NULL, &signature, &pair.reader, &pair.writer);
    CFRelease(signature.address);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    expect_echo(pair, listener);
    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketRemoteHostName));
    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketRemotePortNumber));
    stream_pair_release(pair);
    close(listener);
    unlink(address.sun_path);
    signature.address = CFDataCreate(NULL, (const UInt8 *)"a", 1);
    CFStreamCreatePairWithPeerSocketSignature(NULL, &signature, &pair.reader, NULL);
    CFRelease(signature.address);
    EXPECT(CFReadStreamOpen(pair.reader));
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusError);
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), EINVAL);
    CFRelease(pair.reader);
}

TEST(a_given_socket_tells_streams_the_address_of_its_peer, "333")
{
    CFReadStreamRef reader;
    CFTypeRef value;
    UInt32 port;
    SInt32 number = 0;
    int listener = listener_open(&port);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(connect(near, (struct sockaddr *)&address, sizeof address) == 0);
    CFStreamCreatePairWithSocket(NULL, near, &reader, NULL);
    value = CFReadStreamCopyProperty(reader, kCFStreamPropertySocketRemoteHostName);
    EXPECT(CFEqual(value, CFSTR("127.0.0.1")));
    CFRelease(value);
    value = CFReadStreamCopyProperty(reader, kCFStreamPropertySocketRemotePortNumber);
    EXPECT(CFNumberGetValue(value, kCFNumberSInt32Type, &number) && number == (SInt32)port);
    CFRelease(value);
    CFRelease(reader);
    close(near);
    close(listener);
}

TEST(a_host_must_have_a_name_to_make_streams, "329")
{
    struct stream_pair pair;

    CFStreamCreatePairWithSocketToHost(NULL, NULL, 80, &pair.reader, &pair.writer);
    EXPECT(!pair.reader && !pair.writer);
}

TEST(a_port_may_come_from_a_signed_type, "329")
{
    static const UInt32 kept[] = {(UInt32)(int16_t)50000, 50000 + 65536, 50000};

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct stream_pair pair = pair_to("127.0.0.1", kept[i]);
        CFNumberRef value = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketRemotePortNumber);
        SInt32 port = 0;

        EXPECT(CFNumberGetValue(value, kCFNumberSInt32Type, &port) && port == 50000);
        CFRelease(value);
        stream_pair_release(pair);
    }
}

TEST(a_name_needs_the_add_on_library_of_streams, "330 311 336")
{
    CFErrorRef error;
    CFStringRef suggestion;
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to("host.invalid", 80);

    EXPECT_STOPS("libcorerunloop-net", { /* the line comes once in a process */
                                         (void)CFReadStreamOpen(pair.reader);
                                         abort();
    });
    recorder_add_reader(&recorder, pair.reader);
    EXPECT(!CFReadStreamOpen(pair.reader));
    EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ENOSYS);
    error = CFReadStreamCopyError(pair.reader);
    EXPECT(CFEqual(CFErrorGetDomain(error), kCFErrorDomainPOSIX) && CFErrorGetCode(error) == ENOSYS);
    suggestion = CFErrorCopyRecoverySuggestion(error);
    EXPECT(suggestion && CFStringFind(suggestion, CFSTR("libcorerunloop-net"), 0).length > 0);
    CFRelease(suggestion);
    CFRelease(error);
    EXPECT(!CFWriteStreamCopyError(pair.writer));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    stream_pair_release(pair);
}

TEST(a_proxy_or_security_that_cannot_be_had_keeps_streams_closed, "332")
{
    UInt32 port;
    int listener = listener_open(&port);
    CFDictionaryRef none = CFDictionaryCreate(NULL, NULL, NULL, 0, NULL, NULL);
    struct stream_pair lonely = pair_to("127.0.0.1", port);

    EXPECT_STOPS("TLS: link libcorerunloop-net", { /* the line comes once in a process */
                                                   (void)CFReadStreamSetProperty(lonely.reader, kCFStreamPropertySSLSettings, none);
                                                   abort();
    });
    stream_pair_release(lonely);
    for (int i = 0; i < 4; i++) {
        struct stream_pair pair = pair_to("127.0.0.1", port);

        switch (i) {
        case 0:
            EXPECT(!CFReadStreamSetProperty(pair.reader, kCFStreamPropertySOCKSProxy, none));
            break;
        case 1:
            EXPECT(!CFWriteStreamSetProperty(pair.writer, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
            break;
        case 2:
            EXPECT(!CFReadStreamSetProperty(pair.reader, kCFStreamPropertySSLSettings, none));
            break;
        default:
            EXPECT(!CFReadStreamSetProperty(pair.reader, kCFStreamPropertySSLSettings, NULL));
            EXPECT(!CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, none));
            EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone));
        }
        EXPECT_EQ(CFReadStreamOpen(pair.reader), i == 3);
        EXPECT_EQ(CFWriteStreamOpen(pair.writer), i == 3);
        if (i < 3) {
            EXPECT_ERRNO(CFReadStreamGetError(pair.reader), EOPNOTSUPP);
            EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), EOPNOTSUPP);
        }
        stream_pair_release(pair);
    }
    CFRelease(none);
    close(listener);
}

/* ---- a fake add-on library ---- */

/* A query that is answered when the test says so, or by waiting for it. */
static struct fake_query {
    CRLStreamResolved completion;
    void *context;
    CFStringRef host;
    UInt32 port;
    int modes; /* it goes on in */
    int frees;
} query;

static CFArrayRef answer; /* NULL: the name does not resolve */

static void *fake_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    query = (struct fake_query){.completion = completion, .context = context, .host = CFRetain(host), .port = port, .frees = query.frees};
    return &query;
}

static void fake_schedule(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    (void)object;
    EXPECT(loop == CFRunLoopGetCurrent() && CFEqual(mode, kCFRunLoopDefaultMode));
    query.modes++;
}

static void fake_unschedule(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    (void)object;
    (void)loop;
    (void)mode;
    query.modes--;
}

static void fake_answer(void *object)
{
    CFStreamError error = {kCFStreamErrorDomainNetDB, -2};
    CRLStreamResolved completion = query.completion;

    (void)object;
    query.completion = NULL;
    if (completion) {
        completion(query.context, answer, answer ? (CFStreamError){0, 0} : error);
    }
}

static void fake_free(void *object)
{
    (void)object;
    query.completion = NULL;
    CFRelease(query.host);
    query.frees++;
}

static const CRLStreamNetwork names_only = {.resolve = fake_resolve,
                                            .scheduleQuery = fake_schedule,
                                            .unscheduleQuery = fake_unschedule,
                                            .waitForQuery = fake_answer,
                                            .freeQuery = fake_free};

static CFArrayRef loopback_addresses(const UInt32 *ports, int count)
{
    CFMutableArrayRef addresses = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

    for (int i = 0; i < count; i++) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);

        CFArrayAppendValue(addresses, data);
        CFRelease(data);
    }
    return addresses;
}

TEST(a_name_is_resolved_in_the_modes_of_its_streams, "334 331 329")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {0};
    UInt32 ports[3] = {refusing_port, refusing_port, 0};
    int listener = listener_open(&ports[2]);
    struct stream_pair pair = pair_to("host.example", ports[2]);

    CRLStreamSetNetwork(&names_only);
    recorder_add_reader(&reading, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader));
    EXPECT(CFEqual(query.host, CFSTR("host.example")) && query.port == ports[2]);
    EXPECT_EQ(query.modes, 1);
    recorder_add_writer(&writing, pair.writer);
    EXPECT_EQ(query.modes, 2);
    EXPECT(CFWriteStreamOpen(pair.writer));
    run_what_is_ready();
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpening);
    EXPECT_TRACE(&reading.trace, "");
    answer = loopback_addresses(ports, 3);
    fake_answer(&query);
    CFRelease(answer);
    run_until_count(&reading.calls, 1);
    run_until_count(&writing.calls, 2);
    EXPECT_TRACE(&reading.trace, "open");
    EXPECT_TRACE(&writing.trace, "open room");
    expect_echo(pair, listener);
    CFReadStreamUnscheduleFromRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    stream_pair_release(pair);
    EXPECT_EQ(query.frees, 1);
    close(listener);
}

TEST(a_name_that_does_not_resolve_is_the_error_of_both_streams, "334 311 336")
{
    CFErrorRef error;
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to("host.example", 80);

    CRLStreamSetNetwork(&names_only);
    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    CFReadStreamUnscheduleFromRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(query.modes, 0);
    CFReadStreamScheduleWithRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    fake_answer(&query);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_EQ(CFReadStreamGetError(pair.reader).domain, kCFStreamErrorDomainNetDB);
    EXPECT_EQ(CFReadStreamGetError(pair.reader).error, -2);
    EXPECT_EQ(CFWriteStreamGetStatus(pair.writer), kCFStreamStatusError);
    error = CFWriteStreamCopyError(pair.writer);
    EXPECT(CFEqual(CFErrorGetDomain(error), CFSTR("kCFErrorDomainCFNetwork")) && CFErrorGetCode(error) == -2);
    CFRelease(error);
    stream_pair_release(pair);
}

TEST(reading_waits_for_the_name_of_its_streams_host, "334 329")
{
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = pair_to("host.example", port);

    CRLStreamSetNetwork(&names_only);
    answer = loopback_addresses(&port, 1);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    expect_echo(pair, listener);
    CFRelease(answer);
    stream_pair_release(pair);
    close(listener);
}

TEST(freeing_streams_ends_the_question_for_their_name, "334 315")
{
    struct stream_recorder recorder = {0};
    struct stream_pair pair = pair_to("host.example", 80);
    UInt32 port = refusing_port;

    CRLStreamSetNetwork(&names_only);
    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    CFReadStreamClose(pair.reader);
    CFWriteStreamClose(pair.writer);
    answer = loopback_addresses(&port, 1);
    fake_answer(&query); /* too late: no socket is made */
    CFRelease(answer);
    EXPECT(!CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle));
    EXPECT_TRACE(&recorder.trace, "");
    stream_pair_release(pair);
    EXPECT_EQ(query.frees, 1);
}

/* ---- fake security: bytes are sent as they are, but for one bit ---- */

static struct fake_session {
    int socket;
    int handshakes; /* left to be done, each after a byte of the peer's; until then no bytes move */
    bool refuses;
    bool breaks; /* receiving and sending fail */
    int frees;
} session;

static const CFStreamError bad_record = {3, -9800};

static void *fake_create_session(int socket, CFStringRef host, CFDictionaryRef settings, CFStreamError *error)
{
    EXPECT(!host || CFEqual(host, CFSTR("127.0.0.1")));
    EXPECT(settings);
    *error = bad_record;
    session.socket = socket;
    return session.refuses ? NULL : &session;
}

static int fake_handshake(void *object, UInt32 *waits, CFStreamError *error)
{
    char byte;

    (void)object;
    if (session.breaks) {
        *error = bad_record;
        return -EPROTO;
    }
    while (session.handshakes > 0) {
        if (recv(session.socket, &byte, 1, MSG_DONTWAIT) != 1) {
            *waits = kCRLStreamWaitsToRead;
            return -EAGAIN;
        }
        session.handshakes--;
    }
    return 0;
}

/* Sets errno for what is no failure. */
static bool cannot_receive(void)
{
    errno = EAGAIN;
    return session.breaks || session.handshakes > 0;
}

static CFIndex fake_receive(void *object, UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error)
{
    ssize_t count = cannot_receive() ? -1 : recv(session.socket, bytes, (size_t)size, MSG_DONTWAIT);

    (void)object;
    if (session.breaks) {
        *error = bad_record;
        return -EPROTO;
    }
    *waits = kCRLStreamWaitsToRead;
    for (ssize_t i = 0; i < count; i++) {
        bytes[i] ^= 1;
    }
    return count < 0 ? -errno : count;
}

static CFIndex fake_send(void *object, const UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error)
{
    UInt8 changed = bytes[0] ^ 1;
    ssize_t count;

    (void)object;
    (void)size;
    if (session.breaks) {
        *error = bad_record;
        return -EPROTO;
    }
    *waits = kCRLStreamWaitsToWrite;
    count = send(session.socket, &changed, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return count < 0 ? -errno : count;
}

static CFIndex fake_look(void *object, CFStreamError *error)
{
    char byte;
    ssize_t count = cannot_receive() ? -1 : recv(session.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    (void)object;
    if (session.breaks) {
        *error = bad_record;
        return -EPROTO;
    }
    return count < 0 ? -errno : count;
}

static Boolean fake_holds_bytes(void *object)
{
    (void)object;
    return false;
}

static CFTypeRef fake_copy_property(void *object, CFStringRef name)
{
    (void)object;
    return CFEqual(name, CFSTR("cipher")) ? CFRetain(CFSTR("one bit")) : NULL;
}

static void fake_free_session(void *object)
{
    (void)object;
    session.frees++;
}

static const CRLStreamNetwork security_only = {.createSession = fake_create_session,
                                               .handshake = fake_handshake,
                                               .receive = fake_receive,
                                               .send = fake_send,
                                               .look = fake_look,
                                               .holdsBytes = fake_holds_bytes,
                                               .copyProperty = fake_copy_property,
                                               .freeSession = fake_free_session};

static struct stream_pair secured_pair(UInt32 port)
{
    struct stream_pair pair = pair_to("127.0.0.1", port);

    CRLStreamSetNetwork(&security_only);
    EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelTLSv1));
    EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL));
    return pair;
}

TEST(a_stream_with_security_opens_after_the_handshake, "335 329")
{
    struct stream_recorder reading = {.reads = 10};
    struct stream_recorder writing = {.writes = "ab"};
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = secured_pair(port);
    CFTypeRef value;
    char byte;
    int peer;

    session.handshakes = 2;
    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    peer = accept(listener, NULL, NULL);
    run_what_is_ready();
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpening);
    EXPECT_EQ(write(peer, "1", 1), 1);
    run_what_is_ready();
    EXPECT_EQ(CFReadStreamGetStatus(pair.reader), kCFStreamStatusOpening);
    EXPECT_TRACE(&writing.trace, "");
    EXPECT_EQ(write(peer, "2", 1), 1);
    run_until_count(&reading.calls, 1);
    run_until_count(&writing.calls, 2);
    EXPECT_TRACE(&reading.trace, "open");
    EXPECT_TRACE(&writing.trace, "open room 1");
    EXPECT_EQ(read(peer, &byte, 1), 1);
    EXPECT_EQ(byte, 'a' ^ 1);
    EXPECT_EQ(write(peer, &byte, 1), 1);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 1\"a\"");
    value = CFReadStreamCopyProperty(pair.reader, CFSTR("cipher"));
    EXPECT(value && CFEqual(value, CFSTR("one bit")));
    CFRelease(value);
    EXPECT(!CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone));
    close(peer);
    run_until_count(&reading.calls, 3);
    EXPECT_TRACE(&reading.trace, "open bytes 1\"a\" end");
    EXPECT_EQ(session.frees, 0);
    stream_pair_release(pair);
    EXPECT_EQ(session.frees, 1);
    close(listener);
}

/* As by a message that changes keys, of which a part has come. */
TEST(a_session_that_goes_back_into_the_handshake_holds_bytes_and_room_back, "1009 335 312")
{
    struct stream_recorder reading = {.reads = 10};
    struct stream_recorder writing = {0};
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = secured_pair(port);
    int peer;

    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    peer = accept(listener, NULL, NULL);
    run_until_count(&reading.calls, 1);
    run_until_count(&writing.calls, 2);
    session.handshakes = 2;
    EXPECT_EQ(write(peer, "1", 1), 1);
    while (session.handshakes == 2) {
        run_what_is_ready();
    }
    EXPECT(!CFWriteStreamCanAcceptBytes(pair.writer));
    EXPECT(!CFReadStreamHasBytesAvailable(pair.reader));
    EXPECT_EQ(write(peer, "2`", 2), 2);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 1\"a\"");
    EXPECT(CFWriteStreamCanAcceptBytes(pair.writer));
    EXPECT_EQ(write_text(pair.writer, "b"), 1);
    run_until_count(&writing.calls, 3);
    EXPECT_TRACE(&writing.trace, "open room room");
    close(peer);
    stream_pair_release(pair);
    close(listener);
}

TEST(an_error_of_security_is_the_error_of_its_streams, "335 311")
{
    UInt32 port;
    int listener = listener_open(&port);

    for (int i = 0; i < 3; i++) { /* settings that are refused; a handshake that fails; a broken record later */
        struct stream_pair pair = secured_pair(port);
        struct trace trace = {0};
        CFErrorRef error;

        session.refuses = i == 0;
        session.breaks = i == 1;
        (void)CFReadStreamOpen(pair.reader); /* on loopback it may have failed by now, or not yet */
        (void)CFWriteStreamOpen(pair.writer);
        while (CFReadStreamGetStatus(pair.reader) == kCFStreamStatusOpening ||
               CFWriteStreamGetStatus(pair.writer) == kCFStreamStatusOpening) {
            sched_yield();
        }
        session.breaks |= i == 2;
        note_read(&trace, pair.reader, 1);
        EXPECT_EQ(write_text(pair.writer, "a"), -1);
        EXPECT_TRACE(&trace, "-1");
        EXPECT_EQ(CFReadStreamGetError(pair.reader).domain, bad_record.domain);
        EXPECT_EQ(CFReadStreamGetError(pair.reader).error, bad_record.error);
        EXPECT_EQ(CFWriteStreamGetError(pair.writer).error, bad_record.error);
        error = CFWriteStreamCopyError(pair.writer);
        EXPECT(CFEqual(CFErrorGetDomain(error), kCFErrorDomainOSStatus));
        CFRelease(error);
        stream_pair_release(pair);
    }
    close(listener);
}

static void limit(CFReadStreamRef reader, double seconds)
{
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberDoubleType, &seconds);

    EXPECT(CFReadStreamSetProperty(reader, kCRLStreamPropertyOpeningTimeout, number));
    CFRelease(number);
}

/* A pair that connects, or of a given socket, whose peer says nothing. */
TEST(a_handshake_that_is_not_over_in_time_has_failed, "343 335")
{
    UInt32 port;
    int listener = listener_open(&port);

    for (int way = 0; way < 4; way++) {
        struct stream_recorder reading = {0};
        struct stream_recorder writing = {0};
        struct stream_pair pair = secured_pair(port);
        int ends[2];

        socket_pair_open(ends);
        if (way % 2) {
            stream_pair_release(pair);
            CFStreamCreatePairWithSocket(NULL, ends[0], &pair.reader, &pair.writer);
            EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelTLSv1));
        }
        session.handshakes = 1;
        limit(pair.reader, 0.02);
        if (way < 2) {
            recorder_add_reader(&reading, pair.reader);
            recorder_add_writer(&writing, pair.writer);
        }
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        if (way < 2) {
            run_until_count(&reading.calls, 1);
            run_until_count(&writing.calls, 1);
            EXPECT_TRACE(&reading.trace, "error");
            EXPECT_TRACE(&writing.trace, "error");
        } else {
            EXPECT_EQ(write_text(pair.writer, "a"), -1);
            EXPECT_EQ(write_text(pair.writer, "a"), -1);
        }
        EXPECT_ERRNO(CFWriteStreamGetError(pair.writer), ETIMEDOUT);
        stream_pair_release(pair);
        close(ends[0]);
        close(ends[1]);
    }
    close(listener);
}

TEST(a_handshake_that_is_over_in_time_leaves_the_socket, "343 335 333 324")
{
    for (int closes = 0; closes < 2; closes++) {
        struct stream_recorder reading = {.reads = 10};
        struct stream_recorder writing = {.writes = "ab"};
        struct stream_pair pair;
        CFDataRef handle;
        char byte;
        int ends[2];

        CRLStreamSetNetwork(&security_only);
        socket_pair_open(ends);
        CFStreamCreatePairWithSocket(NULL, ends[0], &pair.reader, &pair.writer);
        EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelTLSv1));
        EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertyShouldCloseNativeSocket, closes ? kCFBooleanTrue : kCFBooleanFalse));
        session.handshakes = 1;
        limit(pair.reader, 60);
        recorder_add_reader(&reading, pair.reader);
        recorder_add_writer(&writing, pair.writer);
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        run_what_is_ready();
        EXPECT_EQ(write(ends[1], "1", 1), 1);
        run_until_count(&reading.calls, 1);
        run_until_count(&writing.calls, 2);
        EXPECT_TRACE(&writing.trace, "open room 1");
        EXPECT_EQ(read(ends[1], &byte, 1), 1);
        EXPECT_EQ(write(ends[1], &byte, 1), 1);
        run_until_count(&reading.calls, 2);
        EXPECT_TRACE(&reading.trace, "open bytes 1\"a\"");
        handle = CFReadStreamCopyProperty(pair.reader, kCFStreamPropertySocketNativeHandle);
        EXPECT_EQ(*(const int *)(const void *)CFDataGetBytePtr(handle), ends[0]);
        CFRelease(handle);
        stream_pair_release(pair);
        EXPECT_EQ(descriptor_is_open(ends[0]), !closes);
        if (!closes) {
            close(ends[0]);
        }
        EXPECT_EQ(read(ends[1], &byte, 1), 0); /* no second number is left open */
        close(ends[1]);
    }
}

/* TLS begins on open streams. The peer says nothing, or what it has to. */
TEST(a_handshake_on_open_streams_has_the_limit_as_well, "343 335")
{
    for (int answers = 0; answers < 2; answers++) {
        struct stream_recorder reading = {.reads = 10};
        struct stream_recorder writing = {0};
        struct stream_pair pair;
        int ends[2];

        CRLStreamSetNetwork(&security_only);
        socket_pair_open(ends);
        CFStreamCreatePairWithSocket(NULL, ends[0], &pair.reader, &pair.writer);
        limit(pair.reader, answers ? 60 : 0.02);
        recorder_add_reader(&reading, pair.reader);
        recorder_add_writer(&writing, pair.writer);
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        run_until_count(&reading.calls, 1);
        run_until_count(&writing.calls, 2);
        session.handshakes = 1;
        EXPECT(CFReadStreamSetProperty(pair.reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelTLSv1));
        if (answers) {
            EXPECT_EQ(write(ends[1], "1", 1), 1);
            run_until_count(&writing.calls, 3); /* room again, which is that of TLS */
            EXPECT_EQ(write(ends[1], "`", 1), 1);
        }
        run_until_count(&reading.calls, 2);
        EXPECT_TRACE(&reading.trace, answers ? "open bytes 1\"a\"" : "open error");
        if (!answers) {
            EXPECT_ERRNO(CFReadStreamGetError(pair.reader), ETIMEDOUT);
            run_until_count(&writing.calls, 3);
            EXPECT_TRACE(&writing.trace, "open room error");
        }
        stream_pair_release(pair);
        close(ends[0]);
        close(ends[1]);
    }
}
