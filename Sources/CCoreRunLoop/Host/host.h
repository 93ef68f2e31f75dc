/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host object: what it knows, what it is asking for, its client, and its modes.
 *
 * A host asks for one thing at a time, by a `struct question`. Its answer is stored first, and told by the host's source afterwards, in
 * whichever mode runs. So a host that is cancelled, or leaves its modes, tells nothing.
 *
 *   idle -> asking      host_ask: the host has a question
 *   asking -> answered  an answer is stored with the host, whose source is signalled
 *   answered -> idle    the source is performed: the client is told
 *   any -> idle         host_cancel
 *
 * Threads: any. The item lock guards the fields that change. No lock is held over calls of the add-on library or of the client.
 */
#ifndef CRL_HOST_HOST_H
#define CRL_HOST_HOST_H

#include "Host/link_names.h"

#include "CFNetwork/CFHost.h"
#include "Host/host_link.h"
#include "Runtime/Object/object.h"
#include "Stream/Core/scheduled_modes.h"
#include "Support/lock.h"

enum { host_info_count = kCFHostReachability + 1 };

/* A question of a host, and its answer. Kept by the host and by whoever is using it; the add-on library may be using it as well. */
struct question {
    _Atomic uint32_t references;
    struct host_link link;
    CFHostInfoType info; /* constant: what the program has asked for */
    CFHostInfoType asked; /* constant: the same, or the addresses of a host whose reachability is asked for */
    bool is_answered GUARDED_BY(the_item_lock); /* the host's lock guards it, and the error */
    CFStreamError error GUARDED_BY(the_item_lock);
    _Atomic(void *) query; /* the add-on library's, set once; NULL: not yet, or none was needed */
};

/* The host has one reference, and each callout that is under way another one. */
struct host_client {
    _Atomic uint32_t references;
    CFHostClientCallBack callback; /* constant, as the context */
    CFHostClientContext context;
};

struct __CFHost {
    struct object object;
    CFStringRef name; /* constant; NULL: made of an address */
    CFTypeRef known[host_info_count] GUARDED_BY(the_item_lock); /* references, or NULL */
    struct question *question GUARDED_BY(the_item_lock); /* a reference, until the client has been told; NULL: idle */
    struct host_client *client GUARDED_BY(the_item_lock); /* a reference, or NULL */
    struct scheduled_modes modes GUARDED_BY(the_item_lock); /* that the host is in */
    CFRunLoopSourceRef source; /* constant, as the link */
    struct host_link *link;
};

ACQUIRES(the_item_lock) static inline void host_lock(CFHostRef host)
{
    lock_take(item_lock(host));
}

RELEASES(the_item_lock) static inline void host_unlock(CFHostRef host)
{
    lock_drop(item_lock(host));
}

extern const struct object_class host_class;

/* Takes over the references of `known`, in all cases. Returns NULL if there is no memory. */
CFHostRef host_create(CFAllocatorRef allocator, CFStringRef name, CFTypeRef known[host_info_count]);

#endif
