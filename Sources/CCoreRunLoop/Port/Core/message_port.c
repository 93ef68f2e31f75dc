/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object that both sides of a message port are, its description, and its end. A side differs by its struct port_side. Any thread; the
 * port's lock guards the fields, and the program is called without it.
 */
#include "Loop/Core/shown.h"
#include "Loop/Run/thread_registry.h"
#include "Port/Core/message_port.h"

#include <stdlib.h>

#include "Port/Core/callback_cleanup.h"
#include "Port/Core/local_info.h"
#include "Port/Core/port_table.h"

/* ---- the object ---- */

static void free_former_names(CFMessagePortRef port)
{
    while (port->former_names) {
        struct former_name *former = port->former_names;

        port->former_names = former->next;
        CFRelease(former->string);
        free(former);
    }
}

/* Freeing a valid port invalidates it first (rule 206). Not checked: no other thread has a reference. */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)object;
    struct local_queue *local_queue;

    message_port_invalidate(port);
    invariant(!port_is_valid(port));
    /* A local port has a local queue left only in the child of a fork, which did not close its parent's. */
    local_queue = port->is_remote ? port->side.remote.local_queue : port->side.local.local_queue;
    if (local_queue) {
        local_queue_release(local_queue);
    }
    object_release_if_any(port->name_string);
    if (!port->is_remote) {
        free(port->side.local.spare_message);
    }
    free_former_names(port);
    scratch_free(&port->scratch);
}

static CFStringRef describe(CFTypeRef object)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)object;
    CFStringRef context = port->is_remote ? NULL : local_port_describe_info(port);
    CFStringRef name;
    CFStringRef text;
    struct shown descriptor;
    struct shown callout;
    int socket;

    port_lock(port);
    name = port->name_string ? CFRetain(port->name_string) : NULL; /* another thread may change it at once */
    socket = port->is_remote ? port->side.remote.socket : port->side.local.socket;
    port_unlock(port);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFMessagePort %p>{%s, valid = %s, name = %@, descriptor = %s%s%s%@%@}"), object,
                                    port->is_remote ? "remote" : "local", shown_bool(port_is_valid(port)), name ? name : CFSTR("(none)"),
                                    shown_descriptor(&descriptor, socket), port->is_remote ? "" : ", callout = ",
                                    port->is_remote ? "" : shown_callout(&callout, (void (*)(void))port->side.local.callout),
                                    context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));
    object_release_if_any(context);
    object_release_if_any(name);
    return text;
}

const struct object_class message_port_class = {
    .type_id = object_type_message_port,
    .name = "CFMessagePort",
    .finalize = finalize,
    .copy_description = describe,
};

/* Not checked: no other thread has the port yet. */
NOT_CHECKED CFMessagePortRef message_port_allocate(CFAllocatorRef allocator, const struct port_side *side, const struct port_name *name)
{
    CFMessagePortRef port = object_create(allocator, &message_port_class, sizeof *port);

    if (!port) {
        return NULL;
    }
    link_init(&port->table_link);
    link_init(&port->republished_link);
    port->functions = side;
    port->is_remote = side->is_remote;
    if (name) {
        port->name = *name;
        port->name_string = port_name_string(name);
    }
    atomic_store_explicit(&port->is_valid, true, memory_order_release);
    return port;
}

/* ---- the end ---- */

/* Ends the invalidation after the callback, and gives back the reference that it held. */
static void finish_invalidation(const void *ended)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)ended;

    port->functions->close(port);
    port_table_remove(port); /* last: the callback may fork, or another thread meanwhile */
    object_release(port);
}

static void call_invalidation_callback(CFMessagePortRef port, CFMessagePortInvalidationCallBack callout, void *info)
{
    CFRunLoopRef loop = thread_registry_current();
    uint32_t begun = callback_cleanup_begin(loop, finish_invalidation, port);

    callout(port, info);
    callback_cleanup_end(loop, begun);
}

/*
 * The order is promised (rule 203): invalid, name given up, callback, info released, source invalidated, transport closed. Only a callback
 * that is left to a loop comes after all that.
 */
static void end_port(CFMessagePortRef port, bool is_owner_gone)
{
    CFMessagePortInvalidationCallBack callout;
    void *info;
    bool was_valid;
    bool is_left;

    invariant_not_held(&port->lock);
    port_lock(port);
    was_valid = atomic_exchange_explicit(&port->is_valid, false, memory_order_acq_rel);
    callout = port->invalidated;
    is_left = was_valid && is_owner_gone && callout && port->functions->leave_callback(port);
    info = port->is_remote ? NULL : port->side.local.info.hold.info;
    port_unlock(port);
    if (!was_valid) {
        message_port_remind(port);
        object_release(port);
        return;
    }
    if (port->functions->withdraw) {
        port->functions->withdraw(port);
    }
    if (is_left) {
        message_port_remind(port);
    } else if (callout) {
        call_invalidation_callback(port, callout, info);
    }
    finish_invalidation(port);
}

void message_port_end(CFMessagePortRef port)
{
    end_port(port, false);
}

void message_port_end_gone(CFMessagePortRef port)
{
    invariant(port->functions->leave_callback);
    end_port(port, true);
}

void message_port_remind(CFMessagePortRef port)
{
    if (port->functions->remind && !port_is_valid(port)) {
        port->functions->remind(port);
    }
}

void message_port_invalidate(CFMessagePortRef port)
{
    object_retain(port);
    message_port_end(port);
}
