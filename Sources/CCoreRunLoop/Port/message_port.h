/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message ports: the object, and what the files of this folder know of one another.
 *
 *   P  the port's own lock      T  the table's lock      C  constant after creation      A  atomic
 *
 * Lock order: creation -> table -> port, and none of them together with one of the run loop's, nor while user code is called. The
 * registry's lock is inside all of them. A port's lock may be held over system calls that do not wait.
 */
#ifndef CRL_PORT_MESSAGE_PORT_H
#define CRL_PORT_MESSAGE_PORT_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "Kernel/fork_mark.h"
#include "Loop/info_hold.h"
#include "Port/inbox.h"
#include "Port/line_table.h"
#include "Port/packet.h"
#include "Port/port_name.h"
#include "Port/registry.h"
#include "Runtime/object.h"
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
struct incoming;

struct offender {
    pid_t pid;
    uint32_t count;
};

/* Who is called in the place of the context's info, until another is: that one's callouts may still be under way then. */
struct callee {
    void *object; /* C; a reference, which the context's `release` gives back once the callee has been replaced and no callout has it */
    uint32_t calls; /* P; callouts under way */
};

struct local_port {
    CFMessagePortCallBack callout; /* C */
    CFMessagePortContext context; /* C; without the info */
    struct called_info info; /* P; in callouts in which no callee is called */
    struct callee *callee; /* P; NULL: the info is called */
    int socket; /* P; -1 once closed */
    uint32_t readers; /* P; threads that are reading from the socket */
    uid_t owner; /* C; whose messages are taken */
    struct publication publication; /* P */
    CFRunLoopSourceRef source; /* P; a reference, until the port is invalid */
    struct line_table lines; /* P */
    uint32_t queue_limit; /* P */
    uint64_t budget; /* P */
    struct incoming *spare_incoming; /* P; memory for the next message; NULL: none yet, or in use */
    uint64_t in_use; /* P; bytes accepted whose callouts have not ended */
    struct offender offenders[offenders_max]; /* P */
    struct dispatch_attachment *queue; /* P; of the dispatch queue that drives the port; NULL: none does */
    struct inbox *inbox; /* P; NULL without memory for one, or once the port has ended */
};

struct remote_port {
    int socket; /* P; -1 once closed */
    int place; /* P; stands for the owner's socket */
    uint32_t users; /* P; threads between looking at a descriptor and being done with it: they put off its closing */
    uint64_t send_room; /* C; of the socket, for what is under way */
    uint32_t sequence; /* P; of the last frame sent */
    uint32_t confirmed; /* P; of the last frame known to have been received */
    uint32_t queue_limit; /* P */
    uint64_t budget; /* C; what the owner said at connection: larger data is not sent */
    int control; /* P; our end of the control line, -1 if there is none */
    uint64_t control_token; /* P */
    struct ack_page *acks; /* P; NULL if there is no control line */
    uint8_t looks_to_leave_out; /* P; so often a full queue is not looked at for a moment, since that was in vain */
    uint8_t looks_left_out; /* P; how often that was after the last time in vain; 0: it was not */
    bool has_no_control; /* P; the owner did not take it: the kernel's queue alone limits us */
    uint32_t last_line; /* P; the number of the latest line */
    uint64_t last_conversation; /* P */
    struct link free_lines; /* P; latest first */
    struct link busy_lines; /* P */
    uint32_t free_count; /* P */
    struct inbox *inbox; /* C; with a reference: the owner is in this process. NULL: it is not */
    uint32_t sends_by_socket; /* P; of threads that have decided for the socket: none goes by the inbox before what they send */
    /* A, set under P; nothing has been under way to the socket since it could be used; from then on everything goes there. */
    atomic_bool uses_inbox;
    struct link letters; /* P; requests in the inbox that wait for a reply */
};

/* A name that the port has given up: somebody may still have the string from CFMessagePortGetName. */
struct former_name {
    struct former_name *next;
    CFStringRef string;
};

struct __CFMessagePort {
    struct object object;
    struct lock lock;
    bool is_remote; /* C */
    atomic_bool is_valid; /* A; written under P */
    struct link table_link; /* T */
    struct link republished_link; /* creation lock */
    uint32_t republish_round; /* creation lock; the last in which it had its turn */
    struct port_name name; /* written under T and P, read under either; length 0: unnamed */
    CFStringRef name_string; /* P */
    bool name_is_lent; /* P; CFMessagePortGetName has returned that string: it lasts as long as the port */
    struct former_name *former_names; /* creation lock; those that were lent */
    CFMessagePortInvalidationCallBack invalidated; /* P */
    struct scratch scratch; /* A */
    union {
        struct local_port local;
        struct remote_port remote;
    } side;
};

static inline void port_lock(CFMessagePortRef port)
{
    lock_take(&port->lock);
}

static inline void port_unlock(CFMessagePortRef port)
{
    lock_drop(&port->lock);
}

extern struct fork_mark port_fork_mark;

/* In a child that was made without the handlers of fork, where no port is valid. */
static inline bool port_is_orphan(void)
{
    return fork_mark_is_wiped(&port_fork_mark);
}

static inline bool port_is_valid(CFMessagePortRef port)
{
    return atomic_load_explicit(&port->is_valid, memory_order_acquire) && !port_is_orphan();
}

extern const struct object_class message_port_class;

/* ---- port_table.c: which ports this process has ---- */

/* In a child that was made by _Fork or clone, which run no handlers: does what those do. */
void port_table_disown(void);
/* One thread at a time finds or makes a port of a name. User code may run in the end. */
void port_table_begin_creation(void);
void port_table_end_creation(void);
/* The valid port of that name, with a reference, or NULL. */
CFMessagePortRef port_table_find(bool is_remote, const struct port_name *name);
void port_table_add(CFMessagePortRef port);
/* Harmless when done already. Until then the child of a fork lets go of what the port holds, valid or not. */
void port_table_remove(CFMessagePortRef port);
/* Around a change of a port's name, with the port's lock inside. T */
void port_table_begin_change(void);
void port_table_end_change(CFMessagePortRef port);
/*
 * Registers again what others can no longer find: at once what has `name`, which may be NULL, and all if the directory has gone; else,
 * where there are many ports, within a number of creations. Between the beginning and the end of a creation.
 */
void port_table_republish(const struct port_name *name);

/* ---- local_port.c, local_name.c, local_info.c ---- */

CFMessagePortRef local_port_create(CFAllocatorRef allocator, const struct port_name *name, CFMessagePortCallBack callout,
                                   const CFMessagePortContext *context, bool *ret_is_new);
bool local_port_rename(CFMessagePortRef port, const struct port_name *name);
void local_port_republish(CFMessagePortRef port);
CFRunLoopSourceRef local_port_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order);
void local_port_set_queue(CFMessagePortRef port, void *queue);
/* The part of invalidation that comes before the callback, and the part that comes after. */
void local_port_withdraw(CFMessagePortRef port);
void local_port_close(CFMessagePortRef port);
/* Asks the program to describe the info, which lasts that long. NULL: it does not, or the port is invalid. */
CFStringRef local_port_describe_info(CFMessagePortRef port);
/* Gives the info back, unless a callout on another thread uses it. */
void local_port_release_info(CFMessagePortRef port);
/*
 * Has the callouts that begin from now on get `object` in the place of the info, until the port is invalid. Takes a reference to it over,
 * at once to give it back if the port is invalid already. Callouts that have begun go on with what they got, which is released after the
 * last of them, also when that callout invalidates the port. False, with nothing changed, if there is no memory.
 */
bool local_port_call(CFMessagePortRef port, void *object);
/* A callout that got the callee's object has ended. True: `ret_object` is to be released once the lock is dropped. P */
bool local_port_leave(const struct local_port *local, struct callee *callee, void **ret_object);
void local_port_abandon(CFMessagePortRef port); /* in the child of a fork */
/* Around a read from the socket; false if there is none any more. The end is with the lock held. */
bool local_port_begin_read(CFMessagePortRef port);
void local_port_end_read(CFMessagePortRef port);

/* ---- packet_intake.c and letter_intake.c: what comes in at a local port ---- */

/* Takes packets until one has led to a callout or there is none. Whoever calls has a reference to the port, which may end meanwhile. */
void local_port_receive(CFMessagePortRef port);
/* Takes one letter from the inbox. */
void local_port_receive_letter(CFMessagePortRef port, CFRunLoopSourceRef source);

/* ---- remote_port.c ---- */

CFMessagePortRef remote_port_create(CFAllocatorRef allocator, const struct port_name *name);
void remote_port_close(CFMessagePortRef port);
void remote_port_abandon(CFMessagePortRef port);
/* Asks whether the owner still is there. If not, the port is to be made invalid. */
bool remote_port_is_alive(CFMessagePortRef port);
/* Puts off the closing of descriptors; false if they are closed already. P */
bool remote_port_use(CFMessagePortRef port);
void remote_port_unuse(CFMessagePortRef port);
/* Messages go into the inbox of the owner, which is in this process. P */
bool remote_port_uses_inbox(struct remote_port *remote);
/*
 * How much data may travel in a packet, if it is to be known for `length`: so much that the socket has room for as many such packets as the
 * queue holds.
 */
uint64_t remote_port_packet_data_max(CFMessagePortRef port, uint64_t length);
/* A frame came back: what was sent before it has been received. P */
void remote_port_confirm(struct remote_port *remote, uint32_t sequence);
/* Hands a page over for one of its lines. 0 or a negative errno; never waits. */
int remote_port_offer_page(CFMessagePortRef port, uint32_t line, uint64_t token, const int descriptors[wire_descriptors_max]);
/*
 * Sends a frame, waiting for room. `frame->sequence` and what belongs to the control line are set here. A kCFMessagePort code:
 * kCFMessagePortIsInvalid if the receiver was gone already, so that who asks may connect anew and send again (207, 211), and
 * kCFMessagePortBecameInvalidError if it went while there was no room (243); after either the port is to be made invalid. `now_ns` becomes
 * 0 if time has passed.
 */
SInt32 remote_port_send(CFMessagePortRef port, struct wire_frame *frame, const void *data, const int *descriptors, int count,
                        int64_t deadline_ns, int64_t *now_ns);

/* ---- call.c ---- */

/* After kCFMessagePortIsInvalid and kCFMessagePortBecameInvalidError the port is to be made invalid, of which others are told. */
SInt32 message_send(CFMessagePortRef port, SInt32 message_id, CFDataRef data, CFTimeInterval send_timeout, CFTimeInterval receive_timeout,
                    CFStringRef reply_mode, CFDataRef *ret_reply);
/* Closes a line that is in no call. */
struct client_line;
void client_line_close(struct client_line *line);

/* ---- CFMessagePort.c ---- */

/* A new object of either side, valid, in no table; NULL if there is no memory. */
CFMessagePortRef message_port_allocate(CFAllocatorRef allocator, bool is_remote, const struct port_name *name);
void message_port_invalidate(CFMessagePortRef port);
/* The same, and gives the caller's reference back, even if the invalidation callback does not return. */
void message_port_end(CFMessagePortRef port);

#endif
