/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting for Accept callbacks; see socket_accept.h. Each system call is made as a user of the descriptor (socket.h). */
#include "Socket/socket_accept.h"

#include <errno.h>

#include "Socket/socket_backoff.h"
#include "Socket/socket_idle.h"
#include "Socket/socket_registry.h"

/*
 * The socket does not listen. If it is idle, a change will say that it listens. If it is anything else, such as connected, no report would
 * help, and it does not read until the program acts (socket_expect_events).
 */
static void stop_accepting(const struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    bool is_idle = false;

    if (socket_is_connection_oriented(s) && socket_begin_use(s) >= 0) {
        is_idle = kernel.socket_is_idle(delivery->native);
        if (!is_idle && (delivery->ready & kernel_error)) {
            is_idle = kernel.socket_is_idle(delivery->native); /* the first answer was the error of a connection that is gone */
        }
        socket_end_use(s);
    }
    socket_lock(s);
    if (is_idle) {
        socket_become_idle(s, false);
    } else {
        s->backs_off = true; /* if another thread backs off with a timer just now, the timer ends this as well */
        socket_update_interest(s);
    }
    socket_unlock(s);
}

/* A connection may go away before it is accepted. Accept must then fail, and not wait for the next one. Done once for each socket. */
static void make_non_blocking(CFSocketRef s, int native)
{
    bool is_done;
    int result;

    socket_lock(s);
    is_done = s->made_non_blocking;
    socket_unlock(s);
    if (is_done) {
        return;
    }
    result = kernel.make_non_blocking(native, true);
    socket_lock(s);
    s->made_non_blocking = result == 0;
    socket_unlock(s);
}

/* Accepting has failed; `error` is a negative errno. */
static void handle_accept_error(struct delivery *delivery, int error)
{
    switch (-error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        socket_back_off(delivery);
        break;
    case EINVAL: /* not listening */
    case EOPNOTSUPP:
    case ENOTSOCK:
        stop_accepting(delivery);
        break;
    default: /* the connection is gone already, or another thread has taken it */
        break;
    }
}

void socket_deliver_accept(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    struct kernel_address peer = {0};
    CFSocketNativeHandle accepted;

    if (socket_begin_use(s) < 0) {
        return;
    }
    make_non_blocking(s, delivery->native);
    accepted = kernel.socket_accept(delivery->native, &peer);
    socket_end_use(s);
    if (accepted < 0) {
        delivery->unused |= socket_event_read;
        handle_accept_error(delivery, accepted);
        return;
    }
    socket_registry_evict(accepted); /* the number is new: no other object can still own it */
    delivery->address = socket_copy_address(NULL, &peer);
    delivery_call(delivery, kCFSocketAcceptCallBack, delivery->address, &accepted);
    delivery_end_callout(delivery);
}
