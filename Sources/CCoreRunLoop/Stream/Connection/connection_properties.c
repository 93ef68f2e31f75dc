/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a socket's streams. See connection_properties.h. */
#include "Stream/Connection/connection_properties.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "CFNetwork/CFSocketStream.h"
#include "Support/fault.h"
#include "Support/locked_read.h"

/* The numeric address of the peer, or NULL. */
static CFStringRef copy_peer(int descriptor, UInt32 *ret_port)
{
    struct kernel_address address;
    const struct sockaddr *peer = (const struct sockaddr *)(const void *)address.bytes;
    char text[NI_MAXHOST];

    *ret_port = 0;
    if (descriptor < 0 || kernel.socket_address(descriptor, true, &address) < 0 || address.length == 0) {
        return NULL;
    }
    if (peer->sa_family == AF_INET) {
        *ret_port = ntohs(((const struct sockaddr_in *)(const void *)peer)->sin_port);
    } else if (peer->sa_family == AF_INET6) {
        *ret_port = ntohs(((const struct sockaddr_in6 *)(const void *)peer)->sin6_port);
    } else {
        return NULL;
    }
    if (getnameinfo(peer, (socklen_t)address.length, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0) {
        return NULL;
    }
    return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

static CFTypeRef copy_remote(struct stream_connection *c, int descriptor, bool is_port)
{
    UInt32 port = c->port;
    CFStringRef host = c->host ? CFRetain(c->host) : copy_peer(descriptor, &port);
    SInt32 number = (SInt32)port;

    if (!is_port || !host) {
        return host;
    }
    CFRelease(host);
    return CFNumberCreate(NULL, kCFNumberSInt32Type, &number);
}

static CFTypeRef copy_limit(struct stream_connection *c)
{
    double seconds;

    connection_lock(c);
    seconds = (double)c->limit_ns / 1e9;
    connection_unlock(c);
    return seconds > 0 ? CFNumberCreate(NULL, kCFNumberDoubleType, &seconds) : NULL;
}

/* Returns false if it is no number of seconds, or opening has begun. */
static bool set_limit(struct stream_connection *c, CFTypeRef value)
{
    const double longest_s = 1e9;
    double seconds = -1;
    bool is_set;

    if (!value || CFGetTypeID(value) != CFNumberGetTypeID() || !CFNumberGetValue(value, kCFNumberDoubleType, &seconds) ||
        !(seconds >= 0 && seconds <= longest_s)) {
        return false;
    }
    connection_lock(c);
    is_set = c->state == connection_idle;
    if (is_set) {
        c->limit_ns = (int64_t)(seconds * 1e9) + (seconds > 0);
    }
    connection_unlock(c);
    return is_set;
}

CFTypeRef connection_copy_property(struct stream *s, CFStringRef name)
{
    struct stream_connection *c = connection_of(s);
    void *session;
    int descriptor = connection_socket(c, &session);

    if (CFEqual(name, kCFStreamPropertySocketNativeHandle)) {
        return descriptor < 0 ? NULL : CFDataCreate(NULL, (const UInt8 *)&descriptor, sizeof descriptor);
    }
    if (CFEqual(name, kCFStreamPropertyShouldCloseNativeSocket)) {
        return CFRetain(locked_read_bool(item_lock(c), &c->closes) ? kCFBooleanTrue : kCFBooleanFalse);
    }
    if (CFEqual(name, kCFStreamPropertySocketRemoteHostName) || CFEqual(name, kCFStreamPropertySocketRemotePortNumber)) {
        return copy_remote(c, descriptor, CFEqual(name, kCFStreamPropertySocketRemotePortNumber));
    }
    if (CFEqual(name, kCRLStreamPropertyOpeningTimeout)) {
        return copy_limit(c);
    }
    return session ? connection_network()->copyProperty(session, name) : NULL;
}

static bool set_closes(struct stream_connection *c, CFTypeRef value)
{
    if (!value || CFGetTypeID(value) != CFBooleanGetTypeID()) {
        return false;
    }
    connection_lock(c);
    c->closes = CFBooleanGetValue(value);
    connection_unlock(c);
    return true;
}

/* Keeps what TLS needs to know, or, without TLS, has the connection refuse to open. False also if it has begun. NULL: in the clear. */
static bool set_security(struct stream_connection *c, CFDictionaryRef security)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const CRLStreamNetwork *network = connection_network();
    bool can_be_had = !security || (network && network->createSession);
    CFDictionaryRef old;
    bool is_idle;

    connection_lock(c);
    is_idle = c->state == connection_idle;
    old = c->security;
    if (is_idle) {
        c->is_refused |= !can_be_had;
        c->security = can_be_had ? security : NULL;
    }
    connection_unlock(c);
    if (is_idle && old) {
        CFRelease(old);
    }
    if (security && !(is_idle && can_be_had)) {
        CFRelease(security);
    }
    if (!can_be_had) {
        fault_log_once(&logged, "a stream is to have TLS: link libcorerunloop-net (pkg-config corerunloop-net)");
    }
    return is_idle && can_be_had;
}

/* Without memory false is returned, and the connection refuses to open. */
static bool set_level(struct stream_connection *c, CFTypeRef level)
{
    const void *key = kCFStreamPropertySocketSecurityLevel;
    CFDictionaryRef security;

    if (!level || CFGetTypeID(level) != CFStringGetTypeID()) {
        return false;
    }
    if (CFEqual(level, kCFStreamSocketSecurityLevelNone)) {
        return set_security(c, NULL);
    }
    security = CFDictionaryCreate(NULL, &key, &level, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    if (!security) {
        connection_lock(c);
        c->is_refused = true;
        connection_unlock(c);
        return false;
    }
    return set_security(c, security);
}

bool connection_set_property(struct stream *s, CFStringRef name, CFTypeRef value)
{
    struct stream_connection *c = connection_of(s);

    if (CFEqual(name, kCFStreamPropertyShouldCloseNativeSocket)) {
        return set_closes(c, value);
    }
    if (CFEqual(name, kCRLStreamPropertyOpeningTimeout)) {
        return set_limit(c, value);
    }
    if (CFEqual(name, kCFStreamPropertySocketSecurityLevel)) {
        return set_level(c, value);
    }
    if (CFEqual(name, kCFStreamPropertySSLSettings)) {
        return value && CFGetTypeID(value) == CFDictionaryGetTypeID() && set_security(c, CFRetain(value));
    }
    if (CFEqual(name, kCFStreamPropertySOCKSProxy) && value) {
        connection_lock(c);
        c->is_refused = true; /* a direct connection would go round the proxy */
        connection_unlock(c);
    }
    return false;
}
