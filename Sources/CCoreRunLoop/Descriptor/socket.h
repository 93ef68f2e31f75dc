/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket object, shared by CFSocket.c and CFSocketTransfer.c (the public calls), socket_events.c (what happens when the descriptor is
 * ready) and socket_registry.c (which object stands for which descriptor).
 *
 * Guards: C constant after creation, I the item lock. An event is wanted unless it is disabled (by the program) or spent (told, and to be
 * enabled again). All of that is taken together into `interest`, which the run loop source is told outside the lock. Of an idle socket only
 * changes are wanted (descriptor_source.h). The source holds a reference on the socket, and is known here only weakly.
 *
 * Whoever uses the descriptor outside the lock counts as a user; an invalidation meanwhile leaves the closing to the last of them, so that
 * nobody meets a stranger under the number.
 */
#ifndef CRL_DESCRIPTOR_SOCKET_H
#define CRL_DESCRIPTOR_SOCKET_H

#include "Support/link_names.h"

#include <sys/socket.h>

#include "CoreFoundation/CFSocket.h"
#include "Kernel/kernel.h"
#include "Loop/info_hold.h"
#include "Loop/weak_source.h"
#include "Runtime/object.h"
#include "Support/lock.h"

/* The kinds of reading are one event; the others have their public bits. */
enum socket_event {
    socket_event_read = 1,
    socket_event_connect = kCFSocketConnectCallBack,
    socket_event_write = kCFSocketWriteCallBack,
};

struct delivery;

struct __CFSocket {
    struct object object;
    CFSocketCallBack callout; /* C */
    CFSocketContext context; /* C; without the info */
    struct called_info info; /* I */
    CFOptionFlags reading; /* C; none, or kCFSocketRead-, Accept- or DataCallBack */
    uint32_t events; /* C; of enum socket_event: what was asked for at creation */
    int type; /* C; SOCK_STREAM and so on, negative if it is no socket */
    int native; /* I; -1 once invalid */
    bool is_valid; /* I */
    CFOptionFlags flags; /* I */
    int32_t memberships; /* I; of the source in modes of loops; what it joins and leaves at once on several threads is counted late */
    uint32_t disabled; /* I */
    uint32_t spent; /* I */
    uint32_t renewed; /* I; no longer spent, but not to be told by the run `renewed_by` (descriptor_source_poll_number) */
    uint64_t renewed_by; /* I */
    bool has_ended; /* I; the end was told: reading is not enabled again by itself */
    bool is_idle; /* I; neither connected nor on the way to it nor listening: the kernel calls that a hang-up, which nobody wants to hear */
    bool is_unix; /* I; known once it is idle: the kernel does not report that such a socket was connected */
    bool is_known_active; /* I; is looked at as idle only when it says that it has no connection */
    bool is_connecting; /* I; by CFSocketConnectToAddress, in the background */
    bool backs_off; /* I; there is nothing to accept with, for a while (`retry`); or it does not listen, which somebody has to change */
    bool made_non_blocking; /* I; by this library, for accept */
    bool lost_descriptor; /* I; the program closed it behind our back: the number is somebody else's */
    bool closes_late; /* I; the last user closes `native_to_close` */
    uint32_t users; /* I; of the descriptor, outside the lock */
    int native_to_close; /* I */
    CFRunLoopTimerRef retry; /* I; ends the backing off, or NULL */
    CFDataRef peer; /* I; of a connected socket, once data came from there */
    struct delivery *spare_delivery; /* I; memory for the next; NULL: none yet, or in use */
    _Atomic uint32_t interest; /* of enum kernel_readiness, or as changes; written under I */
    struct weak_source source; /* I */
};

static inline void socket_lock(CFSocketRef s)
{
    lock_take(item_lock(s));
}

static inline void socket_unlock(CFSocketRef s)
{
    lock_drop(item_lock(s));
}

static inline bool socket_is_connection_oriented(const struct __CFSocket *s)
{
    return s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET;
}

/* The program has done something to the socket, or says so. I */
static inline void socket_expect_events(struct __CFSocket *s)
{
    s->is_idle = false;
    s->backs_off = s->retry != NULL;
}

/* Its reading is enabled again by itself. Data may be called Read or Accept here, too: one of its number's two bits is enough (252). I */
static inline bool socket_reads_again(const struct __CFSocket *s)
{
    return (s->flags & s->reading) != 0;
}

/* The descriptor, counted as used, or -1 when the socket is invalid. */
int socket_begin_use(CFSocketRef s);
void socket_end_use(CFSocketRef s);

/* Computes the interest anew after a change. I. */
void socket_update(CFSocketRef s);
/* Tells the source, if there is one. No lock. */
void socket_tell_source(CFSocketRef s);
/* The same for who has it at hand. */
void socket_tell(CFSocketRef s, CFRunLoopSourceRef source);

/* The callback of the run loop source; see descriptor_source.h. */
void socket_perform(void *object, CFRunLoopSourceRef source, uint32_t ready);

CFDataRef socket_copy_address(CFAllocatorRef allocator, const struct kernel_address *address);
/* Gives the context's info back, if the context says how. */
void socket_release_info(CFSocketRef s, void *info);

/*
 * What was told before, and was enabled again in the run of that number, a look without a limit: it is left to the next run, once. An
 * observer that enables callbacks in each pass would else make a program look for ever that looks again as long as a source is handled. I
 */
static inline uint32_t socket_take_renewed(CFSocketRef s, uint64_t poll_number)
{
    uint32_t renewed = s->renewed_by == poll_number ? s->renewed : 0;

    if (__builtin_expect(renewed != 0, 0)) {
        s->renewed = 0;
    }
    return renewed;
}

/* The object of a descriptor, with a reference, or NULL. */
CFSocketRef socket_registry_find(int native);
/* Registers `s`; or returns the object that is there, with a reference. `ret_failed`: no memory. */
CFSocketRef socket_registry_add(int native, CFSocketRef s, bool *ret_failed);
void socket_registry_remove(int native, CFSocketRef s);
/* The number belongs to a new descriptor: an object that still claims it lost its own. */
void socket_registry_evict(int native);

#endif
