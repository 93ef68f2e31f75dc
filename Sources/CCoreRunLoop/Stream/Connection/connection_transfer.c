/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the bytes of an open connection: reading, writing, and the looks by which a loop finds out what there is to tell. See
 * connection_transfer.h.
 */
#include "Stream/Connection/connection_transfer.h"

#include <errno.h>
#include <limits.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Support/locked_read.h"

/* ---- how a connection ends ---- */

/*
 * The kernel tells the error of a connection once, to whoever asks first. The connection keeps it for the reader. Without it, the reader
 * would take a connection that broke for one that the peer has ended. A writer holds the lock over a call that may take the error. So a
 * reader that finds the end, and then takes the lock, sees the error that the call has taken. These calls do not wait.
 */
REQUIRES(the_item_lock) static void note_error(struct stream_connection *c, CFIndex result)
{
    invariant(result < 0);
    if (c->broken == 0) {
        c->broken = (int)-result;
    }
}

static int keep_error(struct stream_connection *c, int result)
{
    connection_lock(c);
    note_error(c, result);
    connection_unlock(c);
    return result;
}

/* At the end of the bytes: 0 if the peer has ended the connection, a negative errno if it broke. */
static int end_of_bytes(struct stream_connection *c)
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

/* Whether a call that sends has taken the error of the connection. EPIPE is none: what the peer has sent can still be read. */
static bool is_error_of_connection(CFIndex result)
{
    return result < 0 && result != -EAGAIN && result != -EINTR && result != -EPIPE;
}

static CFIndex send_once(struct stream *s, int descriptor, void *session, const UInt8 *bytes, CFIndex size, uint32_t *ret_waits)
{
    struct stream_connection *c = connection_of(s);
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

/* The kernel does not report bytes that the session holds. `is_ready` has the loop look for them. */
static void note_held_bytes(struct stream *s, void *session)
{
    if (session) {
        atomic_store_explicit(&s->is_ready, connection_network()->holdsBytes(session), memory_order_release);
    }
}

CFIndex connection_read(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    struct stream_connection *c = connection_of(s);
    uint32_t waits;
    void *session;
    int descriptor = connection_socket(c, &session);
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

CFIndex connection_write(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    uint32_t waits;
    void *session;
    int descriptor = connection_socket(connection_of(s), &session);
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

/* Returns the event, or a negative errno. `peeked` is the number of bytes that were found, 0 at the end, or a negative errno. */
static int event_of_look(struct stream_connection *c, int peeked)
{
    if (peeked > 0) {
        return kCFStreamEventHasBytesAvailable;
    }
    if (peeked == -EAGAIN) {
        return 0; /* the report was out of date, or only a part of a record has come */
    }
    if (peeked == 0) {
        peeked = end_of_bytes(c);
        return peeked < 0 ? peeked : kCFStreamEventEndEncountered;
    }
    return keep_error(c, peeked);
}

/* A part of a record makes the socket readable, and reading would wait for the rest. So the session is asked, whatever is ready. */
static int look_at_session(struct stream *s, struct stream_connection *c, void *session)
{
    CFIndex peeked = connection_network()->look(session, &s->refusal);

    atomic_store_explicit(&s->is_ready, peeked > 0, memory_order_release);
    return event_of_look(c, peeked > 0 ? 1 : (int)peeked);
}

static int look_at_reader(struct stream_connection *c, int descriptor, uint32_t ready)
{
    if (ready & (kernel_ended | kernel_failed)) { /* what the peer has sent may still be unread */
        return event_of_look(c, kernel.socket_peek(descriptor));
    }
    return ready & kernel_readable ? kCFStreamEventHasBytesAvailable : 0;
}

/* After a hang-up without an error, the next write returns EPIPE. */
static int look_at_writer(struct stream_connection *c, int descriptor, uint32_t ready)
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

int connection_look(struct stream *s, uint32_t ready)
{
    struct stream_connection *c = connection_of(s);
    void *session;
    int descriptor = connection_socket(c, &session);

    if (session && stream_is_reader(s)) {
        return look_at_session(s, c, session);
    }
    if (!ready) {
        ready = kernel.descriptor_ready(descriptor, stream_is_reader(s) ? kernel_readable : kernel_writable);
    }
    return stream_is_reader(s) ? look_at_reader(c, descriptor, ready) : look_at_writer(c, descriptor, ready);
}
