/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server, on the run loop of the thread that creates it.
 *
 * All functions are called on that thread, and all callbacks come on it, in the loop's default mode. No function waits: cnats connects and
 * reconnects on threads of its own, and its events are handed to the loop. Messages are taken from cnats's subscriptions as soon as bytes
 * were read.
 */
#ifndef CRL_NATS_NATS_CONNECTION_H
#define CRL_NATS_NATS_CONNECTION_H

#include "nats_link_names.h"

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nats_connection;
struct subscription;

enum nats_connection_event {
    nats_connection_is_up,
    nats_connection_is_lost, /* cnats reconnects */
    nats_connection_has_failed, /* to connect, which is tried again; the text says why */
    nats_connection_is_refused, /* the server wants other credentials; connecting is tried again, and the text says why */
    nats_connection_has_progressed, /* bytes were read or written, so that there may be room for more */
    nats_connection_complains, /* the server or cnats reports an error, which the text describes */
};

struct nats_connection_settings {
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

typedef void (*nats_connection_callback)(void *info, enum nats_connection_event event, const char *text);
/* A message of a subscription, which is valid until the callback returns. */
typedef void (*nats_message_callback)(void *info, natsMsg *message);

/* Begins to connect. Returns NULL if there is no memory, or with `ret_text` if the settings cannot be followed. */
struct nats_connection *nats_connection_create(const struct nats_connection_settings *settings, nats_connection_callback callback,
                                               void *info, char *ret_text, size_t text_size);
/* No callback comes from now on. What was published is sent if the socket has room for it. */
void nats_connection_destroy(struct nats_connection *connection);

/* For tests, any thread: how many connections have memory yet. cnats closes them on threads of its own. */
int nats_connections_left(void);

bool nats_connection_is_ready(const struct nats_connection *connection);
/* The longest message that the server takes, in bytes; 0: not known yet. */
size_t nats_connection_message_max(const struct nats_connection *connection);
/* How many bytes wait to be sent. */
size_t nats_connection_backlog(const struct nats_connection *connection);

/*
 * Subscribes, now and after each new connection. With a queue, each message comes to one of the queue's members. Returns NULL if there is
 * no memory.
 */
struct subscription *nats_connection_subscribe(struct nats_connection *connection, const char *subject, const char *queue,
                                               nats_message_callback arrived, void *info);
/* The subscription's callback does not come again. May be called in any callback. */
void nats_connection_unsubscribe(struct nats_connection *connection, struct subscription *subscription);

/* Publishes a head followed by data; `reply` may be NULL. Returns false if there is no connection or no memory. */
bool nats_connection_publish(struct nats_connection *connection, const char *subject, const char *reply, const void *head, size_t head_size,
                             const void *data, size_t length);
/* Header fields of a message that JetStream reads. */
struct message_fields {
    const char *id; /* NULL: none */
    bool is_first; /* refuse the message if one of its subject is stored already */
};
bool nats_connection_publish_with_fields(struct nats_connection *connection, const char *subject, const char *reply,
                                         const struct message_fields *fields, const void *head, size_t head_size, const void *data,
                                         size_t length);

#endif
