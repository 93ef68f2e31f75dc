/* SPDX-License-Identifier: Apache-2.0 */
/* CRLRunLoopGetDescriptor, Prepare, GetTimeout, Dispatch and Leave: a run whose sleep is the host's. See hosting.h. */
#include "Loop/Run/hosting.h"

#include <errno.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Observer/observer_callout.h"
#include "Loop/Run/emptiness.h"
#include "Loop/Run/pass.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Trace/trace.h"
#include "Loop/Run/wait.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Object/autorelease.h"
#include "Support/invariant.h"

/* ---- the state ---- */

/* Returns the loop's hosting, which is made at the first call, or NULL if there is no memory. */
static struct hosting *hosting_of(CFRunLoopRef loop)
{
    if (!loop->hosting) {
        loop->hosting = calloc(1, sizeof *loop->hosting);
        if (loop->hosting) {
            host_wait_init(loop, &loop->hosting->wait);
        }
    }
    return loop->hosting;
}

void hosting_free(CFRunLoopRef loop)
{
    invariant(loop->is_dead);
    invariant(!loop->innermost_run); /* the hosted run, which stands in the structure, is off the list */
    free(loop->hosting);
    loop->hosting = NULL;
}

static bool is_calling(const struct hosting *hosting)
{
    return hosting->wait.run && hosting->is_calling;
}

/* Returns true if the host may call: it is not called back from one of its calls, and no other run is nested in the hosted one. */
static bool is_hosts_turn(CFRunLoopRef loop, const struct hosting *hosting)
{
    return !hosting->wait.run || (!hosting->is_calling && loop->innermost_run == &hosting->run);
}

/*
 * Leaves the plain runs that were jumped out of, as far as the frame of the host's call shows it. Their clean-ups may call the program,
 * which may call the host's functions. So the caller must read the state again afterwards.
 */
static void leave_gone_runs(CFRunLoopRef loop, const struct hosting *hosting, uintptr_t frame)
{
    if (loop->innermost_run && loop->innermost_run != &hosting->run && !is_calling(hosting)) {
        loop_lock(loop);
        runs_leave_gone(loop, frame);
        loop_unlock(loop);
    }
}

/* Returns the hosting of this thread's loop if a hosted run is under way and it is the host's turn. Otherwise NULL. */
static struct hosting *hosting_if_running(CFRunLoopRef loop, uintptr_t frame, const char *function)
{
    struct hosting *hosting;

    object_require(loop, object_type_run_loop, function, "loop");
    hosting = thread_loop_is_current(loop) ? loop->hosting : NULL;
    if (!hosting) {
        return NULL;
    }
    leave_gone_runs(loop, hosting, frame);
    return hosting->wait.run && is_hosts_turn(loop, hosting) ? hosting : NULL;
}

/* ---- what the host polls ---- */

int CRLRunLoopGetDescriptor(CFRunLoopRef loop)
{
    struct hosting *hosting;
    int descriptor;

    object_require(loop, object_type_run_loop, "CRLRunLoopGetDescriptor", "loop");
    if (!thread_loop_is_current(loop)) {
        return -1;
    }
    loop_lock(loop);
    hosting = loop->is_dead ? NULL : hosting_of(loop);
    if (!hosting) {
        loop_unlock(loop);
        return -1;
    }
    descriptor = host_wait_descriptor(loop, &hosting->wait);
    if (descriptor >= 0 && hosting->wait.is_due) {
        host_wait_renew(loop, &hosting->wait);
    }
    loop_unlock(loop);
    return descriptor;
}

/* ---- the pass, cut at the sleep ---- */

/* Does step 1. */
REQUIRES(the_loop_lock) static void begin_hosted_run(CFRunLoopRef loop, struct hosting *hosting, struct mode *mode)
{
    invariant(!hosting->wait.run && !hosting->wait.is_due);
    hosting->run = (struct run){.is_hosted_asleep = false};
    hosting->run.deadline_ns = kernel_never;
    run_enter(loop, &hosting->run, mode);
    hosting->wait.run = &hosting->run;
    observers_notify(loop, &hosting->run, kCFRunLoopEntry);
}

/* Does steps 2 to 6. */
REQUIRES(the_loop_lock) static void prepare_pass(CFRunLoopRef loop, struct hosting *hosting)
{
    struct run *run = &hosting->run;

    invariant(hosting->wait.run && hosting->is_calling && !hosting->wait.is_due);
    hosting->wait.sleeps = pass_begin(loop, run);
    hosting->first_cause = pass_main_queue_first(loop, run) ? cause_main_queue : cause_none;
    hosting->wait.is_due = true;
    if (hosting->first_cause != cause_none) {
        hosting->wait.sleeps = false;
    }
    if (hosting->wait.sleeps) {
        pass_notify_before_waiting(loop, run);
        host_wait_begin(loop, &hosting->wait);
    } else {
        hosting->wait.is_ready = true;
        host_wait_show(loop, &hosting->wait);
    }
}

/* Begins the run if none is under way. Returns false if there is nothing to prepare. */
REQUIRES(the_loop_lock) static bool can_prepare(CFRunLoopRef loop, struct hosting *hosting, CFRunLoopMode name)
{
    struct mode *mode = mode_find(loop, name);

    if (hosting->wait.run) {
        return mode == hosting->run.mode && !waker_is_stopped(loop->waker);
    }
    if (!mode || loop->is_dead || mode_is_empty(loop, mode)) {
        return false;
    }
    begin_hosted_run(loop, hosting, mode);
    return !waker_is_stopped(loop->waker);
}

Boolean CRLRunLoopPrepare(CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct hosting *hosting;
    bool is_prepared;

    object_require(loop, object_type_run_loop, "CRLRunLoopPrepare", "loop");
    hosting = thread_loop_is_current(loop) ? hosting_of(loop) : NULL;
    if (!hosting || !mode) {
        return false;
    }
    leave_gone_runs(loop, hosting, (uintptr_t)__builtin_frame_address(0));
    if (!is_hosts_turn(loop, hosting)) {
        return false;
    }
    if (hosting->wait.is_due) {
        return true;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    is_prepared = can_prepare(loop, hosting, mode);
    if (is_prepared) {
        prepare_pass(loop, hosting);
    }
    loop_unlock(loop);
    hosting->is_calling = false;
    return is_prepared;
}

int64_t CRLRunLoopGetTimeout(CFRunLoopRef loop)
{
    const struct hosting *hosting = hosting_if_running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopGetTimeout");
    struct moment now;
    int64_t limit_ns;

    if (!hosting || !hosting->wait.is_due) {
        return -1;
    }
    if (hosting->wait.is_ready || !hosting->wait.sleeps) {
        return 0;
    }
    loop_lock(loop);
    now = moment_now(loop);
    limit_ns = hosting->wait.lacks_nested || watch_must_retry(hosting->run.mode) ? hosting->wait.limit_ns : kernel_never;
    limit_ns = wait_limit(loop, hosting->run.mode, &now, limit_ns);
    loop_unlock(loop);
    if (limit_ns == kernel_never) {
        return -1;
    }
    return limit_ns > now.monotonic_ns ? limit_ns - now.monotonic_ns : 0;
}

/* Does steps 8 and 9. Returns false if only a deadline has changed: the host goes on waiting. */
REQUIRES(the_loop_lock) static bool dispatch_pass(CFRunLoopRef loop, struct hosting *hosting, CFRunLoopRunResult *ret_result)
{
    struct run *run = &hosting->run;
    enum wake_cause cause = hosting->first_cause;

    invariant(hosting->wait.run && hosting->wait.is_due);
    invariant(loop->innermost_run == run);
    if (hosting->wait.sleeps) {
        bool is_retimed;

        cause = host_wait_end(loop, &hosting->wait, &is_retimed);
        if (is_retimed) {
            host_wait_begin(loop, &hosting->wait);
            return false;
        }
        if (trace_is_on()) {
            wait_trace_end(loop, run, cause);
        }
        run->took_token |= waker_disarm(loop->waker);
        observers_notify(loop, run, kCFRunLoopAfterWaiting);
    } else {
        host_wait_drain(loop, &hosting->wait);
        if (cause == cause_none) {
            cause = wait_look(loop, run);
        } else {
            run->took_token |= waker_disarm(loop->waker);
        }
    }
    *ret_result = pass_after_wait(loop, run, cause);
    run_resume(loop, run);
    return true;
}

/* Releases the objects given to CFAutorelease since the last pass, as a plain run does after each pass. Drops the lock meanwhile. */
REQUIRES(the_loop_lock) static void drain_autorelease_pool(CFRunLoopRef loop, const struct hosting *hosting)
{
    if (!hosting->run.outer && autorelease_has_objects()) {
        loop_unlock(loop);
        autorelease_drain();
        loop_lock(loop);
    }
}

CFRunLoopRunResult CRLRunLoopDispatch(CFRunLoopRef loop)
{
    struct hosting *hosting = hosting_if_running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopDispatch");
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;

    if (!hosting || !hosting->wait.is_due) {
        return result;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    if (dispatch_pass(loop, hosting, &result)) {
        hosting->wait.is_due = false;
        drain_autorelease_pool(loop, hosting);
    }
    loop_unlock(loop);
    hosting->is_calling = false;
    return result;
}

void CRLRunLoopLeave(CFRunLoopRef loop)
{
    struct hosting *hosting = hosting_if_running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopLeave");

    if (!hosting) {
        return;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    loop->waiting = NULL;
    hosting->run.is_hosted_asleep = false;
    hosting->wait.is_due = false;
    hosting->wait.sleeps = false;
    hosting->wait.is_ready = false;
    hosting->run.took_token |= waker_disarm(loop->waker);
    observers_notify(loop, &hosting->run, kCFRunLoopExit);
    drain_autorelease_pool(loop, hosting);
    host_wait_show(loop, &hosting->wait);
    host_wait_drain(loop, &hosting->wait);
    run_leave(loop, &hosting->run);
    hosting->wait.run = NULL;
    loop_unlock(loop);
    hosting->is_calling = false;
}
