/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving side of message ports: its name, its source, its end. What comes in is packet_intake.c's and letter_intake.c's.
 *
 * A closed socket's number may be somebody else's at once. So whoever reads from the socket is counted, and the last of them closes it.
 */
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Loop/descriptor_source.h"
#include "Loop/watch.h"
#include "Port/dispatch_queue.h"
#include "Port/message_port.h"
#include "Port/port_log.h"
#include "Support/fault.h"

/* ---- names ---- */

static struct port_card card_of(const struct local_port *local, const struct port_name *name)
{
    struct port_card card = {.queue_limit = local->queue_limit, .budget = local->budget};

    card.name = *name;
    return card;
}

/* A new socket, registered under `name` if that is not NULL; or a negative errno. */
static int open_socket(const char *function, const struct local_port *local, const struct port_name *name,
                       struct publication *ret_publication)
{
    struct port_card card;
    int socket = kernel_ports.datagram_create(true);
    int result = socket;

    if (socket >= 0 && name) {
        card = card_of(local, name);
        result = registry_publish(function, &card, socket, ret_publication);
    }
    if (socket >= 0 && result < 0) {
        (void)kernel.close(socket);
    } else if (socket < 0) {
        port_log(function, "no socket can be made: %s", port_error_text(socket));
    }
    return result < 0 ? result : socket;
}

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
    local->socket = open_socket("CFMessagePortCreateLocal", local, name, &local->publication);
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
        local->info.hold.users = context->retain ? 1 : 0; /* until it is retained: see retain_info */
    }
    return port;
}

/*
 * The program is called without a lock, when others can find the port by its name, and may make it invalid. The making of the port counts
 * as a user of the info, so that it is not released before it was retained.
 */
static void retain_info(CFMessagePortRef port, const CFMessagePortContext *context)
{
    struct info_hold *hold = &port->side.local.info.hold;
    void *info = (void *)(uintptr_t)context->retain(context->info);

    port_lock(port);
    hold->info = info;
    port_unlock(port);
    if (info_hold_end_description(hold, &port->lock, &info) && context->release) {
        context->release(info);
    }
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
        retain_info(port, context);
    }
    return port;
}

/* Makes the port's socket the one at `fresh`, under the number that the source stands on. P */
static int put_in_place(struct local_port *local, int fresh)
{
    int result = local->queue ? dispatch_queue_watch(local->queue, fresh) : 0;

    if (result == 0) {
        result = kernel_ports.replace(fresh, local->socket);
    }
    (void)kernel.close(fresh);
    return result < 0 ? result : 0;
}

/* Closes an inbox that the port no longer has. */
static void close_inbox(struct inbox *inbox)
{
    if (inbox) {
        inbox_close(inbox);
        inbox_release(inbox);
    }
}

/* Gives the port another inbox; the one that it had. P */
static struct inbox *replace_inbox(struct local_port *local, struct inbox *fresh)
{
    struct inbox *old = local->inbox;
    bool has_letters;

    if (fresh && local->source) {
        (void)inbox_open(fresh, local->source, &has_letters);
    }
    local->inbox = fresh;
    return old;
}

/*
 * Gives the port a new socket, registered as `name`; whoever was connected to the old one finds it closed. The port has that name from the
 * first message on that comes by the new socket: what is for another one is refused.
 */
static bool move_to(const char *function, CFMessagePortRef port, const struct port_name *name)
{
    struct local_port *local = &port->side.local;
    struct publication publication = {.directory = NULL};
    struct publication old;
    struct inbox *inbox;
    CFRunLoopSourceRef source = NULL;
    int fresh = open_socket(function, local, name, &publication);
    bool moved;

    if (fresh < 0) {
        return false;
    }
    inbox = inbox_create(local->queue_limit);
    port_table_begin_change();
    port_lock(port);
    old = local->publication;
    moved = port_is_valid(port) && local->socket >= 0 && put_in_place(local, fresh) == 0;
    if (moved) {
        port->name = *name;
        local->publication = publication;
        line_table_drop_all(&local->lines);
        inbox = replace_inbox(local, inbox);
        source = local->source;
        if (source) {
            object_retain(source);
        }
    }
    port_unlock(port);
    port_table_end_change(port);
    registry_withdraw(moved ? &old : &publication);
    close_inbox(inbox);
    if (source) {
        descriptor_source_file_replaced(source);
        object_release(source);
    }
    return moved;
}

/* The string of a name that the port had and lent before, so that one that takes turns with others is kept once; NULL if there is none. */
static CFStringRef find_former_name(CFMessagePortRef port, CFStringRef string)
{
    for (const struct former_name *former = port->former_names; former; former = former->next) {
        if (CFEqual(former->string, string)) {
            return former->string;
        }
    }
    return NULL;
}

/* Calls the port `string`, which it keeps, and takes over `old`, with what it was called. Creation lock. */
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
    if (old->string) {
        CFRelease(old->string);
    }
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
    if (other) {
        object_release(other);
    }
    if (!renamed) {
        free(old);
    }
    if (string) {
        CFRelease(string);
    }
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
    registry_withdraw(&lost);
    if (!move_to("CFMessagePortCreateLocal", port, &name)) {
        port_log("CFMessagePortCreateLocal", "a port whose files were removed cannot be registered again");
    }
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

bool local_port_leave(const struct local_port *local, struct callee *callee, void **ret_object)
{
    bool is_last = --callee->calls == 0 && callee != local->callee;

    if (is_last) {
        *ret_object = callee->object;
        free(callee);
    }
    return is_last;
}

/* Puts `fresh` in the callee's place; NULL is nobody. As local_port_leave. P */
static bool replace_callee(struct local_port *local, struct callee *fresh, void **ret_object)
{
    struct callee *old = local->callee;

    local->callee = fresh;
    if (!old) {
        return false;
    }
    old->calls++; /* as if a callout of it ended now */
    return local_port_leave(local, old, ret_object);
}

bool local_port_call(CFMessagePortRef port, void *object)
{
    struct local_port *local = &port->side.local;
    struct callee *callee = malloc(sizeof *callee);
    void *released = object;
    bool is_taken;
    bool releases = true;

    if (!callee) {
        return false;
    }
    *callee = (struct callee){.object = object};
    port_lock(port);
    is_taken = port_is_valid(port);
    if (is_taken) {
        releases = replace_callee(local, callee, &released);
    }
    port_unlock(port);
    if (!is_taken) {
        free(callee);
    }
    if (releases && local->context.release) {
        local->context.release(released);
    }
    return true;
}

CFStringRef local_port_describe_info(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;

    return port_is_valid(port) ? info_hold_describe(&local->info.hold, &port->lock, local->context.copyDescription, local->context.release)
                               : NULL;
}

void local_port_release_info(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;
    void *info = NULL;
    void *object = NULL;
    bool releases;
    bool releases_object;

    port_lock(port);
    releases = called_info_give_up(&local->info, &info);
    releases_object = replace_callee(local, NULL, &object);
    port_unlock(port);
    if (releases && local->context.release) {
        local->context.release(info);
    }
    if (releases_object && local->context.release) {
        local->context.release(object);
    }
}

void local_port_close(CFMessagePortRef port)
{
    struct local_port *local = &port->side.local;
    CFRunLoopSourceRef source;
    struct inbox *inbox;
    struct dispatch_attachment *queue;

    port_lock(port);
    inbox = replace_inbox(local, NULL);
    source = local->source;
    local->source = NULL;
    queue = local->queue;
    local->queue = NULL;
    port_unlock(port);
    close_inbox(inbox);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
    if (queue) {
        dispatch_queue_detach(queue);
    }
    port_lock(port);
    line_table_close(&local->lines);
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
    card = card_of(&local->side.local, &local->name);
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
    card = card_of(&local->side.local, &local->name);
    if (local->side.local.publication.directory) {
        registry_update(&local->side.local.publication, &card);
    }
    port_unlock(local);
}
