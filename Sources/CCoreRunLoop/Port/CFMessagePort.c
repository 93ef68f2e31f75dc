/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on message ports, and what both sides have in common: checks, invalidation, description. */
#include "CoreFoundation/CFMessagePort.h"

#include <stdlib.h>

#include "Port/aftermath.h"
#include "Port/message_port.h"
#include "Support/fault.h"

static void require(CFMessagePortRef port, const char *function)
{
    object_check(port, &message_port_class, function, "port");
}

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

/* The owner of the last reference has gone without invalidating (206). */
static void finalize(CFTypeRef object)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)object;
    struct inbox *inbox;

    message_port_invalidate(port);
    /* A local port has one left only in the child of a fork, which did not close its parent's. */
    inbox = port->is_remote ? port->side.remote.inbox : port->side.local.inbox;
    if (inbox) {
        inbox_release(inbox);
    }
    if (port->name_string) {
        CFRelease(port->name_string);
    }
    if (!port->is_remote) {
        free(port->side.local.spare_incoming);
    }
    free_former_names(port);
    scratch_free(&port->scratch);
}

/* The name, with a reference: it may be another at once. */
static CFStringRef copy_name(CFMessagePortRef port)
{
    CFStringRef name;

    port_lock(port);
    name = port->name_string ? CFRetain(port->name_string) : NULL;
    port_unlock(port);
    return name;
}

static CFStringRef describe(CFTypeRef object)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)object;
    CFStringRef context = port->is_remote ? NULL : local_port_describe_info(port);
    CFStringRef name = copy_name(port);
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFMessagePort %p>{%s, valid = %s, name = %@%@%@}"), object,
                                                port->is_remote ? "remote" : "local", port_is_valid(port) ? "Yes" : "No",
                                                name ? name : CFSTR("(none)"), context ? CFSTR(", context = ") : CFSTR(""),
                                                context ? context : CFSTR(""));

    if (context) {
        CFRelease(context);
    }
    if (name) {
        CFRelease(name);
    }
    return text;
}

const struct object_class message_port_class = {
    .type_id = object_type_message_port,
    .name = "CFMessagePort",
    .finalize = finalize,
    .copy_description = describe,
};

CFTypeID CFMessagePortGetTypeID(void)
{
    return object_type_message_port;
}

CFMessagePortRef message_port_allocate(CFAllocatorRef allocator, bool is_remote, const struct port_name *name)
{
    CFMessagePortRef port = object_create(allocator, &message_port_class, sizeof *port);

    if (!port) {
        return NULL;
    }
    link_init(&port->table_link);
    link_init(&port->republished_link);
    port->is_remote = is_remote;
    if (name) {
        port->name = *name;
        port->name_string = port_name_string(name);
    }
    atomic_store_explicit(&port->is_valid, true, memory_order_release);
    return port;
}

/* ---- creation ---- */

CFMessagePortRef CFMessagePortCreateLocal(CFAllocatorRef allocator, CFStringRef name, CFMessagePortCallBack callout,
                                          CFMessagePortContext *context, Boolean *shouldFreeInfo)
{
    CFMessagePortRef port = NULL;
    struct port_name bytes;
    bool is_new = false;

    if (!name || port_name_of(name, &bytes)) {
        port = local_port_create(allocator, name ? &bytes : NULL, callout, context, &is_new);
    }
    if (shouldFreeInfo) {
        *shouldFreeInfo = !port || !is_new; /* 194 */
    }
    return port;
}

CFMessagePortRef CFMessagePortCreateRemote(CFAllocatorRef allocator, CFStringRef name)
{
    struct port_name bytes;

    return name && port_name_of(name, &bytes) ? remote_port_create(allocator, &bytes) : NULL;
}

/* ---- asking ---- */

Boolean CFMessagePortIsRemote(CFMessagePortRef ms)
{
    require(ms, "CFMessagePortIsRemote");
    return ms->is_remote;
}

CFStringRef CFMessagePortGetName(CFMessagePortRef ms)
{
    CFStringRef name;

    require(ms, "CFMessagePortGetName");
    port_lock(ms);
    name = ms->name_string;
    ms->name_is_lent = true;
    port_unlock(ms);
    return name;
}

void CFMessagePortGetContext(CFMessagePortRef ms, CFMessagePortContext *context)
{
    require(ms, "CFMessagePortGetContext");
    if (!context) {
        fault_stop("CFMessagePortGetContext", "the context is NULL");
    }
    *context = (CFMessagePortContext){.version = 0};
    port_lock(ms);
    if (!ms->is_remote) {
        *context = ms->side.local.context;
        context->info = ms->side.local.info.hold.info;
    }
    port_unlock(ms);
}

Boolean CFMessagePortIsValid(CFMessagePortRef ms)
{
    require(ms, "CFMessagePortIsValid");
    if (ms->is_remote && port_is_valid(ms) && !remote_port_is_alive(ms)) {
        message_port_invalidate(ms);
    }
    return port_is_valid(ms);
}

CFMessagePortInvalidationCallBack CFMessagePortGetInvalidationCallBack(CFMessagePortRef ms)
{
    CFMessagePortInvalidationCallBack callout;

    require(ms, "CFMessagePortGetInvalidationCallBack");
    port_lock(ms);
    callout = ms->invalidated;
    port_unlock(ms);
    return callout;
}

void CFMessagePortSetInvalidationCallBack(CFMessagePortRef ms, CFMessagePortInvalidationCallBack callout)
{
    bool is_late;

    require(ms, "CFMessagePortSetInvalidationCallBack");
    port_lock(ms);
    is_late = !port_is_valid(ms);
    ms->invalidated = callout;
    port_unlock(ms);
    if (is_late && callout) {
        callout(ms, NULL); /* 205 */
    }
}

/* ---- changing ---- */

Boolean CFMessagePortSetName(CFMessagePortRef ms, CFStringRef newName)
{
    struct port_name bytes;

    require(ms, "CFMessagePortSetName");
    return !ms->is_remote && newName && port_name_of(newName, &bytes) && local_port_rename(ms, &bytes);
}

CFRunLoopSourceRef CFMessagePortCreateRunLoopSource(CFAllocatorRef allocator, CFMessagePortRef local, CFIndex order)
{
    require(local, "CFMessagePortCreateRunLoopSource");
    return local->is_remote || !port_is_valid(local) ? NULL : local_port_source(allocator, local, order);
}

/* Declared in the header only where the dispatch headers are; there for every program. */
CF_EXPORT void message_port_set_queue(CFMessagePortRef ms, void *queue) CRL_LINK(CFMessagePortSetDispatchQueue);

void message_port_set_queue(CFMessagePortRef ms, void *queue)
{
    require(ms, "CFMessagePortSetDispatchQueue");
    local_port_set_queue(ms, queue);
}

SInt32 CFMessagePortSendRequest(CFMessagePortRef remote, SInt32 msgid, CFDataRef data, CFTimeInterval sendTimeout,
                                CFTimeInterval rcvTimeout, CFStringRef replyMode, CFDataRef *returnData)
{
    SInt32 result;

    require(remote, "CFMessagePortSendRequest");
    if (!remote->is_remote || !port_is_valid(remote)) {
        return kCFMessagePortIsInvalid; /* 242 */
    }
    object_retain(remote); /* it may be released inside the wait */
    result = message_send(remote, msgid, data, sendTimeout, rcvTimeout, replyMode, returnData);
    if (result == kCFMessagePortIsInvalid || result == kCFMessagePortBecameInvalidError) {
        message_port_end(remote); /* not before: of the request, nothing is left that a callback would have to come back to */
    } else {
        object_release(remote);
    }
    return result;
}

/* ---- the end ---- */

/* What comes after the callback, with a reference. */
static void let_go(const void *ended)
{
    CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)ended;

    if (port->is_remote) {
        remote_port_close(port);
    } else {
        local_port_release_info(port);
        local_port_close(port);
    }
    port_table_remove(port); /* last: the callback may fork, or another thread meanwhile */
    object_release(port);
}

static void tell(CFMessagePortRef port, CFMessagePortInvalidationCallBack callout, void *info)
{
    CFRunLoopRef loop = thread_loop_current();
    uint32_t begun = aftermath_begin(loop, let_go, port);

    callout(port, info);
    aftermath_end(loop, begun);
}

/* In the order that is promised (203). */
void message_port_end(CFMessagePortRef port)
{
    CFMessagePortInvalidationCallBack callout;
    void *info;
    bool was_valid;

    port_table_disown(); /* else the parent's port would stay in the table, whatever becomes of it */
    port_lock(port);
    was_valid = atomic_exchange_explicit(&port->is_valid, false, memory_order_acq_rel);
    callout = port->invalidated;
    info = port->is_remote ? NULL : port->side.local.info.hold.info;
    port_unlock(port);
    if (!was_valid) {
        object_release(port);
        return;
    }
    if (!port->is_remote) {
        local_port_withdraw(port);
    }
    if (callout) {
        tell(port, callout, info);
    }
    let_go(port);
}

void message_port_invalidate(CFMessagePortRef port)
{
    object_retain(port);
    message_port_end(port);
}

void CFMessagePortInvalidate(CFMessagePortRef ms)
{
    require(ms, "CFMessagePortInvalidate");
    message_port_invalidate(ms);
}
