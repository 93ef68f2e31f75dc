/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the lock of whichever loop an item is in. clang cannot follow a lock that depends on a value, so nothing here is checked by it. */
#include "Loop/Core/home_lock.h"

#include "Loop/Core/thread_loop.h"

/* Another thread's loop may end as soon as the item's lock is dropped. The thread's own loop cannot, and needs no reference. */
static void loop_keep_alive(CFRunLoopRef loop)
{
    if (!thread_loop_is_current(loop)) {
        object_retain(loop);
    }
}

static void loop_stop_keeping(CFRunLoopRef loop)
{
    if (!thread_loop_is_current(loop)) {
        object_release(loop);
    }
}

/*
 * The short way for an item in the calling thread's own loop: only the loop's lock is touched. An item in this loop cannot leave it while
 * the lock is held, so one look under the lock decides.
 */
NOT_CHECKED static bool lock_own_loop(const _Atomic(CFRunLoopRef) *item_loop, CFRunLoopRef own)
{
    if (!own || !thread_loop_is_current(own)) {
        return false;
    }
    loop_lock(own);
    if (atomic_load_explicit(item_loop, memory_order_relaxed) == own) {
        return true;
    }
    loop_unlock(own);
    return false;
}

NOT_CHECKED CFRunLoopRef home_lock_take(const void *item, const _Atomic(CFRunLoopRef) *item_loop)
{
    CFRunLoopRef own = atomic_load_explicit(item_loop, memory_order_relaxed);
    struct lock *lock;

    if (lock_own_loop(item_loop, own)) {
        return own;
    }
    lock = item_lock(item);
    for (;;) {
        CFRunLoopRef loop;

        lock_take(lock);
        /* Acquire: the caller sees what was done to the item before it left its loop. */
        loop = atomic_load_explicit(item_loop, memory_order_acquire);
        if (!loop) {
            return NULL;
        }
        /* A loop that ends first removes its items and then passes through their locks. So it cannot be freed before this thread has
         * dropped the item's lock, and a reference taken here is in time. */
        loop_keep_alive(loop);
        lock_drop(lock);
        loop_lock(loop);
        if (atomic_load_explicit(item_loop, memory_order_relaxed) == loop) {
            return loop;
        }
        /* The item has moved between the two locks: start over. */
        loop_unlock(loop);
        loop_stop_keeping(loop);
    }
}

NOT_CHECKED void home_lock_drop(const void *item, CFRunLoopRef loop)
{
    if (!loop) {
        invariant_held(item_lock(item));
        lock_drop(item_lock(item));
        return;
    }
    invariant_held(&loop->lock);
    loop_unlock(loop);
    loop_stop_keeping(loop);
}
