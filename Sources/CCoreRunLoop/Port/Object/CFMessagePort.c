/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on message ports: they check their arguments and hand on. */
#include "CoreFoundation/CFMessagePort.h"

#include "Port/Core/message_port.h"
#include "Port/Core/port_use.h"
#include "Port/Message/request.h"
#include "Port/Object/local_name.h"
#include "Port/Object/local_port.h"
#include "Port/Object/owner_watch.h"
#include "Port/Object/remote_port.h"
#include "Support/fault.h"

static void require(CFMessagePortRef port, const char *function)
{
    object_check(port, &message_port_class, function, "port");
}

CFTypeID CFMessagePortGetTypeID(void)
{
    return object_type_message_port;
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
        *shouldFreeInfo = !port || !is_new; /* false only for a new port (rule 194) */
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
        object_retain(ms);
        message_port_end_gone(ms);
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
    struct owner_watch *watch = NULL;
    struct owner_watch *old = NULL;
    bool is_late;

    require(ms, "CFMessagePortSetInvalidationCallBack");
    if (ms->is_remote && callout) {
        watch = owner_watch_create(ms);
    }
    port_lock(ms);
    is_late = !port_is_valid(ms);
    ms->invalidated = callout;
    if (ms->is_remote) {
        old = owner_watch_exchange(&ms->side.remote, is_late ? NULL : watch);
    }
    port_unlock(ms);
    owner_watch_destroy(old); /* a callback that it still had to call has been replaced */
    if (is_late) {
        owner_watch_destroy(watch);
    }
    if (is_late && callout) {
        callout(ms, NULL); /* an invalid port calls at once (rule 205) */
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
    local_port_set_dispatch_queue(ms, queue);
}

SInt32 CFMessagePortSendRequest(CFMessagePortRef remote, SInt32 msgid, CFDataRef data, CFTimeInterval sendTimeout,
                                CFTimeInterval rcvTimeout, CFStringRef replyMode, CFDataRef *returnData)
{
    const struct request request = {
        .message_id = msgid, .data = data, .send_timeout = sendTimeout, .receive_timeout = rcvTimeout, .reply_mode = replyMode};

    require(remote, "CFMessagePortSendRequest");
    if (!remote->is_remote || !port_is_valid(remote)) {
        return kCFMessagePortIsInvalid; /* only remote ports send (rule 242) */
    }
    return request_send_and_end(remote, &request, returnData);
}

/* ---- the end ---- */

void CFMessagePortInvalidate(CFMessagePortRef ms)
{
    require(ms, "CFMessagePortInvalidate");
    message_port_invalidate(ms);
}
