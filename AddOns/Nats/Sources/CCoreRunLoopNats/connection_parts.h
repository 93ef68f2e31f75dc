/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share: connection.c, subscription.c and publishing.c. */
#ifndef CRL_NATS_CONNECTION_PARTS_H
#define CRL_NATS_CONNECTION_PARTS_H

#include "nats_link_names.h"

#include <pthread.h>
#include <stdatomic.h>

#include "CoreFoundation/CoreFoundation.h"
#include "connection.h"

struct subscription {
    struct subscription *next;
    natsSubscription *nats; /* NULL while there is no connection */
    char *subject;
    char *queue; /* NULL: each member gets each message */
    message_arrived arrived;
    void *info;
    bool is_over; /* ended during a walk */
};

/* What cnats tells, in the order in which the loop's thread handles it. */
enum event { it_connected, it_complains, it_was_lost, it_came_back, it_closed, it_failed };

struct news {
    unsigned pending; /* bits of the events */
    natsConnection *nats; /* of it_connected */
    bool is_refusal; /* of it_closed and it_failed, as the next */
    char end[256]; /* why */
    char complaint[256];
};

struct connection {
    _Atomic int references;
    CFRunLoopRef loop; /* constant: a reference */
    struct loop_adapter *adapter; /* constant */
    natsOptions *options; /* constant */
    _Atomic int tries; /* of connecting, since it was last up */
    CFRunLoopSourceRef source; /* constant: signalled when there is news */
    pthread_mutex_t lock; /* guards the next two; no other is taken with it */
    bool is_over; /* nothing is told any more */
    struct news news;
    /* Used by the loop's thread. */
    connection_told told;
    void *info;
    natsConnection *nats; /* NULL until it is up for the first time, and once cnats has given it up */
    bool is_up;
    CFRunLoopTimerRef retry;
    struct subscription *subscriptions;
    int walks; /* through the subscriptions, one within the other: a handler may run the loop */
    uint8_t *scratch;
    size_t scratch_size;
};

/* ---- in subscription.c ---- */

/* Subscribes all at the server. */
void subscriptions_begin(struct connection *connection);
/* The subscriptions go on with the next connection. */
void subscriptions_end(struct connection *connection);
/* Frees all of them. */
void subscriptions_free(struct connection *connection);
/* Gives the messages that were read to their handlers, which may end subscriptions and add some in front. `info` is the connection. */
void subscriptions_take_messages(void *info);

#endif
