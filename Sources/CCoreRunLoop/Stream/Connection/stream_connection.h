/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket that a read and a write stream share, from its making to its end, and the streams on it. connection_attempt.h opens it,
 * connection_transfer.h moves bytes, connection_security.h asks for TLS, connection_properties.h tells about it.
 *
 * The socket is either the program's or the library's own. The library makes its own when the first stream is opened, by a race of attempts
 * at the addresses of the peer: connection_race.h. The addresses are given at creation, or the add-on library finds them for a name.
 */
#ifndef CRL_STREAM_STREAM_CONNECTION_H
#define CRL_STREAM_STREAM_CONNECTION_H

#include "Stream/link_names.h"

#include "CRLStreamNetwork.h"
#include "Kernel/kernel.h"
#include "Stream/Core/stream.h"

enum connection_state {
    connection_idle,
    connection_resolving, /* the add-on library looks for the addresses of a name */
    connection_connecting,
    connection_shaking_hands, /* TLS; streams may be open by then, if it began late */
    connection_open,
    connection_failed,
};

enum { race_most_attempts = 8 };

/* The attempts to connect. See connection_race.h. */
struct connection_race {
    int attempts[race_most_attempts]; /* sockets, the oldest first */
    uint32_t count; /* of attempts under way */
    CFIndex next[2]; /* the indices of the addresses to try next, of the first address's family and of the others */
    bool turn; /* which of the two is next */
    int64_t step_at_ns; /* when the next attempt begins if none has failed before */
    int alarm; /* -1: none */
};

enum connection_end { connection_reader, connection_writer, connection_end_count };

/* The item lock of the connection guards the fields that change; the others are constant once a stream is known to others. */
struct stream_connection {
    struct stream *ends[connection_end_count] GUARDED_BY(the_item_lock); /* weak references; NULL: freed or never made */
    uint32_t references GUARDED_BY(the_item_lock); /* streams */
    uint32_t unclosed GUARDED_BY(the_item_lock); /* streams that are neither closed nor freed; the last one closes the socket */
    enum connection_state state GUARDED_BY(the_item_lock);
    CFStreamError error GUARDED_BY(the_item_lock); /* why the connection, or the last address that was tried, has failed */
    int broken GUARDED_BY(the_item_lock); /* the errno that ended an open connection, which the kernel tells only once; 0: none */
    int descriptor GUARDED_BY(the_item_lock); /* the socket; -1: none yet, or closed */
    /* What streams watch: the wait set, and then the socket, perhaps by a second number; -1: nothing yet, or closed. */
    int watched GUARDED_BY(the_item_lock);
    bool watches_set GUARDED_BY(the_item_lock); /* `watched` is a wait set */
    int64_t limit_at_ns GUARDED_BY(the_item_lock); /* when it has failed unless it is open; kernel_never: no limit */
    struct connection_race race GUARDED_BY(the_item_lock);
    bool closes GUARDED_BY(the_item_lock);
    bool has_begun GUARDED_BY(the_item_lock); /* to ask for the name, to connect, or the handshake: the outcome is told in the background */
    bool is_refused GUARDED_BY(the_item_lock); /* a proxy or security was asked for that cannot be had */
    CFArrayRef addresses GUARDED_BY(the_item_lock); /* a reference, or NULL: not known yet */
    void *query GUARDED_BY(the_item_lock); /* the add-on library's; NULL: none */
    uint32_t query_uses GUARDED_BY(the_item_lock); /* calls of advanceQuery under way */
    CFDictionaryRef security GUARDED_BY(the_item_lock); /* a reference, or NULL: in the clear; constant from the handshake on */
    void *session GUARDED_BY(the_item_lock); /* the add-on library's; constant from the handshake on; NULL: none yet */
    bool is_shaking GUARDED_BY(the_item_lock); /* a thread goes on with the handshake */
    CFStringRef host; /* a reference, or NULL */
    UInt32 port;
    SInt32 type; /* of a socket that the library makes, as the protocol */
    SInt32 protocol;
    bool is_own; /* the library makes the socket */
    bool sets_port; /* the addresses are those of a CFHost, which have no port */
    int64_t limit_ns GUARDED_BY(the_item_lock); /* for all of opening; constant once that has begun; 0: none */
};

/* A stream of a socket. */
struct socket_stream {
    struct stream stream;
    struct stream_connection *connection; /* constant; NULL while it is made */
    bool has_left; /* the stream was closed or freed; belongs to the thread that has claimed it */
};

static inline struct stream_connection *connection_of(const struct stream *s)
{
    return ((const struct socket_stream *)s)->connection;
}

ACQUIRES(the_item_lock) static inline void connection_lock(struct stream_connection *c)
{
    lock_take(item_lock(c));
}

RELEASES(the_item_lock) static inline void connection_unlock(struct stream_connection *c)
{
    lock_drop(item_lock(c));
}

/* The connection has failed for good. */
REQUIRES(the_item_lock) static inline void connection_fail(struct stream_connection *c, CFIndex domain, int error)
{
    invariant(domain != 0);
    c->state = connection_failed;
    c->error = (CFStreamError){domain, error};
}

/* Returns the socket, or -1, and in `ret_session` the session, or NULL. The socket is constant while the connection is open. */
EXCLUDES(the_item_lock) static inline int connection_socket(struct stream_connection *c, void **ret_session)
{
    int descriptor;

    connection_lock(c);
    descriptor = c->descriptor;
    *ret_session = c->session;
    connection_unlock(c);
    return descriptor;
}

EXCLUDES(the_item_lock) static inline bool connection_is_secured(struct stream_connection *c)
{
    void *session;

    (void)connection_socket(c, &session);
    return session;
}

/* The table that the add-on library has installed, or NULL. */
const CRLStreamNetwork *connection_network(void);

/* Whether connections drive the query themselves. With a table of version 0 loops do, in the modes of the streams. */
static inline bool connection_drives_query(const CRLStreamNetwork *network)
{
    return network->version >= 1 && network->advanceQuery && network->queryDescriptor;
}

/* The arguments of connection_create_streams. */
struct connection_terms {
    int descriptor; /* the program's; -1: the library makes the socket */
    SInt32 type; /* of a socket that it makes, as the protocol */
    SInt32 protocol;
    CFArrayRef addresses; /* NULL: none are known yet */
    CFStringRef host; /* NULL: none */
    UInt32 port;
    bool sets_port; /* of the addresses: see struct stream_connection */
};

/* Makes the streams of a new connection. A NULL pointer makes none. Returns false, and NULL for both, if there is no memory. */
bool connection_create_streams(CFAllocatorRef allocator, const struct connection_terms *terms, struct stream **ret_reader,
                               struct stream **ret_writer);

#endif
