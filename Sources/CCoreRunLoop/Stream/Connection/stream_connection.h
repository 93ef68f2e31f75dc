/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket that a read and a write stream share, from its making to its end, and the streams on it. connection_attempt.h opens it,
 * connection_transfer.h moves bytes, connection_security.h asks for TLS, connection_properties.h tells about it.
 *
 * The socket is either the program's or the library's own. The library makes its own when the first stream is opened, and tries the
 * addresses of the peer one after the other under one number, which loops watch. The addresses are given at creation, or the add-on library
 * finds them for a name.
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

enum connection_end { connection_reader, connection_writer, connection_end_count };

/* The item lock of the connection guards the fields that change; the others are constant once a stream is known to others. */
struct stream_connection {
    struct stream *ends[connection_end_count] GUARDED_BY(the_item_lock); /* weak references; NULL: freed or never made */
    uint32_t references GUARDED_BY(the_item_lock); /* streams */
    uint32_t unclosed GUARDED_BY(the_item_lock); /* streams that are neither closed nor freed; the last one closes the socket */
    enum connection_state state GUARDED_BY(the_item_lock);
    CFStreamError error GUARDED_BY(the_item_lock); /* why the connection, or the last address that was tried, has failed */
    int broken GUARDED_BY(the_item_lock); /* the errno that ended an open connection, which the kernel tells only once; 0: none */
    int descriptor GUARDED_BY(the_item_lock); /* -1: none yet, or closed */
    bool closes GUARDED_BY(the_item_lock);
    bool is_refused GUARDED_BY(the_item_lock); /* a proxy or security was asked for that cannot be had */
    CFArrayRef addresses GUARDED_BY(the_item_lock); /* a reference, or NULL: not known yet */
    CFIndex next_address GUARDED_BY(the_item_lock); /* the index of the address to try next */
    void *query GUARDED_BY(the_item_lock); /* the add-on library's; NULL: none */
    CFDictionaryRef security GUARDED_BY(the_item_lock); /* a reference, or NULL: in the clear; constant from the handshake on */
    void *session GUARDED_BY(the_item_lock); /* the add-on library's; constant from the handshake on; NULL: none yet */
    bool is_shaking GUARDED_BY(the_item_lock); /* a thread goes on with the handshake */
    CFStringRef host; /* a reference, or NULL */
    UInt32 port;
    SInt32 type; /* of a socket that the library makes, as the protocol */
    SInt32 protocol;
    bool is_own; /* the library makes the socket */
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

/* The arguments of connection_create_streams. */
struct connection_terms {
    int descriptor; /* the program's; -1: the library makes the socket */
    SInt32 type; /* of a socket that it makes, as the protocol */
    SInt32 protocol;
    CFArrayRef addresses; /* NULL: none are known yet */
    CFStringRef host; /* NULL: none */
    UInt32 port;
};

/* Makes the streams of a new connection. A NULL pointer makes none. Returns false, and NULL for both, if there is no memory. */
bool connection_create_streams(CFAllocatorRef allocator, const struct connection_terms *terms, struct stream **ret_reader,
                               struct stream **ret_writer);

#endif
