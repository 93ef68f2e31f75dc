/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving side of message ports: its making, its source, its end; see local_port.h. What comes in is for packet_intake.c and
 * letter_intake.c.
 *
 * A closed socket's number may be somebody else's at once. So whoever reads from the socket is counted, and the last of them closes it.
 */
#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/descriptor_source.h"
#include "Loop/watch.h"
#include "Port/dispatch_queue.h"
#include "Port/local_port.h"
#include "Support/fault.h"

/* ---- making one ---- */

static CFMessagePortRef create_new(CFAllocatorRef allocator, const struct port_name *name, CFMessagePortCallBack callout,
                                   const CFMessagePortContext *context)
{
    CFMessagePortRef port = message_port_allocate(allocator, false, name);
    struct local_port *local;

    if (!port) {
        return NULL;
    }
    local = &port->side.local;
    local->callout = callout;
    local->queue_limit = queue_limit_default;
    local->budget = budget_default;
    local->owner = kernel_ports.effective_uid();
    local->socket = -1;
    line_table_init(&local->lines);
    local->socket = local_port_open_socket("CFMessagePortCreateLocal", local, name, &local->publication);
    if (local->socket >= 0) {
        local->inbox = inbox_create(local->queue_limit);
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
        local->info.hold.users = context->retain ? 1 : 0; /* until it is retained */
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

/* ---- the inbox ---- */

void local_port_close_inbox(struct inbox *inbox)
{
    if (inbox) {
        inbox_close(inbox);
        inbox_release(inbox);
    }
}

struct inbox *local_port_replace_inbox(struct local_port *local, struct inbox *fresh)
{
    struct inbox *old = local->inbox;
    bool has_letters;

    if (fresh && local->source) {
        (void)inbox_open(fresh, local->source, &has_letters);
    }
    local->inbox = fresh;
    return old;
}

/* ---- the source ---- */

static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    if (ready & watch_posted) {
        local_port_receive_letter(object, source);
    } else {
        local_port_receive(object);
    }
}

static CFStringRef describe_source(const void *object)
{
    return CFCopyDescription(object);
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order)
{
    const struct descriptor_source_context context = {
        .info = port, .release = object_release, .perform = perform, .copy_description = describe_source};
    CFRunLoopSourceRef source;

    object_retain(port);
    source = descriptor_source_create(allocator, order, port->side.local.socket, &context);
    if (source) {
        descriptor_source_set_interest(source, kernel_readable);
    } else {
        object_release(port);
    }
    return source;
}

/* Makes letters come to the port's new source. P; as inbox_open. */
static CFRunLoopSourceRef open_inbox(const struct local_port *local, bool *ret_has_letters)
{
    return local->inbox ? inbox_open(local->inbox, local->source, ret_has_letters) : NULL;
}

/* The source in use, with a reference; or makes `made` it, if that is not NULL. An invalid one is given up into `ret_old`. */
static CFRunLoopSourceRef adopt_source(CFMessagePortRef port, CFRunLoopSourceRef made, CFRunLoopSourceRef *ret_old)
{
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source = NULL;
    CFRunLoopSourceRef posted_before = NULL;
    bool has_letters = false;

    *ret_old = NULL;
    port_lock(port);
    if (port_is_valid(port) && !local->queue) {
        if (local->source && !CFRunLoopSourceIsValid(local->source)) {
            *ret_old = local->source;
            local->source = NULL;
        }
        if (!local->source && made) {
            object_retain(made);
            local->source = made;
            posted_before = open_inbox(local, &has_letters);
        }
        source = local->source;
        if (source) {
            object_retain(source);
        }
    }
    port_unlock(port);
    if (has_letters) {
        descriptor_source_post(source);
    }
    if (posted_before) {
        object_release(posted_before);
    }
    return source;
}

CFRunLoopSourceRef local_port_source(CFAllocatorRef allocator, CFMessagePortRef port, CFIndex order)
{
    CFRunLoopSourceRef old;
    CFRunLoopSourceRef made = NULL;
    CFRunLoopSourceRef source = adopt_source(port, NULL, &old);
    bool is_usable;

    if (old) {
        object_release(old);
    }
    if (source) {
        return source;
    }
    port_lock(port);
    is_usable = port_is_valid(port) && !port->side.local.queue && port->side.local.socket >= 0;
    port_unlock(port);
    if (is_usable) {
        made = make_source(allocator, port, order);
    }
    if (!made) {
        return NULL;
    }
    source = adopt_source(port, made, &old);
    if (old) {
        object_release(old);
    }
    if (source != made) { /* another thread was faster, or the port has ended */
        CFRunLoopSourceInvalidate(made);
    }
    object_release(made);
    return source;
}

/* Makes `made` what drives the port, NULL for nothing, and `ret_old` what did. False: it cannot be driven that way. */
static bool adopt_queue(CFMessagePortRef port, struct dispatch_attachment *made, struct dispatch_attachment **ret_old)
{
    struct local_port *local = &port->side.local;
    bool is_usable = true;

    port_lock(port);
    if (made) {
        is_usable = port_is_valid(port) && !local->source && local->socket >= 0 && dispatch_queue_watch(made, local->socket) == 0;
    }
    if (is_usable) {
        *ret_old = local->queue;
        local->queue = made;
    }
    port_unlock(port);
    return is_usable;
}

void local_port_set_queue(CFMessagePortRef port, void *queue)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct dispatch_attachment *made = NULL;
    struct dispatch_attachment *old = NULL;
    bool is_usable = !port->is_remote;

    if (is_usable && queue) {
        made = dispatch_queue_attach(port, queue);
        is_usable = made != NULL;
    }
    if (is_usable && !adopt_queue(port, made, &old)) {
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

void local_port_withdraw(CFMessagePortRef port)
{
    port_lock(port); /* until all is closed: a fork meanwhile would leave the child with the name's lock */
    registry_withdraw(&port->side.local.publication);
    port_unlock(port);
}

void local_port_close(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source;
    struct inbox *inbox;
    struct dispatch_attachment *queue;

    port_lock(port);
    local->readers++; /* until the source is in no loop, whose sets know the socket by its number */
    inbox = local_port_replace_inbox(local, NULL);
    source = local->source;
    local->source = NULL;
    queue = local->queue;
    local->queue = NULL;
    port_unlock(port);
    local_port_close_inbox(inbox);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
    if (queue) {
        dispatch_queue_detach(queue);
    }
    port_lock(port);
    line_table_close(&local->lines);
    local->readers--;
    if (local->socket >= 0 && local->readers == 0) {
        (void)kernel.close(local->socket);
        local->socket = -1;
    } else if (local->socket >= 0) {
        (void)kernel_ports.hang_up(local->socket); /* the last reader closes it */
    }
    port_unlock(port);
}

bool local_port_begin_read(CFMessagePortRef port)
{
    bool can;

    port_lock(port);
    can = port_is_valid(port) && port->side.local.socket >= 0;
    port->side.local.readers += can ? 1 : 0;
    port_unlock(port);
    return can;
}

/* P */
void local_port_end_read(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    local->lines.taken++;
    if (--local->readers == 0 && !port_is_valid(port) && local->socket >= 0 && !local->source) {
        (void)kernel.close(local->socket);
        local->socket = -1;
    }
}

void local_port_abandon(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    registry_abandon(&local->publication);
    line_table_abandon(&local->lines);
    if (local->inbox) {
        inbox_abandon(local->inbox);
    }
    if (local->source) {
        descriptor_source_set_interest(local->source, 0);
    }
    if (local->socket >= 0) {
        (void)kernel.close(local->socket);
        local->socket = -1;
    }
    local->readers = 0;
}

void CRLMessagePortSetQueueLimit(CFMessagePortRef local, CFIndex messages)
{
    struct port_card card;

    object_require(local, object_type_message_port, "CRLMessagePortSetQueueLimit", "port");
    if (local->is_remote) {
        return;
    }
    port_lock(local);
    local->side.local.queue_limit = messages < 1 ? 1 : messages > queue_limit_max ? queue_limit_max : (uint32_t)messages;
    card = local_port_card(&local->side.local, &local->name);
    if (local->side.local.publication.directory) {
        registry_update(&local->side.local.publication, &card);
    }
    if (local->side.local.inbox) {
        inbox_set_limit(local->side.local.inbox, local->side.local.queue_limit);
    }
    port_unlock(local);
}

void CRLMessagePortSetMemoryBudget(CFMessagePortRef local, CFIndex bytes)
{
    struct port_card card;

    object_require(local, object_type_message_port, "CRLMessagePortSetMemoryBudget", "port");
    if (local->is_remote) {
        return;
    }
    port_lock(local);
    local->side.local.budget = bytes < 0 ? 0 : (uint64_t)bytes;
    card = local_port_card(&local->side.local, &local->name);
    if (local->side.local.publication.directory) {
        registry_update(&local->side.local.publication, &card);
    }
    port_unlock(local);
}
