/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is only a wait; see quiet_wait.h. Before it sleeps it looks for everything that a pass would do, in the order of a pass. */
#include "Loop/Run/quiet_wait.h"

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Run/busy_wait.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Signal/source_queue.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Trace/trace.h"
#include "Loop/Run/wait.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Object/autorelease.h"
#include "Support/invariant.h"

static bool is_observed(const struct mode *mode)
{
    return atomic_load_explicit(&mode->observed, memory_order_relaxed) != 0;
}

/* Returns true if a pass would find nothing to do and call no observer, apart from what its wait finds. */
REQUIRES(the_loop_lock) static bool is_quiet(CFRunLoopRef loop, const struct mode *mode)
{
    bool has_blocks = mode->blocks.head || loop->common_blocks.head || loop->listed_blocks.head;
    bool has_sources = !list_is_empty(&mode->pending) || waker_has_signals(loop->waker);

    return !has_blocks && !has_sources && !is_observed(mode);
}

/* Returns true if a whole run would do nothing around its passes, and would sleep at once. */
REQUIRES(the_loop_lock) static bool can_be_quiet(CFRunLoopRef loop)
{
    return !loop->is_dead && !busy_wait_is_wanted(loop) && !loop_waiter(loop) && (loop->innermost_run || !autorelease_has_objects());
}

/*
 * Returns true if the wait set has the main queue's descriptor just when the mode serves the queue. Otherwise a pass has to change the set.
 * The queue need not be looked at before the wait: a run's first pass does not either (rule 181).
 */
REQUIRES(the_loop_lock) static bool main_queue_is_settled(CFRunLoopRef loop, const struct mode *mode)
{
    bool is_watched = mode->watches && mode->watches->has_main_queue;

    return is_watched == main_queue_serves(loop, mode);
}

static bool has_happened(const struct quiet_wait *request)
{
    return request->awaited && atomic_load_explicit(request->awaited, memory_order_acquire) != 0;
}

/* Sleeps in the wait set, or on the wake word. Returns false if it did not sleep. */
REQUIRES(the_loop_lock) static bool sleep_until(CFRunLoopRef loop, struct mode *mode, int64_t now_ns, int64_t limit_ns)
{
    if (!watch_is_needed(mode)) {
        return wait_sleep_once(loop, mode, wake_futex, now_ns, limit_ns);
    }
    if (!watch_is_settled(mode)) {
        return false;
    }
    return wait_sleep_once(loop, mode, wake_epoll, now_ns, limit_ns);
}

/* Sleeps once, until the limit or a timer. Returns false if it did not sleep, because a whole run is needed or a wake-up is there. */
REQUIRES(the_loop_lock) static bool sleep_once(CFRunLoopRef loop, struct mode *mode, const struct quiet_wait *request)
{
    struct moment now = {.monotonic_ns = request->now_ns};
    int64_t limit_ns;

    if (mode->timers.count > 0) {
        now = moment_now(loop);
        if (timers_are_due(mode, now.elapsed_ns)) {
            return false;
        }
    }
    limit_ns = wait_limit(loop, mode, &now, request->deadline_ns);
    if (wait_limit_is_far(loop, mode, &now, limit_ns)) {
        return false; /* a whole run notices that the system resumes */
    }
    return sleep_until(loop, mode, now.monotonic_ns, limit_ns);
}

/* Waits for the source's descriptor. Returns true if that alone ended the wait. */
REQUIRES(the_loop_lock) static bool sleep_for_source(CFRunLoopRef loop, struct mode *mode, const struct quiet_wait *request)
{
    struct watch *watch = watch_start_waking(mode, request->source);
    bool has_slept;

    if (!watch) {
        return false;
    }
    has_slept = sleep_once(loop, mode, request);
    /* A report that a whole run has to see stays: the wait set would not report it again. */
    return watch_stop_waking(mode, watch, has_slept && !is_observed(mode));
}

/* Returns true if something else may want its turn: a due timer, or a descriptor that only the kernel knows to be ready. */
REQUIRES(the_loop_lock) static bool may_have_others(CFRunLoopRef loop, struct mode *mode)
{
    return watch_is_needed(mode) || (mode->timers.count > 0 && timers_are_due(mode, timers_now(loop)));
}

/* Does the part between the beginning of the run and its end. Returns true if the event has happened and no whole run is needed. */
REQUIRES(the_loop_lock) static bool wait_in(CFRunLoopRef loop, struct run *run, const struct quiet_wait *request)
{
    struct mode *mode = run->mode;
    bool has_happened_now = false;

    invariant(loop->innermost_run == run);
    if (!is_quiet(loop, mode) || !main_queue_is_settled(loop, mode) || waker_is_stopped(loop->waker)) {
        return false;
    }
    if (has_happened(request)) {
        has_happened_now = !may_have_others(loop, mode); /* a caller that asks again and again must not starve them: a pass looks at all */
    } else if (request->source) {
        has_happened_now = sleep_for_source(loop, mode, request);
    } else {
        has_happened_now = sleep_once(loop, mode, request) && has_happened(request);
    }
    trace_event(trace_sleep_ends, has_happened_now ? trace_cause_reply : trace_cause_limit, run, 0);
    if (run->outer) {
        run->took_token |=
            waker_disarm(loop->waker); /* the wake-up may be owed to the outer run; at the end of an outermost run it is dropped */
    }
    return has_happened_now && !is_observed(mode);
}

bool quiet_wait_run(CFRunLoopRef loop, CFStringRef mode_name, const struct quiet_wait *request)
{
    struct run without_memory;
    bool result = false;
    struct mode *mode;

    invariant_not_held(&loop->lock);
    loop_lock(loop);
    mode = can_be_quiet(loop) ? mode_find(loop, mode_name) : NULL;
    if (mode) {
        struct run *run =
            run_begin(loop, (struct run){.returns_after_source = true, .deadline_ns = request->deadline_ns, .awaited = request->awaited},
                      &without_memory);

        run_enter(loop, run, mode);
        result = wait_in(loop, run, request);
        run_leave(loop, run);
    }
    loop_unlock(loop);
    return result;
}
