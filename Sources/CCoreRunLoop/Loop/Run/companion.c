/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that another event loop of the same thread does; see companion.h. */
#include "Loop/Run/companion.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Run/emptiness.h"
#include "Loop/Run/host_wait.h"
#include "Loop/Run/wait.h"
#include "Loop/Trace/trace.h"
#include "Support/invariant.h"

static _Atomic(const struct companion *) the_companion;
static const struct waiter companion_waiter;

static const struct companion *companion_or_null(void)
{
    return atomic_load_explicit(&the_companion, memory_order_acquire);
}

/* ---- who has one ---- */

void companion_set(const struct companion *companion)
{
    atomic_store_explicit(&the_companion, companion, memory_order_release);
    if (!companion) {
        lock_take(&thread_loops.lock);
        list_for_each(link, &thread_loops.all) {
            companion_part(container_of(link, struct __CFRunLoop, registry_link));
        }
        lock_drop(&thread_loops.lock);
    }
}

void companion_appear(bool is_main)
{
    CFRunLoopRef loop = is_main ? atomic_load_explicit(&thread_loops.main, memory_order_acquire) : thread_loop_if_any();

    if (loop && companion_or_null() && !atomic_exchange_explicit(&loop->waiter, &companion_waiter, memory_order_acq_rel)) {
        waker_wake(loop->waker); /* it may be in a wait that the companion cannot end */
    }
}

void companion_meet(CFRunLoopRef loop)
{
    const struct companion *companion = companion_or_null();

    if (companion && companion->exists(loop->is_main)) {
        atomic_store_explicit(&loop->waiter, &companion_waiter, memory_order_release);
        companion->join(loop->is_main);
    }
}

void companion_part(CFRunLoopRef loop)
{
    atomic_store_explicit(&loop->waiter, NULL, memory_order_relaxed);
}

void companion_free(CFRunLoopRef loop)
{
    invariant(loop->is_dead);
    free(loop->companion_wait);
    loop->companion_wait = NULL;
}

/* ---- turns ---- */

/* Calls the companion without the lock. A source that it handles counts as one that the run has handled (rule 802). */
REQUIRES(the_loop_lock) static void serve(CFRunLoopRef loop, struct run *run, int descriptor, bool ends_when_empty)
{
    const struct companion *companion = companion_or_null();
    CFRunLoopMode name = run->mode->name;
    bool has_handled_source;

    loop_unlock(loop);
    invariant_not_held(&loop->lock);
    has_handled_source = companion && companion->serve(name, descriptor, run->returns_after_source, ends_when_empty);
    loop_lock(loop);
    run_resume(loop, run);
    run->has_handled_source |= has_handled_source;
}

/* The companion also does the sleep of a run around this one. Has it set up anew, because this run has changed the descriptor's set. */
REQUIRES(the_loop_lock) static void renew_outer_sleep(CFRunLoopRef loop, const struct run *run)
{
    for (const struct run *outer = run->outer; outer; outer = outer->outer) {
        if (outer->is_hosted_asleep) {
            (void)kernel.event_post(loop_event(loop));
            return;
        }
    }
}

/* A turn costs as much as many short callbacks, so the passes of a busy loop share one. In a sleep the companion has a turn as well. */
enum { turn_interval_ns = 50 * 1000 };

/* In a pass that does not sleep: the companion has a turn, unless it had one in this run just before. */
REQUIRES(the_loop_lock) static void take_turn(CFRunLoopRef loop, struct run *run)
{
    if (run->companion_turn_ns != 0 && kernel.monotonic_ns() - run->companion_turn_ns < turn_interval_ns) {
        return;
    }
    serve(loop, run, -1, false);
    run->companion_turn_ns = kernel.monotonic_ns();
    renew_outer_sleep(loop, run);
}

REQUIRES(the_loop_lock) static bool has_nothing(CFRunLoopRef loop, CFRunLoopMode mode_name)
{
    const struct companion *companion = companion_or_null();
    bool is_empty;

    if (!companion) {
        return true;
    }
    loop_unlock(loop);
    is_empty = companion->is_empty(mode_name);
    loop_lock(loop);
    return is_empty;
}

/* ---- the wait ---- */

/* Returns the structure for the companion's sleeps with its descriptor open, or NULL if there is no memory or no descriptor. */
REQUIRES(the_loop_lock) static struct host_wait *open_wait(CFRunLoopRef loop)
{
    struct host_wait *wait = loop->companion_wait;

    if (!wait) {
        wait = loop->companion_wait = malloc(sizeof *wait);
        if (!wait) {
            return NULL;
        }
        host_wait_init(loop, wait);
    }
    return host_wait_descriptor(loop, wait) >= 0 ? wait : NULL;
}

/* Lets the companion sleep once. Returns the cause that this loop has then. */
REQUIRES(the_loop_lock) static enum wake_cause sleep_once(CFRunLoopRef loop, struct run *run, struct host_wait *wait)
{
    enum wake_cause cause;
    bool is_retimed;

    wait->run = run;
    wait->is_due = true;
    wait->sleeps = true;
    host_wait_begin(loop, wait);
    serve(loop, run, wait->descriptor, run_is_empty(loop, run));
    run->companion_turn_ns = kernel.monotonic_ns();
    wait->run = run; /* a run inside the companion's callbacks may have used the structure */
    wait->sleeps = true;
    cause = host_wait_end(loop, wait, &is_retimed);
    if (trace_is_on()) {
        wait_trace_end(loop, run, cause);
    }
    wait->run = NULL;
    wait->is_due = false;
    return cause;
}

/* In step 7 of a pass, in the place of wait_for_cause. */
REQUIRES(the_loop_lock) static enum wake_cause let_companion_wait(CFRunLoopRef loop, struct run *run)
{
    struct host_wait *wait = open_wait(loop);
    enum wake_cause cause;

    invariant(!run->polls);
    if (!wait) {
        serve(loop, run, -1, false); /* the companion's items still have a turn in each pass, but no longer end the sleep */
        return wait_for_cause(loop, run);
    }
    do {
        cause = sleep_once(loop, run, wait);
    } while (cause == cause_none && !run->has_handled_source && !run_awaited_has_come(run) && kernel.monotonic_ns() < run->deadline_ns &&
             !(run_is_empty(loop, run) && waiter_is_empty(loop, run->mode->name)));
    run->took_token |= waker_disarm(loop->waker);
    renew_outer_sleep(loop, run);
    return cause;
}

static const struct waiter companion_waiter = {.wait = let_companion_wait, .look = take_turn, .is_empty = has_nothing};
