/* SPDX-License-Identifier: Apache-2.0 */
/* The eventfd and the waiting senders of a Mach-style port; see mach_port.h. */
#include "Port/Mach/mach_port.h"

#include "Kernel/kernel.h"

void mach_port_update_event(CFMachPortRef port)
{
    invariant_held(item_lock(port));
    bool is_posted = port->queued > 0;

    if (port->event < 0 || port->is_posted == is_posted) {
        return;
    }
    port->is_posted = is_posted;
    if (is_posted) {
        (void)kernel.event_post(port->event);
    } else {
        kernel.counter_drain(port->event);
    }
}

void mach_port_wake_sender(CFMachPortRef port)
{
    bool has_waiters;

    mach_port_lock(port);
    has_waiters = port->waiting_senders > 0 && (port->queued < mach_port_queue_limit || !port->is_valid);
    atomic_fetch_add_explicit(&port->room, has_waiters, memory_order_relaxed);
    mach_port_unlock(port);
    if (has_waiters) {
        (void)kernel.futex_wake(&port->room);
    }
}
