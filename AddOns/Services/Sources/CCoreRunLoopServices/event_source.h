/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sources of this wing have in common: a version-1 source of a descriptor that is readable when there is something to tell, which
 * is flags. Of the flags that were seen those that the program wants are told, on the loop's thread, without the lock.
 */
#ifndef CRL_SERVICES_EVENT_SOURCE_H
#define CRL_SERVICES_EVENT_SOURCE_H

#include "services_link_names.h"

#include <stddef.h>
#include <sys/types.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"
#include "service_lock.h"

typedef void event_source_callback(CFRunLoopSourceRef source, CFOptionFlags flags, void *info);

/* The first member of a kind's own state. All but the lock is constant once the source is made. */
struct event_source {
    const struct event_source_kind *kind;
    CFRunLoopSourceRef source; /* no reference, as the source has this; NULL: it was not made */
    event_source_callback *callout;
    CRLSourceContext context;
    CFOptionFlags wanted;
    pid_t process; /* that made it. Its child has the same descriptors, and would take away what is told */
    int descriptor; /* -1: not opened */
    struct service_lock lock; /* the_service_lock, of the kind's own state */
};

struct event_source_kind {
    const char *name; /* for descriptions */
    size_t size; /* of the state */
    CFOptionFlags all; /* the flags that there are */
    int (*open)(struct event_source *event_source, const void *what); /* 0 or a negative errno; no other thread knows the state */
    CFOptionFlags (*take)(struct event_source *event_source); /* what is to be told; with the lock */
    void (*close)(struct event_source *event_source); /* what `open` has opened, also if it failed; nobody knows the state any more */
};

/* Returns NULL and leaves why in errno: EINVAL for a NULL `callout`, none of the flags wanted, or a context of another version. */
CFRunLoopSourceRef event_source_create(const struct event_source_kind *kind, const void *what, CFAllocatorRef allocator,
                                       CFOptionFlags wanted, CFIndex order, event_source_callback *callout,
                                       const CRLSourceContext *context);

#endif
