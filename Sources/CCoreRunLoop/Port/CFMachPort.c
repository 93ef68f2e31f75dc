/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mach-style ports of one process: the object, its run loop source, and receiving. Fields and guards are in mach_port.h.
 */
#include "CoreFoundation/CFMachPort.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/descriptor_source.h"
#include "Loop/held.h"
#include "Port/aftermath.h"
#include "Port/mach_port.h"
#include "Support/fault.h"

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

void mach_port_update_event(CFMachPortRef port)
{
    bool is_posted = port->queued > 0;

    if (port->event < 0 || port->is_posted == is_posted) {
        return;
    }
    port->is_posted = is_posted;
    if (is_posted) {
        (void)kernel.event_post(port->event);
    } else {
        kernel.counter_drain(port->event);
    }
}

void mach_port_wake_sender(CFMachPortRef port)
{
    bool has_waiters;

    mach_port_lock(port);
    has_waiters = port->waiting_senders > 0 && (port->queued < mach_port_queue_limit || !port->is_valid);
    atomic_fetch_add_explicit(&port->room, has_waiters, memory_order_relaxed);
    mach_port_unlock(port);
    if (has_waiters) {
        (void)kernel.futex_wake(&port->room);
    }
}

static void free_messages(struct link *queue)
{
    list_for_each_removable(link, queue) {
        list_remove(link);
        free(container_of(link, struct mach_message, link));
    }
}

/* ---- the object ---- */

/* No source is left, for a source holds a reference. */
static void finalize(CFTypeRef object)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)object;

    void *info;

    if (info_hold_finish(&port->info.hold, &info)) {
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
    return ((const struct __CFMachPort *)one)->number == ((const struct __CFMachPort *)other)->number; /* 249 */
}

static CFHashCode hash(CFTypeRef object)
{
    return ((const struct __CFMachPort *)object)->number;
}

static CFStringRef describe(CFTypeRef object)
{
    CFMachPortRef port = (CFMachPortRef)(uintptr_t)object;
    CFStringRef context =
        info_hold_describe(&port->info.hold, item_lock(port), port->context.copyDescription, port->context.release);
    CFStringRef text;
    bool is_valid;
    const void *info;

    mach_port_lock(port);
    is_valid = port->is_valid;
    info = port->info.hold.info;
    mach_port_unlock(port);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFMachPort %p>{valid = %s, port = %x, callout = %p, info = %p%@%@}"), object,
                                    is_valid ? "Yes" : "No", port->number, (void *)(uintptr_t)port->callout, info,
                                    context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));

    if (context) {
        CFRelease(context);
    }
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

CFMachPortRef CFMachPortCreate(CFAllocatorRef allocator, CFMachPortCallBack callout, CFMachPortContext *context, Boolean *shouldFreeInfo)
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
    bool is_valid;

    require(port, "CFMachPortIsValid");
    mach_port_lock(port);
    is_valid = port->is_valid;
    mach_port_unlock(port);
    return is_valid;
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
        callout(port, NULL); /* 248 */
    }
}

/* ---- receiving ---- */

/* The next message, whose callout counts from here on; NULL if there is none. */
static struct mach_message *begin_call(CFMachPortRef port)
{
    struct mach_message *message = NULL;

    mach_port_table_disown();
    mach_port_lock(port);
    if (port->is_valid && port->queued > 0) {
        struct link *link = port->queue.next;

        list_remove(link);
        port->queued--;
        message = container_of(link, struct mach_message, link);
        object_retain(port);
        message->port = port;
        message->info = called_info_begin(&port->info);
        message->has_retained = false;
        mach_port_update_event(port);
    }
    mach_port_unlock(port);
    return message;
}

/* The callout is over, also if it does not return. */
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
    releases = called_info_end(&port->info, &info);
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
        message->info = (void *)(uintptr_t)port->context.retain(message->info); /* 246 */
        message->has_retained = true;
    }
    port->callout(port, &message->header, (CFIndex)message->size, message->info);
}

static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFMachPortRef port = object;
    struct mach_message *message = begin_call(port);
    struct activation *run = held_caller();

    (void)source, (void)ready;
    if (!message) {
        return;
    }
    mach_port_wake_sender(port);
    held_in_hand(run, end_call, message);
    if (port->callout) {
        call_out(port, message);
    }
    held_put_down(run);
    end_call(message);
}

/* ---- the source ---- */

static void forget(void *object, CFRunLoopSourceRef source)
{
    CFMachPortRef port = object;

    weak_source_forget(port, &port->source, source);
}

static CFStringRef describe_source(const void *object)
{
    return CFCopyDescription(object);
}

/* The port's eventfd, made now if there is none; -1 when there cannot be one. */
static int event_of(CFMachPortRef port)
{
    int event;

    mach_port_table_disown();
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

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFMachPortRef port, CFIndex order)
{
    const struct descriptor_source_context context = {
        .info = port, .release = object_release, .forget = forget, .perform = perform, .copy_description = describe_source};
    int event = event_of(port);
    CFRunLoopSourceRef source;

    if (event < 0) {
        return NULL;
    }
    object_retain(port);
    source = descriptor_source_create(allocator, order, event, &context);
    if (!source) {
        object_release(port);
        return NULL;
    }
    descriptor_source_set_interest(source, kernel_readable);
    return source;
}

CFRunLoopSourceRef CFMachPortCreateRunLoopSource(CFAllocatorRef allocator, CFMachPortRef port, CFIndex order)
{
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef made;

    require(port, "CFMachPortCreateRunLoopSource");
    source = weak_source_settle(port, &port->source, NULL, &port->is_valid);
    if (source || !CFMachPortIsValid(port)) {
        return source;
    }
    made = make_source(allocator, port, order);
    if (!made) {
        return NULL;
    }
    source = weak_source_settle(port, &port->source, made, &port->is_valid);
    if (source != made) {
        CFRunLoopSourceInvalidate(made); /* another thread was faster, or has invalidated the port */
    }
    object_release(made);
    return source;
}

/* ---- the end ---- */

/* What an invalidation needs once the lock is dropped. */
struct ended {
    struct link queue;
    CFMachPortInvalidationCallBack callout;
    void *info;
};

/* False if the port was invalid already. */
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
    releases = called_info_give_up(&port->info, &info);
    mach_port_unlock(port);
    if (releases) {
        release_info(port, info);
    }
}

/* What comes after the callback, with a reference. */
static void let_go(const void *ended)
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

static void tell(CFMachPortRef port, CFMachPortInvalidationCallBack callout, void *info)
{
    CFRunLoopRef loop = thread_loop_current();
    uint32_t begun = aftermath_begin(loop, let_go, port);

    callout(port, info);
    aftermath_end(loop, begun);
}

void CFMachPortInvalidate(CFMachPortRef port)
{
    struct ended ended;

    require(port, "CFMachPortInvalidate");
    mach_port_table_disown();
    object_retain(port);
    if (!take_apart(port, &ended)) {
        object_release(port);
        return;
    }
    mach_port_table_remove(port);
    mach_port_wake_sender(port);
    free_messages(&ended.queue);
    if (ended.callout) {
        tell(port, ended.callout, ended.info); /* 247 */
    }
    let_go(port);
}
