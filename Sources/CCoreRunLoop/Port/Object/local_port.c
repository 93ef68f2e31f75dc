/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving side of message ports: makes it, drives it by a source or a dispatch queue, and ends it; see local_port.h. port_receive.c
 * and local_receive.c receive its messages.
 */
#include "Port/Object/local_port.h"

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Watch/watch.h"
#include "Port/Core/local_info.h"
#include "Port/Core/message_trace.h"
#include "Port/Core/port_table.h"
#include "Port/Async/deferred_reply.h"
#include "Port/Message/local_receive.h"
#include "Port/Message/port_receive.h"
#include "Port/Object/dispatch_queue.h"
#include "Port/Object/local_name.h"
#include "Port/Wire/packet.h"
#include "Support/fault.h"

/* ---- the source ---- */

static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    if (ready & watch_posted) {
        local_port_receive_local(object, source);
    } else {
        local_port_receive(object);
    }
}

/* Not checked: a local port keeps the number of its socket until it ends. */
NOT_CHECKED static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order)
{
    const struct descriptor_source_context context = {.perform = perform};
    CFRunLoopSourceRef source = descriptor_source_create_of(port, allocator, order, port->side.local.socket, context);

    if (source) {
        descriptor_source_set_interest(source, kernel_readable);
    }
    return source;
}

/* Makes local messages come to the port's new source. Returns the same as local_queue_open. */
REQUIRES(the_port_lock) static CFRunLoopSourceRef open_local_queue(const struct local_port *local, bool *ret_has_messages)
{
    return local->local_queue ? local_queue_open(local->local_queue, local->source, ret_has_messages) : NULL;
}

/* Returns the source in use, with a reference. If there is none, `made` becomes it, if not NULL. `ret_old` gets an invalid old source. */
static CFRunLoopSourceRef adopt_source(CFMessagePortRef port, CFRunLoopSourceRef made, CFRunLoopSourceRef *ret_old)
{
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source = NULL;
    CFRunLoopSourceRef posted_before = NULL;
    bool has_messages = false;

    *ret_old = NULL;
    port_lock(port);
    if (port_is_valid(port) && !local->dispatch) {
        if (local->source && !CFRunLoopSourceIsValid(local->source)) {
            *ret_old = local->source;
            local->source = NULL;
        }
        if (!local->source && made) {
            object_retain(made);
            local->source = made;
            posted_before = open_local_queue(local, &has_messages);
        }
        source = local->source;
        if (source) {
            object_retain(source);
        }
    }
    port_unlock(port);
    if (has_messages) {
        descriptor_source_post(source);
    }
    object_release_if_any(posted_before);
    return source;
}

CFRunLoopSourceRef local_port_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order)
{
    CFRunLoopSourceRef old;
    CFRunLoopSourceRef made = NULL;
    CFRunLoopSourceRef source = adopt_source(port, NULL, &old);
    bool is_usable;

    object_release_if_any(old);
    if (source) {
        return source;
    }
    port_lock(port);
    is_usable = port_is_valid(port) && !port->side.local.dispatch && port->side.local.socket >= 0;
    port_unlock(port);
    if (is_usable) {
        made = make_source(allocator, port, order);
    }
    if (!made) {
        return NULL;
    }
    source = adopt_source(port, made, &old);
    object_release_if_any(old);
    if (source != made) { /* another thread was faster, or the port has ended */
        CFRunLoopSourceInvalidate(made);
    }
    object_release(made);
    if (trace_is_on()) {
        (void)thread_registry_current(); /* the loop that the source is probably for */
        message_trace_named(trace_port_is_served, 0, (uintptr_t)port, port);
    }
    return source;
}

/* Makes `made` drive the port; NULL stops that. `ret_old` gets the former one. Returns false if the port cannot be driven that way. */
static bool adopt_dispatch(CFMessagePortRef port, struct dispatch_attachment *made, struct dispatch_attachment **ret_old)
{
    struct local_port *local = &port->side.local;
    bool is_usable = true;

    port_lock(port);
    if (made) {
        is_usable = port_is_valid(port) && !local->source && local->socket >= 0 && dispatch_queue_watch(made, local->socket) == 0;
    }
    if (is_usable) {
        *ret_old = local->dispatch;
        local->dispatch = made;
    }
    port_unlock(port);
    return is_usable;
}

void local_port_set_dispatch_queue(CFMessagePortRef port, void *queue)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct dispatch_attachment *made = NULL;
    struct dispatch_attachment *old = NULL;
    bool is_usable = !port->is_remote;

    if (is_usable && queue) {
        made = dispatch_queue_attach(port, queue);
        is_usable = made != NULL;
    }
    if (is_usable && !adopt_dispatch(port, made, &old)) {
        is_usable = false;
        old = made;
    }
    if (old) {
        dispatch_queue_detach(old);
    }
    if (!is_usable) {
        fault_log_once(&logged, "CFMessagePortSetDispatchQueue: the port cannot be driven by a queue: it is not local, not valid or has a "
                                "run loop source, or there is no libdispatch in this process");
    }
}

/* ---- the end ---- */

static void withdraw_port(CFMessagePortRef port)
{
    port_lock(port); /* held until all is closed: a fork meanwhile would leave the name's lock open in the child */
    name_registry_withdraw(&port->side.local.publication);
    port_unlock(port);
}

static void close_port(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source;
    struct local_queue *local_queue;
    struct dispatch_attachment *queue;

    local_port_release_info(port);
    port_lock(port);
    local->readers++; /* keeps the socket open until the source is in no loop, because wait sets know the socket by its number */
    local_queue = local_port_replace_local_queue(local, NULL);
    source = local->source;
    local->source = NULL;
    queue = local->dispatch;
    local->dispatch = NULL;
    port_unlock(port);
    local_port_close_queue(local_queue);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
    if (queue) {
        dispatch_queue_detach(queue);
    }
    deferred_replies_end_listening(port);
    port_lock(port);
    local->readers--;
    if (local->socket >= 0 && local->readers == 0) {
        packet_socket_close(local->socket);
        local->socket = -1;
    } else if (local->socket >= 0) {
        (void)kernel_ports.hang_up(local->socket); /* the last reader closes it */
    }
    channel_table_close(&local->channels); /* after the socket: a client that finds its channel closed looks whether that is still there */
    port_unlock(port);
    deferred_replies_tell(port, true);
}

/* Not checked: the child of a fork has one thread. */
NOT_CHECKED static void abandon_port(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    name_registry_abandon(&local->publication);
    channel_table_abandon(&local->channels);
    if (local->local_queue) {
        local_queue_abandon(local->local_queue);
    }
    if (local->source) {
        descriptor_source_set_interest(local->source, 0);
    }
    if (local->channel_watch) {
        descriptor_source_set_interest(local->channel_watch, 0);
    }
    if (local->socket >= 0) {
        (void)kernel.close(local->socket);
        local->socket = -1;
    }
    local->readers = 0;
}

static const struct port_side local_side = {
    .is_remote = false,
    .withdraw = withdraw_port,
    .close = close_port,
    .abandon = abandon_port,
    .republish = local_port_republish,
};

/* ---- making one ---- */

/* Not checked: no other thread has the port yet. */
NOT_CHECKED static CFMessagePortRef create_new(CFAllocatorRef allocator, const struct port_name *name, CFMessagePortCallBack callout,
                                               const CFMessagePortContext *context)
{
    CFMessagePortRef port = message_port_allocate(allocator, &local_side, name);
    struct local_port *local;

    if (!port) {
        return NULL;
    }
    local = &port->side.local;
    local->callout = callout;
    local->queue_limit = queue_limit_default;
    local->budget = budget_default;
    local->owner_uid = kernel_ports.effective_uid();
    local->socket = -1;
    channel_table_init(&local->channels);
    link_init(&local->deferred_replies);
    local->socket = local_port_open_socket("CFMessagePortCreateLocal", local, name, &local->publication);
    if (local->socket >= 0) {
        local->local_queue = local_queue_create(local->queue_limit);
    } else {
        atomic_store_explicit(&port->is_valid, false, memory_order_relaxed);
        object_release(port);
        return NULL;
    }
    if (context) {
        local->context = *context;
        local->context.version = 0;
        local->context.info = NULL;
        local->info.hold.info = context->info;
        local->info.hold.users = context->retain ? 1 : 0; /* the creation uses the info until it is retained */
    }
    return port;
}

CFMessagePortRef local_port_create(CFAllocatorRef allocator, const struct port_name *name, CFMessagePortCallBack callout,
                                   const CFMessagePortContext *context, bool *ret_is_new)
{
    CFMessagePortRef port;

    port_table_begin_creation();
    port_table_republish(name);
    port = name ? port_table_find(false, name) : NULL;
    *ret_is_new = !port;
    if (!port) {
        port = create_new(allocator, name, callout, context);
        if (port) {
            port_table_add(port);
        }
    }
    port_table_end_creation();
    if (port && *ret_is_new && context && context->retain) {
        local_port_retain_info(port, context);
    }
    return port;
}

/* ---- limits ---- */

REQUIRES(the_port_lock) static void publish_limits(CFMessagePortRef local)
{
    struct port_card card = local_port_card(&local->side.local, &local->name);

    if (local->side.local.publication.directory) {
        name_registry_update(&local->side.local.publication, &card);
    }
}

void CRLMessagePortSetQueueLimit(CFMessagePortRef local, CFIndex messages)
{
    object_require(local, object_type_message_port, "CRLMessagePortSetQueueLimit", "port");
    if (local->is_remote) {
        return;
    }
    port_lock(local);
    local->side.local.queue_limit = messages < 1 ? 1 : messages > queue_limit_max ? queue_limit_max : (uint32_t)messages;
    publish_limits(local);
    if (local->side.local.local_queue) {
        local_queue_set_limit(local->side.local.local_queue, local->side.local.queue_limit);
    }
    port_unlock(local);
}

void CRLMessagePortSetMemoryBudget(CFMessagePortRef local, CFIndex bytes)
{
    object_require(local, object_type_message_port, "CRLMessagePortSetMemoryBudget", "port");
    if (local->is_remote) {
        return;
    }
    port_lock(local);
    local->side.local.budget = bytes < 0 ? 0 : (uint64_t)bytes;
    publish_limits(local);
    port_unlock(local);
}
