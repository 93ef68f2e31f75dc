/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port in the style of Mach, shared by CFMachPort.c (the object), CRLMachPort.c (sending) and mach_port_table.c (numbers).
 *
 * Guards: C constant after creation, I the item lock, A atomic. The table's lock is taken alone. The eventfd is readable while the queue
 * holds anything (written and read under I, so that the two never disagree), and exists only once somebody wants the source.
 */
#ifndef CRL_PORT_MACH_PORT_H
#define CRL_PORT_MACH_PORT_H

#include "Support/link_names.h"

#include "CRLMachPort.h"
#include "Loop/info_hold.h"
#include "Loop/weak_source.h"
#include "Runtime/object.h"
#include "Support/list.h"
#include "Support/lock.h"

enum { mach_port_queue_limit = 5, mach_port_size_limit = 256 << 20 };

struct mach_message {
    struct link link; /* I of the port */
    size_t size; /* C */
    CFMachPortRef port; /* whose callout has it, with a reference; this and what follows only then, on that thread */
    void *info; /* for the callout */
    bool has_retained; /* that, by the context's function */
    _Alignas(max_align_t) mach_msg_header_t header; /* C; the body follows, aligned for what a program lays over it */
};

struct __CFMachPort {
    struct object object;
    CFMachPortCallBack callout; /* C */
    CFMachPortContext context; /* C; without the info */
    struct called_info info; /* I */
    mach_port_t number; /* C */
    bool is_valid; /* I */
    CFMachPortInvalidationCallBack invalidation_callout; /* I */
    struct link queue; /* I; of mach_message */
    uint32_t queued; /* I */
    uint32_t waiting_senders; /* I */
    _Atomic uint32_t room; /* A; changes when a message leaves, or the port ends: senders sleep on it */
    int event; /* I; -1: none yet, or no more */
    bool is_posted; /* I */
    struct weak_source source; /* I */
    CFRunLoopSourceRef ended_source; /* what an invalidation takes out of the port, and gives back after the callback: its own */
    int ended_event;
};

static inline void mach_port_lock(CFMachPortRef port)
{
    lock_take(item_lock(port));
}

static inline void mach_port_unlock(CFMachPortRef port)
{
    lock_drop(item_lock(port));
}

/* Makes the eventfd say whether the queue holds anything. I. */
void mach_port_update_event(CFMachPortRef port);
/* Lets one waiting sender look again. No lock. */
void mach_port_wake_sender(CFMachPortRef port);

/* In a child that was made by _Fork or clone, which run no handlers: does what those do. Before a queue or an eventfd is used; no lock. */
void mach_port_table_disown(void);
/* Gives `port` a number. False if there is no memory. */
bool mach_port_table_add(CFMachPortRef port, mach_port_t *ret_number);
/* The valid port of a number, with a reference, or NULL. */
CFMachPortRef mach_port_table_find(mach_port_t number);
/* Harmless when done already. */
void mach_port_table_remove(CFMachPortRef port);

#endif
