/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriptions of a connection; see connection.h. */
#include "connection_parts.h"

#include <stdlib.h>
#include <string.h>

void subscription_begin(struct connection *connection, struct subscription *subscription)
{
    natsStatus status;

    if (!connection->nats || subscription->nats) {
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

void subscription_end(struct subscription *subscription)
{
    if (subscription->nats) {
        (void)natsSubscription_Unsubscribe(subscription->nats);
        natsSubscription_Destroy(subscription->nats);
        subscription->nats = NULL;
    }
}

static void free_subscription(struct subscription *subscription)
{
    subscription_end(subscription);
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
    subscription_begin(connection, subscription);
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
    subscription_end(subscription);
    subscription->is_over = true;
    if (!connection->is_taking) {
        free_those_over(connection);
    }
}

static void take_messages_of(struct subscription *subscription)
{
    uint64_t count = 0;
    natsMsg *message;

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

    connection->is_taking = true;
    for (struct subscription *subscription = connection->subscriptions; subscription; subscription = subscription->next) {
        take_messages_of(subscription);
    }
    connection->is_taking = false;
    free_those_over(connection);
    connection->told(connection->info, connection_has_moved, "");
}

void subscriptions_free(struct connection *connection)
{
    while (connection->subscriptions) {
        connection->subscriptions->is_over = true;
        free_those_over(connection);
    }
}
