/* SPDX-License-Identifier: Apache-2.0 */
/* See socket_bio.h. */
#include "socket_bio.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "Support/invariant.h"

static BIO_METHOD *method; /* constant once made; NULL: no memory */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns whether the call may be made again; otherwise keeps its error. */
static bool take_failure(struct socket_bio_state *state)
{
    if (errno == EAGAIN || errno == EINTR) {
        return true;
    }
    state->error = errno;
    return false;
}

static int read_bytes(BIO *bio, char *bytes, int size)
{
    struct socket_bio_state *state = BIO_get_data(bio);
    int most = size < state->allowance ? size : state->allowance;
    ssize_t count;

    BIO_clear_retry_flags(bio);
    if (most <= 0) {
        state->is_read_out = true;
        BIO_set_retry_read(bio);
        return -1;
    }
    count = recv(state->socket, bytes, (size_t)most, MSG_DONTWAIT);
    invariant(count <= most);
    state->is_read_out = count <= 0;
    state->allowance -= count > 0 ? (int)count : 0;
    if (count == 0) {
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    } else if (count < 0 && take_failure(state)) {
        BIO_set_retry_read(bio);
    }
    return (int)count;
}

/* Returns how many bytes the socket took, or -1 after an error that is kept. */
static ssize_t send_some(struct socket_bio_state *state, const void *bytes, size_t size)
{
    ssize_t count = send(state->socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);

    invariant(count <= (ssize_t)size);
    return count < 0 && take_failure(state) ? 0 : count;
}

int socket_bio_send_held(struct socket_bio_state *state)
{
    ssize_t count;

    if (!state->held) {
        return 0;
    }
    count = send_some(state, state->held + state->held_begin, state->held_end - state->held_begin);
    if (count < 0) {
        return -1;
    }
    state->held_begin += (size_t)count;
    if (state->held_begin < state->held_end) {
        return -EAGAIN;
    }
    free(state->held);
    state->held = NULL;
    state->held_begin = state->held_end = 0;
    return 0;
}

/* A record comes in one piece, and before it perhaps an answer to new keys. Returns false if there is no memory. */
static bool hold(struct socket_bio_state *state, const char *bytes, size_t size)
{
    unsigned char *held = realloc(state->held, state->held_end + size);

    if (held) {
        memcpy(held + state->held_end, bytes, size);
        state->held = held;
        state->held_end += size;
    }
    return held;
}

static int write_bytes(BIO *bio, const char *bytes, int size)
{
    struct socket_bio_state *state = BIO_get_data(bio);
    int result = socket_bio_send_held(state);
    ssize_t count = result == 0 ? send_some(state, bytes, (size_t)size) : result == -EAGAIN ? 0 : -1;

    BIO_clear_retry_flags(bio);
    if (count >= 0 && count < size && state->may_hold && hold(state, bytes + count, (size_t)(size - count))) {
        return size;
    }
    if (count == 0) {
        BIO_set_retry_write(bio);
    }
    return count > 0 ? (int)count : -1;
}

static long control_bio(BIO *bio, int command, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_CTRL_FLUSH:
    case BIO_CTRL_DUP:
        return 1;
    case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    default:
        return 0;
    }
}

static void make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket of a stream");

    if (made && BIO_meth_set_read(made, read_bytes) && BIO_meth_set_write(made, write_bytes) && BIO_meth_set_ctrl(made, control_bio)) {
        method = made;
    } else {
        BIO_meth_free(made);
    }
}

BIO *socket_bio_create(struct socket_bio_state *state)
{
    BIO *bio;

    (void)pthread_once(&once, make_method);
    bio = method ? BIO_new(method) : NULL;
    if (bio) {
        BIO_set_data(bio, state);
        BIO_set_init(bio, 1);
    }
    return bio;
}
