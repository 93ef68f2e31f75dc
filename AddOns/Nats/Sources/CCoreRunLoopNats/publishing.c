/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a connection, and what it publishes; see connection.h. */
#include "connection_parts.h"

#include <stdlib.h>
#include <string.h>

bool connection_is_ready(const struct connection *connection)
{
    return connection->is_up;
}

size_t connection_message_max(const struct connection *connection)
{
    int64_t most = connection->nats ? natsConnection_GetMaxPayload(connection->nats) : 0;

    return most > 0 ? (size_t)most : 0;
}

size_t connection_backlog(const struct connection *connection)
{
    int bytes = connection->nats ? natsConnection_Buffered(connection->nats) : 0;

    return bytes > 0 ? (size_t)bytes : 0;
}

/* ---- publishing ---- */

/* The head and the data in one piece. */
static uint8_t *join(struct connection *connection, const void *head, size_t head_size, const void *data, size_t length)
{
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

bool connection_publish(struct connection *connection, const char *subject, const char *reply, const void *head, size_t head_size,
                        const void *data, size_t length)
{
    const uint8_t *bytes = connection->is_up ? join(connection, head, head_size, data, length) : NULL;
    int size = (int)(head_size + length);
    natsStatus status = NATS_CONNECTION_DISCONNECTED;

    if (bytes) {
        status = reply ? natsConnection_PublishRequest(connection->nats, subject, reply, bytes, size)
                       : natsConnection_Publish(connection->nats, subject, bytes, size);
    }
    return status == NATS_OK;
}

static natsStatus set_fields(natsMsg *message, const struct message_fields *fields)
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

bool connection_publish_with_fields(struct connection *connection, const char *subject, const char *reply,
                                    const struct message_fields *fields, const void *head, size_t head_size, const void *data,
                                    size_t length)
{
    const uint8_t *bytes = connection->is_up ? join(connection, head, head_size, data, length) : NULL;
    natsMsg *message = NULL;
    natsStatus status = NATS_CONNECTION_DISCONNECTED;

    if (bytes) {
        status = natsMsg_Create(&message, subject, reply, (const char *)bytes, (int)(head_size + length));
    }
    if (status == NATS_OK) {
        status = set_fields(message, fields);
    }
    if (status == NATS_OK) {
        status = natsConnection_PublishMsg(connection->nats, message);
    }
    natsMsg_Destroy(message);
    return status == NATS_OK;
}
