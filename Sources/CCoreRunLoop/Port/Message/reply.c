/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and sends the answers to requests; see reply.h. No state of its own. */
#include "Port/Message/reply.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Port/Wire/port_log.h"

CFDataRef reply_within_limit(CFDataRef data)
{
    if (data && (uint64_t)CFDataGetLength(data) > wire_payload_max) {
        port_log(port_log_receiver, "a reply of %llu bytes is too large; an empty one is sent", (unsigned long long)CFDataGetLength(data));
        return NULL;
    }
    return data;
}

static struct wire_frame dropped_frame(const struct asker *asker, enum wire_drop_reason reason, bool keeps_channel)
{
    return (struct wire_frame){.type = wire_dropped,
                               .flags = keeps_channel ? wire_kept : 0,
                               .conversation = asker->conversation,
                               .extra = reason,
                               .sequence = asker->sequence};
}

/* Puts a reply's bytes where they travel. Returns 0, or a negative errno if there is no room for them. */
static int put_data(const struct asker *asker, const UInt8 *bytes, uint64_t length, struct reply *reply)
{
    const struct arena *arena = &asker->channel->arena;
    int memory;

    if (length == 0) {
        reply->frame.flags |= wire_no_data;
    } else if (length > payload_arena_from && length <= arena->size) {
        memcpy(arena->address, bytes, (size_t)length);
        reply->frame.flags |= wire_in_arena;
    } else if (length <= wire_inline_max) {
        reply->data = bytes;
    } else {
        memory = payload_put(bytes, length);
        if (memory < 0) {
            return memory;
        }
        reply->memory = memory;
        reply->frame.flags |= wire_in_memory;
    }
    return 0;
}

void reply_load(const struct asker *asker, uint32_t status, CFDataRef whole_data, struct reply *ret_reply)
{
    CFDataRef data = status != wire_answered && !asker->wants_status ? NULL : reply_within_limit(whole_data);
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    int result;

    ret_reply->data = NULL;
    ret_reply->memory = -1;
    if (status == wire_failed && !asker->wants_status) {
        ret_reply->frame = dropped_frame(asker, wire_drop_memory, asker->keeps_channel);
        return;
    }
    ret_reply->frame = (struct wire_frame){
        .type = wire_reply,
        .flags = (uint16_t)((asker->keeps_channel ? wire_kept : 0) | (asker->channel->refuses_arena ? wire_no_arena : 0)),
        .message_id = (int32_t)(0u - (uint32_t)asker->message_id),
        .conversation = asker->conversation,
        .length = length,
        .sequence = asker->sequence};
    if (status != wire_answered && asker->wants_status) {
        ret_reply->frame.flags |= wire_has_status;
        ret_reply->frame.extra = status;
    }
    result = put_data(asker, length > 0 ? CFDataGetBytePtr(data) : NULL, length, ret_reply);
    if (result < 0) {
        port_log(port_log_receiver, "a reply could not be sent: %s", payload_put_error_text(result));
        ret_reply->frame = dropped_frame(asker, wire_drop_memory, asker->keeps_channel);
    }
}

void reply_release(const struct reply *reply)
{
    if (reply->memory >= 0) {
        (void)kernel.close(reply->memory);
    }
}

/* Sends the packet with the memory file that the reply has announced. */
static int send_memory(const struct server_channel *channel, const struct reply *reply)
{
    const struct wire_frame frame = {.type = wire_descriptor, .conversation = reply->frame.conversation, .sequence = reply->frame.sequence};

    return packet_send(channel->descriptor, &frame, NULL, &reply->memory, 1);
}

/*
 * Drops a channel on which the reply could not be sent. Clients read a channel that ends without a last frame as the end of the port, so
 * one is tried first. A client that does not read its channel does not get that frame either.
 */
static void drop_channel_with_reason(struct local_port *local, const struct asker *asker)
{
    const struct wire_frame frame = dropped_frame(asker, wire_drop_memory, false);

    (void)packet_send(asker->channel->descriptor, &frame, NULL, NULL, 0);
    channel_table_drop(&local->channels, asker->channel);
}

/* Sends the data in a memory file, because the client has made its channel with less room than the packet needs. */
static int send_elsewhere(const struct server_channel *channel, const struct reply *reply)
{
    struct reply other = *reply;
    int result = other.memory = payload_put(reply->data, reply->frame.length);

    if (result < 0) {
        return result;
    }
    other.data = NULL;
    other.frame.flags |= wire_in_memory;
    result = packet_send(channel->descriptor, &other.frame, NULL, NULL, 0);
    if (result == 0) {
        result = send_memory(channel, &other);
    }
    reply_release(&other);
    return result;
}

void reply_send(struct local_port *local, const struct asker *asker, const struct reply *reply)
{
    struct server_channel *channel = asker->channel;
    int result;

    invariant(channel->is_running && channel->holders > 0);
    server_channel_before_reply(channel); /* before sending: the client may use the channel again as soon as it has the reply */
    if (reply->memory < 0 && channel->is_kept && channel->page &&
        reply_page_put(channel->page, channel->bell, &reply->frame, reply->data)) {
        channel_table_end(&local->channels, channel);
        return;
    }
    result = packet_send(channel->descriptor, &reply->frame, reply->data, NULL, 0);
    if (result == 0 && reply->memory >= 0) {
        result = send_memory(channel, reply);
    } else if (result == -EMSGSIZE && reply->data) {
        result = send_elsewhere(channel, reply);
    }
    if (result < 0) {
        drop_channel_with_reason(local, asker);
    }
    channel_table_end(&local->channels, channel);
}

void reply_by_local_queue(struct local_queue *local_queue, struct local_message *local_message, uint32_t status, CFDataRef data)
{
    if (status == wire_answered || local_message->wants_status) {
        local_queue_reply(local_queue, local_message, status, reply_within_limit(data));
    } else if (status == wire_failed) {
        local_queue_drop(local_queue, local_message);
    } else {
        local_queue_reply(local_queue, local_message, wire_answered, NULL);
    }
}

void reply_dropped(CFMessagePortRef port, const struct asker *asker, enum wire_drop_reason reason)
{
    const struct reply reply = {.frame = dropped_frame(asker, reason, asker->keeps_channel), .data = NULL, .memory = -1};

    if (asker->channel) {
        port_lock(port);
        reply_send(&port->side.local, asker, &reply);
        port_unlock(port);
    }
}
