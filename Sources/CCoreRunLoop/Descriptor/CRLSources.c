/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal sources (signalfd) and child sources (pidfd, or the pipe of a thread that waits). Each is a run loop source with a descriptor that
 * the library opens, and a typed callback.
 *
 * Threads: any thread may create a source. All fields are constant from then on, and need no lock. The callbacks run on the loop's thread.
 * The source owns its struct watched, and with it the descriptor and the program's info; all three end when the source is freed.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Trace/trace.h"
#include "Runtime/Object/object.h"
#include "Support/invariant.h"

/* The part of a source of either kind that is this file's own. */
struct watched {
    int descriptor; /* a signalfd, pidfd or pipe of the library's own: closed when the source is freed */
    pid_t pid; /* of a child source; else 0 */
    int signal; /* of a signal source; else 0 */
    CRLSignalCallBack signal_callout; /* of a signal source; else NULL */
    CRLChildCallBack child_callout; /* of a child source; else NULL */
    CRLSourceContext context;
};

/* The source is being freed. */
static void release_watched(const void *info)
{
    struct watched *watched = (struct watched *)(uintptr_t)info;

    if (watched->context.release) {
        watched->context.release(watched->context.info);
    }
    if (watched->signal_callout) {
        kernel.signal_unexpect(watched->signal);
    }
    (void)kernel.close(watched->descriptor);
    free(watched);
}

static CFStringRef copy_description(const void *info)
{
    const struct watched *watched = info;
    CFStringRef context = watched->context.copyDescription ? watched->context.copyDescription(watched->context.info) : NULL;
    struct shown shown;
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("{%s, callout = %s, info = %p%@%@}"), watched->signal_callout ? "signal source" : "child source",
        shown_callout(&shown, watched->signal_callout ? (void (*)(void))watched->signal_callout : (void (*)(void))watched->child_callout),
        watched->context.info, context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));

    object_release_if_any(context);
    return text;
}

/*
 * Makes the source, and takes over the descriptor in `parts`, which is closed if no source can be made. The context is retained only when
 * nothing can fail any more.
 */
static CFRunLoopSourceRef create_source(CFAllocatorRef allocator, CFIndex order, const struct watched *parts,
                                        const CRLSourceContext *context,
                                        void (*perform)(void *info, CFRunLoopSourceRef source, uint32_t ready))
{
    struct watched *watched = malloc(sizeof *watched);
    const struct descriptor_source_context made = {
        .info = watched, .release = release_watched, .perform = perform, .copy_description = copy_description};
    CFRunLoopSourceRef source = watched ? descriptor_source_create(allocator, order, parts->descriptor, &made) : NULL;

    invariant(parts->descriptor >= 0);
    invariant(!parts->signal_callout != !parts->child_callout); /* one kind of source */
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
    invariant(watched->signal_callout);
    /* Another thread may have taken the signal, by a signalfd or sigwait of its own. */
    if (kernel.signal_take(watched->descriptor, &signal) == 0) {
        trace_callout_begin(trace_signal_source, source, (void (*)(void))watched->signal_callout);
        watched->signal_callout(source, &signal, watched->context.info);
        trace_callout_end(trace_signal_source, source);
    }
}

CFRunLoopSourceRef CRLSignalSourceCreate(CFAllocatorRef allocator, int signalNumber, CFIndex order, CRLSignalCallBack callout,
                                         const CRLSourceContext *context)
{
    struct watched parts = {.signal = signalNumber, .signal_callout = callout};
    CFRunLoopSourceRef source;

    if (!callout || (context && context->version != 0) || signalNumber == SIGKILL || signalNumber == SIGSTOP) {
        return NULL;
    }
    parts.descriptor = kernel.signal_open(signalNumber);
    if (parts.descriptor < 0) {
        return NULL;
    }
    (void)kernel.signal_block(signalNumber); /* cannot fail for a number that signal_open took */
    kernel.signal_expect(signalNumber);
    source = create_source(allocator, order, &parts, context, perform_signal);
    if (!source) {
        kernel.signal_unexpect(signalNumber);
    }
    return source;
}

/* The program has been told of the child's end, or is being told and its callback does not return (a clean-up): the source ends. */
static void end_child_source(const void *object)
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
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t mark;

    (void)ready;
    if (result == 0 || result == -EINTR) {
        return; /* has not ended yet: the report was early, or a signal came in between */
    }
    invariant(watched->child_callout && watched->pid > 0);
    object_retain(source); /* the callback may drop the program's reference */
    descriptor_source_set_interest(source, 0); /* the descriptor stays readable: a nested run must not call a second time */
    mark = cleanup_push(loop, end_child_source, source);
    trace_callout_begin(trace_child_source, source, (void (*)(void))watched->child_callout);
    watched->child_callout(source, watched->pid, result > 0 ? status : -1, watched->context.info);
    trace_callout_end(trace_child_source, source);
    cleanup_pop(loop, mark);
    end_child_source(source);
}

CFRunLoopSourceRef CRLChildSourceCreate(CFAllocatorRef allocator, pid_t pid, CFIndex order, CRLChildCallBack callout,
                                        const CRLSourceContext *context)
{
    struct watched parts = {.pid = pid, .child_callout = callout};

    if (!callout || (context && context->version != 0) || !kernel.process_is_child(pid)) {
        return NULL;
    }
    parts.descriptor = kernel.process_open(pid);
    if (parts.descriptor == -ENOSYS || parts.descriptor == -EPERM || parts.descriptor == -EACCES) {
        parts.descriptor = kernel.process_await(pid); /* an old kernel, or a filter of system calls */
    }
    if (parts.descriptor < 0) {
        return NULL;
    }
    return create_source(allocator, order, &parts, context, perform_child);
}
