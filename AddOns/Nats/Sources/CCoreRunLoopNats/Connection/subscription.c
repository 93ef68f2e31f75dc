/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscriptions of a connection; see nats_connection.h. Used by the loop's thread.
 *
 * A callback may run the loop, and so begin and end subscriptions while the list is being visited. A new one goes to the front; one that
 * ends stays in the list, without a subscription of cnats, until the outermost visit is over.
 */
#include "Connection/nats_connection_parts.h"

#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

/* Subscribes at the server, if there is a connection. */
static void begin_subscription(struct nats_connection *connection, struct subscription *subscription)
{
    natsStatus status;

    if (!connection->nats || subscription->nats || subscription->has_ended) {
        return;
    }
    status = subscription->queue
                 ? natsConnection_QueueSubscribeSync(&subscription->nats, connection->nats, subscription->subject, subscription->queue)
                 : natsConnection_SubscribeSync(&subscription->nats, connection->nats, subscription->subject);
    if (status == NATS_OK) {
        (void)natsSubscription_SetPendingLimits(subscription->nats, -1, -1); /* messages are taken after each read of 32 KiB */
    } else {
        connection->callback(connection->info, nats_connection_complains, natsStatus_GetText(status));
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

struct subscription *nats_connection_subscribe(struct nats_connection *connection, const char *subject, const char *queue,
                                               nats_message_callback arrived, void *info)
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

static void free_ended_subscriptions(struct nats_connection *connection)
{
    struct subscription **place = &connection->subscriptions;

    invariant(connection->visits == 0);
    while (*place) {
        struct subscription *subscription = *place;

        if (subscription->has_ended) {
            invariant(!subscription->nats);
            *place = subscription->next;
            free_subscription(subscription);
        } else {
            place = &subscription->next;
        }
    }
}

void nats_connection_unsubscribe(struct nats_connection *connection, struct subscription *subscription)
{
    invariant(!subscription->has_ended);
    end_subscription(subscription);
    subscription->has_ended = true;
    if (connection->visits == 0) {
        free_ended_subscriptions(connection);
    }
}

static void visit_subscriptions(struct nats_connection *connection,
                                void (*visit)(struct nats_connection *connection, struct subscription *subscription))
{
    connection->visits++;
    for (struct subscription *subscription = connection->subscriptions; subscription; subscription = subscription->next) {
        visit(connection, subscription);
    }
    invariant(connection->visits > 0);
    connection->visits--;
    if (connection->visits == 0) {
        free_ended_subscriptions(connection);
    }
}

void subscriptions_begin(struct nats_connection *connection)
{
    visit_subscriptions(connection, begin_subscription);
}

void subscriptions_end(struct nats_connection *connection)
{
    for (struct subscription *subscription = connection->subscriptions; subscription; subscription = subscription->next) {
        end_subscription(subscription);
    }
}

static void take_messages(struct nats_connection *connection, struct subscription *subscription)
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
    struct nats_connection *connection = info;

    visit_subscriptions(connection, take_messages);
    connection->callback(connection->info, nats_connection_has_progressed, "");
}

void subscriptions_free(struct nats_connection *connection)
{
    invariant(connection->visits == 0);
    while (connection->subscriptions) {
        struct subscription *first = connection->subscriptions;

        connection->subscriptions = first->next;
        free_subscription(first);
    }
}
