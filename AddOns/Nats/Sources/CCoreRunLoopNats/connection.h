/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server, on the run loop of the thread that made it.
 *
 * All functions are called on that thread, and all handlers come on it, in the loop's default mode. None waits: cnats connects, also again,
 * on threads of its own, and messages are taken from its subscriptions as soon as bytes were read. cnats's events are handed to the loop.
 */
#ifndef CRL_NATS_CONNECTION_H
#define CRL_NATS_CONNECTION_H

#include "nats_link_names.h"

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct subscription;

enum connection_event {
    connection_is_up,
    connection_is_lost, /* it is being connected again */
    connection_has_failed, /* to connect; it will be tried again. The text says why */
    connection_is_refused, /* the server wants other credentials; it will be tried again. The text says why */
    connection_has_moved, /* bytes were read or written, so there may be room */
    connection_complains, /* the server or cnats; the text says what about */
};

struct connection_settings {
    const char *const *servers;
    int server_count;
    const char *user;
    const char *password;
    const char *credentials; /* a file with a JWT and its seed; or NULL */
    const char *authorities; /* a file of certificates in PEM; NULL: the system's */
    const char *certificate; /* files in PEM, both or none */
    const char *key;
    bool uses_tls;
    const char *name; /* what the server calls the client in its lists */
};

typedef void (*connection_told)(void *info, enum connection_event event, const char *text);
/* A message of a subscription, which the callee does not keep. */
typedef void (*message_arrived)(void *info, natsMsg *message);

/* Begins to connect. Returns NULL if there is no memory, or with `ret_text` if the settings cannot be followed. */
struct connection *connection_create(const struct connection_settings *settings, connection_told told, void *info,
                                     char *ret_text, size_t text_size);
/* Ends it. No handler is called from now on. What was published is sent if there is room. */
void connection_destroy(struct connection *connection);

/* For tests: how many have memory yet. cnats closes them on a thread of its own. */
int connections_left(void);

bool connection_is_ready(const struct connection *connection);
/* The longest message in bytes that the server takes. */
size_t connection_message_max(const struct connection *connection);
/* Bytes that wait to be sent. */
size_t connection_backlog(const struct connection *connection);

/* Subscribes, now and after each new connection. With a queue each message comes to one of its members. NULL without memory. */
struct subscription *connection_subscribe(struct connection *connection, const char *subject, const char *queue, message_arrived arrived,
                                          void *info);
/* Ends a subscription: its handler is not called again. May be called in a handler. */
void connection_unsubscribe(struct connection *connection, struct subscription *subscription);

/* Publishes a head and the data behind it; `reply` may be NULL. Returns false if there is no connection or no memory. */
bool connection_publish(struct connection *connection, const char *subject, const char *reply, const void *head, size_t head_size,
                        const void *data, size_t length);
/* Fields of a message's head that JetStream reads. */
struct message_fields {
    const char *id; /* NULL: none */
    bool is_first; /* no other message has the subject */
};
bool connection_publish_with_fields(struct connection *connection, const char *subject, const char *reply,
                                    const struct message_fields *fields, const void *head, size_t head_size, const void *data,
                                    size_t length);

#endif
