/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a port of the same process: a second queue beside the port's socket, with the same rules and without the kernel.
 *
 * An inbox belongs to a local port and is shared with the remote ports that found it there; it is closed when the port ends or changes its
 * name, as the socket is. It opens with the port's run loop source, which is posted when the first message comes. Data is passed by
 * reference where nobody can change it. A letter's sender waits in its own loop for the letter's state to change.
 *
 *   B  the inbox's lock, inside the port's; not held while user code or the loop's code runs
 */
#ifndef CRL_PORT_INBOX_H
#define CRL_PORT_INBOX_H

#include "Support/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "Support/list.h"
#include "Support/lock.h"

enum letter_state {
    letter_waiting = 0, /* the one state that does not end the sender's wait */
    letter_replied,
    letter_dropped, /* the receiver could not take it */
    letter_gone, /* the port has ended */
    letter_given_up, /* the sender waits no longer */
};

/* One message. The sender of a request and the receiver have a reference each. */
struct letter {
    _Atomic uint32_t references;
    _Atomic uint32_t state; /* leaves letter_waiting once */
    struct link link; /* of the inbox: waiting for the receiver, or in a callout; B */
    struct link sender_link; /* of the remote's letters; its P */
    CFMessagePortRef remote; /* C; the sender's, which has a reference while it waits */
    bool is_noted; /* the sender's; among the remote's letters */
    SInt32 message_id; /* C */
    CFDataRef data; /* C; the receiver's */
    CFDataRef reply; /* the receiver's until the state says that there is one, then the sender's */
    CFRunLoopRef loop; /* C; the sender's, with a reference; NULL: one way */
};

struct inbox {
    _Atomic uint32_t references;
    struct lock lock;
    bool is_closed; /* B */
    CFRunLoopSourceRef source; /* B; a reference while open; NULL: not open yet, or closed */
    struct link waiting; /* B */
    struct link in_callout; /* B */
    uint32_t count; /* B; of those waiting */
    uint32_t limit; /* B */
    uint32_t firsts; /* B; counts letters that found none waiting, each of which has the source posted by who put it in */
    _Atomic uint32_t posted; /* the last of these for which that has been done */
    uint32_t senders; /* B; that wait for room */
    _Atomic uint32_t taken; /* counts; what senders sleep on */
    pid_t process; /* C; the port's */
    _Atomic uint32_t in_socket; /* packets that this process has sent to the port's socket and that it has not taken yet */
};

/* Programs may switch inboxes off by CORERUNLOOP_MESSAGES=socket in the environment; tests by this. Written before any port is made. */
extern bool inboxes_are_off;

struct inbox *inbox_create(uint32_t limit); /* with one reference; NULL if there is no memory */
void inbox_retain(struct inbox *inbox);
void inbox_release(struct inbox *inbox);

/*
 * From now on messages can be put in, and `source` is posted for them; at once by the caller if `ret_has_letters`. The source that was
 * posted before, whose reference is the caller's now, or NULL.
 */
CFRunLoopSourceRef inbox_open(struct inbox *inbox, CFRunLoopSourceRef source, bool *ret_has_letters);
/* Letters can be put in, and would overtake nothing that went by the socket: not even what a remote port sent that has ended since. */
bool inbox_is_open(struct inbox *inbox);
/* A packet goes to the socket, or has been taken from it, or did not get there. */
void inbox_expect_packet(struct inbox *inbox);
void inbox_forget_packet(struct inbox *inbox);
void inbox_set_limit(struct inbox *inbox, uint32_t limit);
/* The port ends: every letter is gone, those in a callout too. */
void inbox_close(struct inbox *inbox);

/* For fork, in this order around it; the last in the child. */
void inbox_lock(struct inbox *inbox);
void inbox_unlock(struct inbox *inbox);
void inbox_abandon(struct inbox *inbox);

/* ---- the sender ---- */

/* A letter with that data, shared or copied; `loop` is NULL for one way. NULL if there is no memory. */
struct letter *letter_create(SInt32 message_id, CFDataRef data, CFRunLoopRef loop);
void letter_release(struct letter *letter);

enum inbox_put { inbox_took, inbox_full, inbox_gone };

/* Puts a letter in. If it is full, `ret_taken` is what inbox_wait_for_room waits for a change of. */
enum inbox_put inbox_put(struct inbox *inbox, struct letter *letter, uint32_t *ret_taken);
void inbox_wait_for_room(struct inbox *inbox, uint32_t taken, int64_t deadline_ns);

/* Ends the wait and wakes the sender; false if it has ended already. */
bool letter_end(struct letter *letter, enum letter_state state);
/* The sender waits no longer. What the wait has come to. */
enum letter_state letter_give_up(struct letter *letter);
/* For a thread without a loop: waits a while at most. */
void letter_wait(struct letter *letter, int64_t deadline_ns);

/* ---- the receiver ---- */

/* The next letter, whose callout begins, with the receiver's reference; NULL if there is none. `ret_has_more`: post the source again. */
struct letter *inbox_take(struct inbox *inbox, bool *ret_has_more);

/* Its callout has ended. The reply is shared or copied; NULL is an empty one. */
void inbox_reply(struct inbox *inbox, struct letter *letter, CFDataRef reply);
/* It could not be taken. */
void inbox_drop(struct inbox *inbox, struct letter *letter);

#endif
