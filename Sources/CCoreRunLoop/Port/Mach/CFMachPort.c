/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mach-style ports of one process: the object, its run loop source, and receiving. Fields and guards are in mach_port.h.
 */
#include "CoreFoundation/CFMachPort.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/shown.h"
#include "Loop/Trace/trace.h"
#include "Port/Core/callback_cleanup.h"
#include "Port/Mach/mach_port_table.h"
#include "Support/fault.h"
#include "Support/locked_read.h"

static void require(CFMachPortRef port, const char *function)
{
    object_require(port, object_type_mach_port, function, "port");
}

static void release_info(CFMachPortRef port, void *info)
{
    if (port->context.release) {
        port->context.release(info);
    }
}

/* ---- the queue ---- */

static void free_messages(struct link *queue)
{
    list_for_each_removable(link, queue) {
        list_remove(link);
        free(container_of(link, struct mach_message, link));
    }
}

/* ---- the object ---- */

/* No source is left, for a source holds a reference. Nobody else has the port, so no lock is needed. */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)object;

    void *info;

    if (context_info_finish(&port->info.hold, &info)) {
        release_info(port, info);
    }
    if (!port->is_valid) {
        return;
    }
    mach_port_table_remove(port);
    free_messages(&port->queue);
    if (port->event >= 0) {
        (void)kernel.close(port->event);
    }
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    return ((const struct __CFMachPort *)one)->number == ((const struct __CFMachPort *)other)->number; /* equal by number (rule 249) */
}

static CFHashCode hash(CFTypeRef object)
{
    return ((const struct __CFMachPort *)object)->number;
}

static CFStringRef describe(CFTypeRef object)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)object;
    CFStringRef context = context_info_describe(&port->info.hold, item_lock(port), port->context.copyDescription, port->context.release);
    struct shown callout;
    CFStringRef text;
    bool is_valid;
    bool has_messages;
    const void *info;

    mach_port_lock(port);
    is_valid = port->is_valid;
    has_messages = !list_is_empty(&port->queue);
    info = port->info.hold.info;
    mach_port_unlock(port);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFMachPort %p>{valid = %s, port = %x, messages = %s, callout = %s, info = %p%@%@}"),
                                    object, shown_bool(is_valid), port->number, has_messages ? "waiting" : "none",
                                    shown_callout(&callout, (void (*)(void))port->callout), info,
                                    context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));
    object_release_if_any(context);
    return text;
}

static const struct object_class mach_port_class = {
    .type_id = object_type_mach_port,
    .name = "CFMachPort",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
    .copy_description = describe,
};

CFTypeID CFMachPortGetTypeID(void)
{
    return object_type_mach_port;
}

static void set_should_free(Boolean *shouldFreeInfo, bool value)
{
    if (shouldFreeInfo) {
        *shouldFreeInfo = value;
    }
}

NOT_CHECKED CFMachPortRef CFMachPortCreate(CFAllocatorRef allocator, CFMachPortCallBack callout, CFMachPortContext *context,
                                           Boolean *shouldFreeInfo)
{
    CFMachPortRef port = object_create(allocator, &mach_port_class, sizeof *port);

    set_should_free(shouldFreeInfo, true);
    if (!port) {
        return NULL;
    }
    port->event = -1;
    link_init(&port->queue);
    if (!mach_port_table_add(port, &port->number)) {
        object_release(port); /* not valid yet: nothing to give back */
        return NULL;
    }
    if (context) {
        port->context = *context;
        port->context.info = NULL;
        port->info.hold.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    port->callout = callout;
    port->is_valid = true;
    set_should_free(shouldFreeInfo, false);
    return port;
}

CFMachPortRef CFMachPortCreateWithPort(CFAllocatorRef allocator, mach_port_t portNum, CFMachPortCallBack callout,
                                       CFMachPortContext *context, Boolean *shouldFreeInfo)
{
    (void)allocator, (void)callout, (void)context;
    set_should_free(shouldFreeInfo, true);
    return mach_port_table_find(portNum);
}

mach_port_t CFMachPortGetPort(CFMachPortRef port)
{
    require(port, "CFMachPortGetPort");
    return port->number;
}

void CFMachPortGetContext(CFMachPortRef port, CFMachPortContext *context)
{
    require(port, "CFMachPortGetContext");
    if (!context) {
        fault_stop("CFMachPortGetContext", "the context is NULL");
    }
    mach_port_lock(port);
    *context = port->context;
    context->info = port->info.hold.info;
    mach_port_unlock(port);
    context->version = 0;
}

Boolean CFMachPortIsValid(CFMachPortRef port)
{
    require(port, "CFMachPortIsValid");
    return locked_read_bool(item_lock(port), &port->is_valid);
}

CFMachPortInvalidationCallBack CFMachPortGetInvalidationCallBack(CFMachPortRef port)
{
    CFMachPortInvalidationCallBack callout;

    require(port, "CFMachPortGetInvalidationCallBack");
    mach_port_lock(port);
    callout = port->invalidation_callout;
    mach_port_unlock(port);
    return callout;
}

void CFMachPortSetInvalidationCallBack(CFMachPortRef port, CFMachPortInvalidationCallBack callout)
{
    bool calls_now;

    require(port, "CFMachPortSetInvalidationCallBack");
    mach_port_lock(port);
    calls_now = !port->is_valid && !port->invalidation_callout && callout;
    if (port->is_valid) {
        port->invalidation_callout = callout;
    }
    mach_port_unlock(port);
    if (calls_now) {
        callout(port, NULL); /* an invalid port calls at once (rule 248) */
    }
}

/* ---- receiving ---- */

/* Takes the next message, and counts its callout from here on. Returns NULL if there is none. */
static struct mach_message *begin_call(CFMachPortRef port)
{
    struct mach_message *message = NULL;

    mach_port_lock(port);
    if (port->is_valid && port->queued > 0) {
        struct link *link = port->queue.next;

        list_remove(link);
        port->queued--;
        message = container_of(link, struct mach_message, link);
        object_retain(port);
        message->port = port;
        message->info = callout_info_begin(&port->info);
        message->has_retained = false;
        mach_port_update_event(port);
    }
    mach_port_unlock(port);
    return message;
}

/* Ends the callout, even one that did not return. */
static void end_call(const void *received)
{
    struct mach_message *message = (struct mach_message *)(uintptr_t)received;
    CFMachPortRef port = message->port;
    void *info = NULL;
    bool releases;

    if (message->has_retained) {
        release_info(port, message->info);
    }
    mach_port_lock(port);
    releases = callout_info_end(&port->info, &info);
    mach_port_unlock(port);
    if (releases) {
        release_info(port, info);
    }
    free(message);
    object_release(port);
}

static void call_out(CFMachPortRef port, struct mach_message *message)
{
    if (port->context.retain) {
        message->info = (void *)(uintptr_t)port->context.retain(message->info); /* for the call (rule 246) */
        message->has_retained = true;
    }
    trace_callout_begin(trace_mach_message, port, (void (*)(void))port->callout);
    port->callout(port, &message->header, (CFIndex)message->size, message->info);
    trace_callout_end(trace_mach_message, port);
}

static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFMachPortRef port = object;
    struct mach_message *message = begin_call(port);
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t mark;

    (void)source, (void)ready;
    if (!message) {
        return;
    }
    mach_port_wake_sender(port);
    mark = cleanup_push(loop, end_call, message);
    if (port->callout) {
        call_out(port, message);
    }
    cleanup_pop(loop, mark);
    end_call(message);
}

/* ---- the source ---- */

static void forget(void *object, CFRunLoopSourceRef source)
{
    CFMachPortRef port = object;

    weak_source_forget(port, &port->source, source);
}

/* Returns the port's eventfd, which it makes if there is none yet; or -1 if it cannot be made. */
static int event_of(CFMachPortRef port)
{
    int event;

    mach_port_lock(port);
    if (port->is_valid && port->event < 0) {
        event = kernel.event_create();
        port->event = event < 0 ? -1 : event;
        mach_port_update_event(port);
    }
    event = port->event;
    mach_port_unlock(port);
    return event;
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, const void *owner, CFIndex order)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)owner;
    const struct descriptor_source_context context = {.forget = forget, .perform = perform};
    CFRunLoopSourceRef source = descriptor_source_create_of(port, allocator, order, event_of(port), context);

    if (source) {
        descriptor_source_set_interest(source, kernel_readable);
    }
    return source;
}

CFRunLoopSourceRef CFMachPortCreateRunLoopSource(CFAllocatorRef allocator, CFMachPortRef port, CFIndex order)
{
    require(port, "CFMachPortCreateRunLoopSource");
    return weak_source_get_or_make(port, &port->source, &port->is_valid, make_source, allocator, order);
}

/* ---- the end ---- */

/* The parts of a port that its invalidation needs once the lock is dropped. */
struct ended {
    struct link queue;
    CFMachPortInvalidationCallBack callout;
    void *info;
};

/* Makes the port invalid. Returns false if it was invalid already. */
static bool take_apart(CFMachPortRef port, struct ended *ret_ended)
{
    bool was_valid;

    link_init(&ret_ended->queue);
    mach_port_lock(port);
    was_valid = port->is_valid;
    if (was_valid) {
        port->is_valid = false;
        port->ended_source = weak_source_retain(&port->source);
        port->ended_event = port->event;
        ret_ended->callout = port->invalidation_callout;
        ret_ended->info = port->info.hold.info;
        list_append_all(&ret_ended->queue, &port->queue);
        port->queued = 0;
        port->source.source = NULL;
        port->event = -1;
    }
    mach_port_unlock(port);
    return was_valid;
}

static void release_context(CFMachPortRef port)
{
    void *info;
    bool releases;

    mach_port_lock(port);
    releases = callout_info_retire(&port->info, &info);
    mach_port_unlock(port);
    if (releases) {
        release_info(port, info);
    }
}

/* Ends the invalidation after the callback, and gives back the reference that it held. */
static void finish_invalidation(const void *ended)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)ended;

    if (port->ended_source) {
        descriptor_source_invalidate(port->ended_source);
        object_release(port->ended_source);
    }
    release_context(port);
    if (port->ended_event >= 0) {
        (void)kernel.close(port->ended_event);
    }
    object_release(port);
}

static void call_invalidation_callback(CFMachPortRef port, CFMachPortInvalidationCallBack callout, void *info)
{
    CFRunLoopRef loop = thread_registry_current();
    uint32_t begun = callback_cleanup_begin(loop, finish_invalidation, port);

    callout(port, info);
    callback_cleanup_end(loop, begun);
}

void CFMachPortInvalidate(CFMachPortRef port)
{
    struct ended ended;

    require(port, "CFMachPortInvalidate");
    object_retain(port);
    if (!take_apart(port, &ended)) {
        object_release(port);
        return;
    }
    mach_port_table_remove(port);
    mach_port_wake_sender(port);
    free_messages(&ended.queue);
    if (ended.callout) {
        call_invalidation_callback(port, ended.callout, ended.info); /* before the source ends (rule 247) */
    }
    finish_invalidation(port);
}
