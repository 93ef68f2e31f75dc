/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of TLS that stops at any byte: of the handshake, of what it sends, of its farewell. Two sessions, and between them the test, which
 * passes on as many bytes as it is told to.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Stream/stream_recorder.h"
#include "session.h"
#include "tls_peer.h"

enum { most_turns = 100 };

struct passage {
    void *sessions[2]; /* the client's and the server's; NULL: freed */
    int ends[2]; /* of the sessions */
    int middle[2]; /* their other ends */
    size_t passed; /* bytes from the server to the client */
    bool is_open[2];
};

static CFDictionaryRef settings[2]; /* of the client and the server */

static void make_settings(CFStringRef level)
{
    struct credentials own = credentials_create("host.test", NULL, -day_s, day_s);
    CFTypeRef keys[] = {kCFStreamSSLPeerName, kCRLStreamSSLAnchorCertificates, kCFStreamSSLCertificates, kCFStreamSSLLevel,
                        kCFStreamSSLIsServer};
    CFTypeRef values[] = {CFSTR("host.test"), credentials_copy_pem(&own, false), credentials_copy_pem(&own, true), level, kCFBooleanTrue};

    settings[0] = CFDictionaryCreate(NULL, keys, values, 4, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    settings[1] = CFDictionaryCreate(NULL, keys, values, 5, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFRelease(values[1]);
    CFRelease(values[2]);
    credentials_free(&own);
}

static void begin(struct passage *passage)
{
    CFStreamError error;

    *passage = (struct passage){.passed = 0};
    for (int i = 0; i < 2; i++) {
        int pair[2];

        socket_pair_open(pair);
        passage->ends[i] = pair[0];
        passage->middle[i] = pair[1];
        passage->sessions[i] = session_create(pair[0], NULL, settings[i], &error);
        REQUIRE(passage->sessions[i]);
    }
}

static void end(struct passage *passage)
{
    for (int i = 0; i < 2; i++) {
        if (passage->sessions[i]) {
            session_free(passage->sessions[i]);
        }
        close(passage->ends[i]);
        close(passage->middle[i]);
    }
}

/* Passes on all that the client has sent, and up to `most` bytes in all of what the server has. */
static void pass_on(struct passage *passage, size_t most)
{
    char bytes[16384];
    ssize_t count;

    while ((count = recv(passage->middle[0], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        (void)send(passage->middle[1], bytes, (size_t)count, MSG_NOSIGNAL);
    }
    while (passage->passed < most) {
        size_t room = most - passage->passed < sizeof bytes ? most - passage->passed : sizeof bytes;

        count = recv(passage->middle[1], bytes, room, MSG_DONTWAIT);
        if (count <= 0) {
            return;
        }
        REQUIRE(send(passage->middle[0], bytes, (size_t)count, MSG_NOSIGNAL) == count);
        passage->passed += (size_t)count;
    }
}

/* Goes on with both handshakes; the server sends bytes and says farewell once its own is done. Returns what the client has last got. */
static CFIndex take_turn(struct passage *passage, CFStreamError *error)
{
    UInt32 waits;
    UInt8 bytes[8];
    CFIndex result;

    if (passage->sessions[1]) {
        CFStreamError ignored;

        if (!passage->is_open[1] && session_handshake(passage->sessions[1], &waits, &ignored) == 0) {
            passage->is_open[1] = true;
            EXPECT_EQ(session_send(passage->sessions[1], (const UInt8 *)"hello", 5, &waits, &ignored), 5);
            session_free(passage->sessions[1]);
            passage->sessions[1] = NULL;
        }
    }
    if (!passage->is_open[0]) {
        result = session_handshake(passage->sessions[0], &waits, error);
        passage->is_open[0] = result == 0;
        return result == 0 ? -EAGAIN : result;
    }
    return session_receive(passage->sessions[0], bytes, sizeof bytes, &waits, error);
}

/* As far as it goes with `most` bytes of the server's. Returns what the client has last got: 0 for the end. */
static CFIndex go_on(struct passage *passage, size_t most, int *ret_bytes, CFStreamError *error)
{
    CFIndex result = -EAGAIN;

    for (int turns = 0; turns < most_turns && (result == -EAGAIN || result > 0); turns++) {
        result = take_turn(passage, error);
        *ret_bytes += result > 0 ? (int)result : 0;
        pass_on(passage, most);
    }
    return result;
}

/* Stops behind `most` bytes. First the connection stays, and the client waits; then it ends, and that is an error at once. */
static void expect_stop(size_t most, size_t all)
{
    struct passage passage;
    CFStreamError error = {0, 0};
    int bytes = 0;
    bool was_open;

    begin(&passage);
    EXPECT_EQ(go_on(&passage, most, &bytes, &error), -EAGAIN);
    was_open = passage.is_open[0];
    if (most % 2) { /* closing a session that waits holds nothing */
        shutdown(passage.middle[0], SHUT_WR);
        EXPECT_EQ(go_on(&passage, most, &bytes, &error), -EPROTO);
        EXPECT_EQ(error.domain, kCFStreamErrorDomainSSL);
        EXPECT_EQ(error.error, was_open ? errSSLClosedNoNotify : errSSLClosedAbort);
    }
    EXPECT(bytes == 0 || bytes == 5);
    EXPECT(most < all);
    end(&passage);
}

/* Returns how many bytes the server sends in all. */
static size_t expect_all(void)
{
    struct passage passage;
    CFStreamError error;
    int bytes = 0;
    size_t all;

    begin(&passage);
    EXPECT_EQ(go_on(&passage, SIZE_MAX, &bytes, &error), 0);
    EXPECT_EQ(bytes, 5);
    all = passage.passed;
    end(&passage);
    return all;
}

static void expect_stops(CFStringRef level)
{
    size_t step = test_is_instrumented() ? 61 : 7;
    size_t shortest;

    CRLNetworkInstall();
    make_settings(level);
    shortest = expect_all() - 40; /* a signature is now and then some bytes shorter, and the farewell has up to 31 */
    for (size_t most = 0; most < shortest; most += step) {
        expect_stop(most, shortest);
    }
    CFRelease(settings[0]);
    CFRelease(settings[1]);
}

TEST(a_tls_peer_that_stops_at_any_byte_is_waited_for_or_an_error, "1011 1012")
{
    expect_stops(kCRLStreamSocketSecurityLevelTLSv1_3);
    expect_stops(kCRLStreamSocketSecurityLevelTLSv1_2);
}
