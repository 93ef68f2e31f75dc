/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass of the run loop, in the ten steps of the guide. Numbers in brackets are those steps; the others are rules (docs/order.md).
 *
 * The loop's lock is held throughout, except around callouts and the sleep. From mailbox_arm to mailbox_disarm a wake-up is kept; outside
 * it is dropped, because a pass follows that looks at everything again, or none at all.
 */
#include "Loop/pass.h"

#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/block.h"
#include "Loop/instant.h"
#include "Loop/main_queue.h"
#include "Loop/observer.h"
#include "Loop/performing.h"
#include "Loop/timer_firing.h"
#include "Loop/wait.h"
#include "Loop/watch.h"
#include "Runtime/autorelease.h"
#include "Support/fault.h"

/* ---- the steps ---- */

bool pass_before_wait(CFRunLoopRef loop, struct activation *run)
{
    mailbox_arm(loop->mailbox);
    observers_notify(loop, run, kCFRunLoopBeforeTimers); /* [2] */
    observers_notify(loop, run, kCFRunLoopBeforeSources); /* [3] */
    blocks_run(loop, run);
    run->has_handled_source = sources_perform(loop, run); /* [4] */
    if (run->has_handled_source) {
        blocks_run(loop, run);
    }
    return !run->has_handled_source && !run->polls;
}

/* [5] Only the main queue goes straight to its handling; a ready port still gets [6] and [8] (32, 181). */
bool pass_main_queue_first(CFRunLoopRef loop, struct activation *run)
{
    bool serves;
    bool looks;

    if (!loop->is_main || !main_queue_is_available()) {
        return false;
    }
    serves = main_queue_serves(loop, run->mode);
    looks = serves && !run->served_main_queue;
    watch_main_queue(loop, run->mode, main_queue_descriptor(), serves);
    run->served_main_queue = false;
    return looks && main_queue_is_ready();
}

void pass_notify_before_waiting(CFRunLoopRef loop, struct activation *run)
{
    run->is_before_waiting = true;
    observers_notify(loop, run, kCFRunLoopBeforeWaiting);
}

static void serve_main_queue(CFRunLoopRef loop, struct activation *run)
{
    run->served_main_queue = true;
    loop_unlock(loop);
    main_queue_drain(loop);
    loop_lock(loop);
    run_resume(loop, run);
}

/*
 * Sockets are of version 0 (254): those that were ready at one look are performed together, or one if the run is to return after a source
 * (49, 50), with blocks after them, and before the one cause of the pass. Returns that.
 */
static __attribute__((noinline)) enum wake_cause perform_sockets(CFRunLoopRef loop, struct activation *run)
{
    uint32_t further = run->returns_after_source ? 0 : watch_batch_count(run->mode);
    enum wake_cause cause;

    do {
        bool was_put_by;

        run->has_handled_source |= report_perform(loop, run);
        was_put_by = run->report.ready == 0; /* it leaves its turn to the next */
        cause = (was_put_by || further > 0) && watch_begins_with_socket(run->mode) ? wait_ready_cause(loop, run, 0) : cause_none;
        further -= was_put_by || further == 0 ? 0 : 1;
    } while (cause == cause_port && source_is_socket(run->report.source));
    blocks_run(loop, run);
    return cause == cause_none ? wait_cause_beside_sockets(loop, run) : cause;
}

/* What a source puts by leaves the look to the next that is ready. */
static bool perform_reported(CFRunLoopRef loop, struct activation *run)
{
    bool performed = report_perform(loop, run);

    while (__builtin_expect(!performed && run->report.ready == 0, 0) && wait_ready_cause(loop, run, 0) == cause_port) {
        performed = report_perform(loop, run);
    }
    return performed;
}

/* One kind of cause. True if it was a source (51). */
static bool handle(CFRunLoopRef loop, struct activation *run, enum wake_cause cause)
{
    switch (cause) {
    case cause_timers:
        timers_fire(loop, run, kernel.monotonic_ns());
        return false;
    case cause_port:
        return perform_reported(loop, run);
    case cause_main_queue:
        serve_main_queue(loop, run);
        return true;
    case cause_none:
    case cause_wake_up:
        break;
    }
    return false;
}

/* Rule 48: which of several reasons to return counts. */
static CFRunLoopRunResult reason_to_return(CFRunLoopRef loop, const struct activation *run)
{
    if (run->returns_after_source && (run->has_handled_source || run_is_over(run))) {
        return kCFRunLoopRunHandledSource;
    }
    if (run->polls || (run->deadline_ns != kernel_never && kernel.monotonic_ns() >= run->deadline_ns)) {
        return kCFRunLoopRunTimedOut;
    }
    if (mailbox_is_stopped(loop->mailbox)) {
        return kCFRunLoopRunStopped;
    }
    return mode_is_empty(loop, run->mode) && !run->awaited ? kCFRunLoopRunFinished : (CFRunLoopRunResult)0;
}

CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct activation *run, enum wake_cause cause)
{
    if (cause == cause_port && source_is_socket(run->report.source)) {
        cause = perform_sockets(loop, run);
    }
    run->has_handled_source |= handle(loop, run, cause); /* [9] */
    blocks_run(loop, run);
    return reason_to_return(loop, run);
}

/* ---- the pass ---- */

static inline __attribute__((always_inline)) CFRunLoopRunResult pass(CFRunLoopRef loop, struct activation *run)
{
    bool sleeps = pass_before_wait(loop, run);
    enum wake_cause cause;

    if (pass_main_queue_first(loop, run)) {
        run->took_token |= mailbox_disarm(loop->mailbox);
        cause = cause_main_queue;
    } else if (!sleeps) {
        cause = wait_look(loop, run);
    } else {
        pass_notify_before_waiting(loop, run); /* [6] */
        cause = wait_for_cause(loop, run); /* [7] */
        observers_notify(loop, run, kCFRunLoopAfterWaiting); /* [8] */
    }
    return pass_after_wait(loop, run, cause);
}

/* ---- the run ---- */

/* The end of a run that begins now (43). */
static int64_t deadline_after(CFTimeInterval seconds)
{
    return seconds > INSTANT_LONGEST_SECONDS ? kernel_never : instant_after(kernel.monotonic_ns(), seconds);
}

/*
 * The whole run; inline in both of its callers, for which it is most of what they cost. If it does not poll it ends at `deadline_ns` or,
 * where that is 0, so many seconds after Entry, whose observers take nothing of them (41).
 */
static inline __attribute__((always_inline)) CFRunLoopRunResult run_all(CFRunLoopRef loop, CFStringRef mode_name, bool polls,
                                                                        int64_t deadline_ns, CFTimeInterval seconds,
                                                                        bool returns_after_source, const _Atomic uint32_t *awaited)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct activation without_memory;
    struct activation *run;
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;
    struct mode *mode;

    loop_lock(loop);
    if (__builtin_expect(loop->activation != NULL, 0)) {
        runs_leave_gone(loop, frame);
    }
    mode = awaited && !loop->is_dead ? mode_declare(loop, mode_name) : mode_find(loop, mode_name);
    if (!mode || loop->is_dead || (!awaited && mode_is_empty(loop, mode))) {
        loop_unlock(loop);
        return kCFRunLoopRunFinished; /* 27 */
    }
    run = activation_begin(loop,
                           (struct activation){.frame = frame,
                                               .returns_after_source = returns_after_source,
                                               .polls = polls,
                                               .deadline_ns = deadline_ns == 0 ? kernel_never : deadline_ns,
                                               .awaited = awaited},
                           &without_memory);
    run_enter(loop, run, mode);
    observers_notify(loop, run, kCFRunLoopEntry); /* [1] */
    if (!polls && deadline_ns == 0) {
        run->deadline_ns = deadline_after(seconds);
    }
    if (mailbox_is_stopped(loop->mailbox)) {
        result = kCFRunLoopRunStopped; /* 29 */
    }
    while (!result) {
        result = pass(loop, run);
        if (!run->outer && autorelease_has_objects()) {
            loop_unlock(loop);
            autorelease_drain();
            loop_lock(loop);
        }
    }
    observers_notify(loop, run, kCFRunLoopExit); /* [10] */
    run_leave(loop, run);
    loop_unlock(loop);
    return result;
}

CFRunLoopRunResult run_in_mode(CFRunLoopRef loop, CFStringRef mode_name, CFTimeInterval seconds, bool returns_after_source)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (__builtin_expect(isnan(seconds), 0)) {
        fault_log_once(&logged, "CFRunLoopRunInMode: the time limit is not a number; it becomes 0");
    }
    return run_all(loop, mode_name, !(seconds > 0), 0, seconds, returns_after_source, NULL);
}

CFRunLoopRunResult run_in_mode_until(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns, bool returns_after_source,
                                     const _Atomic uint32_t *awaited)
{
    return run_all(loop, mode_name, deadline_ns == 0, deadline_ns, 0, returns_after_source, awaited);
}
