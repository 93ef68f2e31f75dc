/* SPDX-License-Identifier: Apache-2.0 */
/* Tells a socket that has no connection from one whose connection has ended; see socket_idle.h. On the loop's thread. */
#include "Socket/socket_idle.h"

#include <stddef.h>
#include <string.h>

void socket_become_idle(CFSocketRef s, bool is_unix)
{
    invariant(socket_is_connection_oriented(s));
    s->is_idle = true;
    s->is_unix = is_unix;
    socket_update_interest(s);
}

/*
 * The kernel does not report that a Unix socket was connected, so that the loop has to look for it before each wait. True also if the
 * family cannot be found out: then the loop looks in vain, which only costs time.
 */
static bool may_be_unix(int native)
{
    struct kernel_address address;
    sa_family_t family = AF_UNIX;

    if (kernel.socket_address(native, false, &address) == 0) {
        memcpy(&family, address.bytes + offsetof(struct sockaddr, sa_family), sizeof family);
    }
    return family == AF_UNIX;
}

/* True if it is worth a system call: reading would not find it out, or the socket was never seen to work. */
REQUIRES(the_item_lock) static bool may_be_idle(const struct __CFSocket *s)
{
    return !s->is_known_active || s->is_idle || !(socket_wanted_events(s) & socket_event_read);
}

bool socket_turns_out_idle(CFSocketRef s, uint32_t ready)
{
    bool is_asked;
    bool is_idle;
    bool is_unix;
    int native;

    /* A pending error means that there was a connection, or an attempt at one. */
    if (!(ready & kernel_failed) || (ready & kernel_error) || !socket_is_connection_oriented(s)) {
        return false;
    }
    socket_lock(s);
    is_asked = may_be_idle(s);
    socket_unlock(s);
    native = is_asked ? socket_begin_use(s) : -1;
    if (native < 0) {
        return false;
    }
    is_idle = kernel.socket_is_idle(native);
    is_unix = is_idle && may_be_unix(native);
    socket_end_use(s);
    if (is_idle) {
        socket_lock(s);
        socket_become_idle(s, is_unix);
        socket_unlock(s);
    }
    return is_idle;
}
