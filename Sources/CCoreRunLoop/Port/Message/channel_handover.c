/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over channels and pages that peers hand to a local port; see channel_handover.h. No state of its own. */
#include "Port/Message/channel_handover.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"

/*
 * Makes a channel that owns the packet's first descriptor. Returns 0. Returns -EINVAL and leaves the packet alone if the descriptor is no
 * channel's end. Without memory returns -ENOMEM and closes that end.
 */
static int take_end(struct packet *packet, const struct wire_frame *frame, enum channel_kind kind, struct server_channel **ret_channel)
{
    *ret_channel = NULL;
    if (!kernel_ports.is_channel(packet->descriptors[0])) {
        return -EINVAL;
    }
    *ret_channel = server_channel_create(frame->channel, frame->token, &packet->sender, packet->descriptors[0], kind);
    if (!*ret_channel) {
        packet_socket_close(packet_take(packet, 0)); /* the other end finds that the channel was not taken */
        return -ENOMEM;
    }
    (void)packet_take(packet, 0);
    (void)kernel_ports.refuse_descriptors((*ret_channel)->descriptor);
    return 0;
}

/* Keeps a new control or watch channel, which belongs to the table then, or frees it. */
static void keep_or_free(CFMessagePortRef port, struct server_channel *channel)
{
    struct channel_table *channels = &port->side.local.channels;

    port_lock(port);
    channel_table_sweep(channels, true);
    if (channel->kind == channel_control && channels->counts[channel_control] >= channel_control_max) {
        channel_table_drop(channels, channel_table_some_control(channels));
    }
    if (channel_table_find(channels, channel->number, channel->token, &channel->peer, channel->kind) ||
        !channel_table_keep(channels, channel)) {
        server_channel_free(channel);
    }
    port_unlock(port);
}

/* Takes a channel by which the client learns of the port's end. Nobody needs the page that comes with it. */
static int take_watch(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame)
{
    struct server_channel *channel;
    int result = take_end(packet, frame, channel_watch, &channel);

    if (result == 0) {
        packet_close(packet);
        keep_or_free(port, channel);
    }
    return result;
}

int channel_handover_control(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame)
{
    struct server_channel *channel;
    void *page = NULL;
    int result;

    if (frame->channel == wire_control_watches) {
        return take_watch(port, packet, frame);
    }
    result = shared_page_adopt(packet->descriptors[1], &page);
    if (result < 0) {
        if (result == -EINVAL) {
            return result;
        }
        if (kernel_ports.is_channel(packet->descriptors[0])) {
            packet_socket_close(packet_take(packet, 0)); /* the client finds it hung up, and goes on without one */
        }
        packet_close(packet);
        return 0;
    }
    result = take_end(packet, frame, channel_control, &channel);
    if (result < 0) {
        shared_page_release(page);
        return result;
    }
    channel->acks = page;
    packet_close(packet);
    keep_or_free(port, channel);
    return 0;
}

/* Returns the channel that the page is for, or NULL if there is none that may have a page. */
REQUIRES(the_port_lock)
static struct server_channel *channel_for_page(struct local_port *local, const struct packet *packet, const struct wire_frame *frame)
{
    struct server_channel *channel = channel_table_find(&local->channels, frame->channel, frame->token, &packet->sender, channel_reply);

    return channel && channel_table_has_room_for_page(&local->channels, channel) ? channel : NULL;
}

bool channel_handover_page(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame)
{
    struct local_port *local = &port->side.local;
    struct server_channel *channel;
    struct reply_page *page;
    int result = -ENOSPC;
    int bell;

    port_lock(port);
    channel = channel_for_page(local, packet, frame);
    port_unlock(port);
    if (channel) {
        result = reply_page_adopt(packet->descriptors[0], packet->descriptors[1], &page, &bell);
    }
    if (result == 0) {
        (void)kernel.close(packet_take(packet, 1)); /* by itself: it is a wait set, as the bell in it shows */
        port_lock(port);
        channel = channel_for_page(local, packet, frame); /* the channel may have gone while the lock was dropped */
        if (channel) {
            channel_table_give_page(&local->channels, channel, page, bell);
        }
        port_unlock(port);
    }
    if (result == 0 && !channel) {
        (void)kernel.close(bell);
        reply_page_release(page);
    }
    if (result != -EINVAL) {
        packet_close(packet);
    }
    return result != -EINVAL;
}

int channel_handover_reply_channel(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame,
                                   struct server_channel **ret_channel, bool *ret_keeps)
{
    struct local_port *local = &port->side.local;
    struct server_channel *channel;
    int result = take_end(packet, frame, channel_reply, &channel);

    *ret_channel = channel;
    if (result < 0) {
        return result;
    }
    server_channel_begin(channel);
    port_lock(port);
    channel_table_sweep(&local->channels, true);
    *ret_keeps = !channel_table_find(&local->channels, frame->channel, frame->token, &packet->sender, channel_reply) &&
                 channel_table_keep(&local->channels, channel);
    port_unlock(port);
    return 0;
}
