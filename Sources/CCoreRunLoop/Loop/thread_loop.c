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
static uint32_t generation; /* registry lock; counts the forks that have led here */
struct fork_mark thread_loop_fork_mark = FORK_MARK_INIT(thread_loop_fork_mark);
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

/* The wait sets and the eventfd are shared with the parent: the child closes its numbers and never changes what they stand for. L */
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
    loop_lock(loop);
    let_go_of_descriptors(loop);
    (void)atomic_fetch_and_explicit(&loop->mailbox->word, wake_writer - 1, memory_order_relaxed); /* writers do not exist here */
    sources_requeue(loop); /* queues may lack a signal whose thread is gone */
    loop_unlock(loop);
}

/* Of a thread that does not exist here. */
static void bury(CFRunLoopRef loop)
{
    loop_lock(loop);
    let_go_of_descriptors(loop);
    atomic_store_explicit(&loop->mailbox->word, wake_idle, memory_order_relaxed);
    loop_unlock(loop);
    loop_retire(loop, false);
}

/* Who held these does not exist here. Items' locks that were wiped are free; a thread of the child may have taken one since. */
static void free_locks(bool with_items)
{
    mailbox_pool_reset();
    if (with_items) {
        item_locks_reset_all();
    }
    lock_reset(&registry_lock);
}

/* Registry lock. */
static void bury_the_others(bool spares_taken)
{
    list_for_each(link, &registry) {
        CFRunLoopRef loop = container_of(link, struct __CFRunLoop, registry_link);
        bool is_parents = loop != thread_loop && loop->generation != generation;

        if (is_parents && !(spares_taken && lock_is_taken(&loop->lock))) {
            bury(loop);
        }
    }
}

/* The thread that forked is the child's main thread. Registry lock. */
static void become_main(void)
{
    CFRunLoopRef known = atomic_load_explicit(&main_loop, memory_order_relaxed);

    is_known_not_main = false;
    if (thread_loop) {
        thread_loop->is_main = true;
        thread_loop->generation = generation;
    }
    if (thread_loop || !known || known->generation != generation) {
        atomic_store_explicit(&main_loop, thread_loop, memory_order_release);
    }
}

static void after_fork_in_child(void)
{
    free_locks(true);
    list_for_each(link, &registry) {
        lock_reset(&container_of(link, struct __CFRunLoop, registry_link)->lock);
    }
    generation++;
    main_queue_abandon();
    if (thread_loop) {
        make_own(thread_loop);
    }
    bury_the_others(false); /* with no lock left taken: a timer of one loop may be in callout on another */
    become_main();
    fork_mark_renew(&thread_loop_fork_mark);
}

/*
 * The same in a child that was made without handlers, on its main thread. What threads of the parent were just changing is left as it is,
 * but for the thread's own loop. Where other threads of the child have been here already, they may have locks; and those that threads of
 * the parent had are never free again.
 */
static void take_over(bool is_alone)
{
    bool is_whole = !is_alone || !lock_is_taken(&registry_lock);

    if (is_alone) {
        free_locks(!item_locks_have(fork_mark_word(&thread_loop_fork_mark)));
    }
    lock_take(&registry_lock);
    generation++;
    main_queue_abandon();
    if (thread_loop && is_alone) {
        lock_reset(&thread_loop->lock);
    }
    if (thread_loop) {
        make_own(thread_loop);
    }
    if (is_whole) {
        bury_the_others(is_alone);
    }
    become_main();
    lock_drop(&registry_lock);
}

/* Only the thread that forked knows which loop is its own: others leave it to that one, and get loops of their own meanwhile. */
void thread_loop_disown(void)
{
    uint32_t found;

    if (!kernel.is_main_thread()) {
        (void)fork_mark_advance(&thread_loop_fork_mark, fork_mark_passed);
        fork_mark_wait(&thread_loop_fork_mark);
        return;
    }
    found = fork_mark_advance(&thread_loop_fork_mark, fork_mark_taken);
    if (found < (uint32_t)fork_mark_taken) {
        take_over(found == (uint32_t)fork_mark_wiped);
        fork_mark_renew(&thread_loop_fork_mark);
    }
}

/* ---- making loops ---- */

static void prepare_once(void)
{
    (void)pthread_key_create(&key, end_of_thread);
    fork_mark_begin(&thread_loop_fork_mark, fork_mark_of_loops);
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
    /* In a child whose main thread has not been here, the loop is none of the parent's, either. */
    loop->generation = generation + (fork_mark_is_wiped(&thread_loop_fork_mark) ? 1 : 0);
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

CFRunLoopRef thread_loop_make(void)
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
