/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Performs a socket's source: delivers the events that are ready and wanted, in the order Connect, reading, Write (rule 264).
 *
 * On the loop's thread, without a lock but where it looks at the socket's fields. The events are claimed first and all at once, see
 * socket_delivery.h.
 */
#include "Socket/socket_events.h"

#include <errno.h>

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/thread_loop.h"
#include "Socket/socket_accept.h"
#include "Socket/socket_delivery.h"
#include "Socket/socket_idle.h"
#include "Socket/socket_receive.h"

/* ---- Connect ---- */

/* Takes the pending error, and calls for Connect if that was claimed. True: the connection failed, which rules out Write (rule 263). */
static bool deliver_connect(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    SInt32 error = 0;

    if (delivery->takes_error && socket_begin_use(s) >= 0) {
        int taken = kernel.socket_take_error(delivery->native);

        error = taken > 0 ? taken : 0; /* below 0: it could not be asked for, which says nothing about the connection */
        delivery->ready &= ~(uint32_t)kernel_error;
        socket_end_use(s);
    }
    socket_lock(s);
    s->is_connecting = false;
    s->is_known_active |= error == 0;
    socket_unlock(s);
    if (delivery->events & socket_event_connect) {
        delivery_call(delivery, kCFSocketConnectCallBack, NULL, error ? &error : NULL);
    }
    return error != 0;
}

/* ---- Read ---- */

static void deliver_read(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;

    /*
     * The kernel reports the end for ever, but Read delivers it once (rule 258). So a look finds out whether bytes are left before it. Not
     * if an error is pending: the look would take it away from the program.
     */
    if ((delivery->ready & kernel_ended) && !(delivery->ready & kernel_error) && socket_begin_use(s) >= 0) {
        int peeked = kernel.socket_peek(delivery->native);

        socket_end_use(s);
        if (peeked == -EAGAIN) {
            delivery->unused |= socket_event_read; /* neither bytes nor the end: the report was out of date */
            return;
        }
        socket_lock(s);
        s->has_ended = peeked == 0;
        if (peeked == -ENOTCONN && socket_is_connection_oriented(s)) {
            socket_become_idle(s, false); /* the program has taken its connection away: delivered once, too; another may follow */
        }
        socket_unlock(s);
    }
    delivery_call(delivery, kCFSocketReadCallBack, NULL, NULL);
}

/* ---- all of them, in order ---- */

/* Any callout may invalidate the socket, which ends the delivery (rule 264). */
static void deliver_in_order(struct delivery *delivery)
{
    CFSocketRef s = delivery->s;
    bool has_failed = false;

    if ((delivery->events & socket_event_connect) || delivery->takes_error) {
        has_failed = deliver_connect(delivery);
    }
    if ((delivery->events & socket_event_read) && socket_is_valid(s)) {
        switch (s->reading) {
        case kCFSocketReadCallBack:
            deliver_read(delivery);
            break;
        case kCFSocketAcceptCallBack:
            socket_deliver_accept(delivery);
            break;
        default:
            socket_deliver_data(delivery);
            break;
        }
    }
    if ((delivery->events & socket_event_write) && !has_failed && socket_is_valid(s)) {
        delivery_call(delivery, kCFSocketWriteCallBack, NULL, NULL);
    }
}

void socket_perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFSocketRef s = object;
    CFRunLoopRef loop = thread_loop_if_any();
    struct delivery on_stack;
    struct delivery *delivery = NULL;
    uint32_t mark = 0;

    if (!socket_turns_out_idle(s, ready)) {
        delivery = socket_claim(s, source, loop->innermost_run, ready, &on_stack);
    }
    /* Before the callouts, which may run the loop: it must not find ready what is being delivered. */
    socket_publish_interest_to(s, source);
    if (!delivery) {
        return;
    }
    delivery = delivery_keep(delivery);
    if (delivery->memory) { /* on the stack it would be gone before the clean-up */
        mark = cleanup_push(loop, delivery_end, delivery);
    }
    delivery_retain_info(delivery);
    deliver_in_order(delivery);
    cleanup_pop(loop, mark);
    delivery_end(delivery);
}
