/* SPDX-License-Identifier: Apache-2.0 */
/* Sending to Mach-style ports; see mach_port.h. */
#include "CRLMachPort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/Core/instant.h"
#include "Port/Mach/mach_port_table.h"
#include "Support/fault.h"

static struct mach_message *copy_message(const mach_msg_header_t *header)
{
    size_t size = header->msgh_size;
    struct mach_message *message = malloc(offsetof(struct mach_message, header) + size);

    if (!message) {
        return NULL;
    }
    link_init(&message->link);
    message->size = size;
    memcpy(&message->header, header, size);
    message->header.msgh_remote_port = header->msgh_local_port;
    message->header.msgh_local_port = header->msgh_remote_port;
    return message;
}

/* Returns success, SendTimeout for a full queue, or IsInvalid. A sender that waits sleeps until `room` differs from `*ret_room`. */
static CRLMachPortResult enqueue_message(CFMachPortRef port, struct mach_message *message, uint32_t *ret_room)
{
    CRLMachPortResult result = kCRLMachPortSuccess;

    mach_port_lock(port);
    *ret_room = atomic_load_explicit(&port->room, memory_order_relaxed);
    if (!port->is_valid) {
        result = kCRLMachPortIsInvalid;
    } else if (port->queued >= mach_port_queue_limit) {
        result = kCRLMachPortSendTimeout;
        port->waiting_senders++;
    } else {
        list_append(&port->queue, &message->link);
        port->queued++;
        invariant(port->queued <= mach_port_queue_limit);
        mach_port_update_event(port);
    }
    mach_port_unlock(port);
    return result;
}

static void stop_waiting(CFMachPortRef port)
{
    mach_port_lock(port);
    port->waiting_senders -= port->waiting_senders > 0;
    mach_port_unlock(port);
}

static CRLMachPortResult enqueue_until(CFMachPortRef port, struct mach_message *message, int64_t deadline_ns)
{
    uint32_t room;
    CRLMachPortResult result = enqueue_message(port, message, &room);
    bool has_waited = false;

    while (result == kCRLMachPortSendTimeout) {
        int waited = deadline_ns == 0 ? -ETIMEDOUT : kernel.futex_wait(&port->room, room, deadline_ns);

        stop_waiting(port);
        has_waited = true;
        if (waited == -ETIMEDOUT) {
            break;
        }
        result = enqueue_message(port, message, &room);
    }
    if (has_waited) {
        mach_port_wake_sender(port); /* one wake-up may stand for room for several senders */
    }
    return result;
}

CRLMachPortResult CRLMachPortSend(const mach_msg_header_t *message, CFTimeInterval timeout)
{
    struct mach_message *copied;
    CRLMachPortResult result;
    CFMachPortRef port;

    if (!message) {
        fault_stop("CRLMachPortSend", "the message is NULL");
    }
    if (message->msgh_size < sizeof *message || message->msgh_size > mach_port_size_limit) {
        return kCRLMachPortTooSmall;
    }
    port = mach_port_table_find(message->msgh_remote_port);
    if (!port) {
        return kCRLMachPortIsInvalid;
    }
    copied = copy_message(message);
    result = copied ? enqueue_until(port, copied, timeout > 0 ? instant_after(kernel.monotonic_ns(), timeout) : 0) : kCRLMachPortNoMemory;
    if (result != kCRLMachPortSuccess) {
        free(copied);
    }
    object_release(port);
    return result;
}
