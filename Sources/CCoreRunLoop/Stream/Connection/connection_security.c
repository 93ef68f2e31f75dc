/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_security.h. The settings are a copy, constant from the handshake on. No lock is held over the add-on library's calls. */
#include "Stream/Connection/connection_security.h"

#include <stdatomic.h>

#include "Stream/Connection/connection_attempt.h"
#include "Support/fault.h"

/* Has the connection refuse to open, if it has not begun to. */
static void refuse_to_open(struct stream_connection *c)
{
    connection_lock(c);
    c->is_refused = true;
    connection_unlock(c);
}

/* Keeps the settings for the attempt to connect; NULL: in the clear. Returns false if the connection is past that. */
static bool keep_settings(struct stream_connection *c, CFDictionaryRef settings)
{
    CFDictionaryRef given_up = NULL;
    bool is_kept;

    connection_lock(c);
    is_kept = c->state == connection_idle || c->state == connection_resolving || c->state == connection_connecting;
    if (is_kept) {
        given_up = c->security;
        c->security = settings ? CFRetain(settings) : NULL;
    }
    connection_unlock(c);
    object_release_if_any(given_up);
    return is_kept;
}

/* Whether the connection, which is past the attempt, has TLS with these settings; NULL: whether it is open without TLS. */
static bool has_settings(struct stream_connection *c, CFDictionaryRef settings)
{
    CFDictionaryRef security;
    bool is_plain;

    connection_lock(c);
    security = c->security;
    is_plain = c->state == connection_open && !security;
    connection_unlock(c);
    return settings ? security && CFEqual(security, settings) : is_plain;
}

/* Begins TLS on an open connection. Returns false if the settings are refused, or the connection is not open or has TLS. */
static bool begin_on_open(struct stream *s, CFDictionaryRef settings)
{
    struct stream_connection *c = connection_of(s);
    CFStreamError error;
    void *session;
    int descriptor = connection_socket(c, &session);
    void *made = session ? NULL : connection_network()->createSession(descriptor, c->host, settings, &error);

    if (!made) {
        return false;
    }
    if (!connection_begin_handshake(c, made, settings)) {
        connection_network()->freeSession(made); /* another thread was faster */
        return false;
    }
    (void)s->kind->finish_open(s, false); /* the hello; if that fails, the streams find it */
    return true;
}

/* Takes over the reference; NULL: in the clear. */
static bool set_security(struct stream *s, CFDictionaryRef settings)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct stream_connection *c = connection_of(s);
    const CRLStreamNetwork *network = connection_network();
    bool can_be_had = !settings || (network && network->createSession);
    bool is_set = can_be_had && !((struct socket_stream *)s)->has_left &&
                  (keep_settings(c, settings) || (settings && begin_on_open(s, settings)) || has_settings(c, settings));

    if (!can_be_had) {
        refuse_to_open(c);
        fault_log_once(&logged, "a stream is to have TLS: link libcorerunloop-net (pkg-config corerunloop-net)");
    }
    object_release_if_any(settings);
    return is_set;
}

/* As set_security. NULL: there was no memory, so that the connection refuses to open as well. */
static bool set_made_security(struct stream *s, CFDictionaryRef made)
{
    if (!made) {
        refuse_to_open(connection_of(s));
    }
    return made && set_security(s, made);
}

bool connection_set_level(struct stream *s, CFTypeRef level)
{
    const void *key = kCFStreamPropertySocketSecurityLevel;

    if (!level || CFGetTypeID(level) != CFStringGetTypeID()) {
        return false;
    }
    if (CFEqual(level, kCFStreamSocketSecurityLevelNone)) {
        return set_security(s, NULL);
    }
    return set_made_security(s,
                             CFDictionaryCreate(NULL, &key, &level, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks));
}

bool connection_set_settings(struct stream *s, CFTypeRef settings)
{
    if (!settings || CFGetTypeID(settings) != CFDictionaryGetTypeID()) {
        return false;
    }
    return set_made_security(s, CFDictionaryCreateCopy(NULL, settings));
}
