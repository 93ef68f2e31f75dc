/* SPDX-License-Identifier: Apache-2.0 */
/* How a pass waits; see wait.h. Numbers in parentheses are rules. */
#include "Loop/wait.h"

#include "Kernel/kernel.h"
#include "Loop/busy_wait.h"
#include "Loop/performing.h"
#include "Loop/timer_firing.h"
#include "Loop/watch.h"

/*
 * The kernel may end a long wait in a wait set later by a thousandth of its length, for a niced thread by a two hundredth, up to this; it
 * usually does.
 */
static const int64_t longest_stretch_ns = 100000000;

/* A report for a source, or word that the main queue has work. */
static enum wake_cause take_report(CFRunLoopRef loop, struct activation *run)
{
    enum wake_cause cause;

    if (!watch_has_kept(run->mode) && !watch_must_retry(run->mode)) {
        return cause_none;
    }
    cause = watch_next(loop, run->mode, &run->report);
    if (cause == cause_port) {
        report_hold(loop, &run->report);
    }
    return cause;
}

/* Inline where most waits begin and end. */
static inline __attribute__((always_inline)) enum wake_cause ready_cause(CFRunLoopRef loop, struct activation *run, int64_t now_ns)
{
    bool due = timers_are_due(run->mode, now_ns);
    enum wake_cause cause = cause_none;

    if (!due || run->mode->prefers_port || watch_begins_with_socket(run->mode)) {
        cause = take_report(loop, run);
    }
    if (cause == cause_none && due) {
        cause = cause_timers;
    }
    if (cause != cause_none) {
        run->mode->prefers_port = cause == cause_timers; /* by turns (35) */
    }
    return cause;
}

enum wake_cause wait_ready_cause(CFRunLoopRef loop, struct activation *run, int64_t now_ns)
{
    return ready_cause(loop, run, now_ns);
}

enum wake_cause wait_cause_beside_sockets(CFRunLoopRef loop, struct activation *run)
{
    struct mode *mode = run->mode;
    bool is_timed = mode->timers.count > 0;

    if (!watch_begins_with_socket(mode)) {
        bool is_something = is_timed || watch_has_kept(mode) || watch_must_retry(mode);

        return is_something ? wait_ready_cause(loop, run, is_timed ? kernel.monotonic_ns() : 0) : cause_none;
    }
    return is_timed && timers_are_due(mode, kernel.monotonic_ns()) ? cause_timers : cause_none;
}

void wait_poll(CFRunLoopRef loop, const struct mode *mode)
{
    struct watch_set *watches = mode->watches;

    loop_unlock(loop);
    watch_wait(watches, 0);
    loop_lock(loop);
    watch_note_wait(watches);
}

static int64_t now_if_timed(const struct activation *run)
{
    return run->mode->timers.count > 0 || run->deadline_ns != kernel_never ? kernel.monotonic_ns() : 0;
}

enum wake_cause wait_look(CFRunLoopRef loop, struct activation *run)
{
    struct mode *mode = run->mode;
    bool has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
    bool has_polled = has_set && !watch_has_batch(mode);
    enum wake_cause cause;

    if (has_polled) {
        wait_poll(loop, mode);
    }
    cause = wait_ready_cause(loop, run, mode->timers.count > 0 ? kernel.monotonic_ns() : 0);
    if (cause == cause_none && has_set && !has_polled) {
        /* What an earlier wait had reported was out of date; that nothing is ready now only the kernel can say. */
        wait_poll(loop, mode);
        cause = wait_ready_cause(loop, run, 0);
    }
    run->took_token |= mailbox_disarm(loop->mailbox);
    return cause;
}

/* How much before its deadline a wait is asked to end, because the kernel may end it that much later. */
static int64_t earliness_ns(CFRunLoopRef loop, enum wake_word phase, int64_t left_ns)
{
    int64_t stretch_ns = loop->is_niced ? left_ns / 201 : left_ns / 1001; /* a two hundredth or a thousandth of the rest */

    if (phase == wake_futex || stretch_ns < loop->slack_ns) {
        return loop->slack_ns;
    }
    return stretch_ns < longest_stretch_ns ? stretch_ns : longest_stretch_ns;
}

/*
 * What is left is less than the slack. A futex's wait is asked to end in the past then, and lasts until the kernel has something else to do
 * or the slack is used up. A wait in a set would not wait at all, and be asked for again and again: it has to be waited out.
 */
static bool must_wait_out(CFRunLoopRef loop, enum wake_word phase, int64_t left_ns)
{
    if (left_ns > loop->slack_ns) {
        return false;
    }
    loop_note_slack(loop); /* that the wait before ended early may be because there is none any more */
    return phase == wake_epoll && left_ns > 0;
}

bool wait_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns)
{
    struct watch_set *watches = mode->watches;
    bool waits_out = must_wait_out(loop, phase, limit_ns - now_ns);
    int64_t deadline_ns = limit_ns;
    uint32_t word;

    if (limit_ns != kernel_never) {
        deadline_ns -= earliness_ns(loop, phase, limit_ns - now_ns);
    }
    loop->waiting = mode;
    loop->armed_ns = limit_ns;
    /* Under the lock: a change of timers or descriptors is either in the limit or sees the phase and says RETIME. */
    if (!mailbox_sleep(loop->mailbox, phase, &word)) {
        loop->waiting = NULL;
        return false;
    }
    loop_unlock(loop);
    if (phase == wake_futex) {
        (void)kernel.futex_wait(&loop->mailbox->word, word, deadline_ns);
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

static int64_t earlier(int64_t one_ns, int64_t other_ns)
{
    return one_ns < other_ns ? one_ns : other_ns;
}

/*
 * Asks the kernel without waiting. Who armed something meanwhile saw nobody asleep, and left it to us to tell the kernel. There was a set
 * to ask with, so there is one still.
 */
static void look_before_sleep(CFRunLoopRef loop, struct mode *mode)
{
    wait_poll(loop, mode);
    (void)watch_prepare(loop, mode);
}

/* A flood ends if it does not go on, without the lock, for which those wait that flood: they post, and wake. */
static __attribute__((noinline)) void calm(CFRunLoopRef loop)
{
    loop_unlock(loop);
    if (!mailbox_ends_wait(loop->mailbox)) {
        flood_await_more();
    }
    mailbox_calm(loop->mailbox);
    loop_lock(loop);
}

/*
 * Sleeps until a cause is there, after a busy wait if that is wanted. Early and spurious ends of the kernel's wait, and changed deadlines,
 * just go round again (44, 68).
 */
enum wake_cause wait_for_cause(CFRunLoopRef loop, struct activation *run)
{
    struct mode *mode = run->mode;
    enum wake_cause cause = cause_none;
    bool ends_at_once = run_is_over(run); /* without having asked the kernel */
    bool has_asked = false;
    int64_t awake_until_ns = busy_wait_begin(loop);

    wait_begin(loop, run);
    for (;;) {
        bool has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
        bool stays_awake = busy_wait_goes_on(loop, awake_until_ns);
        int64_t now_ns;
        int64_t limit_ns;

        now_ns = now_if_timed(run);
        if (has_set && !watch_has_batch(mode) &&
            (ends_at_once || stays_awake || (timers_are_due(mode, now_ns) && !has_asked) || watch_must_poll(mode))) {
            look_before_sleep(loop, mode); /* what is always there, always ready or always due must not keep the others waiting */
        }
        cause = ready_cause(loop, run, now_ns);
        if (cause != cause_none || now_ns >= run->deadline_ns || run_is_over(run)) {
            break;
        }
        if (stays_awake && !mailbox_ends_wait(loop->mailbox)) {
            busy_wait_pause(loop);
            continue;
        }
        if (mailbox_is_flooded_in_vain(loop->mailbox)) {
            calm(loop);
            continue;
        }
        limit_ns = earlier(timers_limit(mode), run->deadline_ns);
        if (watch_must_retry(mode)) {
            now_ns = kernel.monotonic_ns();
            limit_ns = earlier(limit_ns, now_ns + watch_retry_ns);
        }
        if (!wait_sleep_once(loop, mode, has_set ? wake_epoll : wake_futex, now_ns, limit_ns)) {
            cause = cause_wake_up;
            break;
        }
        has_asked = has_set;
        if (watch_has_batch(mode) && mode->timers.count == 0 && (cause = wait_ready_cause(loop, run, 0)) != cause_none) {
            break; /* what most waits end with */
        }
        mailbox_rearm(loop->mailbox);
    }
    busy_wait_end(loop, awake_until_ns, cause);
    run->took_token |= mailbox_disarm(loop->mailbox);
    return cause;
}
