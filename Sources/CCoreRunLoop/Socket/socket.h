/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket object: its fields, its lock, the use of its descriptor and the kinds of readiness that it asks the loop for.
 *
 * Threads: the item lock guards all fields that change; the others are constant after creation. No lock is held over a system call that may
 * wait, nor over code of the program.
 *
 * Always true: the native descriptor is at least 0 exactly while the socket is valid. An event is wanted if it was asked for at creation
 * and is neither disabled (by the program) nor spent (delivered, and not enabled again yet). `interest` is computed from these under the
 * lock; the run loop source is told outside the lock. An idle socket asks for changes only (descriptor_source.h).
 *
 * A thread that uses the descriptor outside the lock counts as a user. If the socket is invalidated meanwhile, the last user closes the
 * descriptor. No user can then meet a stranger's file under the number.
 */
#ifndef CRL_SOCKET_SOCKET_H
#define CRL_SOCKET_SOCKET_H

#include "Socket/link_names.h"

#include <sys/socket.h>

#include "CoreFoundation/CFSocket.h"
#include "Kernel/kernel.h"
#include "Loop/Core/context_info.h"
#include "Loop/Source/weak_source.h"
#include "Runtime/Object/object.h"
#include "Support/lock.h"

/* Read, Accept and Data are one event, because a socket delivers one of them only. Connect and Write have their public bits. */
enum socket_event {
    socket_event_read = 1,
    socket_event_connect = kCFSocketConnectCallBack,
    socket_event_write = kCFSocketWriteCallBack,
    socket_events_all = socket_event_read | socket_event_connect | socket_event_write,
};

struct delivery;

/* Fields without a guard are constant after creation. */
struct __CFSocket {
    struct object object;
    CFSocketCallBack callout;
    CFSocketContext context; /* without the info */
    struct callout_info info GUARDED_BY(the_item_lock);
    CFOptionFlags reading; /* none, or kCFSocketRead-, Accept- or DataCallBack */
    uint32_t events; /* of enum socket_event: what was asked for at creation */
    int type; /* SOCK_STREAM and so on; negative if the descriptor is no socket */
    int native GUARDED_BY(the_item_lock); /* -1 once invalid */
    bool is_valid GUARDED_BY(the_item_lock);
    CFOptionFlags flags GUARDED_BY(the_item_lock);
    /* How many modes of loops the source is in. Below 0 while another thread has yet to report that the source has joined a mode. */
    int32_t memberships GUARDED_BY(the_item_lock);
    uint32_t disabled GUARDED_BY(the_item_lock); /* of enum socket_event */
    uint32_t spent GUARDED_BY(the_item_lock); /* of enum socket_event */
    uint32_t renewed GUARDED_BY(the_item_lock); /* no longer spent, but not to be delivered in the run of `renewed_by` */
    uint64_t renewed_by GUARDED_BY(the_item_lock); /* descriptor_source_poll_number; 0: nothing is renewed */
    bool has_ended GUARDED_BY(the_item_lock); /* the end was delivered: reading does not re-enable itself any more */
    bool is_idle GUARDED_BY(the_item_lock); /* neither connected, nor connecting, nor listening: the kernel reports a hang-up */
    bool is_unix GUARDED_BY(the_item_lock); /* set when it becomes idle: the kernel does not report that such a socket was connected */
    bool is_known_active GUARDED_BY(the_item_lock); /* has worked; only a reading that fails then asks whether it is idle */
    bool is_connecting GUARDED_BY(the_item_lock); /* CFSocketConnectToAddress has begun to connect in the background */
    bool backs_off GUARDED_BY(the_item_lock); /* does not read: until `retry` fires, or, without one, until the program acts */
    bool made_non_blocking GUARDED_BY(the_item_lock); /* this library has made the descriptor non-blocking, for accept */
    bool lost_descriptor GUARDED_BY(the_item_lock); /* the program closed it behind the library's back: the number is another file's */
    bool closes_late GUARDED_BY(the_item_lock); /* the last user closes `native_to_close` */
    uint32_t users GUARDED_BY(the_item_lock); /* threads that use the descriptor outside the lock */
    int native_to_close GUARDED_BY(the_item_lock);
    CFRunLoopTimerRef retry GUARDED_BY(the_item_lock); /* ends the backing off, or NULL */
    CFDataRef peer GUARDED_BY(the_item_lock); /* address of a connected socket's peer, once data came from there */
    struct delivery *spare_delivery GUARDED_BY(the_item_lock); /* memory for the next delivery; NULL: none yet, or in use */
    _Atomic uint32_t interest; /* of enum kernel_readiness, or as changes; written under the item lock, read without it */
    struct weak_source source;
};

ACQUIRES(the_item_lock) static inline void socket_lock(CFSocketRef s)
{
    lock_take(item_lock(s));
}

RELEASES(the_item_lock) static inline void socket_unlock(CFSocketRef s)
{
    lock_drop(item_lock(s));
}

/* Stops the program if `s` is NULL or no socket. */
static inline void socket_require(CFSocketRef s, const char *function)
{
    object_require(s, object_type_socket, function, "socket");
}

static inline bool socket_is_connection_oriented(const struct __CFSocket *s)
{
    return s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET;
}

/* The events that are asked for, and neither disabled nor spent. */
REQUIRES(the_item_lock) static inline uint32_t socket_wanted_events(const struct __CFSocket *s)
{
    return s->events & ~(s->disabled | s->spent);
}

/* The program has changed the socket, or says so: what was known of its state no longer holds. A running `retry` goes on. */
REQUIRES(the_item_lock) static inline void socket_expect_events(struct __CFSocket *s)
{
    s->is_idle = false;
    s->backs_off = s->retry != NULL;
}

/* True if reading re-enables itself. Either of the two bits that the kinds of reading share is enough for a socket for Data (rule 252). */
REQUIRES(the_item_lock) static inline bool socket_rearms_reading(const struct __CFSocket *s)
{
    return (s->flags & s->reading) != 0;
}

/* Checks what always holds of a socket, in builds for tests. */
#if defined(CRL_TESTING)
REQUIRES(the_item_lock) void socket_check_invariants(CFSocketRef s);
#else
#define socket_check_invariants(s) ((void)(s))
#endif

EXCLUDES(the_item_lock) bool socket_is_valid(CFSocketRef s);

/* Returns the descriptor and counts the caller as a user, or returns -1 if the socket is invalid: then the caller is no user. */
EXCLUDES(the_item_lock) int socket_begin_use(CFSocketRef s);
/* Closes the descriptor if the socket was invalidated meanwhile and no other user is left. */
EXCLUDES(the_item_lock) void socket_end_use(CFSocketRef s);

/* Computes the interest anew. To be called after each change of a field that it depends on. */
REQUIRES(the_item_lock) void socket_update_interest(CFSocketRef s);
/* Tells the run loop source the interest, if there is a source. To be called after socket_update_interest, once the lock is dropped. */
EXCLUDES(the_item_lock) void socket_publish_interest(CFSocketRef s);
/* As socket_publish_interest, for a caller that has the source. */
EXCLUDES(the_item_lock) void socket_publish_interest_to(CFSocketRef s, CFRunLoopSourceRef source);

/* The address as data that the caller owns, or NULL if there is no memory. */
CFDataRef socket_copy_address(CFAllocatorRef allocator, const struct kernel_address *address);

/* Calls the context's release function, if there is one. */
EXCLUDES(the_item_lock) void socket_release_info(CFSocketRef s, void *info);

/* Ends the socket: see CFSocketInvalidate. A second call does nothing. */
EXCLUDES(the_item_lock) void socket_invalidate(CFSocketRef s);

#endif
