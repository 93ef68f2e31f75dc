/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on sockets that deal with addresses, connect and send.
 *
 * They run on the calling thread, outside the loop. A call that may wait holds no lock, and counts as a user of the descriptor, so that an
 * invalidation meanwhile does not close the number under it.
 */
#include <errno.h>

#include "CoreFoundation/CFSocket.h"
#include "Loop/Core/instant.h"
#include "Socket/socket.h"

enum { listen_backlog = 256 /* the documented number (rule 270) */ };

/*
 * Turns the `result` of a system call into the caller's, and sets errno to its reason. To be called last, as other calls change errno.
 */
static CFSocketError error_of(int result)
{
    if (result < 0) {
        errno = -result;
    }
    return result == -ETIMEDOUT ? kCFSocketTimeout : result < 0 ? kCFSocketError : kCFSocketSuccess;
}

/* ---- addresses ---- */

CFSocketError CFSocketSetAddress(CFSocketRef s, CFDataRef address)
{
    int native;
    int result;

    socket_require(s, "CFSocketSetAddress");
    if (!address) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = kernel.socket_bind(native, CFDataGetBytePtr(address), (size_t)CFDataGetLength(address));
    if (result == 0) {
        (void)kernel.socket_listen(native, listen_backlog); /* refused by sockets that only need the address, which is no error */
        socket_lock(s);
        socket_expect_events(s);
        socket_update_interest(s);
        socket_unlock(s);
    }
    socket_end_use(s);
    socket_publish_interest(s);
    return error_of(result);
}

/* The instant at which a wait for `timeout` ends, as kernel.socket_connect takes it: 0 does not wait, for a limit below 0 (rule 268). */
static int64_t connect_deadline(CFTimeInterval timeout)
{
    if (timeout < 0) {
        return 0;
    }
    return timeout > 0 ? instant_after(kernel.monotonic_ns(), timeout) : kernel_never;
}

CFSocketError CFSocketConnectToAddress(CFSocketRef s, CFDataRef address, CFTimeInterval timeout)
{
    CFDataRef old_peer;
    int native;
    int result;

    socket_require(s, "CFSocketConnectToAddress");
    if (!address) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = kernel.socket_connect(native, CFDataGetBytePtr(address), (size_t)CFDataGetLength(address), connect_deadline(timeout));
    socket_lock(s);
    /* After a time-out the system goes on connecting, and Connect or Write will tell the end of it. */
    s->is_connecting = result == -EINPROGRESS || result == -ETIMEDOUT;
    s->is_idle = result < 0 && !s->is_connecting && result != -EISCONN; /* connected before: still is */
    old_peer = s->peer;
    s->peer = NULL;
    if (s->has_ended && (result == 0 || s->is_connecting)) {
        s->has_ended = false; /* the end that was delivered was that of an earlier connection */
        s->spent &= socket_rearms_reading(s) ? ~(uint32_t)socket_event_read : UINT32_MAX;
    }
    socket_update_interest(s);
    socket_unlock(s);
    socket_end_use(s);
    object_release_if_any(old_peer);
    socket_publish_interest(s);
    if (result == -EINPROGRESS || (result == -EISCONN && timeout > 0)) { /* what waits finds the connection made (rule 268a) */
        return kCFSocketSuccess;
    }
    return error_of(result);
}

/* Asks the kernel each time, as the program may bind or connect the descriptor itself. NULL if there is no address. */
static CFDataRef ask_for_address(CFSocketRef s, bool is_of_peer)
{
    int native = socket_begin_use(s);
    struct kernel_address address;
    int result;

    if (native < 0) {
        return NULL;
    }
    result = kernel.socket_address(native, is_of_peer, &address);
    socket_end_use(s);
    return result < 0 || address.length == 0 ? NULL : socket_copy_address(object_allocator(s), &address);
}

CFDataRef CFSocketCopyAddress(CFSocketRef s)
{
    socket_require(s, "CFSocketCopyAddress");
    return ask_for_address(s, false);
}

CFDataRef CFSocketCopyPeerAddress(CFSocketRef s)
{
    socket_require(s, "CFSocketCopyPeerAddress");
    return ask_for_address(s, true);
}

/* ---- sending ---- */

/* Sends once, however little the kernel takes. Returns the number of bytes, or a negative errno: -ETIMEDOUT if the time is up. */
static int send_until(int native, CFDataRef address, CFDataRef data, CFTimeInterval timeout)
{
    size_t address_length = address ? (size_t)CFDataGetLength(address) : 0;
    int64_t deadline_ns = timeout > 0 ? instant_after(kernel.monotonic_ns(), timeout) : kernel_never;
    int result;

    /* A signal may end the wait early. Without a limit the deadline is never, so the call is repeated until it ends otherwise. */
    do {
        result = kernel.socket_send(native, CFDataGetBytePtr(data), (size_t)CFDataGetLength(data),
                                    address_length ? CFDataGetBytePtr(address) : NULL, address_length, deadline_ns);
    } while (result == -EINTR && (deadline_ns == kernel_never || kernel.monotonic_ns() < deadline_ns));
    return (result == -EAGAIN || result == -EINTR) && deadline_ns != kernel_never ? -ETIMEDOUT : result;
}

CFSocketError CFSocketSendData(CFSocketRef s, CFDataRef address, CFDataRef data, CFTimeInterval timeout)
{
    int native;
    int result;

    socket_require(s, "CFSocketSendData");
    if (!data) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = send_until(native, address, data, timeout);
    socket_end_use(s);
    return result == 0 ? kCFSocketError : error_of(result); /* any byte that went is a success, none is an error (rule 272) */
}
