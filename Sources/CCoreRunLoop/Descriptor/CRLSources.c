/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal sources (signalfd) and child sources (pidfd): a descriptor of the library's own under a source, and a typed callback.
 *
 * Everything here is constant after creation; the callbacks run on the loop's thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/descriptor_source.h"
#include "Loop/held.h"
#include "Runtime/object.h"

/* What either kind of source stands on. */
struct watched {
    int descriptor; /* ours: closed with the source */
    pid_t pid; /* of child sources */
    CRLSignalCallBack signal_callout;
    CRLChildCallBack child_callout;
    CRLSourceContext context;
};

static void release(const void *info)
{
    struct watched *watched = (struct watched *)(uintptr_t)info;

    if (watched->context.release) {
        watched->context.release(watched->context.info);
    }
    (void)kernel.close(watched->descriptor);
    free(watched);
}

static CFStringRef describe(const void *info)
{
    const struct watched *watched = info;

    return watched->context.copyDescription ? watched->context.copyDescription(watched->context.info) : NULL;
}

/* Takes `descriptor` over: it is closed if no source can be made. */
static CFRunLoopSourceRef create(CFAllocatorRef allocator, CFIndex order, const struct watched *parts, const CRLSourceContext *context,
                                 void (*perform)(void *info, CFRunLoopSourceRef source, uint32_t ready))
{
    struct watched *watched = malloc(sizeof *watched);
    const struct descriptor_source_context made = {.info = watched, .release = release, .perform = perform, .copy_description = describe};
    CFRunLoopSourceRef source = watched ? descriptor_source_create(allocator, order, parts->descriptor, &made) : NULL;

    if (!source) {
        (void)kernel.close(parts->descriptor);
        free(watched);
        return NULL;
    }
    *watched = *parts;
    if (context) {
        watched->context = *context;
        watched->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    descriptor_source_set_interest(source, kernel_readable);
    return source;
}

static void perform_signal(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct watched *watched = info;
    struct signalfd_siginfo signal;

    (void)ready;
    if (kernel.signal_take(watched->descriptor, &signal) == 0) {
        watched->signal_callout(source, &signal, watched->context.info);
    }
}

CFRunLoopSourceRef CRLSignalSourceCreate(CFAllocatorRef allocator, int signalNumber, CFIndex order, CRLSignalCallBack callout,
                                         const CRLSourceContext *context)
{
    struct watched parts = {.signal_callout = callout};

    if (!callout || (context && context->version != 0) || signalNumber == SIGKILL || signalNumber == SIGSTOP) {
        return NULL;
    }
    parts.descriptor = kernel.signal_open(signalNumber);
    if (parts.descriptor < 0) {
        return NULL;
    }
    (void)kernel.signal_block(signalNumber); /* a number that signal_open took can be blocked */
    return create(allocator, order, &parts, context, perform_signal);
}

/* The child has been told of, also if that callback does not return. */
static void end_child(const void *object)
{
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)object;

    CFRunLoopSourceInvalidate(source);
    object_release(source);
}

static void perform_child(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    struct watched *watched = info;
    int status = 0;
    int result = kernel.process_reap(watched->pid, &status);
    struct activation *run = held_caller();

    (void)ready;
    if (result == 0 || result == -EINTR) {
        return; /* not yet */
    }
    object_retain(source);
    descriptor_source_set_interest(source, 0); /* the descriptor stays readable: no second call from a nested run */
    held_in_hand(run, end_child, source);
    watched->child_callout(source, watched->pid, result > 0 ? status : -1, watched->context.info);
    held_put_down(run);
    end_child(source);
}

CFRunLoopSourceRef CRLChildSourceCreate(CFAllocatorRef allocator, pid_t pid, CFIndex order, CRLChildCallBack callout,
                                        const CRLSourceContext *context)
{
    struct watched parts = {.pid = pid, .child_callout = callout};

    if (!callout || (context && context->version != 0) || !kernel.process_is_child(pid)) {
        return NULL;
    }
    parts.descriptor = kernel.process_open(pid);
    if (parts.descriptor < 0) {
        return NULL;
    }
    return create(allocator, order, &parts, context, perform_child);
}
