/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on input sources: checks, and one call inward. */

#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Source/source_membership.h"
#include "Support/fault.h"

static void require_source(CFRunLoopSourceRef source, const char *function)
{
    object_check(source, &source_class, function, "source");
}

CFTypeID CFRunLoopSourceGetTypeID(void)
{
    return object_type_run_loop_source;
}

/* The fields that both versions of the context share stand first, in the same order. */
static void collect_common(const CFRunLoopSourceContext *context, source_function *callbacks)
{
    callbacks[source_callback_retain] = (source_function)context->retain;
    callbacks[source_callback_release] = (source_function)context->release;
    callbacks[source_callback_describe] = (source_function)context->copyDescription;
    callbacks[source_callback_equal] = (source_function)context->equal;
    callbacks[source_callback_hash] = (source_function)context->hash;
}

CFRunLoopSourceRef CFRunLoopSourceCreate(CFAllocatorRef allocator, CFIndex order, CFRunLoopSourceContext *context)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    source_function callbacks[source_callback_count] = {NULL};
    CFRunLoopSourceRef source;

    if (!context) {
        fault_stop("CFRunLoopSourceCreate", "the context is NULL");
    }
    if (context->version != 0 && context->version != 1) {
        fault_log_once(&logged, "CFRunLoopSourceCreate: the context's version is neither 0 nor 1; no source is made");
        return NULL;
    }
    collect_common(context, callbacks);
    if (context->version == 0) {
        callbacks[source_callback_schedule] = (source_function)context->schedule;
        callbacks[source_callback_cancel] = (source_function)context->cancel;
        callbacks[source_callback_perform] = (source_function)context->perform;
    } else {
        const CFRunLoopSourceContext1 *port = (const CFRunLoopSourceContext1 *)(const void *)context;

        callbacks[source_callback_get_port] = (source_function)port->getPort;
        callbacks[source_callback_perform] = (source_function)port->perform;
    }
    source = source_create(allocator, order, context->version == 0 ? source_manual : source_with_port, context->info, callbacks);
    if (source && context->retain) {
        source->context_info = (void *)(uintptr_t)context->retain(context->info); /* the source uses what this returns (rule 72) */
    }
    return source;
}

CFIndex CFRunLoopSourceGetOrder(CFRunLoopSourceRef source)
{
    require_source(source, "CFRunLoopSourceGetOrder");
    return source->order;
}

void CFRunLoopSourceInvalidate(CFRunLoopSourceRef source)
{
    require_source(source, "CFRunLoopSourceInvalidate");
    source_invalidate(source);
}

Boolean CFRunLoopSourceIsValid(CFRunLoopSourceRef source)
{
    require_source(source, "CFRunLoopSourceIsValid");
    return source_is_valid(source);
}

void CFRunLoopSourceGetContext(CFRunLoopSourceRef source, CFRunLoopSourceContext *context)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    CFIndex version;

    require_source(source, "CFRunLoopSourceGetContext");
    if (!context) {
        fault_stop("CFRunLoopSourceGetContext", "the context is NULL");
    }
    version = source_version(source);
    if (context->version != version) {
        fault_log_once(&logged, "CFRunLoopSourceGetContext: the version in the context is not the source's; nothing is copied");
        return;
    }
    context->info = source->context_info;
    context->retain = (const void *(*)(const void *))source_callback(source, source_callback_retain);
    context->release = (void (*)(const void *))source_callback(source, source_callback_release);
    context->copyDescription = (CFStringRef (*)(const void *))source_callback(source, source_callback_describe);
    context->equal = (Boolean (*)(const void *, const void *))source_callback(source, source_callback_equal);
    context->hash = (CFHashCode (*)(const void *))source_callback(source, source_callback_hash);
    if (version == 0) {
        context->schedule = (void (*)(void *, CFRunLoopRef, CFRunLoopMode))source_callback(source, source_callback_schedule);
        context->cancel = (void (*)(void *, CFRunLoopRef, CFRunLoopMode))source_callback(source, source_callback_cancel);
        context->perform = source_kind(source) == source_manual ? (void (*)(void *))source_callback(source, source_callback_perform) : NULL;
    } else {
        CFRunLoopSourceContext1 *port = (CFRunLoopSourceContext1 *)(void *)context;

        port->getPort =
            source_kind(source) == source_with_port ? (__CFPort (*)(void *))source_callback(source, source_callback_get_port) : NULL;
        port->perform = source_kind(source) == source_with_port ? (void (*)(void *))source_callback(source, source_callback_perform) : NULL;
    }
}

/* In one line of the cache; see CFRunLoopWakeUp. */
__attribute__((aligned(cache_line))) void CFRunLoopSourceSignal(CFRunLoopSourceRef source)
{
    require_source(source, "CFRunLoopSourceSignal");
    if (source_kind(source) == source_manual) {
        source_signal(source); /* does nothing to a version-1 source (rule 101) */
    }
}

Boolean CFRunLoopSourceIsSignalled(CFRunLoopSourceRef source)
{
    require_source(source, "CFRunLoopSourceIsSignalled");
    return source_is_marked(source);
}
