/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a socket's streams. See connection_properties.h. */
#include "Stream/Connection/connection_properties.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "CFNetwork/CFSocketStream.h"
#include "Stream/Connection/connection_security.h"
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
        return connection_set_level(s, value);
    }
    if (CFEqual(name, kCFStreamPropertySSLSettings)) {
        return connection_set_settings(s, value);
    }
    if (CFEqual(name, kCFStreamPropertySOCKSProxy) && value) {
        connection_lock(c);
        c->is_refused = true; /* a direct connection would go round the proxy */
        connection_unlock(c);
    }
    return false;
}
