/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of loops: made when a thread first asks, taken apart when the thread ends, and put in order in the child of a fork.
 *
 * The destructor of a thread-specific key ends a thread's loop. A loop that ends while a signaller is still pushing onto it waits in the
 * limbo; the next loop to be made, or thread to end, frees what is left there.
 */
#include "Loop/Run/thread_registry.h"

#include <limits.h>
#include <pthread.h>

#include "Kernel/kernel.h"
#include "Loop/Block/block.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Core/run.h"
#include "Loop/Source/source_membership.h"
#include "Loop/Observer/observer_callout.h"
#include "Loop/Observer/observer_membership.h"
#include "Loop/Run/companion.h"
#include "Loop/Run/host_wait.h"
#include "Loop/Run/hosting.h"
#include "Loop/Run/loop_dump.h"
#include "Loop/Run/stall.h"
#include "Loop/Signal/source_queue.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Timer/timer_membership.h"
#include "Loop/Trace/code_place.h"
#include "Loop/Trace/statistics.h"
#include "Loop/Trace/trace.h"
#include "Loop/Trace/trace_session.h"
#include "Loop/Watch/watch.h"
#include "Support/fault.h"
#include "Support/invariant.h"

static CFRunLoopRef limbo GUARDED_BY(&thread_loops.lock);
/* Where the main loop's memory begins, for leak checkers: to those a pointer behind that is none. Guarded by the same lock. */
static const void *volatile main_block;
static _Atomic uint32_t mark_never_wiped = fork_mark_set;
_Atomic(_Atomic uint32_t *) thread_registry_fork_mark = &mark_never_wiped; /* written once, if the kernel can wipe a word in children */
static _Atomic(CFRunLoopRef) ended_loop; /* given to threads that have ended their own loop; made once, never freed */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the registry ---- */

/* Frees the loops of the limbo to which no binding leads any more. */
static void sweep_limbo(void)
{
    CFRunLoopRef swept;

    lock_take(&thread_loops.lock);
    swept = limbo;
    limbo = NULL;
    lock_drop(&thread_loops.lock);
    while (swept) {
        CFRunLoopRef loop = swept;
        struct binding_release_list reap = {NULL};
        bool is_bound;

        swept = loop->next_limbo;
        invariant(loop->is_dead);
        loop_lock(loop);
        source_queue_drain(loop, &reap);
        is_bound = loop->bound_count > 0;
        loop_unlock(loop);
        bindings_release(&reap);
        if (!is_bound) {
            object_release(loop);
            continue;
        }
        lock_take(&thread_loops.lock);
        loop->next_limbo = limbo;
        limbo = loop;
        lock_drop(&thread_loops.lock);
    }
}

/* Drops the thread's reference, or hands it to the limbo while bindings lead to the loop. */
static void drop_thread_reference(CFRunLoopRef loop)
{
    bool is_bound;

    invariant(loop->is_dead);
    loop_lock(loop);
    is_bound = loop->bound_count > 0;
    loop_unlock(loop);
    if (!is_bound) {
        object_release(loop);
        return;
    }
    lock_take(&thread_loops.lock);
    loop->next_limbo = limbo;
    limbo = loop;
    lock_drop(&thread_loops.lock);
}

/* ---- the end of a loop ---- */

/* From here on nothing can be added, no run begins, and the wake word stays IDLE. */
static void mark_dead(CFRunLoopRef loop)
{
    loop_lock(loop);
    loop->is_dead = true;
    runs_forget(loop); /* a thread that ends in a callback leaves its runs unfinished */
    loop->waiting = NULL;
    if (loop->lent_reference) {
        object_retain(loop->lent_reference); /* for the clean-up of the report that borrows it */
        loop->lent_reference = NULL;
    }
    atomic_store_explicit(&loop->waits_awake, false, memory_order_relaxed); /* as it may in the parent of a fork */
    (void)atomic_fetch_and_explicit(&loop->waker->word,
                                    ~(uint32_t)(wake_phase | wake_token | wake_stop | wake_run | wake_retime | wake_outer | wake_owed),
                                    memory_order_acq_rel);
    invariant(!loop->innermost_run);
    loop_unlock(loop);
}

/* Runs the clean-ups of callbacks that did not return. Without `releases`, in the child of a fork, it only forgets them. */
static void end_callouts(CFRunLoopRef loop, bool releases)
{
    invariant(loop->is_dead);
    timers_end_callouts(loop, releases);
    if (releases) {
        cleanup_unwind(loop, 0);
    }
    cleanup_free(loop);
}

/* Ends a loop whose items stay where they are: the main loop, or a loop of the parent of a fork. */
static void loop_retire(CFRunLoopRef loop, bool releases)
{
    if (!releases) {
        observers_forget_callouts(loop);
    }
    mark_dead(loop);
    end_callouts(loop, releases);
}

/* The program may have closed the number, and another file may have it now. */
REQUIRES(the_loop_lock) static void close_resume(CFRunLoopRef loop)
{
    if (loop->resume >= 0 && kernel.alarm_is_own(loop->resume)) {
        (void)kernel.close(loop->resume);
    }
    loop->resume = -1;
}

static void close_descriptors(CFRunLoopRef loop)
{
    struct binding_release_list reap = {NULL};

    loop_lock(loop);
    source_queue_drain(loop, &reap);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        watch_set_free(mode);
    }
    waker_close_event(loop->waker);
    close_resume(loop);
    loop_unlock(loop);
    bindings_release(&reap);
}

void loop_end(CFRunLoopRef loop)
{
    mark_dead(loop);
    loop_lock(loop);
    watch_look_for_losses(loop); /* numbers that the program has closed and reused must not be closed here */
    loop_unlock(loop);
    sources_remove_all(loop);
    timers_remove_all(loop);
    observers_remove_all(loop);
    blocks_discard_all(loop);
    end_callouts(loop, true);
    host_waits_close(loop);
    close_descriptors(loop);
    loop->host_waits = NULL;
    hosting_free(loop);
    companion_free(loop);
}

/* ---- thread exit ---- */

/* The destructor of the key. It puts its value back until the last round but one, and then ends the loop. */
static void end_of_thread(void *round)
{
    CFRunLoopRef loop = thread_loop;
    uintptr_t rounds_left = (uintptr_t)round - 1;

    if (rounds_left > 0) {
        (void)pthread_setspecific(thread_loops.key, (void *)rounds_left); /* NOLINT(performance-no-int-to-ptr) */
        return;
    }
    if (!loop) {
        return;
    }
    if (loop->is_main) {
        loop_retire(loop, true); /* other threads may still use the main loop (rule 174) */
    } else {
        loop_end(loop);
    }
    stall_end(loop);
    thread_loop = NULL;
    thread_loop_has_ended = true;
    trace_thread_ends();
    statistics_thread_ends();
    if (!loop->is_main) {
        drop_thread_reference(loop);
    }
    sweep_limbo();
}

/* ---- fork ---- */

NOT_CHECKED static void before_fork(void)
{
    lock_take(&thread_loops.lock);
    list_for_each(link, &thread_loops.all) {
        loop_lock(container_of(link, struct __CFRunLoop, registry_link));
    }
    item_locks_take_all();
    waker_pool_lock();
    lock_take(&code_objects_lock);
}

NOT_CHECKED static void after_fork_in_parent(void)
{
    lock_drop(&code_objects_lock);
    waker_pool_unlock();
    item_locks_drop_all();
    list_for_each(link, &thread_loops.all) {
        loop_unlock(container_of(link, struct __CFRunLoop, registry_link));
    }
    lock_drop(&thread_loops.lock);
}

/*
 * The wait sets and the eventfd are shared with the parent. The child closes its numbers for them, and never changes the objects
 * themselves.
 */
REQUIRES(the_loop_lock) static void close_parents_descriptors(CFRunLoopRef loop)
{
    int event = atomic_load_explicit(&loop->waker->event, memory_order_relaxed);

    host_waits_close(loop);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        watch_rebuild(loop, mode, true);
    }
    close_resume(loop);
    if (event >= 0) {
        (void)kernel.close(event);
        atomic_store_explicit(&loop->waker->event, -1, memory_order_relaxed);
    }
}

/* Keeps the loop of the thread that forked. The loop makes new descriptors when it next waits. */
static void keep_forkers_loop(CFRunLoopRef loop)
{
    loop_lock(loop);
    close_parents_descriptors(loop);
    companion_part(loop);
    (void)atomic_fetch_and_explicit(&loop->waker->word, wake_writer - 1, memory_order_relaxed); /* writers do not exist here */
    sources_requeue(loop); /* queues may lack a signal whose thread is gone */
    loop_unlock(loop);
}

/* Ends the loop of a thread that does not exist in the child. */
static void retire_parents_loop(CFRunLoopRef loop)
{
    loop_lock(loop);
    close_parents_descriptors(loop);
    atomic_store_explicit(&loop->waker->word, wake_idle, memory_order_relaxed);
    loop_unlock(loop);
    loop_retire(loop, false);
}

/* Ends the loops of the parent's other threads. */
NOT_CHECKED static void retire_parents_loops(void)
{
    list_for_each(link, &thread_loops.all) {
        CFRunLoopRef loop = container_of(link, struct __CFRunLoop, registry_link);

        if (loop != thread_loop && loop->generation != thread_loops.generation) {
            retire_parents_loop(loop);
        }
    }
}

/* Makes the thread that forked the child's main thread. */
NOT_CHECKED static void become_main(void)
{
    CFRunLoopRef known = atomic_load_explicit(&thread_loops.main, memory_order_relaxed);

    thread_loop_forget_not_main();
    if (thread_loop) {
        thread_loop->is_main = true;
        thread_loop->generation = thread_loops.generation;
    }
    if (thread_loop || !known || known->generation != thread_loops.generation) {
        atomic_store_explicit(&thread_loops.main, thread_loop, memory_order_release);
    }
}

/* Frees the locks, whose holders do not exist in the child, before it touches what they guard. */
NOT_CHECKED static void after_fork_in_child(void)
{
    lock_reset(&code_objects_lock);
    trace_forget_parent();
    stalls_forget_parent();
    statistics_forget_parent();
    waker_pool_reset();
    item_locks_reset_all();
    lock_reset(&thread_loops.lock);
    list_for_each(link, &thread_loops.all) {
        lock_reset(&container_of(link, struct __CFRunLoop, registry_link)->lock);
    }
    thread_loops.generation++;
    if (atomic_load_explicit(&thread_loops.main, memory_order_relaxed) || !list_is_empty(&thread_loops.all)) {
        main_queue_abandon(); /* a loop may have used it */
    }
    if (thread_loop) {
        keep_forkers_loop(thread_loop);
    }
    retire_parents_loops(); /* with no lock left taken: a timer of one loop may be in callout on another */
    become_main();
    atomic_store_explicit(atomic_load_explicit(&thread_registry_fork_mark, memory_order_relaxed), fork_mark_set, memory_order_relaxed);
}

/*
 * Nobody took the parent's locks for this child. A loop whose lock is taken was being changed by another thread of the parent, so it may
 * be half changed: the child forgets it.
 */
NOT_CHECKED void thread_registry_begin_child(void)
{
    list_for_each_removable(link, &thread_loops.all) {
        CFRunLoopRef loop = container_of(link, struct __CFRunLoop, registry_link);

        if (loop != thread_loop && lock_is_taken(&loop->lock)) {
            list_remove(link); /* its finalizer may do so again */
        }
    }
    after_fork_in_child();
}

/*
 * When the library is loaded: a fork that another thread has begun does not see handlers that come later. The first of the library's own,
 * so that its locks are free in the child when those of ports run.
 */
static __attribute__((constructor(101))) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- making loops ---- */

static void prepare_once(void)
{
    _Atomic uint32_t *mark = kernel.fork_mark();

    (void)pthread_key_create(&thread_loops.key, end_of_thread);
    if (mark) {
        atomic_store_explicit(mark, fork_mark_set, memory_order_relaxed);
        atomic_store_explicit(&thread_registry_fork_mark, mark, memory_order_release);
    }
    trace_start_from_environment();
    stalls_watch_from_environment();
    statistics_start_from_environment();
}

void thread_registry_prepare(void)
{
    (void)pthread_once(&once, prepare_once);
}

NOT_CHECKED static CFRunLoopRef create_or_stop(bool is_main)
{
    CFRunLoopRef loop;

    thread_registry_prepare();
    loop = loop_create(is_main);
    if (!loop) {
        fault_stop("CFRunLoopGetCurrent", "there is no memory for a run loop");
    }
    loop->copy_dump = loop_copy_dump;
    return loop;
}

NOT_CHECKED static void register_locked(CFRunLoopRef loop)
{
    invariant_held(&thread_loops.lock);
    loop->generation = thread_loops.generation;
    list_append(&thread_loops.all, &loop->registry_link);
}

/* Returns the main loop. The first caller makes it: the main thread, or another one by CFRunLoopGetMain (rule 3). */
NOT_CHECKED static CFRunLoopRef main_loop_made(void)
{
    CFRunLoopRef loop = atomic_load_explicit(&thread_loops.main, memory_order_acquire);
    CFRunLoopRef made;

    if (loop) {
        return loop;
    }
    made = create_or_stop(true);
    lock_take(&thread_loops.lock);
    loop = atomic_load_explicit(&thread_loops.main, memory_order_relaxed);
    if (!loop) {
        loop = made;
        main_block = (const char *)loop - object_block_size(0);
        register_locked(loop);
        atomic_store_explicit(&thread_loops.main, loop, memory_order_release);
    }
    lock_drop(&thread_loops.lock);
    companion_meet(loop);
    if (loop != made) {
        made->is_dead = true;
        object_release(made);
    }
    return loop;
}

/*
 * Returns a loop for destructors that run after the thread's own loop has ended. It is empty, accepts nothing, and its runs finish at once.
 */
NOT_CHECKED static CFRunLoopRef loop_of_ended_thread(void)
{
    CFRunLoopRef loop = atomic_load_explicit(&ended_loop, memory_order_acquire);
    CFRunLoopRef expected = NULL;

    if (loop) {
        return loop;
    }
    loop = create_or_stop(false);
    loop->is_dead = true;
    if (!atomic_compare_exchange_strong_explicit(&ended_loop, &expected, loop, memory_order_acq_rel, memory_order_acquire)) {
        object_release(loop);
        loop = expected;
    }
    return loop;
}

CFRunLoopRef thread_registry_make(void)
{
    CFRunLoopRef loop;

    if (thread_loop_has_ended) {
        return loop_of_ended_thread();
    }
    sweep_limbo();
    if (kernel.is_main_thread()) {
        loop = main_loop_made();
    } else {
        loop = create_or_stop(false);
        lock_take(&thread_loops.lock);
        register_locked(loop);
        lock_drop(&thread_loops.lock);
        companion_meet(loop);
    }
    return thread_loop_adopt(loop);
}

CFRunLoopRef thread_registry_main(void)
{
    thread_registry_notice_fork();
    return main_loop_made();
}
