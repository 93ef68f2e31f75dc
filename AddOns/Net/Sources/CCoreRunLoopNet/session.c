/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. Threads: any. OpenSSL's queue of errors belongs to the thread, and is left empty. */
#include "session.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "CFNetwork/CFSocketStream.h"
#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFError.h"
#include "Support/invariant.h"
#include "plain_lock.h"
#include "security_settings.h"
#include "socket_bio.h"
#include "tls_error.h"

struct session {
    struct plain_lock lock;
    SSL *ssl GUARDED_BY(the_plain_lock);
    CFDictionaryRef settings; /* a reference; constant */
    struct socket_bio_state bio GUARDED_BY(the_plain_lock); /* its socket is constant */
    size_t written GUARDED_BY(the_plain_lock); /* the program's bytes that OpenSSL has taken, and session_send has not answered for yet */
    CFIndex failure GUARDED_BY(the_plain_lock); /* what every call returns from now on; 0: none yet */
    CFStreamError error GUARDED_BY(the_plain_lock); /* with the failure -EPROTO */
    CFStringRef reason GUARDED_BY(the_plain_lock); /* of the error, in words; a reference, or NULL */
    bool is_open GUARDED_BY(the_plain_lock); /* the handshake is done */
};

/*
 * What a call may read of the socket. OpenSSL goes on while the peer sends what is no data, such as new keys, so that without a bound a
 * peer would hold the loop. A call that stops here returns -EAGAIN, and the kernel reports the rest. There is room for a whole record.
 */
enum { most_bytes_a_call = 17408, most_bytes_dropped = 32768 };

/* ---- what OpenSSL answers ---- */

/* Keeps the failure. An error of the socket comes before one of TLS; without any of them the peer has closed the connection too early. */
REQUIRES(the_plain_lock) static CFIndex record_failure(struct session *session, int ssl_error)
{
    invariant(session->failure == 0);
    session->failure = -EPROTO;
    if (session->bio.error) {
        session->failure = -session->bio.error;
        ERR_clear_error();
    } else if (ssl_error == SSL_ERROR_SSL) {
        session->error = tls_error_take(session->ssl, session->is_open, &session->reason);
    } else {
        session->error = tls_error(session->is_open ? errSSLClosedNoNotify : errSSLClosedAbort);
        ERR_clear_error();
    }
    invariant(session->failure < 0);
    return session->failure;
}

/* What a call of OpenSSL means that was no success and returned `result`: 0 at the end of the peer's bytes, or an error below 0. */
REQUIRES(the_plain_lock) static CFIndex take_outcome(struct session *session, int result, UInt32 *waits)
{
    int ssl_error = SSL_get_error(session->ssl, result);

    invariant(session->failure == 0 && result <= 0);
    switch (ssl_error) {
    case SSL_ERROR_WANT_READ:
        *waits = kCRLStreamWaitsToRead;
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        *waits = kCRLStreamWaitsToWrite;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return record_failure(session, ssl_error);
    }
}

/* Takes the lock for a call of OpenSSL, unless the session has failed: then `*ret_failure` is not 0. */
ACQUIRES(the_plain_lock) static int begin_call(struct session *session, CFIndex *ret_failure)
{
    int cancel_state = plain_lock_take(&session->lock);

    invariant(session->failure <= 0);
    *ret_failure = session->failure;
    session->bio.allowance = most_bytes_a_call;
    ERR_clear_error(); /* otherwise SSL_get_error could take an older error for this call's */
    return cancel_state;
}

RELEASES(the_plain_lock) static CFIndex end_call(struct session *session, int cancel_state, CFIndex result, CFStreamError *error)
{
    if (result == -EPROTO) {
        *error = session->error;
    }
    plain_lock_drop(&session->lock, cancel_state);
    return result;
}

/* ---- moving bytes ---- */

/* OpenSSL compares the protocol that the server has chosen with the offer only since 3.0.15, 3.1.7, 3.2.3 and 3.3.2. */
REQUIRES(the_plain_lock) static CFIndex end_handshake(struct session *session)
{
    const unsigned char *protocol;
    unsigned int length;

    SSL_get0_alpn_selected(session->ssl, &protocol, &length);
    if (length > 0 && !security_settings_offer(session->settings, protocol, length)) {
        session->failure = -EPROTO;
        session->error = tls_error(errSSLProtocol);
        session->reason = CFRetain(CFSTR("The peer has chosen a protocol by ALPN that was not offered"));
        return session->failure;
    }
    session->is_open = true;
    SSL_set_read_ahead(session->ssl, 1); /* not in the handshake: a thread may be waiting for the socket to bring what follows it */
    return 0;
}

int session_handshake(void *object, UInt32 *waits, CFStreamError *error)
{
    struct session *session = object;
    CFIndex outcome;
    int cancel_state = begin_call(session, &outcome);

    if (outcome == 0) {
        int result = SSL_do_handshake(session->ssl);

        if (result == 1 && !session->is_open) {
            outcome = end_handshake(session);
        } else if (result != 1) {
            outcome = take_outcome(session, result, waits);
            if (outcome == 0) { /* the peer has ended the session (close_notify) before there was one */
                session->failure = outcome = -EPROTO;
                session->error = tls_error(errSSLClosedAbort);
            }
        }
    }
    return (int)end_call(session, cancel_state, outcome, error);
}

CFIndex session_receive(void *object, UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error)
{
    struct session *session = object;
    CFIndex outcome;
    int cancel_state = begin_call(session, &outcome);

    if (outcome == 0) {
        size_t count;
        int result = SSL_read_ex(session->ssl, bytes, (size_t)size, &count);

        invariant(result != 1 || count <= (size_t)size);
        outcome = result == 1 ? (CFIndex)count : take_outcome(session, result, waits);
    }
    return end_call(session, cancel_state, outcome, error);
}

/* Has OpenSSL make a record, which the BIO sends or holds. Returns 0, or an error below 0. */
REQUIRES(the_plain_lock) static CFIndex write_record(struct session *session, const UInt8 *bytes, size_t size, UInt32 *waits)
{
    CFIndex outcome;
    int result;

    session->bio.may_hold = true;
    result = SSL_write_ex(session->ssl, bytes, size, &session->written);
    session->bio.may_hold = false;
    if (result == 1) {
        return 0;
    }
    session->written = 0;
    outcome = take_outcome(session, result, waits);
    return outcome == 0 ? -EPIPE : outcome; /* this side has ended the session */
}

/* The bytes count as sent when the socket has taken all of their record. Until then the caller comes again with the same. */
CFIndex session_send(void *object, const UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error)
{
    struct session *session = object;
    CFIndex outcome;
    int cancel_state = begin_call(session, &outcome);

    if (outcome == 0 && session->written == 0) {
        outcome = write_record(session, bytes, (size_t)size, waits);
    }
    if (outcome == 0) {
        outcome = socket_bio_send_held(&session->bio);
        *waits = kCRLStreamWaitsToWrite;
        if (outcome == 0) {
            invariant(session->written <= (size_t)size);
            outcome = (CFIndex)session->written;
            session->written = 0;
        } else if (outcome != -EAGAIN) {
            outcome = record_failure(session, SSL_ERROR_SYSCALL);
        }
    }
    return end_call(session, cancel_state, outcome, error);
}

CFIndex session_look(void *object, CFStreamError *error)
{
    struct session *session = object;
    CFIndex outcome;
    int cancel_state = begin_call(session, &outcome);

    if (outcome == 0) {
        UInt32 waits;
        UInt8 byte;
        size_t count;
        int result = SSL_peek_ex(session->ssl, &byte, 1, &count);

        outcome = result == 1 ? 1 : take_outcome(session, result, &waits);
    }
    return end_call(session, cancel_state, outcome, error);
}

Boolean session_holds_bytes(void *object)
{
    struct session *session = object;
    int cancel_state = plain_lock_take(&session->lock);
    bool may_hold = SSL_pending(session->ssl) > 0 || (SSL_has_pending(session->ssl) && !session->bio.is_read_out);
    bool holds = session->failure == 0 && may_hold;

    plain_lock_drop(&session->lock, cancel_state);
    return holds;
}

/* ---- properties ---- */

static CFStringRef copy_protocol(const SSL *ssl)
{
    const unsigned char *bytes;
    unsigned int length;

    SSL_get0_alpn_selected(ssl, &bytes, &length);
    return length > 0 ? CFStringCreateWithBytes(kCFAllocatorSystemDefault, bytes, (CFIndex)length, kCFStringEncodingUTF8, false) : NULL;
}

/* Adds the certificate's bytes. Returns false without memory. */
static bool append_certificate(CFMutableArrayRef certificates, const X509 *certificate)
{
    CFIndex before = CFArrayGetCount(certificates);
    unsigned char *bytes = NULL;
    int length = i2d_X509(certificate, &bytes);
    CFDataRef data = length > 0 ? CFDataCreate(kCFAllocatorSystemDefault, bytes, length) : NULL;

    OPENSSL_free(bytes);
    if (data) {
        CFArrayAppendValue(certificates, data);
        CFRelease(data);
    }
    return CFArrayGetCount(certificates) > before;
}

/* On a client the chain begins with the peer's own certificate; on a server it does not contain it. */
static CFArrayRef copy_certificates(const SSL *ssl)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
    const X509 *own = SSL_is_server(ssl) ? SSL_get0_peer_certificate(ssl) : NULL;
    CFMutableArrayRef certificates;
    bool is_whole;

    if (!own && sk_X509_num(chain) <= 0) {
        return NULL;
    }
    certificates = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    is_whole = certificates && (!own || append_certificate(certificates, own));
    for (int i = 0; is_whole && i < sk_X509_num(chain); i++) {
        is_whole = append_certificate(certificates, sk_X509_value(chain, i));
    }
    if (certificates && !is_whole) {
        CFRelease(certificates);
    }
    return is_whole ? certificates : NULL;
}

CFTypeRef session_copy_property(void *object, CFStringRef name)
{
    struct session *session = object;
    CFTypeRef value = NULL;
    int cancel_state = plain_lock_take(&session->lock);

    if (CFEqual(name, kCFErrorLocalizedFailureReasonKey)) {
        value = session->reason ? CFRetain(session->reason) : NULL;
    } else if (CFEqual(name, kCFStreamPropertySSLPeerCertificates)) {
        value = copy_certificates(session->ssl);
    } else if (CFEqual(name, kCRLStreamPropertySSLProtocol)) {
        value = copy_protocol(session->ssl);
    } else if (CFEqual(name, kCRLStreamPropertySSLVersion) && session->is_open) {
        value = CFStringCreateWithCString(kCFAllocatorSystemDefault, SSL_get_version(session->ssl), kCFStringEncodingASCII);
    }
    ERR_clear_error();
    plain_lock_drop(&session->lock, cancel_state);
    return value;
}

/* ---- making and ending ---- */

/* Nobody else knows the session yet (NOT_CHECKED). */
NOT_CHECKED static bool prepare_session(struct session *session, CFStringRef host, CFDictionaryRef settings, CFStreamError *error)
{
    BIO *bio;

    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); /* exit must not free what other threads' sessions still use */
    bio = socket_bio_create(&session->bio);
    session->ssl = bio ? security_settings_create(host, settings, error) : NULL;
    if (!session->ssl) {
        BIO_free(bio);
        return false;
    }
    SSL_set_bio(session->ssl, bio, bio); /* takes the reference */
    return true;
}

NOT_CHECKED void *session_create(int socket, CFStringRef host, CFDictionaryRef settings, CFStreamError *error)
{
    struct session *session = calloc(1, sizeof *session);
    bool is_ready;
    int cancel_state;

    *error = (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
    if (!session) {
        return NULL;
    }
    plain_lock_init(&session->lock);
    session->settings = CFRetain(settings);
    session->bio.socket = socket;
    cancel_state = fork_gate_enter();
    is_ready = prepare_session(session, host, settings, error);
    ERR_clear_error();
    fork_gate_leave(cancel_state);
    if (!is_ready) {
        CFRelease(session->settings);
        plain_lock_destroy(&session->lock);
        free(session);
        return NULL;
    }
    return session;
}

/*
 * Reads what the peer has sent and nobody has read, such as session tickets. Closing a socket with unread bytes resets the connection, and
 * then the peer may lose what was sent to it last.
 */
REQUIRES(the_plain_lock) static void drop_unread(struct session *session)
{
    UInt8 bytes[16384];
    size_t count;

    session->bio.allowance = most_bytes_dropped;
    while (SSL_read_ex(session->ssl, bytes, sizeof bytes, &count) == 1) {
    }
}

/* Sends close_notify if the socket has room for it. The streams are closed, so no other thread uses the session (NOT_CHECKED). */
NOT_CHECKED void session_free(void *object)
{
    struct session *session = object;
    int cancel_state = plain_lock_take(&session->lock);

    if (session->is_open && session->failure == 0) {
        (void)SSL_shutdown(session->ssl);
        drop_unread(session);
    }
    SSL_free(session->ssl);
    free(session->bio.held);
    ERR_clear_error();
    if (session->reason) {
        CFRelease(session->reason);
    }
    plain_lock_drop(&session->lock, cancel_state);
    CFRelease(session->settings);
    plain_lock_destroy(&session->lock);
    free(session);
}
