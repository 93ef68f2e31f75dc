/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of TLS that are cut short or changed on their way. What a session gives is a beginning of what the peer has sent, and an end
 * comes only behind all of it.
 */
#include <CFNetwork/CFNetwork.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "session.h"
#include "tls_forge.h"

enum { most_changes = 16 };

static const char text[] = "what the peer has sent, in more than one record";

/* Both sides shake hands in turn. */
static void shake_hands(struct tls_forge *server, void *session)
{
    CFStreamError error;
    UInt32 waits;
    bool is_done = false;

    for (int i = 0; i < 10 && !is_done; i++) {
        int result = session_handshake(session, &waits, &error);

        CHECK(result == 0 || result == -EAGAIN);
        is_done = tls_forge_shake_hands(server) && result == 0;
        tls_forge_flush(server);
    }
    CHECK(is_done);
}

/* Sends the records of the text and the farewell, as the input changes them: a length to cut to, then places and values. */
static void send_changed(struct tls_forge *server, const uint8_t *bytes, size_t size)
{
    size_t half = sizeof text / 2;
    uint8_t *records;
    size_t length;

    CHECK(SSL_write(server->ssl, text, (int)half) > 0 && SSL_write(server->ssl, text + half, (int)(sizeof text - half)) > 0);
    SSL_shutdown(server->ssl);
    length = (size_t)BIO_get_mem_data(server->out, (char **)&records);
    for (size_t i = 1; i + 1 < size && i < 2 * most_changes; i += 2) {
        records[bytes[i] % length] ^= bytes[i + 1];
    }
    length = size > 0 && bytes[0] < 255 ? length * bytes[0] / 255 : length;
    CHECK(send(server->socket, records, length, 0) == (ssize_t)length);
    shutdown(server->socket, SHUT_WR);
}

static void receive_all(void *session)
{
    CFStreamError error = {0, 0};
    UInt8 received[sizeof text];
    CFIndex total = 0;
    CFIndex count;
    UInt32 waits;

    do {
        CFIndex looked = session_look(session, &error);

        count = session_receive(session, received + total, total < (CFIndex)sizeof text ? 7 : 1, &waits, &error);
        CHECK((looked > 0) == (count > 0) && (looked > 0 || looked == count));
        total += count > 0 ? count : 0;
        CHECK(total <= (CFIndex)sizeof text && memcmp(received, text, (size_t)total) == 0);
    } while (count > 0 && total + 7 <= (CFIndex)sizeof text);
    CHECK(count != 0 || total == (CFIndex)sizeof text);
    CHECK(count != -EPROTO || error.domain == kCFStreamErrorDomainSSL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const void *key = kCFStreamSSLValidatesCertificateChain;
    const void *value = kCFBooleanFalse;
    CFDictionaryRef settings = CFDictionaryCreate(NULL, &key, &value, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    struct tls_forge server;
    CFStreamError error;
    void *session;
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    tls_forge_create(&server, TLS1_3_VERSION, ends[0]);
    session = session_create(ends[1], CFSTR("host.test"), settings, &error);
    CHECK(session);
    shake_hands(&server, session);
    send_changed(&server, bytes, size);
    receive_all(session);
    session_free(session);
    tls_forge_free(&server);
    close(ends[0]);
    close(ends[1]);
    CFRelease(settings);
    return 0;
}
