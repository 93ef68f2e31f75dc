/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a local port: the socket that stands for it, another name, and the same one again after its files were removed. All of that
 * happens under the creation lock; other locks are said at each function.
 */
#include "Port/Object/local_name.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Source/descriptor_source.h"
#include "Port/Core/port_table.h"
#include "Port/Async/deferred_reply.h"
#include "Port/Object/dispatch_queue.h"
#include "Port/Wire/packet.h"
#include "Port/Wire/port_log.h"

void local_port_close_queue(struct local_queue *local_queue)
{
    if (local_queue) {
        local_queue_close(local_queue);
        local_queue_release(local_queue);
    }
}

struct local_queue *local_port_replace_local_queue(struct local_port *local, struct local_queue *fresh)
{
    struct local_queue *old = local->local_queue;
    bool has_messages;

    if (fresh && local->source) {
        (void)local_queue_open(fresh, local->source, &has_messages);
    }
    local->local_queue = fresh;
    return old;
}

/* Not checked: a new port is not locked for it. */
NOT_CHECKED struct port_card local_port_card(const struct local_port *local, const struct port_name *name)
{
    struct port_card card = {.queue_limit = local->queue_limit, .budget = local->budget, .features = wire_takes_status};

    card.name = *name;
    return card;
}

int local_port_open_socket(const char *function, const struct local_port *local, const struct port_name *name,
                           struct publication *ret_publication)
{
    struct port_card card;
    int socket = kernel_ports.datagram_create(true);
    int result = socket;

    if (socket >= 0 && name) {
        card = local_port_card(local, name);
        result = name_registry_publish(function, &card, socket, ret_publication);
    }
    if (socket >= 0 && result < 0) {
        packet_socket_close(socket);
    } else if (socket < 0) {
        port_log(function, "no socket can be made: %s", port_error_text(socket));
    }
    return result < 0 ? result : socket;
}

/* Replaces the port's socket by `fresh`, and keeps its number, which the source watches. */
REQUIRES(the_port_lock) static int put_in_place(struct local_port *local, int fresh)
{
    int result = local->dispatch ? dispatch_queue_watch(local->dispatch, fresh) : 0;

    if (result == 0) {
        local->identifies_senders = false;
        result = packet_socket_replace(fresh, local->socket);
    } else {
        packet_socket_close(fresh);
    }
    return result < 0 ? result : 0;
}

/*
 * Gives the port a new socket, registered as `name`. Peers that were connected to the old socket find it closed. The port has the new name
 * before the first message comes by the new socket, because a message for another name is refused. Not checked: the size of the new queue
 * is read without the port's lock. */
NOT_CHECKED static bool move_to(const char *function, CFMessagePortRef port, const struct port_name *name)
{
    struct local_port *local = &port->side.local;
    struct publication publication = {.directory = NULL};
    struct publication old;
    struct local_queue *local_queue;
    CFRunLoopSourceRef source = NULL;
    int fresh = local_port_open_socket(function, local, name, &publication);
    bool moved;

    if (fresh < 0) {
        return false;
    }
    local_queue = local_queue_create(local->queue_limit);
    port_table_begin_change();
    port_lock(port);
    old = local->publication;
    moved = port_is_valid(port) && local->socket >= 0 && put_in_place(local, fresh) == 0;
    if (moved) {
        port->name = *name;
        local->publication = publication;
        channel_table_drop_all(&local->channels);
        local_queue = local_port_replace_local_queue(local, local_queue);
        source = local->source;
        if (source) {
            object_retain(source);
        }
    }
    port_unlock(port);
    port_table_end_change(port);
    deferred_replies_tell(port, false); /* their channels were hung up */
    name_registry_withdraw(moved ? &old : &publication);
    local_port_close_queue(local_queue);
    if (source) {
        descriptor_source_file_replaced(source);
        object_release(source);
    }
    return moved;
}

/* Returns the kept string of a former name, or NULL. So a port that changes between a few names keeps one string for each. */
static CFStringRef find_former_name(CFMessagePortRef port, CFStringRef string)
{
    for (const struct former_name *former = port->former_names; former; former = former->next) {
        if (CFEqual(former->string, string)) {
            return former->string;
        }
    }
    return NULL;
}

/* Sets the port's name to `string`, which it keeps. `old` takes over the former name. The creation lock is held. */
static void take_name_string(CFMessagePortRef port, CFStringRef string, struct former_name *old)
{
    CFStringRef lent_before = find_former_name(port, string);
    bool is_lent;

    port_lock(port);
    old->string = port->name_string;
    is_lent = port->name_is_lent;
    port->name_string = lent_before ? (CFStringRef)CFRetain(lent_before) : (CFStringRef)CFRetain(string);
    port->name_is_lent = false;
    port_unlock(port);
    if (is_lent && old->string && !find_former_name(port, old->string)) {
        old->next = port->former_names;
        port->former_names = old;
        return;
    }
    object_release_if_any(old->string);
    free(old);
}

bool local_port_rename(CFMessagePortRef port, const struct port_name *name)
{
    CFStringRef string = port_name_string(name);
    struct former_name *old = string ? malloc(sizeof *old) : NULL;
    CFMessagePortRef other;
    bool renamed;

    port_table_begin_creation();
    other = port_table_find(false, name);
    renamed = old && !other && port_is_valid(port) && move_to("CFMessagePortSetName", port, name);
    if (renamed) {
        take_name_string(port, string, old);
    }
    port_table_end_creation();
    object_release_if_any(other);
    if (!renamed) {
        free(old);
    }
    object_release_if_any(string);
    return renamed;
}

void local_port_republish(CFMessagePortRef port)
{
    struct port_name name;
    struct publication lost;

    port_lock(port);
    name = port->name;
    lost = port->side.local.publication;
    port->side.local.publication.directory = NULL;
    port_unlock(port);
    name_registry_withdraw(&lost);
    if (!move_to("CFMessagePortCreateLocal", port, &name)) {
        port_log("CFMessagePortCreateLocal", "a port whose files were removed cannot be registered again");
    }
}
