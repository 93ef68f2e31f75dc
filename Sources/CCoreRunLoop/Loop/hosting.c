/* SPDX-License-Identifier: Apache-2.0 */
/* CRLRunLoopGetDescriptor, Prepare, GetTimeout, Dispatch and Leave: a run whose sleep is the host's. See hosting.h. */
#include "Loop/hosting.h"

#include <errno.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Kernel/kernel.h"
#include "Loop/activation.h"
#include "Loop/main_queue.h"
#include "Loop/observer.h"
#include "Loop/pass.h"
#include "Loop/thread_loop.h"
#include "Loop/timer_firing.h"
#include "Loop/wait.h"
#include "Loop/watch.h"
#include "Runtime/autorelease.h"

/* ---- the state ---- */

static struct hosting *hosting_of(CFRunLoopRef loop)
{
    if (!loop->hosting) {
        loop->hosting = calloc(1, sizeof *loop->hosting);
        if (loop->hosting) {
            loop->hosting->descriptor = -1;
            loop->hosting->alarm = -1;
            loop->hosting->nested_set = -1;
        }
    }
    return loop->hosting;
}

static void close_if_open(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)kernel.close(*descriptor);
    }
    *descriptor = -1;
}

/* The numbers are still those of the set and of what is in it. L */
static bool has_own_descriptors(CFRunLoopRef loop, const struct hosting *hosting)
{
    int event = atomic_load_explicit(&loop->mailbox->event, memory_order_relaxed);

    return kernel.set_holds(hosting->descriptor, hosting->alarm) && kernel.set_holds(hosting->descriptor, event);
}

void hosting_forget_lost_descriptors(CFRunLoopRef loop)
{
    struct hosting *hosting = loop->hosting;

    if (!hosting || hosting->descriptor < 0 || has_own_descriptors(loop, hosting)) {
        return;
    }
    if (kernel.set_holds(hosting->descriptor, hosting->alarm)) {
        close_if_open(&hosting->descriptor);
        close_if_open(&hosting->alarm);
    } else if (kernel.alarm_is_own(hosting->alarm)) {
        close_if_open(&hosting->alarm);
    }
    hosting->descriptor = hosting->alarm = hosting->nested_set = -1;
    hosting->lacks_nested = false;
    hosting->is_ready = hosting->is_prepared; /* the host cannot have been told of anything: Dispatch looks at it all */
}

void hosting_forget_descriptors(CFRunLoopRef loop)
{
    hosting_forget_lost_descriptors(loop);
    if (loop->hosting) {
        close_if_open(&loop->hosting->descriptor);
        close_if_open(&loop->hosting->alarm);
        loop->hosting->nested_set = -1;
        loop->hosting->lacks_nested = false;
    }
}

void hosting_note_abandoned(CFRunLoopRef loop, const struct activation *run)
{
    if (loop->hosting && run == &loop->hosting->run) {
        loop->hosting->is_running = false;
        loop->hosting->is_prepared = false;
        loop->hosting->is_calling = false;
    }
}

void hosting_free(CFRunLoopRef loop)
{
    hosting_forget_descriptors(loop);
    free(loop->hosting);
    loop->hosting = NULL;
}

/* No run is nested in the hosted one, whose state it would take for its own. */
static bool is_hosts_turn(CFRunLoopRef loop, const struct hosting *hosting)
{
    return !hosting->is_calling && (!hosting->is_running || loop->activation == &hosting->run);
}

/*
 * Ends the plain runs that were jumped out of, as far as that shows by the frame of the host's call. What they held is released, and what
 * is called by that may call the host's functions, too: so nothing that was read before holds after it.
 */
static void leave_gone_runs(CFRunLoopRef loop, const struct hosting *hosting, uintptr_t frame)
{
    if (loop->activation && loop->activation != &hosting->run && !hosting->is_calling) {
        loop_lock(loop);
        runs_leave_gone(loop, frame);
        loop_unlock(loop);
    }
}

/* The hosted run of this thread's loop, or NULL. */
static struct hosting *running(CFRunLoopRef loop, uintptr_t frame, const char *function)
{
    struct hosting *hosting;

    object_require(loop, object_type_run_loop, function, "loop");
    hosting = thread_loop_is_current(loop) ? loop->hosting : NULL;
    if (!hosting) {
        return NULL;
    }
    leave_gone_runs(loop, hosting, frame);
    return hosting->is_running && is_hosts_turn(loop, hosting) ? hosting : NULL;
}

/* ---- what the host polls ---- */

enum { host_token_event, host_token_alarm, host_token_nested };

static bool open_descriptor(CFRunLoopRef loop, struct hosting *hosting)
{
    int event = loop_event(loop);

    if (event < 0) {
        return false;
    }
    hosting->descriptor = kernel.set_create();
    hosting->alarm = kernel.alarm_create();
    return hosting->descriptor >= 0 && hosting->alarm >= 0 &&
           kernel.set_add(hosting->descriptor, event, kernel_readable, host_token_event) == 0 &&
           kernel.set_add(hosting->descriptor, hosting->alarm, kernel_readable, host_token_alarm) == 0;
}

/* Puts the hosted mode's wait set into the host's, in the place of another mode's. */
static void nest_set(struct hosting *hosting, const struct watch_set *watches)
{
    int set = watches ? watches->set : -1;
    uint32_t serial = watches ? watches->set_serial : 0;

    if (hosting->nested_set == set && hosting->nested_serial == serial) {
        return;
    }
    if (hosting->nested_set >= 0) {
        (void)kernel.set_remove(hosting->descriptor, hosting->nested_set); /* fails where the set has been closed: it left with that */
    }
    hosting->nested_set = set >= 0 && kernel.set_add(hosting->descriptor, set, kernel_readable, host_token_nested) == 0 ? set : -1;
    hosting->nested_serial = serial;
    hosting->lacks_nested = hosting->nested_set != set;
}

/* Descriptors whose readiness would end the wait, if the kernel had had room for them, are looked at a little later. L. */
static void limit_to_retry(struct hosting *hosting)
{
    int64_t retry_ns = kernel.monotonic_ns() + watch_retry_ns;

    hosting->limit_ns = retry_ns < hosting->limit_ns ? retry_ns : hosting->limit_ns;
}

/* False if the host has no descriptor, or has just lost it: found out before anything is put into a set, or written, by its numbers. L */
static bool set_alarm(CFRunLoopRef loop, struct hosting *hosting)
{
    int result = hosting->descriptor < 0 ? 0 : kernel.alarm_set(hosting->alarm, hosting->sleeps ? hosting->limit_ns : kernel_never);

    if (result == -EBADF || result == -EINVAL) {
        watch_forget_lost(loop);
    }
    return hosting->descriptor >= 0;
}

/* Takes what wake-ups have left in the eventfd, for the host's set is ready as long as it is there. L */
static void drain_event(CFRunLoopRef loop, const struct hosting *hosting)
{
    int event = atomic_load_explicit(&loop->mailbox->event, memory_order_relaxed);

    if (hosting->descriptor < 0) {
        return;
    }
    if (kernel.set_holds(hosting->descriptor, event)) {
        (void)kernel.counter_drain(event);
    } else {
        watch_forget_lost(loop); /* what is there to read is the program's */
    }
}

/* Everything that makes the descriptor readable when Dispatch is due. L. */
static void show_host(CFRunLoopRef loop, struct hosting *hosting)
{
    const struct watch_set *watches = hosting->run.mode->watches;

    if (!set_alarm(loop, hosting)) {
        return;
    }
    nest_set(hosting, hosting->sleeps ? watches : NULL);
    if (hosting->lacks_nested) {
        limit_to_retry(hosting);
        (void)set_alarm(loop, hosting);
    }
    if (hosting->is_ready) {
        (void)kernel.event_post(loop_event(loop));
    }
}

/* Nobody has written to descriptors that are made while the host waits: in the child of a fork, of what was there or has come before. L. */
static void catch_up(CFRunLoopRef loop, struct hosting *hosting)
{
    const struct mode *mode = hosting->run.mode;

    if (hosting->sleeps) {
        if (watch_is_needed(mode)) {
            (void)watch_prepare(loop, hosting->run.mode);
        }
        hosting->is_ready |= watch_has_kept(mode) || (mailbox_word(loop->mailbox) & (wake_token | wake_stop | wake_retime)) != 0;
    }
    show_host(loop, hosting);
}

int CRLRunLoopGetDescriptor(CFRunLoopRef loop)
{
    struct hosting *hosting;

    object_require(loop, object_type_run_loop, "CRLRunLoopGetDescriptor", "loop");
    thread_loop_notice_fork();
    hosting = thread_loop_is_current(loop) && !loop->is_dead ? hosting_of(loop) : NULL;
    if (!hosting) {
        return -1;
    }
    loop_lock(loop);
    if (hosting->descriptor >= 0 && !has_own_descriptors(loop, hosting)) {
        watch_forget_lost(loop);
    }
    if (hosting->descriptor < 0 && !open_descriptor(loop, hosting)) {
        close_if_open(&hosting->descriptor);
        close_if_open(&hosting->alarm);
    }
    if (hosting->descriptor >= 0 && hosting->is_prepared) {
        catch_up(loop, hosting);
    }
    loop_unlock(loop);
    return hosting->descriptor;
}

/* ---- the pass, cut at the sleep ---- */

/* Goes to sleep as far as others can see; the waiting is the host's. L. */
static void fall_asleep(CFRunLoopRef loop, struct hosting *hosting)
{
    struct mode *mode = hosting->run.mode;
    uint32_t word;

    wait_begin(loop, &hosting->run);
    if (watch_is_needed(mode)) {
        (void)watch_prepare(loop, mode);
    }
    if (mode->watches) {
        watch_silence_alarm(mode->watches); /* of a plain run: it would make the host look, and without descriptors be taken by nobody */
    }
    (void)loop_event(loop); /* what a wake-up is written to while the word says EPOLL */
    hosting->limit_ns = timers_limit(mode);
    if (watch_must_retry(mode)) {
        limit_to_retry(hosting);
    }
    loop->waiting = mode;
    loop->armed_ns = hosting->limit_ns;
    hosting->run.is_hosted_asleep = mailbox_sleep(loop->mailbox, wake_epoll, &word);
    hosting->is_ready = !hosting->run.is_hosted_asleep || watch_has_kept(mode);
    show_host(loop, hosting);
}

/* What happened since; `ret_is_retimed` tells that only a deadline changed. L. */
static enum wake_cause wake_from_host(CFRunLoopRef loop, struct hosting *hosting, bool *ret_is_retimed)
{
    struct mode *mode = hosting->run.mode;
    uint32_t word = mailbox_word(loop->mailbox);
    enum wake_cause cause;

    loop->waiting = NULL;
    hosting->run.is_hosted_asleep = false;
    mailbox_rearm(loop->mailbox);
    drain_event(loop, hosting);
    if (watch_is_needed(mode) && watch_prepare(loop, mode) == 0 && !watch_has_batch(mode)) {
        wait_poll(loop, mode);
    }
    cause = wait_ready_cause(loop, &hosting->run, mode->timers.count > 0 ? kernel.monotonic_ns() : 0);
    word |= mailbox_word(loop->mailbox);
    *ret_is_retimed = cause == cause_none && (word & wake_retime) && !(word & (wake_token | wake_stop));
    return cause == cause_none && (word & (wake_token | wake_stop)) ? cause_wake_up : cause;
}

static void begin(CFRunLoopRef loop, struct hosting *hosting, struct mode *mode)
{
    hosting->run = (struct activation){.is_hosted_asleep = false};
    hosting->run.deadline_ns = kernel_never;
    run_enter(loop, &hosting->run, mode);
    hosting->is_running = true;
    observers_notify(loop, &hosting->run, kCFRunLoopEntry);
}

/* Steps 2 to 6. L. */
static void prepare(CFRunLoopRef loop, struct hosting *hosting)
{
    struct activation *run = &hosting->run;

    hosting->sleeps = pass_before_wait(loop, run);
    hosting->first_cause = pass_main_queue_first(loop, run) ? cause_main_queue : cause_none;
    hosting->is_prepared = true;
    if (hosting->first_cause != cause_none) {
        hosting->sleeps = false;
    }
    if (hosting->sleeps) {
        pass_notify_before_waiting(loop, run);
        fall_asleep(loop, hosting);
    } else {
        hosting->is_ready = true;
        show_host(loop, hosting);
    }
}

/* Begins the run if none is under way. False if there is nothing to prepare. L. */
static bool can_prepare(CFRunLoopRef loop, struct hosting *hosting, CFRunLoopMode name)
{
    struct mode *mode = mode_find(loop, name);

    if (hosting->is_running) {
        return mode == hosting->run.mode && !mailbox_is_stopped(loop->mailbox);
    }
    if (!mode || loop->is_dead || mode_is_empty(loop, mode)) {
        return false;
    }
    begin(loop, hosting, mode);
    return !mailbox_is_stopped(loop->mailbox);
}

Boolean CRLRunLoopPrepare(CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct hosting *hosting;
    bool is_prepared;

    object_require(loop, object_type_run_loop, "CRLRunLoopPrepare", "loop");
    thread_loop_notice_fork();
    hosting = thread_loop_is_current(loop) ? hosting_of(loop) : NULL;
    if (!hosting || !mode) {
        return false;
    }
    leave_gone_runs(loop, hosting, (uintptr_t)__builtin_frame_address(0));
    if (!is_hosts_turn(loop, hosting)) {
        return false;
    }
    if (hosting->is_prepared) {
        return true;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    is_prepared = can_prepare(loop, hosting, mode);
    if (is_prepared) {
        prepare(loop, hosting);
    }
    loop_unlock(loop);
    hosting->is_calling = false;
    return is_prepared;
}

int64_t CRLRunLoopGetTimeout(CFRunLoopRef loop)
{
    const struct hosting *hosting = running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopGetTimeout");
    int64_t limit_ns;
    int64_t left_ns;

    if (!hosting || !hosting->is_prepared) {
        return -1;
    }
    if (hosting->is_ready || !hosting->sleeps) {
        return 0;
    }
    loop_lock(loop);
    limit_ns = timers_limit(hosting->run.mode);
    if ((hosting->lacks_nested || watch_must_retry(hosting->run.mode)) && hosting->limit_ns < limit_ns) {
        limit_ns = hosting->limit_ns;
    }
    loop_unlock(loop);
    if (limit_ns == kernel_never) {
        return -1;
    }
    left_ns = limit_ns - kernel.monotonic_ns();
    return left_ns > 0 ? left_ns : 0;
}

/* Steps 8 and 9. False if there was nothing but a changed deadline, and the host goes on waiting. L. */
static bool dispatch(CFRunLoopRef loop, struct hosting *hosting, CFRunLoopRunResult *ret_result)
{
    struct activation *run = &hosting->run;
    enum wake_cause cause = hosting->first_cause;

    if (hosting->sleeps) {
        bool is_retimed;

        cause = wake_from_host(loop, hosting, &is_retimed);
        if (is_retimed) {
            fall_asleep(loop, hosting);
            return false;
        }
        run->took_token |= mailbox_disarm(loop->mailbox);
        observers_notify(loop, run, kCFRunLoopAfterWaiting);
    } else {
        drain_event(loop, hosting);
        if (cause == cause_none) {
            cause = wait_look(loop, run);
        } else {
            run->took_token |= mailbox_disarm(loop->mailbox);
        }
    }
    *ret_result = pass_after_wait(loop, run, cause);
    run_resume(loop, run);
    return true;
}

/* What CFAutorelease was given since the last pass, as at the end of each pass of a plain run. L, which is dropped meanwhile. */
static void empty_pool(CFRunLoopRef loop, const struct hosting *hosting)
{
    if (!hosting->run.outer && autorelease_has_objects()) {
        loop_unlock(loop);
        autorelease_drain();
        loop_lock(loop);
    }
}

CFRunLoopRunResult CRLRunLoopDispatch(CFRunLoopRef loop)
{
    struct hosting *hosting = running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopDispatch");
    CFRunLoopRunResult result = (CFRunLoopRunResult)0;

    if (!hosting || !hosting->is_prepared) {
        return result;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    if (dispatch(loop, hosting, &result)) {
        hosting->is_prepared = false;
        empty_pool(loop, hosting);
    }
    loop_unlock(loop);
    hosting->is_calling = false;
    return result;
}

void CRLRunLoopLeave(CFRunLoopRef loop)
{
    struct hosting *hosting = running(loop, (uintptr_t)__builtin_frame_address(0), "CRLRunLoopLeave");

    if (!hosting) {
        return;
    }
    hosting->is_calling = true;
    loop_lock(loop);
    loop->waiting = NULL;
    hosting->run.is_hosted_asleep = false;
    hosting->is_prepared = false;
    hosting->sleeps = false;
    hosting->is_ready = false;
    hosting->run.took_token |= mailbox_disarm(loop->mailbox);
    observers_notify(loop, &hosting->run, kCFRunLoopExit);
    empty_pool(loop, hosting);
    show_host(loop, hosting);
    drain_event(loop, hosting);
    run_leave(loop, &hosting->run);
    hosting->is_running = false;
    loop_unlock(loop);
    hosting->is_calling = false;
}
