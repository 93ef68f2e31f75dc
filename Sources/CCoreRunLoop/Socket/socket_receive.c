/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving for Data callbacks; see socket_receive.h. Each system call is made as a user of the descriptor (socket.h). */
#include "Socket/socket_receive.h"

#include <errno.h>
#include <stdlib.h>

#include "Runtime/Value/data.h"
#include "Socket/socket_backoff.h"

/* The most bytes of one callback, as documented (rule 256); a datagram cannot be longer. */
enum { stream_read_size = 32768, datagram_read_size = 65535 };

/* Makes room before receiving, because bytes that were taken from the system cannot be put back. NULL: there is no memory. */
static CFDataRef create_buffer(size_t size)
{
    UInt8 *bytes = calloc(1, size);
    CFDataRef data = bytes ? CFDataCreateWithBytesNoCopy(NULL, bytes, (CFIndex)size, kCFAllocatorMalloc) : NULL;

    if (!data) {
        free(bytes);
    }
    return data;
}

/* Copies the address of a connected socket's peer, which is asked for once. The caller is a user of the descriptor. */
static CFDataRef copy_peer(CFSocketRef s, int native)
{
    struct kernel_address address;
    CFDataRef peer;

    socket_lock(s);
    peer = s->peer ? CFRetain(s->peer) : NULL;
    socket_unlock(s);
    if (peer) {
        return peer;
    }
    if (kernel.socket_address(native, true, &address) < 0) {
        address.length = 0;
    }
    peer = socket_copy_address(NULL, &address);
    socket_lock(s);
    if (!s->peer && peer && address.length > 0) {
        s->peer = CFRetain(peer);
    }
    socket_unlock(s);
    return peer;
}

/* The system is short of memory. That says nothing about the connection. */
static bool is_shortage(int result)
{
    return result == -ENOMEM || result == -ENOBUFS;
}

/*
 * True if there is nothing to deliver. Another thread may have been faster, or the kernel short of memory. An error of a datagram socket
 * concerns one datagram, and leads to no callback (rule 256).
 */
static bool is_nothing_to_deliver(CFSocketRef s, int result)
{
    return result == -EAGAIN || is_shortage(result) || (result < 0 && !socket_is_connection_oriented(s) && s->type >= 0);
}

/* Receives once. Returns the bytes, which are none at the end; or NULL if there is nothing to deliver. */
static CFDataRef receive_once(struct delivery *delivery, CFDataRef *ret_sender)
{
    CFSocketRef s = delivery->s;
    size_t size = s->type == SOCK_DGRAM ? datagram_read_size : stream_read_size;
    CFDataRef data = create_buffer(size);
    struct kernel_address sender = {0};
    int result;

    if (!data) {
        socket_back_off(delivery);
        return NULL;
    }
    if (socket_begin_use(s) < 0) {
        CFRelease(data);
        return NULL;
    }
    result = kernel.socket_receive(delivery->native, (UInt8 *)(uintptr_t)CFDataGetBytePtr(data), size, &sender);
    if (is_nothing_to_deliver(s, result)) {
        socket_end_use(s);
        CFRelease(data);
        if (is_shortage(result)) {
            socket_back_off(delivery);
        }
        return NULL;
    }
    *ret_sender =
        sender.length == 0 && socket_is_connection_oriented(s) ? copy_peer(s, delivery->native) : socket_copy_address(NULL, &sender);
    socket_end_use(s);
    data_shorten(data, result > 0 ? result : 0); /* an error ends a stream just as the peer does */
    return data;
}

/*
 * Reading stops before the end is delivered, so that the end comes only once. The callout may run the loop. The callout of Connect may have
 * enabled reading since it was claimed.
 */
static void stop_reading(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    invariant(delivery->ends && (delivery->events & socket_event_read));
    socket_lock(s);
    s->has_ended = true;
    s->spent |= socket_event_read;
    socket_update_interest(s);
    socket_unlock(s);
    socket_publish_interest_to(s, delivery->source);
}

void socket_deliver_data(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    delivery->data = receive_once(delivery, &delivery->address);
    if (!delivery->data) {
        delivery->unused |= socket_event_read;
        return;
    }
    /* A datagram may be empty without being the end. A descriptor that is no socket (type below 0) is read like a stream. */
    delivery->ends = CFDataGetLength(delivery->data) == 0 && (socket_is_connection_oriented(s) || s->type < 0);
    if (delivery->ends) {
        stop_reading(delivery);
    }
    delivery_call(delivery, kCFSocketDataCallBack, delivery->address, delivery->data);
    delivery_end_callout(delivery);
}
