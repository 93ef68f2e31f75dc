/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share: nats_connection.c, subscription.c and publishing.c. */
#ifndef CRL_NATS_NATS_CONNECTION_PARTS_H
#define CRL_NATS_NATS_CONNECTION_PARTS_H

#include "nats_link_names.h"

#include <pthread.h>
#include <stdatomic.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Support/guard.h"
#include "Connection/nats_connection.h"

/* The lock of a connection's pending events. cnats's threads take it; no other lock is taken and no code of others runs under it. */
extern struct lock_role the_pending_events_lock;

/* The loop's thread uses every field. */
struct subscription {
    struct subscription *next;
    natsSubscription *nats; /* NULL while there is no connection */
    char *subject; /* constant */
    char *queue; /* constant; NULL: each subscriber gets each message */
    nats_message_callback arrived; /* constant */
    void *info; /* constant */
    bool has_ended; /* while the list was visited: it is freed after that */
};

/* What cnats's threads report, in the order in which the loop's thread handles what is pending. */
enum cnats_event { event_connected, event_complaint, event_lost, event_regained, event_closed, event_failed };

struct pending_events {
    unsigned bits; /* of enum cnats_event */
    natsConnection *nats; /* of event_connected */
    bool is_refusal; /* of event_closed and event_failed, as the reason */
    char reason[256];
    char complaint[256]; /* of event_complaint */
};

struct nats_connection {
    /* Any thread. */
    _Atomic int references; /* the owner's, and one for each thread that connects and for a connection of cnats that is not closed */
    atomic_bool is_young; /* the loop gives the connection up if it ends: it has not lived since it began */
    CFRunLoopRef loop; /* constant; a reference */
    struct loop_adapter *adapter; /* constant */
    natsOptions *options; /* constant */
    CFRunLoopSourceRef source; /* constant; signalled when events are pending */
    pthread_mutex_t lock; /* the_pending_events_lock */
    bool has_ended GUARDED_BY(the_pending_events_lock); /* no event is noted any more */
    struct pending_events pending GUARDED_BY(the_pending_events_lock);
    /* The loop's thread only. */
    nats_connection_callback callback; /* constant */
    void *info; /* constant */
    natsConnection *nats; /* NULL until it is up for the first time, and after cnats has given it up */
    bool is_up;
    bool has_lived; /* it has been up for live_s */
    int early_ends; /* of connections since one has lived, as far as they make a difference */
    int tries; /* of connecting, since one has lived */
    CFRunLoopTimerRef timer; /* constant; without a connection the next attempt, then when it has settled, then when it has lived */
    struct subscription *subscriptions;
    int visits; /* of the list of subscriptions, one within another: a callback may run the loop */
    uint8_t *scratch; /* for the message that is being published */
    size_t scratch_size;
};

/* ---- in subscription.c; the loop's thread ---- */

/* Subscribes all of them at the server. */
void subscriptions_begin(struct nats_connection *connection);
/* Ends cnats's part of them; subscriptions_begin begins them again with the next connection. */
void subscriptions_end(struct nats_connection *connection);
void subscriptions_free(struct nats_connection *connection);
/* Gives the messages that were read to the callbacks, which may end and begin subscriptions. `info` is the connection. */
void subscriptions_take_messages(void *info);

#endif
