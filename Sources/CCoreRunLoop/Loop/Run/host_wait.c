/* SPDX-License-Identifier: Apache-2.0 */
/* A sleep that a host does; see host_wait.h. */
#include "Loop/Run/host_wait.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Loop/Core/run.h"
#include "Loop/Run/wait.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Trace/trace.h"
#include "Loop/Watch/watch.h"
#include "Support/invariant.h"

/* ---- the descriptors ---- */

static void close_if_open(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)kernel.close(*descriptor);
    }
    *descriptor = -1;
}

/* Returns true if the numbers still stand for the loop's own descriptors: the program may have closed and reused them. */
static bool has_own_descriptors(CFRunLoopRef loop, const struct host_wait *wait)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    return kernel.set_holds(wait->descriptor, wait->alarm) && kernel.set_holds(wait->descriptor, event);
}

/* If the program has closed some of the descriptors, forgets them all, and closes those that are still the loop's own. */
static void forget_lost_descriptors(CFRunLoopRef loop, struct host_wait *wait)
{
    if (wait->descriptor < 0 || has_own_descriptors(loop, wait)) {
        return;
    }
    if (kernel.set_holds(wait->descriptor, wait->alarm)) {
        close_if_open(&wait->descriptor);
        close_if_open(&wait->alarm);
    } else if (kernel.alarm_is_own(wait->alarm)) {
        close_if_open(&wait->alarm);
    }
    wait->descriptor = wait->alarm = wait->nested_set = -1;
    wait->lacks_nested = false;
    wait->is_ready = wait->is_due; /* the host cannot have been told of anything: the loop looks at it all */
}

static void forget_all_lost_descriptors(CFRunLoopRef loop)
{
    for (struct host_wait *wait = loop->host_waits; wait; wait = wait->next) {
        forget_lost_descriptors(loop, wait);
    }
}

/* Of an abandoned run nobody ends the sleep. */
REQUIRES(the_loop_lock) static void note_abandoned_run(CFRunLoopRef loop, const struct run *run)
{
    for (struct host_wait *wait = loop->host_waits; wait; wait = wait->next) {
        if (wait->run == run) {
            loop->waiting = NULL; /* the host may have been waiting */
            wait->run = NULL;
            wait->is_due = false;
        }
    }
}

static const struct host_wait_hooks hooks = {.run_abandoned = note_abandoned_run, .descriptors_lost = forget_all_lost_descriptors};

void host_wait_init(CFRunLoopRef loop, struct host_wait *wait)
{
    *wait = (struct host_wait){.next = loop->host_waits, .descriptor = -1, .alarm = -1, .nested_set = -1};
    loop->host_waits = wait;
    loop->host_wait_hooks = &hooks;
}

/* Makes the host's set and its contents. After a failure some descriptors may be open: the caller closes them. */
REQUIRES(the_loop_lock) static bool open_descriptor(CFRunLoopRef loop, struct host_wait *wait)
{
    enum { token_event, token_alarm };
    int event = loop_event(loop);

    if (event < 0) {
        return false;
    }
    wait->descriptor = kernel.set_create();
    wait->alarm = kernel.alarm_create();
    return wait->descriptor >= 0 && wait->alarm >= 0 && kernel.set_add(wait->descriptor, event, kernel_readable, token_event) == 0 &&
           kernel.set_add(wait->descriptor, wait->alarm, kernel_readable, token_alarm) == 0;
}

int host_wait_descriptor(CFRunLoopRef loop, struct host_wait *wait)
{
    if (wait->descriptor >= 0 && !has_own_descriptors(loop, wait)) {
        watch_forget_lost(loop);
    }
    if (wait->descriptor < 0 && !open_descriptor(loop, wait)) {
        close_if_open(&wait->descriptor);
        close_if_open(&wait->alarm);
    }
    return wait->descriptor;
}

void host_waits_close(CFRunLoopRef loop)
{
    for (struct host_wait *wait = loop->host_waits; wait; wait = wait->next) {
        forget_lost_descriptors(loop, wait);
        close_if_open(&wait->descriptor);
        close_if_open(&wait->alarm);
        wait->nested_set = -1;
        wait->lacks_nested = false;
    }
}

/* ---- what the descriptor shows ---- */

/* Puts the mode's wait set into the host's, in the place of another mode's. */
static void nest_set(struct host_wait *wait, const struct watch_set *watches)
{
    enum { token_nested = 2 };
    int set = watches ? watches->set : -1;
    uint32_t serial = watches ? watches->set_serial : 0;

    if (wait->nested_set == set && wait->nested_serial == serial) {
        return;
    }
    if (wait->nested_set >= 0) {
        (void)kernel.set_remove(wait->descriptor, wait->nested_set); /* fails if the set was closed, which has removed it */
    }
    wait->nested_set = set >= 0 && kernel.set_add(wait->descriptor, set, kernel_readable, token_nested) == 0 ? set : -1;
    wait->nested_serial = serial;
    wait->lacks_nested = wait->nested_set != set;
}

/*
 * The kernel had no room for some descriptors, so their readiness cannot end the wait. Limits it, so that they are polled a little later.
 */
static void limit_to_retry(struct host_wait *wait)
{
    int64_t retry_ns = kernel.monotonic_ns() + watch_retry_ns;

    wait->limit_ns = retry_ns < wait->limit_ns ? retry_ns : wait->limit_ns;
}

/*
 * Sets the alarm. Returns false if there is no descriptor, or the program has just been found to have closed it. Call it before any other
 * use of the numbers, which might be those of other files now.
 */
REQUIRES(the_loop_lock) static bool set_alarm(CFRunLoopRef loop, struct host_wait *wait)
{
    int result = wait->descriptor < 0 ? 0 : kernel.alarm_set(wait->alarm, wait->sleeps ? wait->limit_ns : kernel_never);

    if (result == -EBADF || result == -EINVAL) {
        watch_forget_lost(loop);
    }
    return wait->descriptor >= 0;
}

void host_wait_drain(CFRunLoopRef loop, const struct host_wait *wait)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    if (wait->descriptor < 0) {
        return;
    }
    if (kernel.set_holds(wait->descriptor, event)) {
        (void)kernel.counter_drain(event);
    } else {
        watch_forget_lost(loop); /* the number stands for a file of the program, which must not be read */
    }
}

void host_wait_show(CFRunLoopRef loop, struct host_wait *wait)
{
    if (!set_alarm(loop, wait)) {
        return;
    }
    nest_set(wait, wait->sleeps ? wait->run->mode->watches : NULL);
    if (wait->lacks_nested) {
        limit_to_retry(wait);
        (void)set_alarm(loop, wait);
    }
    if (wait->is_ready) {
        (void)kernel.event_post(loop_event(loop));
    }
}

/* ---- the sleep ---- */

/* Finds the limit of the sleep. If that is far off, has the mode's set report that the system resumes. */
REQUIRES(the_loop_lock) static void set_limit(CFRunLoopRef loop, struct host_wait *wait)
{
    struct mode *mode = wait->run->mode;
    struct moment now = moment_now(loop);

    wait->limit_ns = wait_limit(loop, mode, &now, wait->run->deadline_ns);
    if (wait_limit_is_far(loop, mode, &now, wait->limit_ns) && watch_for_resume(loop, mode)) {
        now = moment_now(loop); /* once more: the system may have been suspended before the set could tell */
        wait->limit_ns = wait_limit(loop, mode, &now, wait->run->deadline_ns);
    }
    if (watch_must_retry(mode)) {
        limit_to_retry(wait);
    }
    loop->sleep_limit_ns = wait->limit_ns;
}

void host_wait_begin(CFRunLoopRef loop, struct host_wait *wait)
{
    struct run *run = wait->run;
    struct mode *mode = run->mode;
    uint32_t word;
    bool is_asleep;

    invariant(wait->is_due);
    wait_begin(loop, run);
    invariant(!loop->waiting || loop_is_hosted_asleep(loop));
    if (watch_is_needed(mode)) {
        (void)watch_prepare(loop, mode);
    }
    if (mode->watches) {
        /* A plain run has set it: it would make the host look, and nobody would read it if there are no descriptors. */
        watch_silence_alarm(mode->watches);
    }
    (void)loop_event(loop); /* wake-ups are written to it while the word says EPOLL */
    set_limit(loop, wait);
    loop->waiting = mode;
    invariant(loop->sleep_timers_ns <= timers_limit(mode)); /* (I5) */
    trace_event(trace_sleep_begins, 0, run, (uint64_t)wait->limit_ns);
    /* A wake-up that came before refuses the sleep. The host has the wait even so: it may run the loop before it goes on. */
    is_asleep = waker_sleep(loop->waker, wake_epoll, &word);
    run->is_hosted_asleep = true;
    wait->is_ready = !is_asleep || watch_has_kept(mode);
    host_wait_show(loop, wait);
}

void host_wait_renew(CFRunLoopRef loop, struct host_wait *wait)
{
    struct mode *mode = wait->run->mode;

    if (wait->sleeps) {
        if (watch_is_needed(mode)) {
            (void)watch_prepare(loop, mode);
        }
        set_limit(loop, wait);
        wait->is_ready |= watch_has_kept(mode) || (waker_word(loop->waker) & (wake_token | wake_stop | wake_retime)) != 0;
    }
    host_wait_show(loop, wait);
}

enum wake_cause host_wait_end(CFRunLoopRef loop, struct host_wait *wait, bool *ret_is_retimed)
{
    struct run *run = wait->run;
    struct mode *mode = run->mode;
    uint32_t word = waker_word(loop->waker);
    enum wake_cause cause;
    bool has_resumed;

    invariant(wait->sleeps);
    loop->waiting = NULL;
    run->is_hosted_asleep = false;
    waker_rearm(loop->waker);
    host_wait_drain(loop, wait);
    if ((watch_is_needed(mode) || watch_has_resume(mode)) && watch_prepare(loop, mode) == 0 && !watch_has_batch(mode)) {
        wait_poll(loop, mode);
    }
    has_resumed = watch_has_resume(mode) && watch_take_resume(mode->watches);
    cause = wait_ready_cause(loop, run, mode->timers.count > 0 ? timers_now(loop) : 0);
    word |= waker_word(loop->waker); /* a wake-up may have come while the kernel was asked */
    *ret_is_retimed = cause == cause_none && (has_resumed || (word & wake_retime)) && !(word & (wake_token | wake_stop));
    return cause == cause_none && (word & (wake_token | wake_stop)) ? cause_wake_up : cause;
}
