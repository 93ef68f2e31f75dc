/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a socket: moving bytes, the end, properties. See connection.h; connection_attempt.c opens the connection. */
#include "Stream/connection.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "Kernel/kernel_ports.h"
#include "Stream/connection_attempt.h"
#include "Stream/stream_schedule.h"
#include "Support/fault.h"
#include "Support/locked_read.h"

struct socket_stream {
    struct stream stream;
    struct connection *connection; /* constant; NULL while it is made */
    bool has_left; /* the stream is closed or freed; belongs to the thread that has claimed it */
};

static struct connection *connection_of(const struct stream *s)
{
    return ((const struct socket_stream *)s)->connection;
}

/* ---- opening ---- */

/* The error of a failed connection becomes the stream's. */
static void take_error(struct stream *s, struct connection *c)
{
    connection_lock(c);
    s->refusal = c->error;
    connection_unlock(c);
}

static bool connection_is_secured(struct connection *c)
{
    bool is_secured;

    connection_lock(c);
    is_secured = c->session;
    connection_unlock(c);
    return is_secured;
}

/* Goes on with the connection. `begins`: for the first time for this stream, which does not know the descriptor yet. */
static int advance(struct stream *s, bool begins, uint32_t *ret_waits)
{
    struct connection *c = connection_of(s);
    bool has_changed;
    int result = connection_advance(c, ret_waits, &has_changed);

    atomic_store_explicit(&s->opening_interest, *ret_waits, memory_order_relaxed);
    if ((begins && (result == 0 || result == -EINPROGRESS)) || has_changed) {
        stream_schedule_descriptor_changed(s, locked_read_int(item_lock(c), &c->descriptor));
    }
    if (has_changed) {
        connection_tell(c, s);
    }
    if (result < 0 && result != -EINPROGRESS) {
        take_error(s, c);
    } else if (result == 0 && stream_is_reader(s) && connection_is_secured(c)) {
        atomic_store_explicit(&s->is_ready, true, memory_order_release); /* the handshake may have taken bytes behind it */
    }
    return result;
}

static int open_socket(struct stream *s)
{
    uint32_t waits;

    return advance(s, true, &waits);
}

static int finish_open(struct stream *s, bool waits)
{
    uint32_t awaited;
    int result = advance(s, false, &awaited);

    while (waits && result == -EINPROGRESS) {
        connection_wait(connection_of(s), awaited);
        result = advance(s, false, &awaited);
    }
    return result;
}

/* ---- how a connection ends ---- */

/*
 * The kernel tells the error of a connection once, to whoever asks first. It is kept for the reader, which would take a connection that was
 * torn off for one that has ended. A writer keeps the lock over a call that may take the error, so that a reader that finds an end looks
 * for the error behind that call. These calls do not wait.
 */
REQUIRES(the_item_lock) static void note_error(struct connection *c, CFIndex result)
{
    if (c->broken == 0) {
        c->broken = (int)-result;
    }
}

static int keep_error(struct connection *c, int result)
{
    connection_lock(c);
    note_error(c, result);
    connection_unlock(c);
    return result;
}

/* At the end of the bytes: 0 if the peer has ended the connection, a negative errno if it was torn off. */
static int end_of_bytes(struct connection *c)
{
    return -locked_read_int(item_lock(c), &c->broken);
}

/* ---- moving bytes ---- */

enum { most_at_once = INT_MAX / 2 };

static uint32_t readiness_of_waits(UInt32 waits)
{
    return (waits & kCRLStreamWaitsToRead ? kernel_readable : 0u) | (waits & kCRLStreamWaitsToWrite ? kernel_writable : 0u);
}

/* Returns 0, or a negative errno other than that of a signal. */
static int wait_for(int descriptor, uint32_t readiness)
{
    int result = kernel_ports.wait(descriptor, readiness, kernel_never);

    return result == -EINTR || result > 0 ? 0 : result;
}

/* Receives once, without waiting; -EAGAIN with `*ret_waits`. An error of TLS goes to the stream's refusal. */
static CFIndex receive_once(struct stream *s, int descriptor, void *session, UInt8 *bytes, CFIndex size, uint32_t *ret_waits)
{
    struct kernel_address peer;
    UInt32 waits = kCRLStreamWaitsToRead;
    CFIndex result;

    *ret_waits = kernel_readable;
    if (!session) {
        return kernel.socket_receive(descriptor, bytes, (size_t)size, &peer);
    }
    result = connection_network()->receive(session, bytes, size, &waits, &s->refusal);
    *ret_waits = readiness_of_waits(waits);
    return result;
}

/* Whether a call that sends has taken the error of the connection. After EPIPE, what the peer has sent can still be read. */
static bool is_error_of_connection(CFIndex result)
{
    return result < 0 && result != -EAGAIN && result != -EINTR && result != -EPIPE;
}

static CFIndex send_once(struct stream *s, int descriptor, void *session, const UInt8 *bytes, CFIndex size, uint32_t *ret_waits)
{
    struct connection *c = connection_of(s);
    UInt32 waits = kCRLStreamWaitsToWrite;
    CFIndex result;

    if (session) {
        result = connection_network()->send(session, bytes, size, &waits, &s->refusal);
        *ret_waits = readiness_of_waits(waits);
        return is_error_of_connection(result) ? keep_error(c, (int)result) : result;
    }
    *ret_waits = kernel_writable;
    connection_lock(c);
    result = kernel.socket_send(descriptor, bytes, (size_t)size, NULL, 0, 0);
    if (is_error_of_connection(result)) {
        note_error(c, result);
    }
    connection_unlock(c);
    return result;
}

/* The socket and the session of an open connection, both constant by now. */
static int socket_of(struct connection *c, void **ret_session)
{
    int descriptor;

    connection_lock(c);
    descriptor = c->descriptor;
    *ret_session = c->session;
    connection_unlock(c);
    return descriptor;
}

/* What the session holds is told by no report of the kernel: the loop then looks without one. */
static void note_held_bytes(struct stream *s, void *session)
{
    if (session) {
        atomic_store_explicit(&s->is_ready, connection_network()->holdsBytes(session), memory_order_release);
    }
}

static CFIndex read_socket(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    struct connection *c = connection_of(s);
    uint32_t waits;
    void *session;
    int descriptor = socket_of(c, &session);
    CFIndex most = size < most_at_once ? size : most_at_once;
    CFIndex result = receive_once(s, descriptor, session, bytes, most, &waits);

    while (result == -EAGAIN || result == -EINTR) {
        int waited = wait_for(descriptor, waits);

        if (waited < 0) {
            return waited;
        }
        result = receive_once(s, descriptor, session, bytes, most, &waits);
    }
    note_held_bytes(s, session);
    if (result == 0) {
        result = end_of_bytes(c);
        *ret_at_end = result == 0;
    }
    return result < 0 ? keep_error(c, (int)result) : result;
}

static CFIndex write_socket(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    uint32_t waits;
    void *session;
    int descriptor = socket_of(connection_of(s), &session);
    CFIndex most = size < most_at_once ? size : most_at_once;
    CFIndex result = send_once(s, descriptor, session, bytes, most, &waits);

    while (result == -EAGAIN || result == -EINTR) {
        int waited = result == -EINTR ? 0 : wait_for(descriptor, waits); /* there may be too little room for the kernel to report it */

        if (waited < 0) {
            return waited;
        }
        result = send_once(s, descriptor, session, bytes, most, &waits);
    }
    return result;
}

/* ---- looking ---- */

/* What a look at the bytes has found: their number, 0 at the end, or a negative errno. */
static int event_of_look(struct connection *c, int peeked)
{
    if (peeked > 0) {
        return kCFStreamEventHasBytesAvailable;
    }
    if (peeked == -EAGAIN) {
        return 0; /* the report was out of date, or of a part of a record */
    }
    if (peeked == 0) {
        peeked = end_of_bytes(c);
        return peeked < 0 ? peeked : kCFStreamEventEndEncountered;
    }
    return keep_error(c, peeked);
}

/* A part of a record makes the socket readable, and reading would wait for the rest. So the session is asked, whatever is ready. */
static int look_at_session(struct stream *s, struct connection *c, void *session)
{
    CFIndex peeked = connection_network()->look(session, &s->refusal);

    atomic_store_explicit(&s->is_ready, peeked > 0, memory_order_release);
    return event_of_look(c, peeked > 0 ? 1 : (int)peeked);
}

static int look_at_reader(struct connection *c, int descriptor, uint32_t ready)
{
    if (ready & (kernel_ended | kernel_failed)) { /* what the peer has sent may still be unread */
        return event_of_look(c, kernel.socket_peek(descriptor));
    }
    return ready & kernel_readable ? kCFStreamEventHasBytesAvailable : 0;
}

/* A hang-up without an error is told by writing: EPIPE. */
static int look_at_writer(struct connection *c, int descriptor, uint32_t ready)
{
    if (ready & kernel_error) {
        int error;

        connection_lock(c);
        error = kernel.socket_take_error(descriptor);
        if (error > 0) {
            note_error(c, -error);
        }
        connection_unlock(c);
        if (error > 0) {
            return -error;
        }
    }
    return ready & (kernel_writable | kernel_failed) ? kCFStreamEventCanAcceptBytes : 0;
}

static int look_at_socket(struct stream *s, uint32_t ready)
{
    struct connection *c = connection_of(s);
    void *session;
    int descriptor = socket_of(c, &session);

    if (session && stream_is_reader(s)) {
        return look_at_session(s, c, session);
    }
    if (!ready) {
        ready = kernel.descriptor_ready(descriptor, stream_is_reader(s) ? kernel_readable : kernel_writable);
    }
    return stream_is_reader(s) ? look_at_reader(c, descriptor, ready) : look_at_writer(c, descriptor, ready);
}

/* ---- the end ---- */

/* What the last stream of a connection gives back, without the lock. */
struct leftovers {
    void *session;
    int descriptor; /* to be closed; -1: none */
};

REQUIRES(the_item_lock) static void take_leftovers(struct connection *c, struct leftovers *ret_leftovers)
{
    ret_leftovers->session = c->session;
    ret_leftovers->descriptor = c->closes ? c->descriptor : -1;
    c->session = NULL;
    c->descriptor = -1;
    c->state = connection_failed; /* a query that is under way makes no socket any more */
}

/* The stream is closed, or freed without having been closed. The last one of the connection closes the socket. */
static void leave(struct stream *s)
{
    struct socket_stream *socket_stream = (struct socket_stream *)s;
    struct connection *c = socket_stream->connection;
    struct leftovers leftovers = {NULL, -1};

    if (socket_stream->has_left) {
        return;
    }
    socket_stream->has_left = true;
    connection_lock(c);
    invariant(c->unclosed > 0);
    if (--c->unclosed == 0) {
        take_leftovers(c, &leftovers);
    }
    connection_unlock(c);
    if (leftovers.session) {
        connection_network()->freeSession(leftovers.session);
    }
    if (leftovers.descriptor >= 0) {
        (void)kernel.close(leftovers.descriptor);
    }
}

static void release_if_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

/* No stream refers to the connection (NOT_CHECKED). Freeing the query waits for its completion, which may be using the connection. */
NOT_CHECKED static void free_connection(struct connection *c)
{
    if (c->query) {
        connection_network()->freeQuery(c->query);
    }
    release_if_any(c->addresses);
    release_if_any(c->security);
    release_if_any(c->host);
    free(c);
}

static void finalize(struct stream *s)
{
    struct connection *c = connection_of(s);
    bool is_last;

    if (!c) {
        return;
    }
    leave(s);
    connection_lock(c);
    c->ends[stream_is_reader(s) ? connection_reader : connection_writer] = NULL;
    is_last = --c->references == 0;
    connection_unlock(c);
    if (is_last) {
        free_connection(c);
    }
}

/* ---- loops of a query ---- */

static void scheduled(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct connection *c = connection_of(s);
    void *query;

    connection_lock(c);
    query = c->state == connection_resolving ? c->query : NULL;
    connection_unlock(c);
    if (query) {
        connection_network()->scheduleQuery(query, loop, mode); /* the stream keeps the connection, and that the query */
    }
}

static void unscheduled(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    struct connection *c = connection_of(s);
    void *query;

    connection_lock(c);
    query = c->state == connection_resolving ? c->query : NULL;
    connection_unlock(c);
    if (query) {
        connection_network()->unscheduleQuery(query, loop, mode);
    }
}

/* ---- properties ---- */

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

static CFTypeRef copy_remote(struct connection *c, int descriptor, bool is_port)
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

static CFTypeRef copy_property(struct stream *s, CFStringRef name)
{
    struct connection *c = connection_of(s);
    void *session;
    int descriptor = socket_of(c, &session);

    if (CFEqual(name, kCFStreamPropertySocketNativeHandle)) {
        return descriptor < 0 ? NULL : CFDataCreate(NULL, (const UInt8 *)&descriptor, sizeof descriptor);
    }
    if (CFEqual(name, kCFStreamPropertyShouldCloseNativeSocket)) {
        return CFRetain(locked_read_bool(item_lock(c), &c->closes) ? kCFBooleanTrue : kCFBooleanFalse);
    }
    if (CFEqual(name, kCFStreamPropertySocketRemoteHostName) || CFEqual(name, kCFStreamPropertySocketRemotePortNumber)) {
        return copy_remote(c, descriptor, CFEqual(name, kCFStreamPropertySocketRemotePortNumber));
    }
    return session ? connection_network()->copyProperty(session, name) : NULL;
}

static bool set_closes(struct connection *c, CFTypeRef value)
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
static bool set_security(struct connection *c, CFDictionaryRef security)
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
    if (is_idle) {
        release_if_any(old);
    }
    if (!is_idle || !can_be_had) {
        release_if_any(security);
    }
    if (!can_be_had) {
        fault_log_once(&logged, "a stream is to have TLS: link libcorerunloop-net (pkg-config corerunloop-net)");
    }
    return is_idle && can_be_had;
}

/* Without memory false is returned, and the connection refuses to open. */
static bool set_level(struct connection *c, CFTypeRef level)
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

static bool set_property(struct stream *s, CFStringRef name, CFTypeRef value)
{
    struct connection *c = connection_of(s);

    if (CFEqual(name, kCFStreamPropertyShouldCloseNativeSocket)) {
        return set_closes(c, value);
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

static const struct stream_kind socket_kind = {
    .size = sizeof(struct socket_stream),
    .open = open_socket,
    .finish_open = finish_open,
    .read = read_socket,
    .write = write_socket,
    .look = look_at_socket,
    .close = leave,
    .finalize = finalize,
    .scheduled = scheduled,
    .unscheduled = unscheduled,
    .copy_property = copy_property,
    .set_property = set_property,
};

/* ---- making ---- */

/* Nobody else knows the connection yet (NOT_CHECKED), here and below. */
NOT_CHECKED static struct connection *create_connection(const struct connection_terms *terms)
{
    struct connection *c = calloc(1, sizeof *c);

    if (!c) {
        return NULL;
    }
    c->descriptor = terms->descriptor;
    c->is_own = terms->descriptor < 0;
    c->closes = c->is_own;
    c->type = terms->type;
    c->protocol = terms->protocol;
    c->addresses = terms->addresses ? CFRetain(terms->addresses) : NULL;
    c->host = terms->host ? CFRetain(terms->host) : NULL;
    c->port = terms->port;
    return c;
}

NOT_CHECKED static bool add_stream(CFAllocatorRef allocator, struct connection *c, bool is_reader, struct stream **ret_stream)
{
    struct socket_stream *made;

    if (!ret_stream) {
        return true;
    }
    made = (struct socket_stream *)stream_create(allocator, &socket_kind, is_reader);
    *ret_stream = made ? &made->stream : NULL;
    if (!made) {
        return false;
    }
    made->connection = c;
    c->ends[is_reader ? connection_reader : connection_writer] = &made->stream;
    c->references++;
    c->unclosed++;
    return true;
}

NOT_CHECKED bool connection_create_streams(CFAllocatorRef allocator, const struct connection_terms *terms, struct stream **ret_reader,
                                           struct stream **ret_writer)
{
    struct connection *c = create_connection(terms);
    bool closes;
    bool is_made;

    if (!c) {
        return false;
    }
    closes = c->closes;
    c->closes = false; /* until both are made: a failure leaves the socket alone */
    is_made = add_stream(allocator, c, true, ret_reader) && add_stream(allocator, c, false, ret_writer);
    c->closes = closes;
    if (is_made && c->references > 0) {
        return true;
    }
    if (c->references == 0) {
        free_connection(c);
    } else {
        object_release(*ret_reader); /* frees the connection */
        *ret_reader = NULL;
    }
    return is_made;
}
