/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending side of message ports: makes it and ends it. Message/remote_send.c sends. Any thread may call; the port's lock guards the
 * fields.
 */
#include "Port/Object/remote_port.h"

#include <errno.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/port_table.h"
#include "Port/Core/port_use.h"
#include "Port/Message/client_channel.h"
#include "Port/Message/remote_send.h"
#include "Port/Object/owner_watch.h"

/* ---- its end ---- */

static void close_port(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;
    struct owner_watch *watch;
    struct link closing;

    link_init(&closing);
    port_lock(port);
    watch = owner_watch_of_closed(remote);
    list_append_all(&closing, &remote->free_channels);
    remote->free_count = 0;
    list_for_each(link, &remote->busy_channels) {
        client_channel_hang_up(container_of(link, struct client_channel, link));
    }
    list_for_each(link, &remote->local_messages) {
        (void)local_message_end(container_of(link, struct local_message, sender_link), local_message_gone);
    }
    if (remote->users == 0) {
        remote_port_close_descriptors(remote);
    } else {
        (void)kernel_ports.hang_up(remote->socket);
        pacing_hang_up_control(&remote->pacing);
    }
    port_unlock(port);
    while (!list_is_empty(&closing)) {
        struct client_channel *channel = container_of(closing.next, struct client_channel, link);

        list_remove(&channel->link);
        client_channel_close(channel);
    }
    owner_watch_destroy(watch);
}

static void abandon_channels(struct link *channels)
{
    list_for_each(link, channels) {
        struct client_channel *channel = container_of(link, struct client_channel, link);

        channel->arena = (struct arena){NULL, 0}; /* not mapped in a child */
        if (channel->page) {
            channel->page = NULL; /* not mapped either */
            (void)kernel.close(channel->set);
        }
        (void)kernel.close(channel->descriptor);
        channel->descriptor = -1;
    }
}

/* Not checked: the child of a fork has one thread. */
NOT_CHECKED static void abandon_port(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;

    abandon_channels(&remote->free_channels);
    abandon_channels(&remote->busy_channels);
    pacing_abandon_control(&remote->pacing);
    remote->users = 0;
    remote_port_close_descriptors(remote);
    owner_watch_abandon(remote);
}

static const struct port_side remote_side = {
    .is_remote = true,
    .close = close_port,
    .leave_callback = owner_watch_leave_callback,
    .remind = owner_watch_remind,
    .abandon = abandon_port,
};

/* ---- making one ---- */

/*
 * Returns the local queue of the port called `name`, if that port is of this process and other processes find the same port. `ret_port`
 * gets the port, with a reference.
 */
static struct local_queue *local_queue_of(const struct port_name *name, CFMessagePortRef *ret_port)
{
    CFMessagePortRef port = port_table_find(false, name);
    struct local_queue *local_queue = NULL;

    *ret_port = port;
    if (port) {
        port_lock(port);
        if (port_is_valid(port) && port->side.local.local_queue && name_registry_is_published(&port->side.local.publication)) {
            local_queue = port->side.local.local_queue;
            local_queue_retain(local_queue);
        }
        port_unlock(port);
    }
    return local_queue;
}

/* Enough for a queue of the largest packets, if the host allows it. */
static uint64_t room_of(int socket)
{
    uint64_t wanted = queue_limit_default * packet_charge_max(wire_frame_max, kernel_ports.page_size()) + remote_send_room_beside;
    int room = kernel_ports.send_room(socket, (int)wanted);

    return room > 0 ? (uint64_t)room : 0;
}

/* Returns the valid port of that name, with a reference. If it returns NULL, a creation has begun: nobody else makes one until it ends. */
static CFMessagePortRef find_or_begin_creation(const struct port_name *name)
{
    CFMessagePortRef port;

    port_table_begin_creation();
    while ((port = port_table_find(true, name)) != NULL) {
        port_table_end_creation(); /* before the port's end: its callback may make another port */
        if (remote_port_is_alive(port) && port_is_valid(port)) {
            return port;
        }
        message_port_end_gone(port);
        port_table_begin_creation();
    }
    return NULL;
}

/* Not checked: no other thread has the port yet. */
NOT_CHECKED CFMessagePortRef remote_port_create(CFAllocatorRef allocator, const struct port_name *name)
{
    CFMessagePortRef owner = NULL;
    CFMessagePortRef port = find_or_begin_creation(name);
    struct remote_port *remote;
    struct port_card card;
    int result;

    if (port) {
        return port;
    }
    port_table_republish(name);
    port = message_port_allocate(allocator, &remote_side, name);
    result = -ENOMEM;
    if (port) {
        remote = &port->side.remote;
        link_init(&remote->free_channels);
        link_init(&remote->busy_channels);
        link_init(&remote->local_messages);
        remote->pacing.control = remote->socket = remote->owner_fd = -1;
        result = name_registry_connect("CFMessagePortCreateRemote", name, &remote->socket, &remote->owner_fd, &card);
    }
    if (port && result < 0) {
        atomic_store_explicit(&port->is_valid, false, memory_order_relaxed);
        object_release(port);
        port = NULL;
    }
    if (port) {
        port->side.remote.pacing.queue_limit = card.queue_limit;
        port->side.remote.budget = card.budget;
        port->side.remote.features = card.features;
        port->side.remote.send_room = room_of(port->side.remote.socket);
        port->side.remote.local_queue = local_queue_of(name, &owner);
        port_table_add(port);
    }
    port_table_end_creation();
    object_release_if_any(owner);
    return port;
}
