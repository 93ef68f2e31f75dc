/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of sockets, connecting and sending. None of it runs in the loop, and whatever waits holds no lock.
 */
#include <errno.h>

#include "CoreFoundation/CFSocket.h"
#include "Descriptor/socket.h"
#include "Loop/instant.h"

enum { listen_backlog = 256 /* 270 */ };

static void require(CFSocketRef s, const char *function)
{
    object_require(s, object_type_socket, function, "socket");
}

/* The caller's answer to a system call's `result`, whose reason callers read in errno. The last thing that a function does. */
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

    require(s, "CFSocketSetAddress");
    if (!address) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = kernel.socket_bind(native, CFDataGetBytePtr(address), (size_t)CFDataGetLength(address));
    if (result == 0) {
        (void)kernel.socket_listen(native, listen_backlog);
        socket_lock(s);
        socket_expect_events(s);
        socket_update(s);
        socket_unlock(s);
    }
    socket_end_use(s);
    socket_tell_source(s);
    return error_of(result);
}

/* Instant at which a wait for `timeout` ends, as kernel.socket_connect takes it. */
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

    require(s, "CFSocketConnectToAddress");
    if (!address) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = kernel.socket_connect(native, CFDataGetBytePtr(address), (size_t)CFDataGetLength(address), connect_deadline(timeout));
    socket_lock(s);
    s->is_connecting = result == -EINPROGRESS || result == -ETIMEDOUT;
    s->is_idle = result < 0 && !s->is_connecting && result != -EISCONN;
    old_peer = s->peer;
    s->peer = NULL;
    if (s->has_ended && (result == 0 || s->is_connecting)) {
        s->has_ended = false; /* that was the end of another connection */
        s->spent &= socket_reads_again(s) ? ~(uint32_t)socket_event_read : UINT32_MAX;
    }
    socket_update(s);
    socket_unlock(s);
    socket_end_use(s);
    if (old_peer) {
        CFRelease(old_peer);
    }
    socket_tell_source(s);
    return result == -EINPROGRESS ? kCFSocketSuccess : error_of(result);
}

static CFDataRef copy_address(CFSocketRef s, bool is_of_peer)
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
    require(s, "CFSocketCopyAddress");
    return copy_address(s, false);
}

CFDataRef CFSocketCopyPeerAddress(CFSocketRef s)
{
    require(s, "CFSocketCopyPeerAddress");
    return copy_address(s, true);
}

/* ---- sending ---- */

static int send_once(int native, CFDataRef address, CFDataRef data, CFTimeInterval timeout)
{
    size_t address_length = address ? (size_t)CFDataGetLength(address) : 0;
    int64_t deadline_ns = timeout > 0 ? instant_after(kernel.monotonic_ns(), timeout) : kernel_never;
    int result;

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

    require(s, "CFSocketSendData");
    if (!data) {
        return error_of(-EINVAL);
    }
    native = socket_begin_use(s);
    if (native < 0) {
        return error_of(-EBADF);
    }
    result = send_once(native, address, data, timeout);
    socket_end_use(s);
    return result == 0 ? kCFSocketError : error_of(result); /* 272 */
}
