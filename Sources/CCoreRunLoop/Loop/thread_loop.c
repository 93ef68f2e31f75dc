/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of loops.
 *
 * A thread finds its loop by a thread-local pointer. A thread-specific key, whose destructor puts itself off to a late round, ends the
 * loop, so that destructors of other keys can still use it (171). The registry lock guards the list of loops, the main loop's pointer and
 * the limbo: loops that have ended while a signaller had a push onto them under way; the next loop to be made, or thread to end, sweeps it.
 */
#include "Loop/thread_loop.h"

#include <limits.h>
#include <pthread.h>

#include "Kernel/kernel.h"
#include "Loop/hosting.h"
#include "Loop/main_queue.h"
#include "Loop/source_queue.h"
#include "Loop/watch.h"
#include "Support/fault.h"

/*
 * The round of thread-specific destructors in which a loop ends: late, so that most others have run, but not the last, which runtimes
 * (sanitizers among them) use to take down what our callbacks stand on.
 */
enum { rounds_before_end = PTHREAD_DESTRUCTOR_ITERATIONS - 1 };

static struct lock registry_lock;
static struct link registry = {&registry, &registry}; /* registry lock */
static CFRunLoopRef limbo; /* registry lock */
static _Atomic(CFRunLoopRef) main_loop; /* written under the registry lock */
static _Atomic(CFRunLoopRef) ended_loop; /* what threads get that have ended their own; made once, immortal */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* Set while the thread has a loop; afterwards `has_ended`. */
__thread CFRunLoopRef thread_loop;
static __thread bool has_ended __attribute__((tls_model("initial-exec")));
/* So that other threads are asked by system calls once only. */
static __thread bool is_known_not_main __attribute__((tls_model("initial-exec")));

/* ---- the registry ---- */

void thread_loop_unregister(CFRunLoopRef loop)
{
    lock_take(&registry_lock);
    list_remove(&loop->registry_link);
    lock_drop(&registry_lock);
}

/* Takes from the limbo what no signaller holds any more. */
static void sweep_limbo(void)
{
    CFRunLoopRef swept;

    lock_take(&registry_lock);
    swept = limbo;
    limbo = NULL;
    lock_drop(&registry_lock);
    while (swept) {
        CFRunLoopRef loop = swept;
        struct slot_reap reap = {NULL};
        bool is_bound;

        swept = loop->next_limbo;
        loop_lock(loop);
        source_queue_drain(loop, &reap);
        is_bound = loop->bound_slots > 0;
        loop_unlock(loop);
        slots_release(&reap);
        if (!is_bound) {
            object_release(loop);
            continue;
        }
        lock_take(&registry_lock);
        loop->next_limbo = limbo;
        limbo = loop;
        lock_drop(&registry_lock);
    }
}

/* Drops the thread's reference, or hands it to the limbo while slots are bound. */
static void let_go(CFRunLoopRef loop)
{
    bool is_bound;

    loop_lock(loop);
    is_bound = loop->bound_slots > 0;
    loop_unlock(loop);
    if (!is_bound) {
        object_release(loop);
        return;
    }
    lock_take(&registry_lock);
    loop->next_limbo = limbo;
    limbo = loop;
    lock_drop(&registry_lock);
}

/* ---- thread exit ---- */

static void end_of_thread(void *round)
{
    CFRunLoopRef loop = thread_loop;
    uintptr_t rounds_left = (uintptr_t)round - 1;

    if (rounds_left > 0) {
        (void)pthread_setspecific(key, (void *)rounds_left); /* NOLINT(performance-no-int-to-ptr) */
        return;
    }
    if (!loop) {
        return;
    }
    if (loop->is_main) {
        loop_retire(loop, true); /* 174 */
    } else {
        loop_end(loop);
    }
    thread_loop = NULL;
    has_ended = true;
    if (!loop->is_main) {
        let_go(loop);
    }
    sweep_limbo();
}

/* ---- fork ---- */

static void before_fork(void)
{
    lock_take(&registry_lock);
    list_for_each(link, &registry) {
        loop_lock(container_of(link, struct __CFRunLoop, registry_link));
    }
    item_locks_take_all();
    mailbox_pool_lock();
}

static void after_fork_in_parent(void)
{
    mailbox_pool_unlock();
    item_locks_drop_all();
    list_for_each(link, &registry) {
        loop_unlock(container_of(link, struct __CFRunLoop, registry_link));
    }
    lock_drop(&registry_lock);
}

/* The wait sets and the eventfd are shared with the parent: the child closes its numbers and never changes what they stand for. */
static void let_go_of_descriptors(CFRunLoopRef loop)
{
    int event = atomic_load_explicit(&loop->mailbox->event, memory_order_relaxed);

    hosting_forget_descriptors(loop);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        watch_rebuild(loop, mode, true);
    }
    if (event >= 0) {
        (void)kernel.close(event);
        atomic_store_explicit(&loop->mailbox->event, -1, memory_order_relaxed);
    }
}

/* Of the thread that forked: it makes its own descriptors when it next waits. */
static void make_own(CFRunLoopRef loop)
{
    uint32_t word = atomic_load_explicit(&loop->mailbox->word, memory_order_relaxed);

    let_go_of_descriptors(loop);
    atomic_store_explicit(&loop->mailbox->word, word % wake_writer, memory_order_relaxed); /* writers do not exist here */
    sources_requeue(loop); /* queues may lack a signal whose thread is gone */
}

/* Of a thread that does not exist here. */
static void bury(CFRunLoopRef loop)
{
    let_go_of_descriptors(loop);
    atomic_store_explicit(&loop->mailbox->word, wake_idle, memory_order_relaxed);
    loop_retire(loop, false);
}

static void after_fork_in_child(void)
{
    mailbox_pool_reset();
    item_locks_reset_all();
    main_queue_abandon();
    list_for_each(link, &registry) {
        lock_reset(&container_of(link, struct __CFRunLoop, registry_link)->lock);
    }
    list_for_each(link, &registry) { /* with no lock left taken: a timer of one loop may be in callout on another */
        CFRunLoopRef loop = container_of(link, struct __CFRunLoop, registry_link);

        if (loop == thread_loop) {
            make_own(loop);
        } else {
            bury(loop);
        }
    }
    lock_reset(&registry_lock);
    /* The thread that forked is the child's main thread. */
    is_known_not_main = false;
    if (thread_loop) {
        thread_loop->is_main = true;
    }
    atomic_store_explicit(&main_loop, thread_loop, memory_order_relaxed);
}

/* ---- making loops ---- */

static void prepare_once(void)
{
    (void)pthread_key_create(&key, end_of_thread);
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void thread_loop_prepare(void)
{
    (void)pthread_once(&once, prepare_once);
}

static CFRunLoopRef create(bool is_main)
{
    CFRunLoopRef loop;

    thread_loop_prepare();
    loop = loop_create(is_main);
    if (!loop) {
        fault_stop("CFRunLoopGetCurrent", "there is no memory for a run loop");
    }
    return loop;
}

static void register_locked(CFRunLoopRef loop)
{
    list_append(&registry, &loop->registry_link);
}

/* Made once, by whoever asks first: the main thread, or another one by CFRunLoopGetMain (3). */
static CFRunLoopRef main_loop_made(void)
{
    CFRunLoopRef loop = atomic_load_explicit(&main_loop, memory_order_acquire);
    CFRunLoopRef made;

    if (loop) {
        return loop;
    }
    made = create(true);
    lock_take(&registry_lock);
    loop = atomic_load_explicit(&main_loop, memory_order_relaxed);
    if (!loop) {
        loop = made;
        register_locked(loop);
        atomic_store_explicit(&main_loop, loop, memory_order_release);
    }
    lock_drop(&registry_lock);
    if (loop != made) {
        made->is_dead = true;
        object_release(made);
    }
    return loop;
}

/* For destructors that run after ours: a loop that is empty, takes nothing and finishes at once. */
static CFRunLoopRef loop_of_ended_thread(void)
{
    CFRunLoopRef loop = atomic_load_explicit(&ended_loop, memory_order_acquire);
    CFRunLoopRef expected = NULL;

    if (loop) {
        return loop;
    }
    loop = create(false);
    loop->is_dead = true;
    if (!atomic_compare_exchange_strong_explicit(&ended_loop, &expected, loop, memory_order_acq_rel, memory_order_acquire)) {
        object_release(loop);
        loop = expected;
    }
    return loop;
}

static CFRunLoopRef adopt(CFRunLoopRef loop)
{
    thread_loop = loop;
    (void)pthread_setspecific(key, (void *)(uintptr_t)rounds_before_end);
    return loop;
}

static CFRunLoopRef make_current(void)
{
    CFRunLoopRef loop;

    if (has_ended) {
        return loop_of_ended_thread();
    }
    sweep_limbo();
    if (kernel.is_main_thread()) {
        loop = main_loop_made();
    } else {
        loop = create(false);
        lock_take(&registry_lock);
        register_locked(loop);
        lock_drop(&registry_lock);
    }
    return adopt(loop);
}

CFRunLoopRef thread_loop_current(void)
{
    return thread_loop ? thread_loop : make_current();
}

bool thread_loop_becomes_current(CFRunLoopRef loop)
{
    if (is_known_not_main || has_ended || loop != atomic_load_explicit(&main_loop, memory_order_acquire)) {
        return false;
    }
    is_known_not_main = !kernel.is_main_thread();
    return !is_known_not_main && adopt(loop) == loop; /* no more than that: the caller may hold the loop's lock */
}

CFRunLoopRef thread_loop_main(void)
{
    return main_loop_made();
}
