/* SPDX-License-Identifier: Apache-2.0 */
#include "Port/reply.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Port/port_log.h"

CFDataRef reply_within_limit(CFDataRef data)
{
    if (data && (uint64_t)CFDataGetLength(data) > wire_payload_max) {
        port_log(port_log_receiver, "a reply of %llu bytes is too large; an empty one is sent", (unsigned long long)CFDataGetLength(data));
        return NULL;
    }
    return data;
}

static struct wire_frame dropped_frame(const struct request *request, enum wire_drop_reason reason, bool keeps_line)
{
    return (struct wire_frame){.type = wire_dropped,
                               .flags = keeps_line ? wire_kept : 0,
                               .conversation = request->conversation,
                               .extra = reason,
                               .sequence = request->sequence};
}

/* Puts a reply's bytes where they travel. 0, or why there is no room for them. */
static int put_data(const struct request *request, const UInt8 *bytes, uint64_t length, struct reply *reply)
{
    const struct arena *arena = &request->line->arena;
    int memory;

    if (length == 0) {
        reply->frame.flags |= wire_null_data;
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

void reply_load(const struct request *request, CFDataRef whole_data, struct reply *ret_reply)
{
    CFDataRef data = reply_within_limit(whole_data);
    uint64_t length = data ? (uint64_t)CFDataGetLength(data) : 0;
    int result;

    ret_reply->frame = (struct wire_frame){.type = wire_reply,
                                           .flags = (request->keeps_line ? wire_kept : 0) |
                                                    (request->line->refuses_arena ? wire_no_arena : 0),
                                           .message_id = (int32_t)(0u - (uint32_t)request->message_id),
                                           .conversation = request->conversation,
                                           .length = length,
                                           .sequence = request->sequence};
    ret_reply->data = NULL;
    ret_reply->memory = -1;
    result = put_data(request, length > 0 ? CFDataGetBytePtr(data) : NULL, length, ret_reply);
    if (result < 0) {
        port_log(port_log_receiver, "a reply could not be sent: %s", port_error_text(result));
        ret_reply->frame = dropped_frame(request, wire_drop_memory, request->keeps_line);
    }
}

void reply_release(const struct reply *reply)
{
    if (reply->memory >= 0) {
        (void)kernel.close(reply->memory);
    }
}

/* What the reply says that follows. */
static int send_memory(const struct server_line *line, const struct reply *reply)
{
    const struct wire_frame frame = {
        .type = wire_descriptor, .conversation = reply->frame.conversation, .sequence = reply->frame.sequence};

    return packet_send(line->descriptor, &frame, NULL, &reply->memory, 1);
}

/*
 * The system does not let the reply through. A line that ends without a word means that the port has ended; a client that does not read
 * does not get the word either.
 */
static void hang_up_with_a_word(struct local_port *local, const struct request *request)
{
    const struct wire_frame frame = dropped_frame(request, wire_drop_memory, false);

    (void)packet_send(request->line->descriptor, &frame, NULL, NULL, 0);
    line_table_drop(&local->lines, request->line);
}

/* The line's other end, whose it is, made it with less room than a packet may have: the data goes in memory. */
static int send_elsewhere(const struct server_line *line, const struct reply *reply)
{
    struct reply other = *reply;
    int result = other.memory = payload_put(reply->data, reply->frame.length);

    if (result < 0) {
        return result;
    }
    other.data = NULL;
    other.frame.flags |= wire_in_memory;
    result = packet_send(line->descriptor, &other.frame, NULL, NULL, 0);
    if (result == 0) {
        result = send_memory(line, &other);
    }
    reply_release(&other);
    return result;
}

void reply_send(struct local_port *local, const struct request *request, const struct reply *reply)
{
    struct server_line *line = request->line;
    int result;

    server_line_before_reply(line); /* the other side may use it again as soon as it has the reply */
    if (reply->memory < 0 && line->is_kept && line->page && reply_page_put(line->page, line->bell, &reply->frame, reply->data)) {
        line_table_end(&local->lines, line);
        return;
    }
    result = packet_send(line->descriptor, &reply->frame, reply->data, NULL, 0);
    if (result == 0 && reply->memory >= 0) {
        result = send_memory(line, reply);
    } else if (result == -EMSGSIZE && reply->data) {
        result = send_elsewhere(line, reply);
    }
    if (result < 0) {
        hang_up_with_a_word(local, request);
    }
    line_table_end(&local->lines, line);
}

void reply_dropped(CFMessagePortRef port, const struct request *request, enum wire_drop_reason reason)
{
    const struct reply reply = {.frame = dropped_frame(request, reason, request->keeps_line), .data = NULL, .memory = -1};

    if (request->line) {
        port_lock(port);
        reply_send(&port->side.local, request, &reply);
        port_unlock(port);
    }
}
