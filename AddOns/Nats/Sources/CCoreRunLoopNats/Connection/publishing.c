/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a connection, and publishing over it; see nats_connection.h. Used by the loop's thread. */
#include "Connection/nats_connection_parts.h"

#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"

bool nats_connection_is_ready(const struct nats_connection *connection)
{
    invariant(!connection->is_up || connection->nats);
    return connection->is_up;
}

size_t nats_connection_message_max(const struct nats_connection *connection)
{
    int64_t most = connection->nats ? natsConnection_GetMaxPayload(connection->nats) : 0;

    return most > 0 ? (size_t)most : 0;
}

size_t nats_connection_backlog(const struct nats_connection *connection)
{
    int bytes = connection->nats ? natsConnection_Buffered(connection->nats) : 0;

    return bytes > 0 ? (size_t)bytes : 0;
}

/* ---- publishing ---- */

/* Returns the head and the data in one piece, valid until the next call; NULL without memory. */
static uint8_t *join_head_and_data(struct nats_connection *connection, const void *head, size_t head_size, const void *data, size_t length)
{
    invariant(connection->is_up && connection->nats);
    invariant(length == 0 || data);
    if (head_size + length > connection->scratch_size) {
        uint8_t *larger = realloc(connection->scratch, 2 * (head_size + length));

        if (!larger) {
            return NULL;
        }
        connection->scratch = larger;
        connection->scratch_size = 2 * (head_size + length);
    }
    memcpy(connection->scratch, head, head_size);
    if (length > 0) {
        memcpy(connection->scratch + head_size, data, length);
    }
    return connection->scratch;
}

bool nats_connection_publish(struct nats_connection *connection, const char *subject, const char *reply, const void *head, size_t head_size,
                             const void *data, size_t length)
{
    const uint8_t *bytes = connection->is_up ? join_head_and_data(connection, head, head_size, data, length) : NULL;
    int size = (int)(head_size + length);
    natsStatus status = NATS_CONNECTION_DISCONNECTED;

    if (bytes) {
        status = reply ? natsConnection_PublishRequest(connection->nats, subject, reply, bytes, size)
                       : natsConnection_Publish(connection->nats, subject, bytes, size);
    }
    return status == NATS_OK;
}

static natsStatus set_header_fields(natsMsg *message, const struct message_fields *fields)
{
    natsStatus status = NATS_OK;

    if (fields->id) {
        status = natsMsgHeader_Set(message, "Nats-Msg-Id", fields->id);
    }
    if (status == NATS_OK && fields->is_first) {
        status = natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", "0");
    }
    return status;
}

bool nats_connection_publish_with_fields(struct nats_connection *connection, const char *subject, const char *reply,
                                         const struct message_fields *fields, const void *head, size_t head_size, const void *data,
                                         size_t length)
{
    const uint8_t *bytes = connection->is_up ? join_head_and_data(connection, head, head_size, data, length) : NULL;
    natsMsg *message = NULL;
    natsStatus status = NATS_CONNECTION_DISCONNECTED;

    if (bytes) {
        status = natsMsg_Create(&message, subject, reply, (const char *)bytes, (int)(head_size + length));
    }
    if (status == NATS_OK) {
        status = set_header_fields(message, fields);
    }
    if (status == NATS_OK) {
        status = natsConnection_PublishMsg(connection->nats, message);
    }
    natsMsg_Destroy(message);
    return status == NATS_OK;
}
