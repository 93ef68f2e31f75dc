/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message ports: the object with its two sides, and how the rooms of Port lie above one another.
 *
 * Calls and includes go from right to left:
 *
 *     Wire <- Names <- Channel <- Core <- Message <- Async <- Object        Mach stands beside Message and Object, and uses Core
 *
 *   Wire     frames as bytes, packets, memory that two processes share; knows no port
 *   Names    from a name to a socket: the name registry in the user's directory
 *   Channel  the queues and channels that a port holds; knows no port
 *   Core     the object, the table of ports, uses of descriptors, the info that callouts get
 *   Message  one message: sending, receiving, its callout, its reply
 *   Async    requests that block nobody, replies that come after the callout
 *   Object   making and ending each side, and the public functions
 *   Mach     CFMachPort, whose messages stay in the process
 *
 * the_port_lock (send_pacing.h) stands for the lock of any port. No thread holds two of them, except at a fork, which takes all. A field
 * marked "constant" does not change after creation.
 *
 * Lock order: creation -> table -> port -> local queue or name registry. None of them is held together with a lock of a run loop, or while
 * user code is called. A port's lock may be held over system calls that do not wait.
 */
#ifndef CRL_PORT_CORE_MESSAGE_PORT_H
#define CRL_PORT_CORE_MESSAGE_PORT_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Core/context_info.h"
#include "Port/Channel/local_queue.h"
#include "Port/Channel/channel_table.h"
#include "Port/Channel/send_pacing.h"
#include "Port/Wire/packet.h"
#include "Port/Names/port_name.h"
#include "Port/Names/name_registry.h"
#include "Runtime/Object/object.h"
#include "Support/list.h"
#include "Support/lock.h"

enum message_port_defaults {
    queue_limit_default = 5,
    queue_limit_max = 4096,
    offenders_max = 16,
    offences_max = 16,
};

static const uint64_t budget_default = UINT64_C(256) << 20;

struct dispatch_attachment;
struct owner_watch;
struct received_message;

struct offender {
    struct peer peer;
    uint32_t count;
};

/* An object that callouts get in the place of the context's info. Callouts of one that was replaced may still be under way. */
struct receiver {
    void *object; /* constant: a reference; the context's `release` drops it after the receiver's last callout */
    uint32_t calls GUARDED_BY(the_port_lock); /* callouts under way */
};

/*
 * A callout in the place of the program's, which answers by `message` (received_message.h, deferred_reply.h) if it does not return the
 * reply.
 */
typedef CFDataRef (*answering_callout)(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info,
                                       struct received_message *message);

struct local_port {
    CFMessagePortCallBack callout; /* constant */
    answering_callout answering; /* constant once the port has a source; NULL: `callout` is called */
    CFMessagePortContext context; /* constant: without the info */
    struct callout_info info GUARDED_BY(the_port_lock); /* in callouts in which no receiver is called */
    struct receiver *receiver GUARDED_BY(the_port_lock); /* NULL: the info is called */
    int socket GUARDED_BY(the_port_lock); /* -1 once closed */
    uint32_t readers GUARDED_BY(the_port_lock); /* threads that are reading from the socket */
    bool identifies_senders GUARDED_BY(the_port_lock); /* the kernel was asked to identify senders that have no pid here */
    uid_t owner_uid; /* constant: the only user whose messages are taken */
    struct publication publication GUARDED_BY(the_port_lock);
    CFRunLoopSourceRef source GUARDED_BY(the_port_lock); /* a reference, until the port is invalid */
    struct channel_table channels GUARDED_BY(the_port_lock);
    uint32_t queue_limit GUARDED_BY(the_port_lock);
    uint64_t budget GUARDED_BY(the_port_lock);
    struct received_message *spare_message GUARDED_BY(the_port_lock); /* memory for the next message; NULL: none yet, or in use */
    uint64_t in_use GUARDED_BY(the_port_lock); /* bytes accepted whose callouts have not ended */
    struct offender offenders[offenders_max] GUARDED_BY(the_port_lock);
    struct dispatch_attachment *dispatch GUARDED_BY(the_port_lock); /* to the dispatch queue that drives the port; NULL: none does */
    struct link deferred_replies GUARDED_BY(the_port_lock); /* those that are watched for the end of their askers */
    CFRunLoopSourceRef channel_watch GUARDED_BY(the_port_lock); /* a reference: watches the set of `channels`; NULL: nothing does */
    struct local_queue *local_queue GUARDED_BY(the_port_lock); /* NULL without memory for one, or once the port has ended */
};

struct remote_port {
    int socket GUARDED_BY(the_port_lock); /* -1 once closed */
    int owner_fd GUARDED_BY(the_port_lock); /* O_PATH descriptor of the owner's socket file */
    uint32_t users GUARDED_BY(the_port_lock); /* threads that use a descriptor: it is closed only when there is none */
    uint64_t send_room; /* constant: the socket's room for packets that are under way */
    struct send_pacing pacing; /* send_pacing.h says which lock guards what */
    uint64_t budget; /* constant: the owner's budget at connection; larger data is not sent */
    uint32_t features; /* constant: what the owner understands, of enum wire_feature */
    uint32_t last_channel GUARDED_BY(the_port_lock); /* the number of the latest channel */
    uint64_t last_conversation GUARDED_BY(the_port_lock);
    struct link free_channels GUARDED_BY(the_port_lock); /* latest first */
    struct link busy_channels GUARDED_BY(the_port_lock);
    uint32_t free_count GUARDED_BY(the_port_lock);
    uint32_t free_most GUARDED_BY(the_port_lock); /* how many may be free */
    uint32_t free_least GUARDED_BY(the_port_lock); /* the smallest `free_count` since channels were last looked over */
    uint32_t gives GUARDED_BY(the_port_lock); /* channels that became free */
    struct local_queue *local_queue; /* constant: with a reference. NULL: the owner is in another process */
    uint32_t sends_by_socket GUARDED_BY(the_port_lock); /* sends by the socket under way: the local queue may overtake none */
    /* Atomic; set under the port lock once the local queue is open and nothing is under way to the socket. All later messages use it. */
    atomic_bool uses_local_queue;
    struct link local_messages GUARDED_BY(the_port_lock); /* requests in the local queue that wait for a reply */
    struct owner_watch *watch GUARDED_BY(the_port_lock); /* NULL: nothing has a loop tell of the owner's end */
};

/* A name that the port has given up: somebody may still have the string from CFMessagePortGetName. */
struct former_name {
    struct former_name *next;
    CFStringRef string;
};

/*
 * The functions in which the two sides of a port differ. Files below Object call a side through them, so that they need not know it. None
 * is called with a lock held, but for `leave_callback` and `abandon`.
 */
struct port_side {
    bool is_remote;
    void (*withdraw)(CFMessagePortRef port); /* invalidation, before the callback; may be NULL */
    void (*close)(CFMessagePortRef port); /* invalidation, after the callback */
    /*
     * The port's owner has gone: leaves the callback to a loop, which `remind` tells, also again. The first is called with the port's lock,
     * and returns false if no loop watches. Both are NULL for a side that has no owner.
     */
    bool (*leave_callback)(CFMessagePortRef port);
    void (*remind)(CFMessagePortRef port);
    void (*abandon)(CFMessagePortRef port); /* in the child of a fork, where no other thread exists: closes the inherited descriptors */
    void (*republish)(CFMessagePortRef port); /* registers the name again; NULL: the side has no name of its own */
};

struct __CFMessagePort {
    struct object object;
    struct lock lock;
    const struct port_side *functions; /* constant */
    bool is_remote; /* constant */
    atomic_bool is_valid; /* atomic; written under the port lock */
    struct link table_link; /* guarded by the table lock */
    struct link republished_link; /* creation lock */
    uint32_t republish_round; /* creation lock; the last in which it had its turn */
    struct port_name name; /* written under the table and the port lock, read under either; length 0: unnamed */
    CFStringRef name_string GUARDED_BY(the_port_lock);
    bool name_is_lent GUARDED_BY(the_port_lock); /* CFMessagePortGetName has returned that string: it lasts as long as the port */
    struct former_name *former_names; /* creation lock; those that were lent */
    CFMessagePortInvalidationCallBack invalidated GUARDED_BY(the_port_lock);
    struct scratch scratch; /* atomic */
    union {
        struct local_port local;
        struct remote_port remote;
    } side;
};

static inline void port_lock(CFMessagePortRef port) ACQUIRES(the_port_lock);
static inline void port_unlock(CFMessagePortRef port) RELEASES(the_port_lock);

NOT_CHECKED static inline void port_lock(CFMessagePortRef port)
{
    lock_take(&port->lock);
}

NOT_CHECKED static inline void port_unlock(CFMessagePortRef port)
{
    lock_drop(&port->lock);
}

static inline bool port_is_valid(CFMessagePortRef port)
{
    return atomic_load_explicit(&port->is_valid, memory_order_acquire);
}

extern const struct object_class message_port_class;

/* Returns a new object of either side, valid, in no table, or NULL if there is no memory. */
CFMessagePortRef message_port_allocate(CFAllocatorRef allocator, const struct port_side *side, const struct port_name *name);
void message_port_invalidate(CFMessagePortRef port);
/* Invalidates the port and gives the caller's reference back, even if the invalidation callback does not return. */
void message_port_end(CFMessagePortRef port);
/*
 * As message_port_end, for a remote port whose owner was found gone. The callback is left to the loop that watches for that end. If none
 * does, it is called here.
 */
void message_port_end_gone(CFMessagePortRef port);
/* Reminds the loop of a callback that was left to it while a request of the port ran in that loop. */
void message_port_remind(CFMessagePortRef port);

#endif
