/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriptions of a connection; see connection.h. */
#include "connection_parts.h"

#include <stdlib.h>
#include <string.h>

/* Subscribes at the server, if there is a connection. */
static void begin_subscription(struct connection *connection, struct subscription *subscription)
{
    natsStatus status;

    if (!connection->nats || subscription->nats || subscription->is_over) {
        return;
    }
    status = subscription->queue ? natsConnection_QueueSubscribeSync(&subscription->nats, connection->nats, subscription->subject,
                                                                     subscription->queue)
                                 : natsConnection_SubscribeSync(&subscription->nats, connection->nats, subscription->subject);
    if (status == NATS_OK) {
        (void)natsSubscription_SetPendingLimits(subscription->nats, -1, -1); /* they are taken after each read of 32 KiB */
    } else {
        connection->told(connection->info, connection_complains, natsStatus_GetText(status));
    }
}

static void end_subscription(struct subscription *subscription)
{
    if (subscription->nats) {
        (void)natsSubscription_Unsubscribe(subscription->nats);
        natsSubscription_Destroy(subscription->nats);
        subscription->nats = NULL;
    }
}

static void free_subscription(struct subscription *subscription)
{
    end_subscription(subscription);
    free(subscription->subject);
    free(subscription->queue);
    free(subscription);
}

struct subscription *connection_subscribe(struct connection *connection, const char *subject, const char *queue, message_arrived arrived,
                                          void *info)
{
    struct subscription *subscription = calloc(1, sizeof *subscription);

    if (!subscription) {
        return NULL;
    }
    subscription->subject = strdup(subject);
    subscription->queue = queue ? strdup(queue) : NULL;
    if (!subscription->subject || (queue && !subscription->queue)) {
        free_subscription(subscription);
        return NULL;
    }
    subscription->arrived = arrived;
    subscription->info = info;
    subscription->next = connection->subscriptions;
    connection->subscriptions = subscription;
    begin_subscription(connection, subscription);
    return subscription;
}

static void free_those_over(struct connection *connection)
{
    struct subscription **place = &connection->subscriptions;

    while (*place) {
        struct subscription *subscription = *place;

        if (subscription->is_over) {
            *place = subscription->next;
            free_subscription(subscription);
        } else {
            place = &subscription->next;
        }
    }
}

void connection_unsubscribe(struct connection *connection, struct subscription *subscription)
{
    end_subscription(subscription);
    subscription->is_over = true;
    if (connection->walks == 0) {
        free_those_over(connection);
    }
}

/* What a walk calls may run the loop, and so begin others and end subscriptions. None is freed before the outermost walk is over. */
static void walk(struct connection *connection, void (*visit)(struct connection *connection, struct subscription *subscription))
{
    connection->walks++;
    for (struct subscription *subscription = connection->subscriptions; subscription; subscription = subscription->next) {
        visit(connection, subscription);
    }
    connection->walks--;
    if (connection->walks == 0) {
        free_those_over(connection);
    }
}

void subscriptions_begin(struct connection *connection)
{
    walk(connection, begin_subscription);
}

void subscriptions_end(struct connection *connection)
{
    for (struct subscription *subscription = connection->subscriptions; subscription; subscription = subscription->next) {
        end_subscription(subscription);
    }
}

static void take_messages_of(struct connection *connection, struct subscription *subscription)
{
    uint64_t count = 0;
    natsMsg *message;

    (void)connection;
    while (subscription->nats && (count > 0 || (natsSubscription_QueuedMsgs(subscription->nats, &count) == NATS_OK && count > 0)) &&
           natsSubscription_NextMsg(&message, subscription->nats, 0) == NATS_OK) {
        count--;
        subscription->arrived(subscription->info, message);
        natsMsg_Destroy(message);
    }
}

void subscriptions_take_messages(void *info)
{
    struct connection *connection = info;

    walk(connection, take_messages_of);
    connection->told(connection->info, connection_has_moved, "");
}

void subscriptions_free(struct connection *connection)
{
    while (connection->subscriptions) {
        connection->subscriptions->is_over = true;
        free_those_over(connection);
    }
}
