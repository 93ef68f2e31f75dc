/* SPDX-License-Identifier: Apache-2.0 */
/* The thread-local pointer to a thread's loop, and the list of all loops. */
#include "Loop/Core/thread_loop.h"

#include "Kernel/kernel.h"
#include "Support/invariant.h"

__thread CFRunLoopRef thread_loop;
__thread bool thread_loop_has_ended;
/* The kernel has said that this is not the main thread. It is asked again only after a fork. */
static __thread bool is_known_not_main __attribute__((tls_model("initial-exec")));

struct thread_loops thread_loops = {.all = {&thread_loops.all, &thread_loops.all}};

void thread_loop_unregister(CFRunLoopRef loop)
{
    invariant(loop->is_dead);
    lock_take(&thread_loops.lock);
    list_remove(&loop->registry_link);
    lock_drop(&thread_loops.lock);
}

CFRunLoopRef thread_loop_adopt(CFRunLoopRef loop)
{
    invariant(loop != NULL);
    invariant(!thread_loop || thread_loop == loop); /* a thread keeps its first loop */
    invariant(!thread_loop_has_ended);
    thread_loop = loop;
    atomic_store_explicit(&loop->thread, pthread_self(), memory_order_relaxed);
    /* A value other than NULL has the destructor of the key called when the thread ends. It counts the rounds until the loop's end. */
    (void)pthread_setspecific(thread_loops.key, (void *)(uintptr_t)thread_loop_rounds_before_end);
    return loop;
}

bool thread_loop_becomes_current(CFRunLoopRef loop)
{
    if (is_known_not_main || thread_loop_has_ended || loop != atomic_load_explicit(&thread_loops.main, memory_order_acquire)) {
        return false;
    }
    is_known_not_main = !kernel.is_main_thread();
    return !is_known_not_main && thread_loop_adopt(loop) == loop; /* takes no lock: the caller may hold the loop's */
}

void thread_loop_forget_not_main(void)
{
    is_known_not_main = false;
}
