/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass of the run loop, in the ten steps of the guide. Numbers in brackets are those steps; the others are rules (docs/order.md).
 *
 * The loop's lock is held throughout, except around callouts and the sleep. From mailbox_arm to mailbox_disarm a wake-up is kept; outside
 * it is dropped, because a pass follows that looks at everything again, or none at all.
 */
#include "Loop/pass.h"

#include <errno.h>
#include <math.h>

#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/block.h"
#include "Loop/busy_wait.h"
#include "Loop/held.h"
#include "Loop/hosting.h"
#include "Loop/instant.h"
#include "Loop/main_queue.h"
#include "Loop/observer.h"
#include "Loop/source_membership.h"
#include "Loop/source_queue.h"
#include "Loop/timer_firing.h"
#include "Loop/watch.h"
#include "Runtime/autorelease.h"
#include "Support/fault.h"

/*
 * The kernel may end a long wait in a wait set later by a thousandth of its length, for a niced thread by a two hundredth, up to this; it
 * usually does.
 */
static const int64_t longest_stretch_ns = 100000000;

/* ---- [4] version-0 sources ---- */

/* Performs one source whose turn it is, if its mark is still there (84). The caller's reference is dropped. */
static bool perform_if_marked(CFRunLoopRef loop, struct activation *run, CFRunLoopSourceRef source)
{
    source_function perform = source_callback(source, source_callback_perform);
    bool was_flooded;
    bool is_marked;

    held_in_hand(run, object_release, source);
    source_unlink_pending(loop, source);
    is_marked = source_take_mark(source, &was_flooded); /* cleared before the callout: a signal during it is another one (78) */
    loop_unlock(loop);
    if (was_flooded) {
        flood_fence();
    }
    if (is_marked && perform) {
        ((void (*)(void *))perform)(source->context_info);
    }
    held_put_down(run);
    object_release(source);
    loop_lock(loop);
    return is_marked;
}

/* The first that counts, in order (49). */
static bool perform_one_source(CFRunLoopRef loop, struct activation *run)
{
    struct source_member *member;
    bool performed = false;

    while (!performed && (member = source_first_pending(run->mode)) != NULL) {
        CFRunLoopSourceRef source = member->slot->source;

        object_retain(source);
        performed = perform_if_marked(loop, run, source);
    }
    return performed;
}

/* Without memory for a snapshot: as often as there are sources, the first. What is signalled meanwhile waits outside the list. */
static __attribute__((cold)) bool perform_one_by_one(CFRunLoopRef loop, struct activation *run)
{
    bool performed = false;
    size_t count = 0;

    list_for_each(link, &run->mode->pending) {
        count++;
    }
    for (; count > 0; count--) {
        performed |= perform_one_source(loop, run);
    }
    return performed;
}

/*
 * All that are signalled now, as a snapshot (50, 82). Each stays in the pending lists until its turn, so that a nested run can perform it.
 */
static bool perform_all_sources(CFRunLoopRef loop, struct activation *run)
{
    uint32_t first = loop->held.count;
    bool performed = false;
    uint32_t end;

    source_sort_pending(run->mode);
    list_for_each(link, &run->mode->pending) {
        CFRunLoopSourceRef source = container_of(link, struct source_member, link)->slot->source;

        if (!held_push(loop, object_release, source)) {
            break; /* without memory: some now, the rest in the next pass */
        }
        object_retain(source);
    }
    end = loop->held.count;
    if (end == first) {
        return perform_one_by_one(loop, run);
    }
    for (uint32_t place = first; place < end; place++) {
        CFRunLoopSourceRef source = (CFRunLoopSourceRef)(uintptr_t)held_thing(loop, place);

        held_take(loop, place);
        performed |= perform_if_marked(loop, run, source); /* handled if any was (85) */
    }
    held_cut(loop, first, end);
    return performed;
}

static bool has_one_pending(const struct mode *mode)
{
    return mode->pending.next->next == &mode->pending;
}

static void drain_queue(CFRunLoopRef loop)
{
    struct slot_reap reap = {NULL};

    source_queue_drain(loop, &reap);
    if (reap.first) {
        loop_unlock(loop);
        slots_release(&reap);
        loop_lock(loop);
    }
}

static bool perform_sources(CFRunLoopRef loop, struct activation *run)
{
    if (mailbox_has_signals(loop->mailbox)) {
        drain_queue(loop);
    }
    if (list_is_empty(&run->mode->pending)) {
        return false;
    }
    return run->returns_after_source || has_one_pending(run->mode) ? perform_one_source(loop, run) : perform_all_sources(loop, run);
}

/* ---- [7] waiting ---- */

/* Keeps the source of a report alive: by the reference of the slot that joins it to the loop, if nobody else counts on that. L. */
static void hold_report(CFRunLoopRef loop, struct watch_report *report)
{
    report->is_borrowed = !loop->borrowed;
    if (report->is_borrowed) {
        loop->borrowed = report->source;
    } else {
        object_retain(report->source);
    }
}

/* L. */
static void drop_report(CFRunLoopRef loop, struct watch_report *report)
{
    CFRunLoopSourceRef source = report->source;

    report->source = NULL;
    if (report->is_borrowed && loop->borrowed == source) {
        loop->borrowed = NULL;
        return;
    }
    loop_unlock(loop);
    object_release(source);
    loop_lock(loop);
}

/* A report for a source, or word that the main queue has work. */
static enum wake_cause take_report(CFRunLoopRef loop, struct activation *run)
{
    enum wake_cause cause;

    if (!watch_has_kept(run->mode) && !watch_must_retry(run->mode)) {
        return cause_none;
    }
    cause = watch_next(loop, run->mode, &run->report);
    if (cause == cause_port) {
        hold_report(loop, &run->report);
    }
    return cause;
}

enum wake_cause pass_ready_cause(CFRunLoopRef loop, struct activation *run, int64_t now_ns)
{
    bool due = timers_are_due(run->mode, now_ns);
    enum wake_cause cause = cause_none;

    if (!due || run->mode->prefers_port) {
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

void pass_poll_descriptors(CFRunLoopRef loop, const struct mode *mode)
{
    struct watch_set *watches = mode->watches;

    loop_unlock(loop);
    watch_wait(watches, 0);
    loop_lock(loop);
}

static int64_t now_if_timed(const struct activation *run)
{
    return run->mode->timers.count > 0 || run->deadline_ns != kernel_never ? kernel.monotonic_ns() : 0;
}

enum wake_cause pass_look(CFRunLoopRef loop, struct activation *run)
{
    struct mode *mode = run->mode;
    bool has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
    bool has_polled = has_set && !watch_has_batch(mode);
    enum wake_cause cause;

    if (has_polled) {
        pass_poll_descriptors(loop, mode);
    }
    cause = pass_ready_cause(loop, run, mode->timers.count > 0 ? kernel.monotonic_ns() : 0);
    if (cause == cause_none && has_set && !has_polled) {
        /* What an earlier wait had reported was out of date; that nothing is ready now only the kernel can say. */
        pass_poll_descriptors(loop, mode);
        cause = pass_ready_cause(loop, run, 0);
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

bool pass_sleep_once(CFRunLoopRef loop, struct mode *mode, enum wake_word phase, int64_t now_ns, int64_t limit_ns)
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
    return true;
}

static int64_t earlier(int64_t one_ns, int64_t other_ns)
{
    return one_ns < other_ns ? one_ns : other_ns;
}

/* What the run is for has happened. */
static bool is_over(const struct activation *run)
{
    return run->returns_after_source && run->awaited && atomic_load_explicit(run->awaited, memory_order_acquire) != 0;
}

/*
 * Asks the kernel without waiting. Who armed something meanwhile saw nobody asleep, and left it to us to tell the kernel. There was a set
 * to ask with, so there is one still.
 */
static void look_before_sleep(CFRunLoopRef loop, struct mode *mode)
{
    pass_poll_descriptors(loop, mode);
    (void)watch_prepare(loop, mode);
}

/*
 * Sleeps until a cause is there, after a busy wait if that is wanted. Early and spurious ends of the kernel's wait, and changed deadlines,
 * just go round again (44, 68).
 */
static enum wake_cause sleep(CFRunLoopRef loop, struct activation *run)
{
    struct mode *mode = run->mode;
    enum wake_cause cause = cause_none;
    bool ends_at_once = is_over(run); /* without having asked the kernel */
    int64_t awake_until_ns = busy_wait_begin(loop);

    pass_end_before_waiting(loop, run);
    for (;;) {
        bool has_set = watch_is_needed(mode) && watch_prepare(loop, mode) == 0;
        bool stays_awake = busy_wait_goes_on(awake_until_ns);
        int64_t now_ns;
        int64_t limit_ns;

        now_ns = now_if_timed(run);
        if (has_set && !watch_has_batch(mode) &&
            (ends_at_once || stays_awake || watch_must_poll(mode) || (mode->prefers_port && timers_are_due(mode, now_ns)))) {
            look_before_sleep(loop, mode); /* what is always there, always ready or always due must not keep the others waiting */
        }
        cause = pass_ready_cause(loop, run, now_ns);
        if (cause != cause_none || now_ns >= run->deadline_ns || is_over(run)) {
            break;
        }
        if (stays_awake && !mailbox_ends_wait(loop->mailbox)) {
            busy_wait_pause(loop);
            continue;
        }
        limit_ns = earlier(timers_limit(mode), run->deadline_ns);
        if (watch_must_retry(mode)) {
            now_ns = kernel.monotonic_ns();
            limit_ns = earlier(limit_ns, now_ns + watch_retry_ns);
        }
        if (!pass_sleep_once(loop, mode, has_set ? wake_epoll : wake_futex, now_ns, limit_ns)) {
            cause = cause_wake_up;
            break;
        }
        if (watch_has_batch(mode) && mode->timers.count == 0 && (cause = pass_ready_cause(loop, run, 0)) != cause_none) {
            break; /* what most waits end with */
        }
        mailbox_rearm(loop->mailbox);
    }
    busy_wait_end(loop, awake_until_ns);
    run->took_token |= mailbox_disarm(loop->mailbox);
    return cause;
}

/* ---- [9] handling ---- */

/* A source of the layers above. The pass holds it. */
static void call_descriptor(CFRunLoopRef loop, const struct watch_report *report)
{
    source_function perform = source_callback(report->source, source_callback_perform);
    CFRunLoopSourceRef outer = loop->performing;

    loop->performing = report->source;
    ((void (*)(void *, CFRunLoopSourceRef, uint32_t))perform)(report->source->context_info, report->source, report->ready);
    loop->performing = outer;
}

/* A version-1 source: its counter is read first (99). False if there was nothing to read: a report out of date. */
static bool call_port(CFRunLoopSourceRef source)
{
    const struct source_port_part *part = source_port_part(source);
    source_function perform = source_callback(source, source_callback_perform);

    if (part->is_counter) {
        int result = kernel.counter_drain(part->descriptor);

        if (result < 0 && result != -ECANCELED) { /* which a timerfd of the wall clock says, once, when that is set: an event of its own */
            return false;
        }
    }
    if (perform) {
        ((void (*)(void *))perform)(source->context_info);
    }
    return true;
}

static bool perform_port(CFRunLoopRef loop, struct activation *run)
{
    CFRunLoopSourceRef source = run->report.source;
    /* An AfterWaiting observer may have taken it out (15, 88). */
    bool performed = source_is_valid(source) && source_has_joined(loop, source, run->mode);

    if (performed) {
        loop_unlock(loop);
        if (source_kind(source) == source_descriptor) {
            call_descriptor(loop, &run->report);
        } else {
            performed = call_port(source);
        }
        loop_lock(loop);
        if (!performed) {
            watch_doubt(run->mode, source);
        }
    }
    drop_report(loop, &run->report);
    return performed;
}

static void serve_main_queue(CFRunLoopRef loop, struct activation *run)
{
    run->served_main_queue = true;
    loop_unlock(loop);
    main_queue_drain(loop);
    loop_lock(loop);
}

/* One kind of cause. True if it was a source (51). */
static bool handle(CFRunLoopRef loop, struct activation *run, enum wake_cause cause)
{
    switch (cause) {
    case cause_timers:
        timers_fire(loop, run, kernel.monotonic_ns());
        return false;
    case cause_port:
        return perform_port(loop, run);
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
    if (run->returns_after_source && (run->has_handled_source || is_over(run))) {
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

/* ---- the pass ---- */

void pass_notify_before_waiting(CFRunLoopRef loop, struct activation *run)
{
    run->is_before_waiting = true;
    observers_notify(loop, run->mode, kCFRunLoopBeforeWaiting);
}

bool pass_before_wait(CFRunLoopRef loop, struct activation *run)
{
    mailbox_arm(loop->mailbox);
    observers_notify(loop, run->mode, kCFRunLoopBeforeTimers); /* [2] */
    observers_notify(loop, run->mode, kCFRunLoopBeforeSources); /* [3] */
    blocks_run(loop, run);
    run->has_handled_source = perform_sources(loop, run); /* [4] */
    if (run->has_handled_source) {
        blocks_run(loop, run);
    }
    return !run->has_handled_source && !run->polls;
}

CFRunLoopRunResult pass_after_wait(CFRunLoopRef loop, struct activation *run, enum wake_cause cause)
{
    run->has_handled_source |= handle(loop, run, cause); /* [9] */
    blocks_run(loop, run);
    return reason_to_return(loop, run);
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

static CFRunLoopRunResult pass(CFRunLoopRef loop, struct activation *run)
{
    bool sleeps = pass_before_wait(loop, run);
    enum wake_cause cause;

    if (pass_main_queue_first(loop, run)) {
        run->took_token |= mailbox_disarm(loop->mailbox);
        cause = cause_main_queue;
    } else if (!sleeps) {
        cause = pass_look(loop, run);
    } else {
        pass_notify_before_waiting(loop, run); /* [6] */
        cause = sleep(loop, run); /* [7] */
        observers_notify(loop, run->mode, kCFRunLoopAfterWaiting); /* [8] */
    }
    return pass_after_wait(loop, run, cause);
}

/* ---- the run ---- */

void run_enter(CFRunLoopRef loop, struct activation *run, struct mode *mode)
{
    run->outer = loop->activation;
    run->mode = mode;
    run->served_main_queue = true; /* the first pass does not look first either (181) */
    run->outer_word = mailbox_enter(loop->mailbox);
    run->held_count = loop->held.count;
    loop->activation = run;
}

/*
 * The run was nested where the outer one has collected its sources and is about to sleep: the wake-up that it took, the outer one must not
 * miss
 * (64). What it dropped is owed by the wake word itself.
 */
static bool owes_token(const struct activation *run)
{
    const struct activation *outer = run->outer;

    return outer->is_hosted_asleep || (outer->is_before_waiting && run->took_token);
}

/* Kept apart, like all that is between runs, for the sake of a run alone. */
static __attribute__((noinline)) void leave_nested(CFRunLoopRef loop, struct activation *run)
{
    run->outer->took_token |= run->took_token;
    loop->activation = run->outer;
    mailbox_leave(loop->mailbox, run->outer_word, owes_token(run));
    activation_discard(run);
}

void run_leave_abandoned(CFRunLoopRef loop, const struct activation *run)
{
    while (loop->activation != run) {
        struct activation *abandoned = loop->activation;

        abandoned->outer->took_token |= abandoned->took_token;
        loop->activation = abandoned->outer;
        mailbox_resume(loop->mailbox, abandoned->outer_word, owes_token(abandoned));
        if (abandoned->report.source) {
            drop_report(loop, &abandoned->report);
        }
        hosting_note_abandoned(loop, abandoned);
        held_give_back_all(loop, abandoned);
        activation_discard(abandoned);
    }
}

void run_leave(CFRunLoopRef loop, struct activation *run)
{
    run_resume(loop, run);
    if (__builtin_expect(run->outer != NULL, 0)) {
        leave_nested(loop, run);
    } else {
        loop->activation = NULL;
        mailbox_leave(loop->mailbox, run->outer_word, false);
    }
}

/* The whole run; inline in both of its callers, for which it is most of what they cost. */
static inline __attribute__((always_inline)) CFRunLoopRunResult run_all(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns,
                                                                        bool returns_after_source, const _Atomic uint32_t *awaited)
{
    struct activation without_memory;
    struct activation *run;
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;
    struct mode *mode;

    loop_lock(loop);
    mode = awaited && !loop->is_dead ? mode_declare(loop, mode_name) : mode_find(loop, mode_name);
    if (!mode || loop->is_dead || (!awaited && mode_is_empty(loop, mode))) {
        loop_unlock(loop);
        return kCFRunLoopRunFinished; /* 27 */
    }
    run = activation_begin(loop,
                           (struct activation){.returns_after_source = returns_after_source,
                                               .polls = deadline_ns == 0,
                                               .deadline_ns = deadline_ns == 0 ? kernel_never : deadline_ns,
                                               .awaited = awaited},
                           &without_memory);
    run_enter(loop, run, mode);
    observers_notify(loop, mode, kCFRunLoopEntry); /* [1] */
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
    observers_notify(loop, mode, kCFRunLoopExit); /* [10] */
    run_leave(loop, run);
    loop_unlock(loop);
    return result;
}

/* The end of a run that begins now (43). */
static int64_t deadline_after(CFTimeInterval seconds)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (isnan(seconds)) {
        fault_log_once(&logged, "CFRunLoopRunInMode: the time limit is not a number; it becomes 0");
        return 0;
    }
    return seconds <= 0 ? 0 : seconds > INSTANT_LONGEST_SECONDS ? kernel_never : instant_after(kernel.monotonic_ns(), seconds);
}

CFRunLoopRunResult run_in_mode(CFRunLoopRef loop, CFStringRef mode_name, CFTimeInterval seconds, bool returns_after_source)
{
    return run_all(loop, mode_name, deadline_after(seconds), returns_after_source, NULL);
}

CFRunLoopRunResult run_in_mode_until(CFRunLoopRef loop, CFStringRef mode_name, int64_t deadline_ns, bool returns_after_source,
                                     const _Atomic uint32_t *awaited)
{
    return run_all(loop, mode_name, deadline_ns, returns_after_source, awaited);
}
