/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a write queue: what waits, where it goes, and what wakes it.
 *
 * Threads: any. The queue's lock guards what changes. It is held over calls that write and do not wait, as these decide the order. What
 * wakes the queue is taken out under the lock, and ended without it.
 *
 * Always true: bytes wait only while there is no error. A descriptor, a watch or a stream's client is there only while bytes wait; a watch
 * and a client keep the queue. Nothing else keeps a queue that its program has released.
 */
#ifndef CRL_SERVICES_WRITE_QUEUE_H
#define CRL_SERVICES_WRITE_QUEUE_H

#include "services_link_names.h"

#include <stdbool.h>
#include <sys/types.h>

#include "CRLAddOn.h"
#include "CRLWriteQueue.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "CoreFoundation/CFSet.h"
#include "Write/write_bytes.h"
#include "service_lock.h"

/* What wakes the queue of a socket. Each is a reference, or NULL. */
struct write_watch {
    CFFileDescriptorRef room;
    CFRunLoopSourceRef source; /* of `room` */
    CFRunLoopObserverRef observer; /* finds that the socket was invalidated */
    int descriptor; /* which `room` watches, or -1 */
};

struct __CRLWriteQueue {
    CRLObjectHeader header;
    CRLWriteQueueCallBack callout; /* constant, as all to the lock */
    CRLSourceContext context;
    size_t limit;
    size_t mark;
    pid_t process;
    CFWriteStreamRef stream; /* a reference, or NULL: it is a socket's */
    struct service_lock lock;
    CFSocketRef socket GUARDED_BY(the_service_lock); /* a reference; NULL of a stream's, and of one that finishes */
    struct write_bytes waiting GUARDED_BY(the_service_lock);
    CRLWriteQueueCounts counts GUARDED_BY(the_service_lock); /* but `waiting` */
    CFRunLoopRef loop GUARDED_BY(the_service_lock); /* a reference, or NULL: it is scheduled nowhere */
    CFMutableSetRef modes GUARDED_BY(the_service_lock);
    struct write_watch watch GUARDED_BY(the_service_lock);
    bool has_client GUARDED_BY(the_service_lock); /* of the stream */
    bool stream_has_room GUARDED_BY(the_service_lock); /* it has said so, and does not again until something is written */
    bool owes_room GUARDED_BY(the_service_lock); /* kCRLWriteQueueHasRoom is told once the mark is reached */
    bool finishes GUARDED_BY(the_service_lock);
    bool has_finished GUARDED_BY(the_service_lock);
};

/* ---- write_drain.c: writing what waits ---- */

/* Writes bytes as far as there is room: how many, or a negative errno. */
REQUIRES(the_service_lock) ssize_t write_queue_put(CRLWriteQueueRef queue, const UInt8 *bytes, size_t size);
/* Nothing can be written any more. */
REQUIRES(the_service_lock) void write_queue_fail(CRLWriteQueueRef queue, int error);
/* Has a copy of the socket's descriptor, as nobody may use the socket's own: 0 or a negative errno. The socket was valid at that time. */
REQUIRES(the_service_lock) int write_queue_open(CRLWriteQueueRef queue);

/* ---- write_watch.c: waking ---- */

/* After a change: begins what wakes the queue if bytes wait, and returns what is to be ended without the lock. */
REQUIRES(the_service_lock) struct write_watch write_watch_update(CRLWriteQueueRef queue);
EXCLUDES(the_service_lock) void write_watch_end(struct write_watch watch);
/* Takes what is there out of the queue. */
REQUIRES(the_service_lock) struct write_watch write_watch_take(CRLWriteQueueRef queue);

#endif
