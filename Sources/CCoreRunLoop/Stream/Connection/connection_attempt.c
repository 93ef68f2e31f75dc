/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_attempt.h. Only calls of the kernel that do not wait are made under the lock, and none of the add-on library. */
#include "Stream/Connection/connection_attempt.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Stream/Connection/connection_race.h"
#include "Stream/Core/stream_events.h"
#include "Stream/Core/stream_schedule.h"
#include "Support/fault.h"

/* ---- the add-on library ---- */

static _Atomic(const CRLStreamNetwork *) network;

const CRLStreamNetwork *connection_network(void)
{
    return atomic_load_explicit(&network, memory_order_acquire);
}

void CRLStreamSetNetwork(const CRLStreamNetwork *installed)
{
    const CRLStreamNetwork *none = NULL;

    (void)atomic_compare_exchange_strong_explicit(&network, &none, installed, memory_order_acq_rel, memory_order_relaxed);
}

/* ---- telling the streams ---- */

/* Returns a stream of the connection with a reference, or NULL; and the descriptor. */
EXCLUDES(the_item_lock) static struct stream *retain_end(struct stream_connection *c, enum connection_end end, int *ret_descriptor)
{
    struct stream *s;

    connection_lock(c);
    s = c->ends[end] && object_try_retain(c->ends[end]) ? c->ends[end] : NULL;
    *ret_descriptor = c->watched;
    connection_unlock(c);
    return s;
}

void connection_tell(struct stream_connection *c, const struct stream *except)
{
    struct stream *ends[connection_end_count];
    bool is_secured;
    int descriptor;

    for (enum connection_end end = connection_reader; end < connection_end_count; end++) {
        ends[end] = retain_end(c, end, &descriptor);
    }
    is_secured = connection_is_secured(c);
    for (enum connection_end end = connection_reader; end < connection_end_count; end++) {
        if (ends[end] && ends[end] != except) {
            atomic_store_explicit(&ends[end]->opening_interest, kernel_writable, memory_order_relaxed); /* until it has looked itself */
            if (is_secured) {
                atomic_store_explicit(&ends[end]->is_ready, true, memory_order_release); /* and it looks, if it is open */
            }
            stream_schedule_descriptor_changed(ends[end], descriptor);
            stream_events_nudge(ends[end]);
        }
    }
    for (enum connection_end end = connection_reader; end < connection_end_count; end++) {
        if (ends[end]) {
            object_release(ends[end]); /* the last one frees the connection */
        }
    }
}

/* The program's socket is taken to be connected already. */
REQUIRES(the_item_lock) static void look_at_given_socket(struct stream_connection *c)
{
    int type = kernel.socket_type(c->descriptor);

    if (type < 0) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, -type);
    } else {
        c->state = c->security ? connection_shaking_hands : connection_open;
    }
}

/* ---- names ---- */

static void resolved(void *context, CFArrayRef addresses, CFStreamError error)
{
    struct stream_connection *c = context;

    connection_lock(c);
    if (c->state == connection_resolving) {
        if (addresses && CFArrayGetCount(addresses) > 0) {
            c->addresses = CFRetain(addresses);
            c->state = connection_connecting;
            race_advance(c);
        } else {
            connection_fail(c, error.domain ? error.domain : kCFStreamErrorDomainPOSIX, error.domain ? error.error : EADDRNOTAVAIL);
        }
    }
    race_settle(c);
    connection_unlock(c);
    connection_tell(c, NULL);
}

/* Has loops drive the query in the modes of the streams. */
EXCLUDES(the_item_lock) static void schedule_query(struct stream_connection *c, void *query)
{
    for (enum connection_end end = connection_reader; end < connection_end_count; end++) {
        int descriptor;
        struct stream *s = retain_end(c, end, &descriptor);

        if (s) {
            scheduled_modes_each(s, &s->modes, connection_network()->scheduleQuery, query);
            object_release(s);
        }
    }
}

/* Asks the add-on library for the addresses. The state was set to resolving by this thread. */
EXCLUDES(the_item_lock) static void begin_query(struct stream_connection *c)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const CRLStreamNetwork *installed = connection_network();
    bool can_resolve = installed && installed->resolve;
    void *query = can_resolve ? installed->resolve(c->host, c->port, resolved, c) : NULL;
    bool drives_query = query && connection_drives_query(installed);

    connection_lock(c);
    c->query = query;
    c->has_begun = query;
    if (drives_query && c->watches_set && race_watch(c, installed->queryDescriptor(query), kernel_readable) < 0) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, ENOMEM);
    } else if (!query) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, can_resolve ? ENOMEM : ENOSYS);
    }
    connection_unlock(c);
    if (!can_resolve) {
        fault_log_once(&logged, "a stream connects to a host by name: link libcorerunloop-net (pkg-config corerunloop-net)");
    }
    if (query && !drives_query) {
        schedule_query(c, query);
    }
}

/* Goes on with the query, if connections drive it and the name is not resolved yet. */
EXCLUDES(the_item_lock) static void advance_query(struct stream_connection *c)
{
    void *query = NULL;

    connection_lock(c);
    if (c->state == connection_resolving && c->query && connection_drives_query(connection_network())) {
        query = c->query;
        c->query_uses++;
    }
    connection_unlock(c);
    if (query) {
        connection_network()->advanceQuery(query);
        connection_lock(c);
        c->query_uses--;
        connection_unlock(c);
    }
}

/* Returns the query if it is not needed any more; the caller frees it once the lock is dropped. */
REQUIRES(the_item_lock) static void *take_finished_query(struct stream_connection *c)
{
    bool is_finished = c->query && c->query_uses == 0 && c->state != connection_resolving && connection_drives_query(connection_network());
    void *query = is_finished ? c->query : NULL;

    c->query = is_finished ? NULL : c->query;
    return query;
}

/* ---- TLS ---- */

/* Makes the session. Returns it, or NULL: the connection has failed then. */
EXCLUDES(the_item_lock) static void *session_of(struct stream_connection *c)
{
    const CRLStreamNetwork *installed = connection_network();
    CFStreamError error = {0, 0};
    CFDictionaryRef security;
    int descriptor;
    void *session;

    connection_lock(c);
    session = c->session;
    descriptor = c->descriptor;
    security = c->security;
    connection_unlock(c);
    if (session) {
        return session;
    }
    session = installed->createSession(descriptor, c->host, security, &error);
    connection_lock(c);
    c->session = session;
    c->has_begun |= session != NULL;
    if (!session) {
        connection_fail(c, error.domain ? error.domain : kCFStreamErrorDomainPOSIX, error.domain ? error.error : ENOMEM);
    }
    connection_unlock(c);
    return session;
}

/* Goes on with the handshake. Only one stream at a time does so. The other one finds it under way, and is told when it is over. */
EXCLUDES(the_item_lock) static void shake_hands(struct stream_connection *c, uint32_t *ret_waits)
{
    CFStreamError error = {0, 0};
    UInt32 waits = kCRLStreamWaitsToRead;
    void *session = session_of(c);
    int result = session ? connection_network()->handshake(session, &waits, &error) : -EPROTO;

    *ret_waits = (waits & kCRLStreamWaitsToRead ? kernel_readable : 0u) | (waits & kCRLStreamWaitsToWrite ? kernel_writable : 0u);
    if (session && result != -EAGAIN) {
        connection_lock(c);
        invariant(c->state == connection_shaking_hands && c->is_shaking && c->session);
        if (result == 0) {
            c->state = connection_open;
        } else {
            connection_fail(c, error.domain ? error.domain : kCFStreamErrorDomainPOSIX, error.domain ? error.error : -result);
        }
        connection_unlock(c);
    }
}

bool connection_begin_handshake(struct stream_connection *c, void *session, CFDictionaryRef settings)
{
    bool begins;

    connection_lock(c);
    begins = c->state == connection_open && !c->session;
    if (begins) {
        invariant(!c->security);
        c->session = session;
        c->security = CFRetain(settings);
        c->state = connection_shaking_hands;
        race_limit_handshake(c);
    }
    connection_unlock(c);
    for (enum connection_end end = connection_reader; begins && end < connection_end_count; end++) {
        int descriptor;
        struct stream *s = retain_end(c, end, &descriptor);

        if (s) {
            stream_lock(s);
            s->told = 0; /* bytes and room are those of TLS from now on */
            stream_unlock(s);
            object_release(s);
        }
    }
    if (begins) {
        connection_tell(c, NULL);
    }
    return begins;
}

bool connection_resume_handshake(struct stream_connection *c, void *session)
{
    CFStreamError error;
    UInt32 waits;
    bool is_held_up = connection_network()->handshake(session, &waits, &error) != 0; /* an error is told again */
    bool resumes;

    connection_lock(c);
    resumes = is_held_up && c->state == connection_open;
    if (resumes) {
        c->state = connection_shaking_hands;
        c->limit_at_ns = kernel_never;
    }
    connection_unlock(c);
    if (resumes) {
        connection_tell(c, NULL);
    }
    return is_held_up;
}

/* ---- all of it ---- */

/* Begins the attempt. Returns true if this thread has to ask for the addresses of the name. */
REQUIRES(the_item_lock) static bool begin(struct stream_connection *c)
{
    race_set_limit(c);
    if (c->is_refused) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, EOPNOTSUPP);
    } else if (!c->is_own) {
        look_at_given_socket(c);
    } else if (c->addresses) {
        c->state = connection_connecting;
        c->has_begun = true;
    } else {
        c->state = connection_resolving;
        return true;
    }
    return false;
}

/* Takes the turn at the handshake. Returns false if the other stream has it. */
REQUIRES(the_item_lock) static bool take_turn(struct stream_connection *c)
{
    bool is_free = c->state == connection_shaking_hands && !c->is_shaking;

    c->is_shaking |= is_free;
    return is_free;
}

/* Ends a turn, and notes what has come of it. */
REQUIRES(the_item_lock) static void end_turn(struct stream_connection *c, bool shakes, uint32_t *ret_waits)
{
    bool is_pending = c->state != connection_open && c->state != connection_failed;

    c->is_shaking &= !shakes;
    if (is_pending && !c->is_shaking && c->limit_at_ns != kernel_never && kernel.monotonic_ns() >= c->limit_at_ns) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, ETIMEDOUT);
    } else if (c->state == connection_shaking_hands && shakes && c->watches_set) {
        (void)race_watch(c, c->descriptor, *ret_waits);
    }
    race_settle(c);
    if (c->watches_set) {
        *ret_waits = kernel_readable;
    }
}

int connection_advance(struct stream_connection *c, uint32_t *ret_waits, bool *ret_has_changed)
{
    enum connection_state before;
    void *finished_query;
    bool was_idle;
    bool asks = false;
    bool shakes;
    int result;

    *ret_waits = kernel_writable;
    connection_lock(c);
    before = c->state;
    was_idle = c->state == connection_idle;
    if (was_idle) {
        asks = begin(c);
    }
    if (c->state == connection_connecting) {
        race_advance(c);
    }
    race_settle(c);
    before = was_idle ? c->state : before; /* nobody else knew the state before */
    invariant(c->state != connection_open || c->descriptor >= 0);
    shakes = take_turn(c);
    connection_unlock(c);
    if (asks) {
        begin_query(c);
    }
    advance_query(c);
    if (shakes) {
        shake_hands(c, ret_waits);
    }
    connection_lock(c);
    end_turn(c, shakes, ret_waits);
    finished_query = take_finished_query(c);
    *ret_has_changed = before != c->state;
    result = c->state == connection_open ? 0 : c->state == connection_failed ? -EPROTO : -EINPROGRESS;
    connection_unlock(c);
    if (finished_query) {
        connection_network()->freeQuery(finished_query);
    }
    return result;
}

/*
 * How long a thread waits for the peer's part of a handshake before it looks again. A thread that waits with the other stream may have
 * taken what came and ended the handshake, and then nothing more may come.
 */
static const int64_t handshake_slice_ns = 10000000;

void connection_wait(struct stream_connection *c, uint32_t waits)
{
    void *query;
    int descriptor;
    bool is_shared;

    connection_lock(c);
    query = c->state == connection_resolving && !connection_drives_query(connection_network()) ? c->query : NULL;
    descriptor = c->watched;
    is_shared = c->session && c->references > 1;
    connection_unlock(c);
    if (query) {
        connection_network()->waitForQuery(query);
    } else {
        (void)kernel_ports.wait(descriptor, waits, is_shared ? kernel.monotonic_ns() + handshake_slice_ns : kernel_never);
    }
}
