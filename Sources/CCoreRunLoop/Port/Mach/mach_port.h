/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port in the style of Mach, shared by CFMachPort.c (the object), CRLMachPort.c (sending) and mach_port_table.c (numbers).
 *
 * The item lock guards the queue; the table's lock is taken alone. The eventfd is readable while the queue holds anything. It is written
 * and read under the item lock, so that the two never disagree, and exists only once somebody wants the source.
 */
#ifndef CRL_PORT_MACH_MACH_PORT_H
#define CRL_PORT_MACH_MACH_PORT_H

#include "Port/link_names.h"

#include "CRLMachPort.h"
#include "Loop/Core/context_info.h"
#include "Loop/Source/weak_source.h"
#include "Runtime/Object/object.h"
#include "Support/list.h"
#include "Support/lock.h"

enum { mach_port_queue_limit = 5, mach_port_size_limit = 256 << 20 };

struct mach_message {
    struct link link; /* in the port's queue; guarded by the item lock */
    size_t size; /* constant */
    CFMachPortRef port; /* the port whose callout has the message, with a reference; set, like the next two, by the callout's thread */
    void *info; /* for the callout */
    bool has_retained; /* the context's `retain` was called for `info` */
    _Alignas(max_align_t) mach_msg_header_t header; /* constant: the body follows, aligned for what a program lays over it */
};

struct __CFMachPort {
    struct object object;
    CFMachPortCallBack callout; /* constant */
    CFMachPortContext context; /* constant: without the info */
    struct callout_info info GUARDED_BY(the_item_lock);
    mach_port_t number; /* constant */
    bool is_valid GUARDED_BY(the_item_lock);
    CFMachPortInvalidationCallBack invalidation_callout GUARDED_BY(the_item_lock);
    struct link queue GUARDED_BY(the_item_lock); /* of mach_message */
    uint32_t queued GUARDED_BY(the_item_lock);
    uint32_t waiting_senders GUARDED_BY(the_item_lock);
    _Atomic uint32_t room; /* atomic; changes when a message leaves, or the port ends: senders sleep on it */
    int event GUARDED_BY(the_item_lock); /* -1: none yet, or no more */
    bool is_posted GUARDED_BY(the_item_lock);
    struct weak_source source;
    CFRunLoopSourceRef ended_source; /* used by the invalidation only: it releases this after the callback */
    int ended_event;
};

static inline void mach_port_lock(CFMachPortRef port) ACQUIRES(the_item_lock);
static inline void mach_port_unlock(CFMachPortRef port) RELEASES(the_item_lock);

NOT_CHECKED static inline void mach_port_lock(CFMachPortRef port)
{
    lock_take(item_lock(port));
}

NOT_CHECKED static inline void mach_port_unlock(CFMachPortRef port)
{
    lock_drop(item_lock(port));
}

/* Makes the eventfd say whether the queue holds anything. */
REQUIRES(the_item_lock) void mach_port_update_event(CFMachPortRef port);
/* Lets one waiting sender look again. No lock is held. */
void mach_port_wake_sender(CFMachPortRef port);

#endif
