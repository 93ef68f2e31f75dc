/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass of the run loop, in the ten steps of Apple's guide, and the run that repeats it. Numbers in brackets are those steps.
 * docs/order.md describes them with their rules.
 *
 * The loop's own thread does everything here, with the loop's lock. Callouts, sleeps, polls of the kernel and other things that may take
 * long drop the lock meanwhile; the functions that do so say it. Steps 1 and 10 are the run's, the others a pass's.
 *
 * A wake-up is kept from run_enter, or in later passes from waker_arm, to waker_disarm. At any other time it is dropped: either another
 * pass follows, which looks at everything, or the run ends.
 */
#include "Loop/Run/pass.h"

#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Block/block.h"
#include "Loop/Core/instant.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Observer/observer_callout.h"
#include "Loop/Run/emptiness.h"
#include "Loop/Source/source_perform.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Trace/trace.h"
#include "Loop/Run/wait.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Object/autorelease.h"
#include "Support/fault.h"
#include "Support/invariant.h"

/* ---- the steps ---- */

bool pass_begin(CFRunLoopRef loop, struct run *run)
{
    invariant_held(&loop->lock);
    invariant(loop->innermost_run == run);
    invariant(loop_thread_is_awake(loop));
    if (trace_is_on()) {
        trace_write(trace_pass_begins, 0, (uintptr_t)run, blocks_count(loop));
    }
    waker_arm(loop->waker); /* before anything is looked at: whatever comes later leaves a token, which ends the wait at once */
    observers_notify(loop, run, kCFRunLoopBeforeTimers); /* [2] */
    observers_notify(loop, run, kCFRunLoopBeforeSources); /* [3] */
    blocks_run(loop, run);
    run->has_handled_source = sources_perform(loop, run); /* [4] */
    if (run->has_handled_source) {
        blocks_run(loop, run); /* the sources may have queued some */
    }
    /* After a source was handled the pass only looks at what else is ready, and the next one sleeps if there is nothing (rule 36). */
    return !run->has_handled_source && !run->polls;
}

/*
 * [5] Only the main queue goes straight to its handling. A ready port still gets steps 6 and 8, although the guide says otherwise (rule
 * 32). The first pass of a run, and the pass after one that served the queue, do not look here, as in Core Foundation (rule 181). Their
 * wait finds the work, because the queue's descriptor is watched.
 */
bool pass_main_queue_first(CFRunLoopRef loop, struct run *run)
{
    bool serves;
    bool looks;

    if (!loop->is_main || !main_queue_is_available()) {
        return false;
    }
    serves = main_queue_serves(loop, run->mode);
    looks = serves && !run->skips_main_queue;
    watch_main_queue(loop, run->mode, main_queue_descriptor(), serves);
    run->skips_main_queue = false;
    return looks && main_queue_is_ready();
}

void pass_notify_before_waiting(CFRunLoopRef loop, struct run *run)
{
    invariant(loop->innermost_run == run);
    /*
     * Set before the call: a run inside these observers takes wake-ups that this run is owed, because it has collected its sources already.
     */
    run->is_before_waiting = true;
    observers_notify(loop, run, kCFRunLoopBeforeWaiting);
}

REQUIRES(the_loop_lock) static void serve_main_queue(CFRunLoopRef loop, struct run *run)
{
    run->skips_main_queue = true;
    loop_unlock(loop);
    invariant_not_held(&loop->lock);
    trace_callout_begin(trace_main_queue, loop, NULL);
    main_queue_drain(loop);
    trace_callout_end(trace_main_queue, loop);
    loop_lock(loop);
    run_resume(loop, run);
}

/*
 * Sockets count as sources of version 0 (rule 254). All that were ready at one look are performed, or only one if the run returns after a
 * source (rules 49 and 50). Then blocks run. Returns the one cause of the pass, which comes after them.
 */
REQUIRES(the_loop_lock) static __attribute__((noinline)) enum wake_cause perform_sockets(CFRunLoopRef loop, struct run *run)
{
    uint32_t further = run->returns_after_source ? 0 : watch_batch_count(run->mode);
    enum wake_cause cause;

    do {
        bool was_declined;

        run->has_handled_source |= ready_source_perform(loop, run);
        was_declined = run->report.ready == 0; /* the next source has the turn */
        cause = (was_declined || further > 0) && watch_begins_with_socket(run->mode) ? wait_ready_cause(loop, run, 0) : cause_none;
        further -= was_declined || further == 0 ? 0 : 1;
    } while (cause == cause_source && source_is_polled_v0(run->report.source));
    blocks_run(loop, run);
    return cause == cause_none ? wait_cause_beside_sockets(loop, run) : cause;
}

/*
 * Performs the source that was reported. If its callback declines the report, the next source that is ready has the turn. Returns true if
 * one was performed.
 */
REQUIRES(the_loop_lock) static bool perform_reported(CFRunLoopRef loop, struct run *run)
{
    bool performed = ready_source_perform(loop, run);

    while (__builtin_expect(!performed && run->report.ready == 0, 0) && wait_ready_cause(loop, run, 0) == cause_source) {
        performed = ready_source_perform(loop, run);
    }
    return performed;
}

/*
 * Handles the one cause of the pass. Returns true if that counts as a handled source: timers do not, the main queue does (rules 51 and
 * 178).
 */
REQUIRES(the_loop_lock) static bool handle_cause(CFRunLoopRef loop, struct run *run, enum wake_cause cause)
{
    switch (cause) {
    case cause_timers:
        timers_fire(loop, run, timers_now(loop));
        return false;
    case cause_source:
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

/* Returns the result of the run, or 0 if it goes on. If several reasons hold, the first one here counts (rule 48). */
REQUIRES(the_loop_lock) static CFRunLoopRunResult reason_to_return(CFRunLoopRef loop, const struct run *run)
{
    if (run->returns_after_source && (run->has_handled_source || run_awaited_has_come(run))) {
        return kCFRunLoopRunHandledSource;
    }
    if (run->polls || (run->deadline_ns != kernel_never && kernel.monotonic_ns() >= run->deadline_ns)) {
        return kCFRunLoopRunTimedOut;
    }
    if (waker_is_stopped(loop->waker)) {
        return kCFRunLoopRunStopped;
    }
    return run_is_empty(loop, run) && waiter_is_empty(loop, run->mode->name) ? kCFRunLoopRunFinished : (CFRunLoopRunResult)0;
}

CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct run *run, enum wake_cause cause)
{
    invariant_held(&loop->lock);
    invariant(loop_thread_is_awake(loop)); /* the wait is over */
    if (cause == cause_source && source_is_polled_v0(run->report.source)) {
        cause = perform_sockets(loop, run);
    }
    run->has_handled_source |= handle_cause(loop, run, cause); /* [9] */
    blocks_run(loop, run);
    return reason_to_return(loop, run);
}

/* ---- the pass ---- */

REQUIRES(the_loop_lock) static inline __attribute__((always_inline)) CFRunLoopRunResult pass(CFRunLoopRef loop, struct run *run)
{
    bool sleeps = pass_begin(loop, run);
    const struct waiter *waiter;
    enum wake_cause cause;

    if (pass_main_queue_first(loop, run)) {
        run->took_token |= waker_disarm(loop->waker);
        cause = cause_main_queue;
    } else if (!sleeps) {
        waiter = loop_waiter(loop);
        if (waiter) {
            waiter->look(loop, run);
        }
        cause = wait_look(loop, run);
    } else {
        pass_notify_before_waiting(loop, run); /* [6] */
        waiter = loop_waiter(loop); /* the observers may have changed that */
        cause = waiter ? waiter->wait(loop, run) : wait_for_cause(loop, run); /* [7] */
        observers_notify(loop, run, kCFRunLoopAfterWaiting); /* [8] */
    }
    return pass_after_wait(loop, run, cause);
}

/* ---- the run ---- */

/* Returns the limit of a run that begins now. Very long ones count as none (rule 43). */
static int64_t deadline_in(CFTimeInterval seconds)
{
    return seconds > INSTANT_LONGEST_SECONDS ? kernel_never : instant_after(kernel.monotonic_ns(), seconds);
}

/* Returns the mode, or NULL if a run of it has nothing to wait for. Makes the mode if only the waiter has items in it. */
REQUIRES(the_loop_lock) static inline struct mode *mode_to_run(CFRunLoopRef loop, CFStringRef name, bool may_be_empty)
{
    struct mode *mode = mode_find(loop, name);

    if (loop->is_dead) {
        return NULL;
    }
    if (mode && !mode_is_empty(loop, mode)) {
        return mode;
    }
    return may_be_empty || !waiter_is_empty(loop, name) ? mode_declare(loop, name) : NULL;
}

/*
 * One whole run. A run that does not poll ends at `deadline_ns`, or, if that is 0, `seconds` after the Entry observers. The function is
 * inline in both of its callers, because it is most of what they cost.
 */
static inline __attribute__((always_inline)) CFRunLoopRunResult run_whole(CFRunLoopRef loop, CFStringRef mode_name, bool polls,
                                                                          int64_t deadline_ns, CFTimeInterval seconds,
                                                                          bool returns_after_source, const _Atomic uint32_t *awaited)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct run without_memory;
    struct run *run;
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;
    struct mode *mode;

    loop_lock(loop);
    if (__builtin_expect(loop->innermost_run != NULL, 0)) {
        runs_leave_gone(loop, frame);
    }
    mode = mode_to_run(loop, mode_name, awaited != NULL);
    if (!mode) {
        loop_unlock(loop);
        return kCFRunLoopRunFinished; /* without Entry and Exit (rule 27) */
    }
    run = run_begin(loop,
                    (struct run){.frame = frame,
                                 .returns_after_source = returns_after_source,
                                 .polls = polls,
                                 .deadline_ns = deadline_ns == 0 ? kernel_never : deadline_ns,
                                 .awaited = awaited},
                    &without_memory);
    run_enter(loop, run, mode);
    observers_notify(loop, run, kCFRunLoopEntry); /* [1] */
    if (!polls && deadline_ns == 0) {
        run->deadline_ns = deadline_in(seconds); /* counts from here: the Entry observers use none of it (rule 41) */
    }
    if (waker_is_stopped(loop->waker)) {
        result = kCFRunLoopRunStopped; /* by an Entry observer: no pass is made, but Exit is sent (rule 29) */
    }
    while (!result) {
        result = pass(loop, run);
        if (!run->outer && autorelease_has_objects()) { /* a nested run must not release what its caller still uses */
            loop_unlock(loop);
            invariant_not_held(&loop->lock);
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
    return run_whole(loop, mode_name, !(seconds > 0), 0, seconds, returns_after_source, NULL);
}

CFRunLoopRunResult run_in_mode_until(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns, bool returns_after_source,
                                     const _Atomic uint32_t *awaited)
{
    return run_whole(loop, mode_name, deadline_ns == 0, deadline_ns, 0, returns_after_source, awaited);
}
