/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a port of the same process: a second queue beside the port's socket, with the same rules and without the kernel.
 *
 * A local queue belongs to a local port and is shared with the remote ports that found it there. It closes, like the socket, when the port
 * ends or changes its name. It opens with the port's run loop source, which is posted when the first message comes. Data that nobody can
 * change is passed by reference. The sender of a request waits in its own loop for the local message's state to change.
 *
 * The local queue's lock is inside the port's. It is not held while user code or the loop's code runs.
 */
#ifndef CRL_PORT_CHANNEL_LOCAL_QUEUE_H
#define CRL_PORT_CHANNEL_LOCAL_QUEUE_H

#include "Port/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "Support/list.h"
#include "Support/lock.h"

enum local_message_state {
    local_message_waiting = 0, /* the one state that does not end the sender's wait */
    local_message_replied,
    local_message_dropped, /* the receiver could not take it */
    local_message_gone, /* the port has ended */
    local_message_given_up, /* the sender has stopped waiting */
};

/* One message. The sender of a request and the receiver have a reference each. */
struct local_message {
    _Atomic uint32_t references;
    _Atomic uint32_t state; /* leaves local_message_waiting once */
    struct link link; /* in the queue's `waiting` or `in_callout`; guarded by the queue's lock */
    struct link sender_link; /* in the remote port's `local_messages`; guarded by that port's lock */
    CFMessagePortRef remote; /* constant: the sender's remote port; the sender has a reference while it waits */
    SInt32 message_id; /* constant */
    CFDataRef data; /* constant: the data that the callout gets */
    CFDataRef reply; /* belongs to the receiver until the state is local_message_replied, then to the sender */
    CFRunLoopRef loop; /* constant: the loop that the sender waits in, with a reference; NULL: one way */
    bool wants_status; /* constant once it is in the queue: the sender understands statuses */
    int64_t deadline_ns; /* constant once it is in the queue: the instant after which the sender waits no more, or 0 */
    uint32_t status; /* belongs as `reply` does: why there is no answer, of enum wire_status; `reply` is its text then */
    /* Guarded by the queue's lock: called when the sender gives up. NULL: the receiver does not answer later, or the call was made. */
    void (*given_up)(void *info);
    void *given_up_info; /* guarded by the queue's lock: with a reference */
};

struct local_queue {
    _Atomic uint32_t references;
    struct lock lock;
    bool is_closed GUARDED_BY(&lock);
    CFRunLoopSourceRef source GUARDED_BY(&lock); /* a reference while open; NULL: not open yet, or closed */
    struct link waiting GUARDED_BY(&lock);
    struct link in_callout GUARDED_BY(&lock);
    uint32_t count GUARDED_BY(&lock); /* messages in `waiting` */
    uint32_t limit GUARDED_BY(&lock);
    uint32_t firsts GUARDED_BY(&lock); /* counts messages that found none waiting; the sender of each posts the source */
    _Atomic uint32_t posted; /* the latest value of `firsts` for which the source was posted */
    uint32_t senders GUARDED_BY(&lock); /* threads that wait for room */
    _Atomic uint32_t room_changes; /* counts changes of the room: messages taken, a new limit; senders that wait for room sleep on it */
    pid_t process; /* constant: the port's */
    _Atomic uint32_t in_socket; /* packets of this process that are still in the port's socket */
};

/*
 * Switches local queues off. Programs do so with CORERUNLOOP_MESSAGES=socket in the environment, tests with this variable. Written before
 * any port is made.
 */
extern bool local_queues_are_off;

struct local_queue *local_queue_create(uint32_t limit); /* with one reference; NULL if there is no memory */
void local_queue_retain(struct local_queue *local_queue);
void local_queue_release(struct local_queue *local_queue);

/*
 * Opens the queue: from now on messages can be put in, and `source` is posted for them. The caller posts it at once if `ret_has_messages`
 * is true. Returns the source that was posted before, or NULL; its reference belongs to the caller.
 */
CFRunLoopSourceRef local_queue_open(struct local_queue *local_queue, CFRunLoopSourceRef source, bool *ret_has_messages);
/*
 * Returns true if local messages can be put in and would overtake no packet in the socket, not even one from a remote port that has ended
 * since.
 */
bool local_queue_is_open(struct local_queue *local_queue);
/* Count the packets in the socket: the first before a packet is sent, the second when it was taken or could not be sent. */
void local_queue_expect_packet(struct local_queue *local_queue);
void local_queue_forget_packet(struct local_queue *local_queue);
void local_queue_set_limit(struct local_queue *local_queue, uint32_t limit);
/* Closes the queue at the port's end. Every local message becomes local_message_gone, even one in a callout. */
void local_queue_close(struct local_queue *local_queue);

/* For fork: lock before it, then unlock in the parent and abandon in the child. */
void local_queue_lock(struct local_queue *local_queue) ACQUIRES(&local_queue->lock);
void local_queue_unlock(struct local_queue *local_queue) RELEASES(&local_queue->lock);
void local_queue_abandon(struct local_queue *local_queue);

/* ---- the sender ---- */

/* Makes a local message; `data` is shared or copied, `loop` is NULL for a one-way message. Returns NULL if there is no memory. */
struct local_message *local_message_create(SInt32 message_id, CFDataRef data, CFRunLoopRef loop);
void local_message_release(struct local_message *local_message);

enum local_queue_put { local_queue_took, local_queue_full, local_queue_gone };

/* Puts a local message in. If the queue is full, pass `*ret_room_changes` to local_queue_wait_for_room, which waits for a change of it. */
enum local_queue_put local_queue_put(struct local_queue *local_queue, struct local_message *local_message, uint32_t *ret_room_changes);
void local_queue_wait_for_room(struct local_queue *local_queue, uint32_t room_changes, int64_t deadline_ns);

/* Ends the message's wait and wakes the sender. Returns false if the wait has ended already. */
bool local_message_end(struct local_message *local_message, enum local_message_state state);
/* Ends the wait for the sender. Returns the state in which the wait ended. */
enum local_message_state local_message_give_up(struct local_message *local_message);
/* Tells a receiver that answers later that the sender has given up. Without a lock, on the sender's thread. */
void local_queue_tell_given_up(struct local_queue *local_queue, struct local_message *local_message);

/* ---- the receiver ---- */

/*
 * Takes the next local message and counts its callout as begun. Returns it with the receiver's reference, or NULL if there is none. If
 * `ret_has_more` is true, the caller has to post the source again.
 */
struct local_message *local_queue_take(struct local_queue *local_queue, bool *ret_has_more);

/*
 * Ends a local message whose callout has ended. The reply is shared or copied; NULL stands for an empty one. With a status, of enum
 * wire_status, the reply is its text.
 */
void local_queue_reply(struct local_queue *local_queue, struct local_message *local_message, uint32_t status, CFDataRef reply);
/*
 * Says that a message in its callout will be answered later. `given_up` is called at most once, and only before the message ends, if the
 * sender gives up from now on. It takes over the reference to `info` then. False if the sender has given up before.
 */
bool local_queue_answer_later(struct local_queue *local_queue, struct local_message *local_message, void (*given_up)(void *info),
                              void *info);
/* Takes that back before the message ends. Returns the info, whose reference is the caller's again, or NULL if it was taken over. */
void *local_queue_forget_given_up(struct local_queue *local_queue, struct local_message *local_message);
/* Ends a local message that could not be taken. */
void local_queue_drop(struct local_queue *local_queue, struct local_message *local_message);

#endif
