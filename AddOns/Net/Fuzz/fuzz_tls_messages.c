/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a peer of TLS may send with the right keys: messages, alerts and data of any kind and content, whole or in fragments, in the
 * handshake and after it. A call takes a bounded number of bytes, an error is one of TLS and stays, and what is received is what was sent.
 */
#include <CFNetwork/CFNetwork.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "session.h"
#include "tls_forge.h"

enum { most_of_a_call = 17408, most_of_closing = 32768, most_steps = 200, most_data = 65536 };

struct course {
    const uint8_t *bytes; /* of the input, those that are left */
    size_t size;
    struct tls_forge forge;
    void *session;
    int ends[2]; /* the client's and the server's */
    uint8_t sent[most_data];
    size_t sent_count;
    size_t received_count;
    bool is_open;
    bool has_farewell; /* one was sent, or what could be one */
    CFIndex failure; /* 0: none yet */
    CFStreamError error; /* of the failure */
};

static uint8_t take_byte(struct course *c)
{
    uint8_t byte = c->size > 0 ? *c->bytes : 0;

    c->bytes += c->size > 0;
    c->size -= c->size > 0;
    return byte;
}

/* Up to `most` bytes, which stay the input's. */
static const uint8_t *take_bytes(struct course *c, size_t most, size_t *ret_count)
{
    const uint8_t *bytes = c->bytes;

    *ret_count = most < c->size ? most : c->size;
    c->bytes += *ret_count;
    c->size -= *ret_count;
    return bytes;
}

static long unread(const struct course *c)
{
    int count;

    CHECK(ioctl(c->ends[0], FIONREAD, &count) == 0);
    return count;
}

/* ---- the server ---- */

static void send_record(struct course *c, uint8_t type, const uint8_t *content, size_t length, size_t padding)
{
    static uint8_t record[forge_most_content + forge_most_added];
    size_t sealed;

    if (unread(c) > 2 * most_of_closing) {
        return; /* there may be no room */
    }
    sealed = tls_forge_seal(&c->forge, type, content, length, padding, record);
    CHECK(send(c->ends[1], record, sealed, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sealed || errno == EPIPE);
    c->has_farewell |= type == forge_alert;
}

static void send_data(struct course *c, const uint8_t *bytes, size_t count)
{
    if (c->sent_count + count <= sizeof c->sent && unread(c) <= 2 * most_of_closing) {
        memcpy(c->sent + c->sent_count, bytes, count);
        c->sent_count += count;
        send_record(c, forge_data, bytes, count, 0);
    }
}

/* A message with a header that is right, or has the length of the input, in as many records as that says. */
static void send_message(struct course *c, uint8_t kind, size_t most)
{
    uint8_t message[4 + 256] = {kind};
    uint8_t form = take_byte(c);
    size_t step = form & 1 ? (form >> 4) + 1u : sizeof message;
    size_t count;
    const uint8_t *content = take_bytes(c, most, &count);
    size_t length = count + 4;

    memcpy(message + 4, content, count);
    message[3] = form & 2 ? take_byte(c) : (uint8_t)count;
    message[2] = form & 4 ? take_byte(c) : 0;
    for (size_t i = 0; i < length; i += step) {
        send_record(c, forge_handshake, message + i, i + step < length ? step : length - i, 0);
    }
    if (kind == SSL3_MT_KEY_UPDATE && c->forge.is_1_3 && form & 8) {
        tls_forge_renew_keys(&c->forge);
    }
}

static void send_known_message(struct course *c)
{
    static const uint8_t kinds[] = {SSL3_MT_HELLO_REQUEST,
                                    SSL3_MT_CLIENT_HELLO,
                                    SSL3_MT_SERVER_HELLO,
                                    SSL3_MT_NEWSESSION_TICKET,
                                    SSL3_MT_ENCRYPTED_EXTENSIONS,
                                    SSL3_MT_CERTIFICATE,
                                    SSL3_MT_SERVER_KEY_EXCHANGE,
                                    SSL3_MT_CERTIFICATE_REQUEST,
                                    SSL3_MT_SERVER_DONE,
                                    SSL3_MT_CERTIFICATE_VERIFY,
                                    SSL3_MT_FINISHED,
                                    SSL3_MT_CERTIFICATE_STATUS,
                                    SSL3_MT_KEY_UPDATE};

    send_message(c, kinds[take_byte(c) % sizeof kinds], take_byte(c));
}

static void send_new_keys(struct course *c)
{
    const uint8_t message[] = {SSL3_MT_KEY_UPDATE, 0, 0, 1, take_byte(c) & 1};

    send_record(c, forge_handshake, message, sizeof message, take_byte(c));
    if (c->forge.is_1_3) {
        tls_forge_renew_keys(&c->forge);
    }
}

/* As `count` tickets of TLS 1.3, the extensions of the last one as the input has them. */
static void send_tickets(struct course *c, size_t count)
{
    uint8_t ticket[256] = {SSL3_MT_NEWSESSION_TICKET, 0, 0, 0, 0, 0, 1, 0, 1, 2, 3, 4, 1, 'n', 0, 3, 't', 'k', 't', 0, 0};
    size_t extra;

    for (size_t i = 0; i < count; i++) {
        ticket[3] = 17;
        send_record(c, forge_handshake, ticket, 21, 0);
    }
    memcpy(ticket + 21, take_bytes(c, 200, &extra), extra);
    ticket[3] = (uint8_t)(17 + extra);
    ticket[20] = (uint8_t)extra;
    send_record(c, forge_handshake, ticket, 21 + extra, 0);
}

static void send_any(struct course *c)
{
    uint8_t type = take_byte(c);
    size_t padding = (size_t)take_byte(c) * 64;
    size_t count;
    const uint8_t *content = take_bytes(c, take_byte(c), &count);

    if (type == forge_data) {
        send_data(c, content, padding + count <= forge_most_content ? count : 0);
    } else if (type != 0) { /* with TLS 1.3 the type is the last byte that is not 0 */
        send_record(c, type, content, count, padding + count <= forge_most_content ? padding : 0);
    }
}

/* ---- the client ---- */

/* After a call. A failure is the same from then on. */
static void check_result(struct course *c, CFIndex result, CFStreamError error, long before)
{
    CHECK(before - unread(c) <= most_of_a_call);
    CHECK(c->failure == 0 || result == c->failure);
    CHECK(result != -EPROTO || (error.domain == kCFStreamErrorDomainSSL && error.error != 0));
    CHECK(error.error != errSSLInternal); /* it is the peer's fault */
    CHECK(c->failure != -EPROTO || error.error == c->error.error);
    CHECK(result >= 0 || result == -EAGAIN || result == -EPROTO || result == -EPIPE || result == -ECONNRESET);
    if (result < 0 && result != -EAGAIN && c->failure == 0) {
        c->failure = result;
        c->error = error;
    }
}

static void shake_hands(struct course *c)
{
    CFStreamError error = {0, 0};
    UInt32 waits = 0;
    long before = unread(c);
    int result = session_handshake(c->session, &waits, &error);

    check_result(c, result, error, before);
    CHECK(result <= 0 && (result != -EAGAIN || waits));
    c->is_open = c->is_open || result == 0;
}

static void receive(struct course *c, CFIndex size)
{
    UInt8 bytes[256];
    CFStreamError error = {0, 0};
    UInt32 waits = 0;
    long before = unread(c);
    CFIndex looked = session_look(c->session, &error);
    CFIndex count;

    check_result(c, looked, error, before);
    before = unread(c);
    count = session_receive(c->session, bytes, size, &waits, &error);
    check_result(c, count, error, before);
    CHECK(looked < 1 || count > 0);
    CHECK(count != -EAGAIN || waits);
    CHECK(count != 0 || c->has_farewell);
    if (count > 0) {
        CHECK(c->received_count + (size_t)count <= c->sent_count);
        CHECK(memcmp(bytes, c->sent + c->received_count, (size_t)count) == 0);
        c->received_count += (size_t)count;
    }
}

static void send_bytes(struct course *c)
{
    CFStreamError error = {0, 0};
    UInt32 waits = 0;
    long before = unread(c);
    CFIndex result = session_send(c->session, (const UInt8 *)"what the client sends", 20, &waits, &error);

    if (result == -EPIPE && c->failure == 0) {
        result = -EAGAIN; /* the session has ended in this direction, and not failed */
    }
    check_result(c, result, error, before);
}

static void let_client_act(struct course *c, uint8_t what)
{
    char bytes[4096];

    if (what % 4 == 0 || !c->is_open) {
        shake_hands(c);
    } else if (what % 4 == 1) {
        send_bytes(c);
    } else if (what % 4 == 2) {
        receive(c, (what >> 2) + 1);
    } else {
        (void)session_holds_bytes(c->session);
        while (recv(c->ends[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
        }
    }
}

/* ---- all of it ---- */

/* Both sides shake hands, or come to where the server has said hello. */
static void begin(struct course *c, bool is_whole)
{
    uint8_t hello[1024];
    bool is_done = false;
    size_t length;

    for (int turns = 0; turns < 10 && !(is_done && c->is_open); turns++) {
        shake_hands(c);
        is_done = tls_forge_shake_hands(&c->forge);
        if (!is_whole) {
            length = tls_forge_take_first(&c->forge, hello, sizeof hello);
            CHECK(send(c->ends[1], hello, length, 0) == (ssize_t)length);
            tls_forge_use(&c->forge, c->forge.is_1_3 ? forge_handshake_keys : forge_no_keys);
            return;
        }
        tls_forge_flush(&c->forge);
    }
    CHECK(is_done && c->is_open);
    tls_forge_use(&c->forge, forge_application_keys);
}

static void take_step(struct course *c)
{
    uint8_t what = take_byte(c);
    size_t count;

    switch (what % 8) {
    case 0:
        send_any(c);
        break;
    case 1:
        send_message(c, take_byte(c), take_byte(c));
        break;
    case 2:
        send_known_message(c);
        break;
    case 3:
        send_new_keys(c);
        break;
    case 4:
        send_tickets(c, what >> 3);
        break;
    case 5:
        send_record(c, forge_alert, take_bytes(c, 2, &count), count, 0);
        break;
    case 6:
        send_data(c, c->bytes, what >> 3 < c->size ? what >> 3 : c->size);
        break;
    default:
        let_client_act(c, what >> 3);
        break;
    }
}

static CFDictionaryRef create_settings(void)
{
    CFTypeRef keys[] = {kCFStreamSSLValidatesCertificateChain, kCFStreamSSLPeerName};
    CFTypeRef values[] = {kCFBooleanFalse, kCFNull};

    return CFDictionaryCreate(NULL, keys, values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct course c;
    CFDictionaryRef settings = create_settings();
    CFStreamError error;
    uint8_t start;
    long before;

    memset(&c, 0, sizeof c);
    c.bytes = bytes;
    c.size = size;
    start = take_byte(&c);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, c.ends) == 0);
    c.session = session_create(c.ends[0], NULL, settings, &error);
    CHECK(c.session);
    tls_forge_create(&c.forge, start & 1 ? TLS1_3_VERSION : TLS1_2_VERSION, c.ends[1]);
    begin(&c, start & 6);
    for (int steps = 0; steps < most_steps && c.size > 0; steps++) {
        take_step(&c);
    }
    let_client_act(&c, 2);
    before = unread(&c);
    session_free(c.session);
    CHECK(before - unread(&c) <= most_of_closing);
    tls_forge_free(&c.forge);
    close(c.ends[0]);
    close(c.ends[1]);
    CFRelease(settings);
    return 0;
}
