/* SPDX-License-Identifier: Apache-2.0 */
/* How a pass waits; see wait.h. */
#include "Loop/Run/wait.h"

#include "Kernel/kernel.h"
#include "Loop/Run/busy_wait.h"
#include "Loop/Source/source_perform.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Trace/trace.h"
#include "Loop/Watch/watch.h"
#include "Support/invariant.h"

/*
 * The kernel may end a long wait in a wait set later than asked: by a thousandth of its length, for a niced thread by a two hundredth, up
 * to this limit. It usually does.
 */
static const int64_t longest_stretch_ns = 100000000;

/* Takes the next kept report: of a source, or that the main queue has work. Returns cause_none if there is none. */
REQUIRES(the_loop_lock) static enum wake_cause take_report(CFRunLoopRef loop, struct run *run)
{
    enum wake_cause cause;

    if (!watch_has_kept(run->mode) && !watch_must_retry(run->mode)) {
        return cause_none;
    }
    cause = watch_next(loop, run->mode, &run->report);
    if (cause == cause_source) {
        ready_source_hold(loop, &run->report);
    }
    return cause;
}

/* Does the work of wait_ready_cause, inline where most waits begin and end. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) enum wake_cause ready_cause(CFRunLoopRef loop, struct run *run, int64_t elapsed_ns)
{
    bool due = timers_are_due(run->mode, elapsed_ns);
    enum wake_cause cause = cause_none;

    if (!due || run->mode->prefers_sources || watch_begins_with_socket(run->mode)) {
        cause = take_report(loop, run);
    }
    if (cause == cause_none && due) {
        cause = cause_timers;
    }
    if (cause != cause_none) {
        run->mode->prefers_sources = cause == cause_timers; /* they take turns, so that neither starves (rule 35) */
    }
    return cause;
}

enum wake_cause wait_ready_cause(CFRunLoopRef loop, struct run *run, int64_t elapsed_ns)
{
    return ready_cause(loop, run, elapsed_ns);
}

enum wake_cause wait_cause_beside_sockets(CFRunLoopRef loop, struct run *run)
{
    struct mode *mode = run->mode;
    bool is_timed = mode->timers.count > 0;

    if (!watch_begins_with_socket(mode) && !watch_posts_socket(mode)) { /* what a socket's callback posts belongs to the next pass */
        bool is_something = is_timed || watch_has_kept(mode) || watch_must_retry(mode);

        return is_something ? wait_ready_cause(loop, run, is_timed ? timers_now(loop) : 0) : cause_none;
    }
    return is_timed && timers_are_due(mode, timers_now(loop)) ? cause_timers : cause_none;
}

void wait_poll(CFRunLoopRef loop, const struct mode *mode)
{
    struct watch_set *watches = mode->watches;

    invariant_held(&loop->lock);
    invariant(watches != NULL);
    loop_unlock(loop);
    watch_wait(watches, 0);
    loop_lock(loop);
    watch_note_wait(watches);
}

/* Returns the time for timers, or 0 if there are none, which saves reading the clock. */
REQUIRES(the_loop_lock) static int64_t elapsed_if_timed(CFRunLoopRef loop, const struct mode *mode)
{
    return mode->timers.count > 0 ? timers_now(loop) : 0;
}

/* Returns the time for the run's limit, or 0 if it has none. */
REQUIRES(the_loop_lock) static int64_t monotonic_if_limited(const struct run *run)
{
    return run->deadline_ns != kernel_never ? kernel.monotonic_ns() : 0;
}

enum wake_cause wait_look(CFRunLoopRef loop, struct run *run)
{
    struct mode *mode = run->mode;
    bool has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
    bool has_polled = has_set && !watch_has_batch(mode);
    enum wake_cause cause;

    invariant(loop->innermost_run == run);
    invariant(loop_thread_is_awake(loop));
    if (has_polled) { /* otherwise reports of an earlier wait are left, and served first */
        wait_poll(loop, mode);
    }
    cause = wait_ready_cause(loop, run, elapsed_if_timed(loop, mode));
    if (cause == cause_none && has_set && !has_polled) {
        /* The reports of an earlier wait were out of date. Only the kernel can say whether nothing else is ready. */
        wait_poll(loop, mode);
        cause = wait_ready_cause(loop, run, 0);
    }
    run->took_token |= waker_disarm(loop->waker);
    return cause;
}

/* Returns how much before its deadline the kernel is asked to end a wait, because it may end it that much later. */
REQUIRES(the_loop_lock) static int64_t earliness_ns(CFRunLoopRef loop, enum wake_word phase, int64_t left_ns)
{
    int64_t stretch_ns = loop->is_niced ? left_ns / 201 : left_ns / 1001; /* a two hundredth or a thousandth of the rest */

    if (phase == wake_futex || stretch_ns < loop->slack_ns) {
        return loop->slack_ns;
    }
    return stretch_ns < longest_stretch_ns ? stretch_ns : longest_stretch_ns;
}

/*
 * Returns true if a wait in a set has to be waited out exactly, because the time left is less than the slack. With a deadline in the past,
 * as earliness_ns would make it, such a wait would not wait at all, and be begun again and again. A futex's wait with a deadline in the
 * past lasts until the kernel has something else to do, or the slack is used up.
 */
REQUIRES(the_loop_lock) static bool must_wait_out(CFRunLoopRef loop, enum wake_word phase, int64_t left_ns)
{
    if (left_ns > loop->slack_ns) {
        return false;
    }
    loop_note_slack(loop); /* the wait before this one may have ended early because the thread has no slack any more */
    return phase == wake_epoll && left_ns > 0;
}

bool wait_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns)
{
    struct watch_set *watches = mode->watches;
    bool waits_out = must_wait_out(loop, phase, limit_ns - now_ns);
    int64_t deadline_ns = limit_ns;
    uint32_t word;

    invariant_held(&loop->lock);
    invariant(loop->innermost_run && loop->innermost_run->mode == mode);
    invariant(loop_thread_is_awake(loop));
    invariant(phase == wake_futex || (phase == wake_epoll && watches));
    invariant(limit_ns > 0);
    if (limit_ns != kernel_never) {
        deadline_ns -= earliness_ns(loop, phase, limit_ns - now_ns);
    }
    loop->waiting = mode;
    loop->sleep_limit_ns = limit_ns;
    /* Under the lock: a change of timers or descriptors is either in the limit or sees the phase and says RETIME. */
    if (!waker_sleep(loop->waker, phase, &word)) {
        loop->waiting = NULL;
        return false;
    }
    invariant(loop->sleep_timers_ns <= timers_limit(mode)); /* (I5) */
    trace_event(trace_sleep_begins, 0, loop->innermost_run, (uint64_t)limit_ns);
    loop_unlock(loop);
    if (phase == wake_futex) {
        (void)kernel.futex_wait(&loop->waker->word, word, deadline_ns);
    } else if (waits_out) {
        watch_wait_out(watches, limit_ns);
    } else {
        watch_wait(watches, deadline_ns);
    }
    loop_lock(loop);
    loop->waiting = NULL;
    if (phase == wake_epoll) {
        watch_note_wait(watches);
    }
    return true;
}

void wait_trace_end(CFRunLoopRef loop, const struct run *run, enum wake_cause cause)
{
    static const enum trace_cause causes[] = {[cause_none] = trace_cause_limit,
                                              [cause_wake_up] = trace_cause_wake_up,
                                              [cause_timers] = trace_cause_timer,
                                              [cause_source] = trace_cause_source,
                                              [cause_main_queue] = trace_cause_main_queue};
    enum trace_cause ending = causes[cause];

    if (cause == cause_wake_up && waker_is_stopped(loop->waker)) {
        ending = trace_cause_stop;
    } else if (cause == cause_none && run_awaited_has_come(run)) {
        ending = trace_cause_reply;
    }
    trace_write(trace_sleep_ends, ending, (uintptr_t)run, cause == cause_source ? (uintptr_t)run->report.source : 0);
}

static int64_t earlier(int64_t one_ns, int64_t other_ns)
{
    return one_ns < other_ns ? one_ns : other_ns;
}

/*
 * Asks the kernel for reports without waiting. Drops the lock meanwhile. A thread that armed a descriptor in that time saw no sleeper, and
 * left it to this one to tell the kernel: so the set is prepared again. That cannot fail, because the set exists.
 */
REQUIRES(the_loop_lock) static void look_before_sleep(CFRunLoopRef loop, struct mode *mode)
{
    wait_poll(loop, mode);
    (void)watch_prepare(loop, mode);
}

/*
 * Ends the coalescing of wake-ups, unless the burst goes on. Drops the lock meanwhile, because the threads that wake the loop so often may
 * need it for what they post.
 */
REQUIRES(the_loop_lock) static __attribute__((noinline)) void leave_coalescing(CFRunLoopRef loop)
{
    loop_unlock(loop);
    if (!waker_ends_wait(loop->waker)) {
        coalesce_await_more();
    }
    waker_end_burst(loop->waker);
    loop_lock(loop);
}

/* Returns when the next sleep has to end: at the run's limit, for timers, or to poll what the kernel has refused. Updates `*now`. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) int64_t limit_of_sleep(CFRunLoopRef loop, struct run *run, struct moment *now)
{
    struct mode *mode = run->mode;
    int64_t limit_ns;

    if (mode->timers.count > 0) {
        *now = moment_now(loop); /* once more: the look may have taken the report that the system has resumed */
    }
    limit_ns = wait_limit(loop, mode, now, run->deadline_ns);
    if (watch_must_retry(mode)) {
        now->monotonic_ns = kernel.monotonic_ns();
        limit_ns = earlier(limit_ns, now->monotonic_ns + watch_next_retry_ns(mode));
    }
    return limit_ns;
}

/* A wait from its beginning to its end, and what its present round has found out. */
struct wait {
    bool ends_at_once; /* constant: the kernel is asked once even so, because an awaited word must not starve descriptors */
    int64_t awake_until_ns; /* constant: of busy_wait_begin */
    bool has_asked; /* the last sleep has asked the kernel for reports */
    bool has_slept;
    /* this round */
    bool has_set; /* the kernel reports to the mode's wait set */
    bool stays_awake;
    struct moment now;
    int64_t limit_ns; /* when the sleep has to end */
};

/* What may_sleep decides. */
enum wait_step { step_end, step_look_again, step_sleep };

/*
 * Returns true if the kernel is asked before what is known already: a timer that is always due, or a source that is always ready, must not
 * starve the others.
 */
REQUIRES(the_loop_lock) static inline bool must_ask_first(const struct wait *wait, struct mode *mode, int64_t elapsed_ns)
{
    return wait->ends_at_once || wait->stays_awake || (timers_are_due(mode, elapsed_ns) && !wait->has_asked) || watch_must_poll(mode);
}

/* Looks at everything that can end the wait by itself. May drop the lock meanwhile. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) enum wake_cause look_around(CFRunLoopRef loop, struct run *run, struct wait *wait)
{
    struct mode *mode = run->mode;
    int64_t elapsed_ns;

    wait->has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
    wait->stays_awake = busy_wait_goes_on(wait->awake_until_ns);
    elapsed_ns = elapsed_if_timed(loop, mode);
    if (wait->has_set && !watch_has_batch(mode) && must_ask_first(wait, mode, elapsed_ns)) {
        look_before_sleep(loop, mode);
    }
    return ready_cause(loop, run, elapsed_ns);
}

/* Nothing is ready: decides what comes next, and for a sleep until when. Drops the lock before another look. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) enum wait_step may_sleep(CFRunLoopRef loop, struct run *run, struct wait *wait)
{
    wait->now.monotonic_ns = monotonic_if_limited(run);
    if (wait->now.monotonic_ns >= run->deadline_ns || run_awaited_has_come(run)) {
        return step_end;
    }
    if (wait->stays_awake && !waker_ends_wait(loop->waker)) {
        busy_wait_pause(loop);
        return step_look_again;
    }
    if (waker_may_end_burst(loop->waker)) {
        leave_coalescing(loop);
        return step_look_again;
    }
    wait->limit_ns = limit_of_sleep(loop, run, &wait->now);
    if (wait_limit_is_far(loop, run->mode, &wait->now, wait->limit_ns)) {
        if (watch_for_resume(loop, run->mode)) {
            return step_look_again; /* the system may have been suspended before the set could tell */
        }
        wait->has_set |= watch_has_resume(run->mode);
    }
    return step_sleep;
}

/* Sleeps. Returns cause_none if the kernel's wait ended early or for nothing, or a deadline has changed. Drops the lock meanwhile. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) enum wake_cause sleep_for_cause(CFRunLoopRef loop, struct run *run, struct wait *wait)
{
    struct mode *mode = run->mode;
    enum wake_cause cause = cause_none;

    if (!wait_sleep_once(loop, mode, wait->has_set ? wake_epoll : wake_futex, wait->now.monotonic_ns, wait->limit_ns)) {
        return cause_wake_up; /* a wake-up or stop that ended the last sleep, or came since, is noted in the word, and refuses this one */
    }
    wait->has_asked = wait->has_set;
    wait->has_slept = true;
    if (watch_has_batch(mode) && mode->timers.count == 0) {
        cause = wait_ready_cause(loop, run, 0); /* most waits end here, without rearming and reading the clock */
    }
    if (cause == cause_none) {
        waker_rearm(loop->waker);
    }
    return cause;
}

/* Each round looks, and sleeps if nothing is there. AfterWaiting is not sent for another round (rules 44 and 68). */
enum wake_cause wait_for_cause(CFRunLoopRef loop, struct run *run)
{
    struct wait wait = {.ends_at_once = run_awaited_has_come(run), .awake_until_ns = busy_wait_begin(loop)};
    enum wait_step step = step_end;
    enum wake_cause cause;

    invariant(!run->polls);
    wait_begin(loop, run);
    do {
        cause = look_around(loop, run, &wait);
        if (cause == cause_none) {
            step = may_sleep(loop, run, &wait);
        }
        if (cause == cause_none && step == step_sleep) {
            cause = sleep_for_cause(loop, run, &wait);
        }
    } while (cause == cause_none && step != step_end);
    if (wait.has_slept && trace_is_on()) {
        wait_trace_end(loop, run, cause);
    }
    busy_wait_end(loop, wait.awake_until_ns);
    run->took_token |= waker_disarm(loop->waker);
    return cause;
}
