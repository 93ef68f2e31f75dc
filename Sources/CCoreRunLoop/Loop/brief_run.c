/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is only a wait; see brief_run.h. What is looked at before the wait is what a pass would do then, in its order. */
#include "Loop/brief_run.h"

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/busy_wait.h"
#include "Loop/main_queue.h"
#include "Loop/source_queue.h"
#include "Loop/timer_firing.h"
#include "Loop/wait.h"
#include "Loop/watch.h"
#include "Runtime/autorelease.h"

static bool is_observed(const struct mode *mode)
{
    return atomic_load_explicit(&mode->observed, memory_order_relaxed) != 0;
}

/* A pass would find nothing to do, and nobody to tell, before it waits; nor after it, but for what the wait has found. */
static bool is_quiet(CFRunLoopRef loop, const struct mode *mode)
{
    bool has_blocks = mode->blocks.head || loop->common_blocks.head || loop->listed_blocks.head;
    bool has_sources = !list_is_empty(&mode->pending) || mailbox_has_signals(loop->mailbox);

    return !has_blocks && !has_sources && !is_observed(mode);
}

/* Nor would the whole run, around its passes; and it is to sleep at once. */
static bool can_be_brief(CFRunLoopRef loop)
{
    return !loop->is_dead && !busy_wait_is_wanted(loop) && (loop->activation || !autorelease_has_objects());
}

/* Work of the main dispatch queue ends the wait if the mode serves the queue, and only then; a run's first pass does not look (181). */
static bool main_queue_is_settled(CFRunLoopRef loop, const struct mode *mode)
{
    bool is_watched = mode->watches && mode->watches->has_main_queue;

    return is_watched == main_queue_serves(loop, mode);
}

static bool has_happened(const struct brief_run *brief)
{
    return brief->awaited && atomic_load_explicit(brief->awaited, memory_order_acquire) != 0;
}

/* Sleeps in the wait set, or on the wake word. */
static bool sleep_until(CFRunLoopRef loop, struct mode *mode, int64_t now_ns, int64_t limit_ns)
{
    struct watch_set *watches = mode->watches;
    bool has_slept;

    if (!watch_is_needed(mode)) {
        return wait_sleep_once(loop, mode, wake_futex, now_ns, limit_ns);
    }
    if (!watch_is_settled(mode)) {
        return false;
    }
    has_slept = wait_sleep_once(loop, mode, wake_epoll, now_ns, watch_has_alarm_before(watches, limit_ns) ? kernel_never : limit_ns);
    if (watch_has_batch(mode)) {
        watch_note_early_end(watches, now_ns, limit_ns);
    }
    return has_slept;
}

/* Sleeps once. False if that is not all that there is to do. */
static bool sleep(CFRunLoopRef loop, struct mode *mode, const struct brief_run *brief)
{
    int64_t now_ns = brief->now_ns;
    int64_t limit_ns = brief->deadline_ns;

    if (mode->timers.count > 0) {
        int64_t timers_ns = timers_limit(mode);

        now_ns = kernel.monotonic_ns();
        if (timers_are_due(mode, now_ns)) {
            return false;
        }
        limit_ns = timers_ns < limit_ns ? timers_ns : limit_ns;
    }
    return sleep_until(loop, mode, now_ns, limit_ns);
}

/* The wait for the source's descriptor. */
static bool sleep_for_source(CFRunLoopRef loop, struct mode *mode, const struct brief_run *brief)
{
    struct watch *watch = watch_start_waking(mode, brief->source);
    bool has_slept;

    if (!watch) {
        return false;
    }
    has_slept = sleep(loop, mode, brief);
    /* What a whole run is to see is left to it: of a wait set it would not be reported again. */
    return watch_stop_waking(mode, watch, has_slept && !is_observed(mode));
}

/* Something else may want its turn: what is due, or what only the kernel knows to be ready. */
static bool may_have_others(struct mode *mode)
{
    return watch_is_needed(mode) || (mode->timers.count > 0 && timers_are_due(mode, kernel.monotonic_ns()));
}

/* Between the beginning of the run and its end. */
static bool wait_in(CFRunLoopRef loop, struct activation *run, const struct brief_run *brief)
{
    struct mode *mode = run->mode;
    bool has_happened_now = false;

    if (!is_quiet(loop, mode) || !main_queue_is_settled(loop, mode) || mailbox_is_stopped(loop->mailbox)) {
        return false;
    }
    if (has_happened(brief)) {
        has_happened_now = !may_have_others(mode); /* else who asks again and again would keep them waiting: a pass looks after all */
    } else if (brief->source) {
        has_happened_now = sleep_for_source(loop, mode, brief);
    } else {
        has_happened_now = sleep(loop, mode, brief) && has_happened(brief);
    }
    if (run->outer) {
        run->took_token |= mailbox_disarm(loop->mailbox); /* to whom it may be owed; the end of an outermost run drops it */
    }
    return has_happened_now && !is_observed(mode);
}

bool run_briefly(CFRunLoopRef loop, CFStringRef mode_name, const struct brief_run *brief)
{
    struct activation without_memory;
    bool result = false;
    struct mode *mode;

    loop_lock(loop);
    mode = can_be_brief(loop) ? mode_find(loop, mode_name) : NULL;
    if (mode) {
        struct activation *run = activation_begin(
            loop, (struct activation){.returns_after_source = true, .deadline_ns = brief->deadline_ns, .awaited = brief->awaited},
            &without_memory);

        run_enter(loop, run, mode);
        result = wait_in(loop, run, brief);
        run_leave(loop, run);
    }
    loop_unlock(loop);
    return result;
}
