/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the bytes of an open connection: reading, writing, and the looks by which a loop finds out what there is to tell. See
 * connection_transfer.h.
 */
#include "Stream/Connection/connection_transfer.h"

#include <errno.h>
#include <limits.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Stream/Connection/connection_attempt.h"
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

/* How an attempt to move bytes has found the connection. */
struct transfer {
    int descriptor;
    void *session; /* NULL: the bytes are plain */
    uint32_t waits; /* the readiness to wait for after -EAGAIN */
};

/*
 * Begins an attempt with the lock. Returns whether the connection is open: else TLS has begun on it, and is to be awaited. Plain bytes move
 * before the lock is dropped, so that none of TLS is taken for plain, and nothing goes out plain in its midst.
 */
ACQUIRES(the_item_lock) static bool begin_transfer(struct stream_connection *c, uint32_t readiness, struct transfer *ret_transfer)
{
    connection_lock(c);
    *ret_transfer = (struct transfer){c->descriptor, c->session, readiness};
    return c->state == connection_open;
}

/* Waits for the end of a handshake on an open stream. Returns -EINTR, the attempt is to be made again, or why TLS has failed. */
static int await_handshake(struct stream *s)
{
    int result = s->kind->finish_open(s, true);

    return result < 0 ? result : -EINTR;
}

/* What a session has returned, or -EINTR if it is back in the handshake, which the next attempt awaits. */
static CFIndex retry_if_held_up(struct stream_connection *c, void *session, CFIndex result)
{
    return result == -EAGAIN && connection_resume_handshake(c, session) ? -EINTR : result;
}

/* Receives once, without waiting. An error of TLS goes to the stream's refusal. */
static CFIndex receive_once(struct stream *s, UInt8 *bytes, CFIndex size, struct transfer *ret_transfer)
{
    struct stream_connection *c = connection_of(s);
    struct kernel_address peer;
    UInt32 waits = kCRLStreamWaitsToRead;
    CFIndex result = 0;
    bool is_open = begin_transfer(c, kernel_readable, ret_transfer);

    if (is_open && !ret_transfer->session) {
        result = kernel.socket_receive(c->descriptor, bytes, (size_t)size, &peer);
    }
    connection_unlock(c);
    if (!is_open) {
        return await_handshake(s);
    }
    if (ret_transfer->session) {
        result = connection_network()->receive(ret_transfer->session, bytes, size, &waits, &s->refusal);
        ret_transfer->waits = readiness_of_waits(waits);
        result = retry_if_held_up(c, ret_transfer->session, result);
    }
    return result;
}

/* Whether a call that sends has taken the error of the connection. EPIPE is none: what the peer has sent can still be read. */
static bool is_error_of_connection(CFIndex result)
{
    return result < 0 && result != -EAGAIN && result != -EINTR && result != -EPIPE;
}

static CFIndex send_once(struct stream *s, const UInt8 *bytes, CFIndex size, struct transfer *ret_transfer)
{
    struct stream_connection *c = connection_of(s);
    UInt32 waits = kCRLStreamWaitsToWrite;
    CFIndex result = 0;
    bool is_open = begin_transfer(c, kernel_writable, ret_transfer);

    if (is_open && !ret_transfer->session) {
        result = kernel.socket_send(c->descriptor, bytes, (size_t)size, NULL, 0, 0);
        if (is_error_of_connection(result)) {
            note_error(c, result);
        }
    }
    connection_unlock(c);
    if (!is_open) {
        return await_handshake(s);
    }
    if (ret_transfer->session) {
        result = connection_network()->send(ret_transfer->session, bytes, size, &waits, &s->refusal);
        ret_transfer->waits = readiness_of_waits(waits);
        result = retry_if_held_up(c, ret_transfer->session, result);
        return is_error_of_connection(result) ? keep_error(c, (int)result) : result;
    }
    return result;
}

/* The kernel does not report bytes that the session holds. `is_ready` has the loop look for them. */
static void note_held_bytes(struct stream *s, void *session)
{
    if (session) {
        atomic_store_explicit(&s->is_ready, connection_network()->holdsBytes(session), memory_order_release);
    }
}

/* Waits until another attempt is worth while. There may be too little room for the kernel to report it. */
static int wait_after(CFIndex result, struct transfer transfer)
{
    return result == -EINTR ? 0 : wait_for(transfer.descriptor, transfer.waits);
}

CFIndex connection_read(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end)
{
    struct stream_connection *c = connection_of(s);
    struct transfer transfer;
    CFIndex most = size < most_at_once ? size : most_at_once;
    CFIndex result = receive_once(s, bytes, most, &transfer);

    while (result == -EAGAIN || result == -EINTR) {
        int waited = wait_after(result, transfer);

        if (waited < 0) {
            return waited;
        }
        result = receive_once(s, bytes, most, &transfer);
    }
    note_held_bytes(s, transfer.session);
    if (result == 0) {
        result = end_of_bytes(c);
        *ret_at_end = result == 0;
    }
    return result < 0 ? keep_error(c, (int)result) : result;
}

CFIndex connection_write(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    struct transfer transfer;
    CFIndex most = size < most_at_once ? size : most_at_once;
    CFIndex result = send_once(s, bytes, most, &transfer);

    while (result == -EAGAIN || result == -EINTR) {
        int waited = wait_after(result, transfer);

        if (waited < 0) {
            return waited;
        }
        result = send_once(s, bytes, most, &transfer);
    }
    return result;
}

/* TLS may have to read before it can write: then room says nothing, and only the call that waits can tell. */
CFIndex connection_write_now(struct stream *s, const UInt8 *bytes, CFIndex size)
{
    struct stream_connection *c = connection_of(s);
    struct transfer transfer;
    CFIndex result = -EBUSY;

    if (begin_transfer(c, kernel_writable, &transfer) && !transfer.session) {
        do {
            result = kernel.socket_send(c->descriptor, bytes, (size_t)(size < most_at_once ? size : most_at_once), NULL, 0, 0);
        } while (result == -EINTR);
        if (is_error_of_connection(result)) {
            note_error(c, result);
        }
    }
    connection_unlock(c);
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
    if (peeked == -EAGAIN) {
        (void)connection_resume_handshake(c, session);
    }
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
    struct transfer found;
    bool is_open;

    atomic_store_explicit(&s->is_ready, false, memory_order_release); /* this is the look that it asks for */
    is_open = begin_transfer(c, 0, &found);
    connection_unlock(c);
    if (!is_open || atomic_load_explicit(&s->opening_interest, memory_order_relaxed)) {
        int result = s->kind->finish_open(s, false); /* TLS has begun, or has ended its handshake, since the stream last looked */

        if (result < 0) {
            return result == -EINPROGRESS ? 0 : result;
        }
        found.descriptor = connection_socket(c, &found.session);
        ready = 0;
    }
    if (found.session && stream_is_reader(s)) {
        return look_at_session(s, c, found.session);
    }
    if (!ready) {
        ready = kernel.descriptor_ready(found.descriptor, stream_is_reader(s) ? kernel_readable : kernel_writable);
    }
    return stream_is_reader(s) ? look_at_reader(c, found.descriptor, ready) : look_at_writer(c, found.descriptor, ready);
}
