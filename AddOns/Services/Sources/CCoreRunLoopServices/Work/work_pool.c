/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that work, and the work that waits for them: see work.h.
 *
 * Always true under the lock: where work waits there is a thread, but for the time after one has left in the midst of its work and no other
 * could be started. A thread that is idle is counted in `idle` until it runs again; `called` counts those that were called meanwhile.
 */
#include <pthread.h>
#include <sched.h>

#include "Support/invariant.h"
#include "Work/work.h"
#include "Work/work_kernel.h"

enum { threads_at_least = 4, threads_at_most = 64 };

static struct {
    struct work_list waiting;
    unsigned limit; /* of threads; 0: nothing is there yet */
    unsigned threads;
    unsigned idle;
    unsigned called;
} work_pool GUARDED_BY(the_service_lock);

struct service_lock work_lock = {PTHREAD_MUTEX_INITIALIZER, 0};

/* ---- threads ---- */

/* Of the thread itself. What a key keeps of it ends it where its work does, by pthread_exit. */
static __thread struct worker {
    bool is_counted;
    CRLWorkRef work; /* that runs */
} worker;
static pthread_key_t worker_end;
static bool has_worker_end; /* there was a key left; constant once there are threads */

/* Waits for work. NULL: none came, and the thread is not counted any more. */
REQUIRES(the_service_lock) static CRLWorkRef await_work(void)
{
    CRLWorkRef work = work_pool_take();
    int cancel_state = work_lock.cancel_state; /* of this thread: others have the lock meanwhile */
    bool is_over = false;

    while (!work && !is_over) {
        work_pool.idle++;
        is_over = !work_kernel.idle_wait(&work_lock.mutex);
        work_lock.cancel_state = cancel_state;
        work_pool.idle--;
        work_pool.called -= work_pool.called > 0;
        work = work_pool_take();
    }
    if (!work) {
        worker.is_counted = false;
        work_pool.threads--;
    }
    return work;
}

static void *run_worker(void *unused);

/* Starts a thread, unless there are as many as may be. Returns false if there is none at all. */
REQUIRES(the_service_lock) static bool start_thread(void)
{
    if (work_pool.threads < work_pool.limit) {
        work_pool.threads++;
        if (work_kernel.thread_start(run_worker) < 0) {
            work_pool.threads--;
        }
    }
    return work_pool.threads > 0;
}

/* What follows from work that was run. */
struct finish {
    struct work_port_call call;
    CRLWorkRef dropped; /* the thread's reference, if the loop has ended or there is none */
};

REQUIRES(the_service_lock) static struct finish finish_work(CRLWorkRef work)
{
    struct finish finish = {{NULL, NULL, NULL}, work};

    if (work->port && work->port->is_gone) {
        finish.call = work_port_leave(work);
    } else if (work->port) {
        finish = (struct finish){work_port_tell(work, kCRLWorkDone), NULL};
    }
    return finish;
}

static void end_finish(struct finish finish)
{
    work_port_call_make(finish.call);
    if (finish.dropped) {
        CFRelease(finish.dropped);
    }
}

void work_pool_finish(CRLWorkRef work)
{
    struct finish finish;

    service_lock_take(&work_lock);
    finish = finish_work(work);
    service_lock_drop(&work_lock);
    end_finish(finish);
}

/* Takes the lock once for both, as long as there is work. */
static CRLWorkRef finish_and_take(CRLWorkRef work)
{
    struct finish finish;
    CRLWorkRef next;

    service_lock_take(&work_lock);
    finish = finish_work(work);
    next = work_pool_take();
    service_lock_drop(&work_lock);
    end_finish(finish);
    return next;
}

static CRLWorkRef next_work(void)
{
    CRLWorkRef work = worker.work ? finish_and_take(worker.work) : NULL;

    if (!work) {
        worker.work = NULL;
        (void)sched_yield(); /* to whoever gives work in a row, rather than be called for each piece */
        service_lock_take(&work_lock);
        work = await_work();
        service_lock_drop(&work_lock);
    }
    return work;
}

static void *run_worker(void *unused)
{
    (void)unused;
    worker.is_counted = true;
    if (has_worker_end) {
        (void)pthread_setspecific(worker_end, &worker);
    }
    while ((worker.work = next_work()) != NULL) {
        worker.work->function(worker.work->context.info);
    }
    return NULL;
}

/* The thread has ended: by itself, or in the midst of its work. Then another one takes its place. */
static void end_worker(void *unused)
{
    (void)unused;
    if (!worker.is_counted) {
        return;
    }
    if (worker.work) {
        work_pool_finish(worker.work);
    }
    service_lock_take(&work_lock);
    work_pool.threads--;
    if (work_pool.waiting.first) {
        (void)start_thread();
    }
    service_lock_drop(&work_lock);
}

/* ---- the child of a fork ---- */

ACQUIRES(the_service_lock) static void before_fork(void)
{
    service_lock_take(&work_lock);
}

RELEASES(the_service_lock) static void after_fork_in_parent(void)
{
    service_lock_drop(&work_lock);
}

/* The lock is dropped as the parent drops it. */
RELEASES(the_service_lock) static void after_fork_in_child(void)
{
    work_pool_reset();
    service_lock_drop(&work_lock);
    work_port_reset();
}

void work_pool_reset(void)
{
    for (CRLWorkRef work = work_pool.waiting.first; work; work = work->next) {
        work->state = work_told; /* for CRLWorkCancel */
    }
    work_pool.waiting = (struct work_list){NULL, NULL};
    work_pool.idle = work_pool.called = 0;
    work_pool.threads = worker.is_counted; /* the thread that forked may be one of the pool, and goes on without its work */
    worker.work = NULL;
    work_kernel.idle_reset();
}

/* ---- work ---- */

REQUIRES(the_service_lock) static void make_ready(void)
{
    unsigned processors;

    if (work_pool.limit > 0) {
        return;
    }
    processors = work_kernel.processor_count();
    work_pool.limit = processors < threads_at_least ? threads_at_least : processors > threads_at_most ? threads_at_most : processors;
    work_kernel.idle_reset();
    has_worker_end = pthread_key_create(&worker_end, end_worker) == 0;
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool work_pool_add(CRLWorkRef work, bool *ret_calls)
{
    make_ready();
    *ret_calls = work_pool.idle > work_pool.called;
    if (*ret_calls) {
        work_pool.called++;
    } else if (!start_thread()) {
        return false;
    }
    work->state = work_waiting;
    work_list_append(&work_pool.waiting, work);
    return true;
}

void work_pool_remove(CRLWorkRef work)
{
    invariant(work->state == work_waiting);
    work_list_remove(&work_pool.waiting, work);
}

struct work_list work_pool_remove_all(const struct work_port *port)
{
    struct work_list removed = {NULL, NULL};
    CRLWorkRef next;

    for (CRLWorkRef work = work_pool.waiting.first; work; work = next) {
        next = work->next;
        if (work->port == port) {
            work_list_remove(&work_pool.waiting, work);
            work_list_append(&removed, work);
        }
    }
    return removed;
}

CRLWorkRef work_pool_take(void)
{
    CRLWorkRef work = work_pool.waiting.first;

    if (work) {
        work_pool_remove(work);
        work->state = work_running;
    }
    return work;
}
