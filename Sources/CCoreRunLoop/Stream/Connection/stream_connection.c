/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of a socket, from their making to their end. See stream_connection.h. connection_attempt.c opens the connection,
 * connection_transfer.c moves its bytes.
 */
#include "Stream/Connection/stream_connection.h"

#include <errno.h>
#include <stdlib.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Stream/Connection/connection_attempt.h"
#include "Stream/Connection/connection_properties.h"
#include "Stream/Connection/connection_race.h"
#include "Stream/Connection/connection_transfer.h"
#include "Stream/Core/stream_schedule.h"
#include "Support/locked_read.h"

/* ---- opening ---- */

/* The error of a failed connection becomes the stream's. */
static void take_error(struct stream *s, struct stream_connection *c)
{
    connection_lock(c);
    s->refusal = c->error;
    connection_unlock(c);
}

/* Goes on with the connection. `begins`: this is the stream's first call, and it does not know the descriptor yet. */
static int advance(struct stream *s, bool begins, uint32_t *ret_waits)
{
    struct stream_connection *c = connection_of(s);
    bool has_changed;
    int result = connection_advance(c, ret_waits, &has_changed);

    atomic_store_explicit(&s->opening_interest, result == 0 ? 0 : *ret_waits, memory_order_relaxed);
    if ((begins && (result == 0 || result == -EINPROGRESS)) || has_changed) {
        stream_schedule_descriptor_changed(s, locked_read_int(item_lock(c), &c->watched));
    }
    if (has_changed) {
        connection_tell(c, s);
    }
    if (result < 0 && result != -EINPROGRESS) {
        take_error(s, c);
    } else if (result == 0 && stream_is_reader(s) && connection_is_secured(c)) {
        atomic_store_explicit(&s->is_ready, true, memory_order_release); /* the handshake may have received bytes that came after its own */
    }
    return result;
}

/* What failed before or at once fails as what fails later: finish_open tells it. Only what could not begin is told by opening itself. */
static int open_socket(struct stream *s)
{
    uint32_t waits;
    int result = advance(s, true, &waits);

    return result < 0 && locked_read_bool(item_lock(connection_of(s)), &connection_of(s)->has_begun) ? -EINPROGRESS : result;
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

/* ---- the end ---- */

/* The parts of a connection that its last stream gives back once the lock is dropped. */
struct stream_leftovers {
    void *session;
    int descriptor; /* to be closed, as the next; -1: none */
    int watched;
};

REQUIRES(the_item_lock) static void take_leftovers(struct stream_connection *c, struct stream_leftovers *ret_leftovers)
{
    invariant(c->unclosed == 0 && !c->is_shaking);
    ret_leftovers->session = c->session;
    ret_leftovers->descriptor = c->closes ? c->descriptor : -1;
    ret_leftovers->watched = c->watched != c->descriptor ? c->watched : -1;
    race_end(c);
    c->session = NULL;
    c->descriptor = c->watched = -1;
    c->watches_set = false;
    c->state = connection_failed; /* a query that is under way makes no socket any more */
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)kernel.close(descriptor);
    }
}

/* The stream was closed, or is freed without having been closed. The last stream of a connection closes the socket. */
static void leave(struct stream *s)
{
    struct socket_stream *socket_stream = (struct socket_stream *)s;
    struct stream_connection *c = socket_stream->connection;
    struct stream_leftovers leftovers = {NULL, -1, -1};

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
    close_if_open(leftovers.descriptor);
    close_if_open(leftovers.watched);
}

/* No stream refers to the connection (NOT_CHECKED). Freeing the query waits for its completion, which may be using the connection. */
NOT_CHECKED static void free_connection(struct stream_connection *c)
{
    invariant(c->references == 0 && c->unclosed == 0 && !c->session);
    if (c->query) {
        connection_network()->freeQuery(c->query);
    }
    object_release_if_any(c->addresses);
    object_release_if_any(c->security);
    object_release_if_any(c->host);
    free(c);
}

static void finalize(struct stream *s)
{
    struct stream_connection *c = connection_of(s);
    bool is_last;

    if (!c) {
        return;
    }
    leave(s);
    connection_lock(c);
    c->ends[stream_is_reader(s) ? connection_reader : connection_writer] = NULL;
    invariant(c->unclosed < c->references);
    is_last = --c->references == 0;
    connection_unlock(c);
    if (is_last) {
        free_connection(c);
    }
}

/* ---- loops of a query ---- */

/* Returns the query that loops drive, or NULL. The stream keeps the connection, and that keeps the query. */
EXCLUDES(the_item_lock) static void *query_of(const struct stream *s)
{
    struct stream_connection *c = connection_of(s);
    void *query;

    connection_lock(c);
    query = c->state == connection_resolving && c->query && !connection_drives_query(connection_network()) ? c->query : NULL;
    connection_unlock(c);
    return query;
}

static void scheduled(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    void *query = query_of(s);

    if (query) {
        connection_network()->scheduleQuery(query, loop, mode);
    }
}

static void unscheduled(struct stream *s, CFRunLoopRef loop, CFStringRef mode)
{
    void *query = query_of(s);

    if (query) {
        connection_network()->unscheduleQuery(query, loop, mode);
    }
}

static const struct stream_kind socket_kind = {
    .size = sizeof(struct socket_stream),
    .open = open_socket,
    .finish_open = finish_open,
    .read = connection_read,
    .write = connection_write,
    .write_now = connection_write_now,
    .look = connection_look,
    .close = leave,
    .finalize = finalize,
    .scheduled = scheduled,
    .unscheduled = unscheduled,
    .copy_property = connection_copy_property,
    .set_property = connection_set_property,
};

/* ---- making ---- */

/* Nobody else knows the connection yet (NOT_CHECKED), here and below. */
NOT_CHECKED static struct stream_connection *create_connection(const struct connection_terms *terms)
{
    struct stream_connection *c = calloc(1, sizeof *c);

    if (!c) {
        return NULL;
    }
    c->descriptor = terms->descriptor;
    c->watched = c->race.alarm = -1;
    c->is_own = terms->descriptor < 0;
    c->closes = c->is_own;
    c->type = terms->type;
    c->protocol = terms->protocol;
    c->addresses = terms->addresses ? CFRetain(terms->addresses) : NULL;
    c->host = terms->host ? CFRetain(terms->host) : NULL;
    c->port = terms->port;
    c->sets_port = terms->sets_port;
    return c;
}

NOT_CHECKED static bool add_stream(CFAllocatorRef allocator, struct stream_connection *c, bool is_reader, struct stream **ret_stream)
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
    struct stream_connection *c = create_connection(terms);
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
