/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream sockets, as CFSocket and CFStream use them: listening, connecting, bytes, ends; see files.h.
 *
 * A connection is made at once on the listener's side, and some time later on the client's. What is sent with a time limit goes whole or
 * not at all, so that who sends knows what has arrived; a call that never waits sends what there is room for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "scheduler.h"

enum { room_max = 600, first_free_port = 5000 };

enum stream_state { stream_idle, stream_listens, stream_connects, stream_is_connected, stream_has_failed };

struct stream {
    struct stream *next; /* of all */
    struct file *file;
    enum stream_state state;
    int port;
    int connection; /* the number of it, the same at both ends; 0: none */
    struct file *peer; /* no reference; NULL: closed, or there never was one */
    bool is_shut; /* sends no more */
    bool has_end; /* the peer has sent all it ever will, and said so before it was closed */
    bool was_reset; /* the peer was closed with bytes unread */
    int error; /* pending */
    int64_t done_ns; /* connects: when it is connected, or fails */
    bool is_non_blocking;
    struct file *pending; /* listens: connections to accept, each a reference */
    struct file *next_pending;
    size_t first, count; /* of the ring */
    unsigned char bytes[room_max];
};

static struct stream *streams;
static int next_port = first_free_port;
static int connection_count;

static struct stream *stream_of(int descriptor)
{
    const struct file *file = file_of(descriptor);

    return file && file->kind == file_stream ? file->stream : NULL;
}

static struct file *create(void)
{
    struct file *file = file_create(file_stream);
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream) {
        scheduler_fail("the simulation has no memory");
    }
    file->stream = stream;
    stream->file = file;
    stream->next = streams;
    streams = stream;
    return file;
}

/* What time has brought. */
static enum stream_state state_of(struct stream *stream)
{
    if (stream->state == stream_connects && stream->done_ns <= scheduler_now_ns()) {
        stream->state = stream->connection ? stream_is_connected : stream_has_failed;
        stream->error = stream->connection ? 0 : ECONNREFUSED;
    }
    return stream->state;
}

int64_t streams_next_ns(void)
{
    int64_t next_ns = kernel_never;

    for (struct stream *stream = streams; stream; stream = stream->next) {
        if (stream->state == stream_connects && stream->done_ns > scheduler_now_ns() && stream->done_ns < next_ns) {
            next_ns = stream->done_ns;
        }
    }
    return next_ns;
}

int stream_status(const struct file *file)
{
    struct stream *stream = file->stream;

    switch (state_of(stream)) {
    case stream_listens:
        return stream->pending ? status_in : 0;
    case stream_connects:
        return 0;
    case stream_has_failed:
        return status_in | status_out | status_hang_up | (stream->error ? status_error : 0);
    case stream_is_connected:
        if (!stream->peer) {
            return status_in | status_out | status_half_closed | (stream->was_reset ? status_hang_up : 0) |
                   (stream->error ? status_error : 0);
        }
        return (stream->count > 0 || stream->has_end ? status_in : 0) | (stream->has_end ? status_half_closed : 0) |
               (stream->has_end && stream->is_shut ? status_hang_up : 0) | (stream->peer->stream->count < room_max / 2 ? status_out : 0);
    case stream_idle:
        break;
    }
    return status_out | status_hang_up;
}

void stream_closed(struct file *file)
{
    struct stream *stream = file->stream;
    struct stream **place = &streams;

    while (*place != stream) {
        place = &(*place)->next;
    }
    *place = stream->next;
    while (stream->pending) {
        struct file *pending = stream->pending;

        stream->pending = pending->stream->next_pending;
        file_release(pending);
    }
    if (stream->peer) {
        struct stream *peer = stream->peer->stream;

        peer->peer = NULL;
        peer->was_reset = stream->count > 0;
        peer->error = peer->was_reset ? ECONNRESET : 0;
        file_stir(peer->file);
    }
    free(stream);
}

/* ---- addresses ---- */

static int port_in(const void *address, size_t length)
{
    struct sockaddr_in internet;

    if (length < sizeof internet) {
        return -1;
    }
    memcpy(&internet, address, sizeof internet);
    return ntohs(internet.sin_port);
}

static void write_address(const struct stream *stream, struct kernel_address *ret_address)
{
    struct sockaddr_in internet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    internet.sin_port = htons((uint16_t)stream->port);
    memcpy(ret_address->bytes, &internet, sizeof internet);
    ret_address->length = sizeof internet;
}

static struct stream *listener_at(int port)
{
    for (struct stream *stream = streams; stream; stream = stream->next) {
        if (stream->state == stream_listens && stream->port == port) {
            return stream;
        }
    }
    return NULL;
}

int stream_address(int descriptor, bool is_of_peer, struct kernel_address *ret_address)
{
    struct stream *stream = stream_of(descriptor);

    if (!stream) {
        return -ENOTSOCK;
    }
    if (is_of_peer && (state_of(stream) != stream_is_connected || !stream->peer)) {
        return -ENOTCONN;
    }
    write_address(is_of_peer ? stream->peer->stream : stream, ret_address);
    return 0;
}

/* ---- making connections ---- */

int stream_make(void)
{
    return file_install(create());
}

bool stream_is(int descriptor)
{
    return stream_of(descriptor) != NULL;
}

int stream_bind(int descriptor, const void *address, size_t length)
{
    struct stream *stream = stream_of(descriptor);
    int port = port_in(address, length);

    if (!stream || port < 0) {
        return stream ? -EINVAL : -ENOTSOCK;
    }
    stream->port = port > 0 ? port : next_port++;
    return 0;
}

int stream_listen(int descriptor)
{
    struct stream *stream = stream_of(descriptor);

    if (!stream || listener_at(stream->port)) {
        return stream ? -EADDRINUSE : -ENOTSOCK;
    }
    stream->state = stream_listens;
    return 0;
}

static void offer(struct stream *listener, struct stream *client)
{
    struct file *accepted = create();
    struct file **last = &listener->pending;

    accepted->stream->state = stream_is_connected;
    accepted->stream->port = listener->port;
    accepted->stream->connection = client->connection = ++connection_count;
    accepted->stream->peer = client->file;
    client->peer = accepted;
    while (*last) {
        last = &(*last)->stream->next_pending;
    }
    *last = accepted;
    file_stir(listener->file);
}

int stream_connect(int descriptor, const void *address, size_t length, int64_t duration_ns)
{
    struct stream *stream = stream_of(descriptor);
    struct stream *listener = listener_at(port_in(address, length));

    if (!stream) {
        return -ENOTSOCK;
    }
    if (stream->state != stream_idle) {
        return state_of(stream) == stream_connects ? -EALREADY : -EISCONN;
    }
    stream->port = stream->port > 0 ? stream->port : next_port++;
    stream->state = stream_connects;
    stream->done_ns = scheduler_now_ns() + duration_ns;
    if (listener) {
        offer(listener, stream);
    }
    return -EINPROGRESS;
}

bool stream_has_settled(const struct file *file)
{
    return state_of(file->stream) != stream_connects;
}

int stream_take_error(const struct file *file)
{
    int error;

    (void)state_of(file->stream);
    error = file->stream->error;
    file->stream->error = 0;
    return error;
}

int stream_accept(int descriptor, struct kernel_address *ret_peer)
{
    struct stream *stream = stream_of(descriptor);
    struct file *accepted = stream ? stream->pending : NULL;
    int number;

    if (!stream || stream->state != stream_listens) {
        return stream ? -EINVAL : -ENOTSOCK;
    }
    if (!accepted && !stream->is_non_blocking) {
        scheduler_fail("an accept would wait for the next connection");
    }
    if (!accepted) {
        return -EAGAIN;
    }
    file_retain(accepted); /* install gives up a reference where there is no number */
    number = file_install(accepted);
    if (number < 0) {
        return number;
    }
    stream->pending = accepted->stream->next_pending;
    accepted->stream->next_pending = NULL;
    file_release(accepted);
    ret_peer->length = 0;
    if (accepted->stream->peer) {
        write_address(accepted->stream->peer->stream, ret_peer);
    }
    return number;
}

bool stream_is_unused(int descriptor)
{
    struct stream *stream = stream_of(descriptor);

    return stream && stream->state == stream_idle;
}

int stream_connection(int descriptor)
{
    const struct stream *stream = stream_of(descriptor);

    return stream ? stream->connection : 0;
}

void stream_shut(int descriptor)
{
    struct stream *stream = stream_of(descriptor);

    if (stream && stream->peer && !stream->is_shut) {
        stream->is_shut = true;
        stream->peer->stream->has_end = true;
        file_stir(stream->peer);
    }
}

bool stream_was_torn(int descriptor)
{
    const struct stream *stream = stream_of(descriptor);

    return stream && stream->was_reset && !stream->has_end;
}

/* ---- bytes ---- */

bool stream_sets_blocking(int descriptor, bool is_non_blocking, bool *ret_before)
{
    struct stream *stream = stream_of(descriptor);

    if (!stream) {
        return false;
    }
    *ret_before = stream->is_non_blocking;
    stream->is_non_blocking = is_non_blocking;
    return true;
}

bool stream_is_blocking(const struct file *file)
{
    return !file->stream->is_non_blocking;
}

int stream_put(const struct file *file, const void *bytes, size_t size, bool takes_part)
{
    struct stream *stream = file->stream;
    struct stream *peer = stream->peer ? stream->peer->stream : NULL;

    if (state_of(stream) != stream_is_connected) {
        return stream->state == stream_connects ? -EAGAIN : -ENOTCONN;
    }
    if (stream->error) {
        return -stream_take_error(file);
    }
    if (!peer || stream->is_shut) {
        return -EPIPE;
    }
    if (peer->count == room_max || (peer->count + size > room_max && !takes_part)) {
        return -EAGAIN;
    }
    size = size < room_max - peer->count ? size : room_max - peer->count;
    for (size_t i = 0; i < size; i++) {
        peer->bytes[(peer->first + peer->count++) % room_max] = ((const unsigned char *)bytes)[i];
    }
    file_stir(peer->file);
    return (int)size;
}

int stream_look(int descriptor)
{
    struct stream *stream = stream_of(descriptor);

    if (!stream) {
        return -ENOTSOCK;
    }
    if (stream->count > 0) {
        return 1;
    }
    if (stream->error) {
        return -stream_take_error(stream->file);
    }
    return state_of(stream) == stream_is_connected && stream->peer && !stream->has_end ? -EAGAIN : 0;
}

int stream_take(int descriptor, void *bytes, size_t size)
{
    struct stream *stream = stream_of(descriptor);
    size_t taken = 0;

    if (!stream) {
        return -ENOTSOCK;
    }
    while (stream->count > 0 && taken < size) {
        ((unsigned char *)bytes)[taken++] = stream->bytes[stream->first];
        stream->first = (stream->first + 1) % room_max;
        stream->count--;
    }
    if (taken > 0) {
        return (int)taken;
    }
    if (stream->error) {
        return -stream_take_error(stream->file);
    }
    if (state_of(stream) != stream_is_connected && stream->state != stream_has_failed) {
        return -ENOTCONN;
    }
    return stream->peer && !stream->has_end ? -EAGAIN : 0;
}
