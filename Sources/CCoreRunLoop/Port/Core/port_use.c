/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of a port's descriptors; see port_use.h. Any thread; the port's lock guards the counts. */
#include "Port/Core/port_use.h"

#include "Kernel/kernel.h"
#include "Port/Wire/packet.h"

/* ---- local ports ---- */

bool local_port_begin_read(CFMessagePortRef port)
{
    bool can;

    port_lock(port);
    can = port_is_valid(port) && port->side.local.socket >= 0;
    if (can) {
        port->side.local.readers++;
    }
    port_unlock(port);
    return can;
}

/* The last reader closes the socket of a port that has ended, once no source watches the socket. */
REQUIRES(the_port_lock) void local_port_end_read(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    invariant_held(&port->lock);
    invariant(!port->is_remote && local->readers > 0);
    local->channels.reads++;
    if (--local->readers == 0 && !port_is_valid(port) && local->socket >= 0 && !local->source) {
        packet_socket_close(local->socket);
        local->socket = -1;
    }
}

/* ---- remote ports ---- */

static void close_one(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)kernel.close(*descriptor);
        *descriptor = -1;
    }
}

void remote_port_close_descriptors(struct remote_port *remote)
{
    close_one(&remote->socket);
    close_one(&remote->owner_fd);
    pacing_close_control(&remote->pacing);
}

bool remote_port_use(CFMessagePortRef port)
{
    invariant_held(&port->lock);
    invariant(port->is_remote);
    bool can = port_is_valid(port);

    if (can) {
        port->side.remote.users++;
    }
    return can;
}

void remote_port_unuse(CFMessagePortRef port)
{
    struct remote_port *remote = &port->side.remote;

    invariant_held(&port->lock);
    if (remote->users > 0 && --remote->users == 0 && !port_is_valid(port)) {
        remote_port_close_descriptors(remote);
    }
}

/* Not checked: the caller uses the port, so the descriptor stays open and the same. */
NOT_CHECKED bool remote_port_is_alive(CFMessagePortRef port)
{
    struct port_name name;
    bool is_alive;
    bool can;

    port_lock(port);
    can = remote_port_use(port);
    name = port->name;
    port_unlock(port);
    if (!can) {
        return false;
    }
    is_alive = name_registry_probe(&name, port->side.remote.owner_fd);
    port_lock(port);
    remote_port_unuse(port);
    port_unlock(port);
    return is_alive;
}
