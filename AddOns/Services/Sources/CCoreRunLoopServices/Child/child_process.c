/* SPDX-License-Identifier: Apache-2.0 */
/* See child_process.h. */
#include "Child/child_process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "Child/child_kernel.h"
#include "Child/child_plan.h"
#include "Support/invariant.h"

struct service_lock child_lock = {PTHREAD_MUTEX_INITIALIZER, 0};

/* ---- forks ---- */

ACQUIRES(the_service_lock) static void before_fork(void)
{
    service_lock_take(&child_lock);
}

RELEASES(the_service_lock) static void after_fork(void)
{
    service_lock_drop(&child_lock);
}

/* Not by a constructor: the lock is taken before those of the library, whose constructors may come later. */
static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- threads that wait ---- */

/* What a thread waits for. It frees this. */
struct child_wait {
    pid_t pid;
    int event; /* a descriptor of its own, to be posted; -1: the process is to be reaped */
};

static void *wait_for_end(void *info)
{
    struct child_wait *wait = info;
    CRLChildEnd ignored;

    (void)child_kernel.process_await(wait->pid);
    if (wait->event >= 0) {
        child_kernel.event_post(wait->event);
        child_kernel.close(wait->event);
    } else {
        (void)child_kernel.process_look(wait->pid, -1, child_look_reaps, &ignored);
    }
    free(wait);
    return NULL;
}

/* Takes the event over. Returns 0 or a negative errno. */
static int start_wait(pid_t pid, int event)
{
    struct child_wait *wait = malloc(sizeof *wait);
    int result = -ENOMEM;

    if (wait) {
        *wait = (struct child_wait){pid, event};
        result = child_kernel.thread_start(wait_for_end, wait);
    }
    if (result < 0) {
        free(wait);
        if (event >= 0) {
            child_kernel.close(event);
        }
    }
    return result;
}

/* ---- the start ---- */

/* Where there is no process descriptor, or no process any more, because the program ignores SIGCHLD. */
static int make_event(pid_t pid, bool has_ended)
{
    int event = child_kernel.event_create(has_ended);
    int copy = event >= 0 && !has_ended ? child_kernel.event_copy(event) : event;
    int result = copy < 0 || has_ended ? copy : start_wait(pid, copy);

    if (result < 0 && event >= 0) {
        child_kernel.close(event);
    }
    return result < 0 ? result : event;
}

static int watch_end(struct child_process *process)
{
    int opened = child_kernel.process_open(process->pid);

    process->is_pidfd = opened >= 0;
    process->end = process->is_pidfd ? opened : make_event(process->pid, opened == -ESRCH);
    return process->end < 0 ? process->end : 0;
}

/* Of a process that has ended, or is about to. */
static void reap_now(pid_t pid)
{
    CRLChildEnd ignored;

    (void)child_kernel.process_await(pid);
    (void)child_kernel.process_look(pid, -1, child_look_reaps, &ignored);
}

/* What the child has reported; waits for it, if the child did not share the memory, as under valgrind. Error 0: its program runs. */
static CRLChildError take_report(struct child_plan *plan, int report)
{
    CRLChildError failure = {plan->failure.step, plan->failure.error};

    if (!plan->is_shared && child_kernel.report_read(report, &failure, sizeof failure) != (ssize_t)sizeof failure) {
        failure = (CRLChildError){kCRLChildStepExecute, 0};
    }
    return failure;
}

/* As the threads that read `process` come later (NOT_CHECKED). */
NOT_CHECKED bool child_process_start(struct child_process *process, struct child_plan *plan, CRLChildError *ret_error)
{
    static pthread_once_t forks_are_watched = PTHREAD_ONCE_INIT;
    int report[2];
    int result = child_kernel.pipe_create(report, pipe_waits);

    (void)pthread_once(&forks_are_watched, watch_forks);
    *ret_error = (CRLChildError){kCRLChildStepProcess, -result};
    if (result < 0) {
        return false;
    }
    plan->report = report[1];
    process->pid = child_kernel.start(plan);
    process->has_group = plan->starts_session || plan->group < 0;
    child_kernel.close(report[1]);
    child_plan_close_sources(plan);
    *ret_error = process->pid < 0 ? (CRLChildError){kCRLChildStepProcess, -process->pid} : take_report(plan, report[0]);
    child_kernel.close(report[0]);
    if (process->pid < 0) {
        return false;
    }
    result = ret_error->error == 0 ? watch_end(process) : 0;
    if (result < 0) {
        *ret_error = (CRLChildError){kCRLChildStepProcess, -result};
        (void)child_kernel.process_signal(process->pid, -1, SIGKILL);
    }
    if (ret_error->error != 0) {
        reap_now(process->pid);
    }
    return ret_error->error == 0;
}

/* ---- the end ---- */

/* Returns whether it has ended. */
REQUIRES(the_service_lock) static bool look_at(struct child_process *process, enum child_look look)
{
    int descriptor = process->is_pidfd ? process->end : -1;
    int result;

    if (process->is_over) {
        return true;
    }
    result = child_kernel.process_look(process->pid, descriptor, look, &process->result);
    process->is_over = result < 0 || (result > 0 && look == child_look_reaps);
    return result != 0;
}

bool child_process_look(struct child_process *process, CRLChildEnd *ret_end)
{
    bool has_ended;

    service_lock_take(&child_lock);
    has_ended = look_at(process, child_look_keeps);
    if (has_ended && !process->is_over) {
        if (process->kills_group) {
            (void)child_kernel.group_signal(process->pid, SIGKILL);
        }
        (void)look_at(process, child_look_reaps);
    }
    if (has_ended) {
        *ret_end = process->result;
    }
    service_lock_drop(&child_lock);
    return has_ended;
}

bool child_process_signal(struct child_process *process, int signal, bool whole_group)
{
    bool has_ended;
    int result = -ESRCH;

    service_lock_take(&child_lock);
    has_ended = look_at(process, child_look_keeps);
    if (whole_group && process->has_group && !process->is_over) {
        result = child_kernel.group_signal(process->pid, signal);
    } else if (!whole_group && !has_ended) {
        result = child_kernel.process_signal(process->pid, process->is_pidfd ? process->end : -1, signal);
    }
    service_lock_drop(&child_lock);
    return result == 0;
}

void child_process_kill_group_at_end(struct child_process *process)
{
    service_lock_take(&child_lock);
    process->kills_group = process->has_group;
    service_lock_drop(&child_lock);
}

void child_process_leave(struct child_process *process)
{
    CRLChildEnd ignored;

    if (!child_process_look(process, &ignored)) {
        (void)start_wait(process->pid, -1);
    }
    child_kernel.close(process->end);
}
