/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a mode's array, and the callouts; on the loop's thread. No lock is held during a callout. See observer_callout.h. */
#include "Loop/Observer/observer_callout.h"

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Observer/observer.h"
#include "Loop/Observer/observer_list.h"
#include "Loop/Observer/observer_membership.h"
#include "Loop/Trace/trace.h"

/*
 * Claims the callout. Returns false if the observer is invalid (rule 150) or in a callout already (rule 151): the exchange succeeds only
 * from VALID alone.
 */
static bool callout_begin(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    uint32_t old = observer_valid;

    if (!atomic_compare_exchange_strong_explicit(&observer->state, &old, observer_valid | observer_in_callout, memory_order_acq_rel,
                                                 memory_order_relaxed)) {
        return false;
    }
    invariant(!atomic_load_explicit(&observer->called_on, memory_order_relaxed)); /* only a callout under way stands there */
    atomic_store_explicit(&observer->called_on, loop, memory_order_relaxed);
    return true;
}

/* Gives the claim back. Returns true if the caller has to release the info, because the observer was invalidated meanwhile. */
static inline bool callout_end(CFRunLoopObserverRef observer)
{
    uint32_t old;

    atomic_store_explicit(&observer->called_on, NULL, memory_order_relaxed);
    old = atomic_fetch_and_explicit(&observer->state, ~(uint32_t)(observer_in_callout | observer_releases_late), memory_order_acq_rel);
    invariant(old & observer_in_callout);
    invariant((old & (observer_valid | observer_releases_late)) != (observer_valid | observer_releases_late));
    return (old & observer_releases_late) != 0;
}

/* After the callout, whether it has returned or was left. */
static inline __attribute__((always_inline)) void callout_finish(CFRunLoopObserverRef observer)
{
    if (!observer->repeats) {
        observer_invalidate(observer); /* one that does not repeat is invalid after its first callout (rule 152) */
    }
    if (callout_end(observer)) {
        observer_release_info(observer);
    }
}

static inline __attribute__((always_inline)) void observer_call(CFRunLoopRef loop, struct run *run, CFRunLoopObserverRef observer,
                                                                CFRunLoopActivity activity, bool is_traced)
{
    if (!(observer->activities & activity) || !callout_begin(loop, observer)) { /* one of no known activity stands in Entry's array */
        return;
    }
    run->callout.object = observer;
    if (observer->callout) {
        if (is_traced) {
            trace_write(trace_callout_begins, trace_observer | (uint32_t)activity << 8, (uintptr_t)observer, (uintptr_t)observer->callout);
        }
        observer->callout(observer, activity, observer_info(observer));
        if (is_traced) {
            trace_callout_end(trace_observer, observer);
        }
    }
    run->callout.object = NULL;
    callout_finish(observer);
}

void observer_end_left_callout(const void *observer)
{
    callout_finish((CFRunLoopObserverRef)(uintptr_t)observer);
}

void observers_forget_callouts(CFRunLoopRef loop)
{
    for (struct run *run = loop->innermost_run; run; run = run->outer) {
        if (run->callout.object && run->callout.function == observer_end_left_callout) {
            (void)callout_end((CFRunLoopObserverRef)(uintptr_t)run->callout.object);
            run->callout.object = NULL;
        }
    }
}

/* Takes out the observers that left during a walk, when no memory for a new array was left. Nobody walks the array any more. */
REQUIRES(the_loop_lock) static void take_out_stale(const struct mode *mode, struct observer_list *list)
{
    invariant(list->uses == 1);
    list->has_stale = false;
    for (uint32_t i = list->count; i-- > 0;) {
        if (!observer_is_member(list->observers[i], mode)) {
            observer_list_take_out(list, i);
        }
    }
}

/* The clean-up of a walk that was left: drops its use of the array. On the loop's thread, without locks. */
static void end_left_walk(const void *walked)
{
    struct observer_list *list = (struct observer_list *)(uintptr_t)walked;
    CFRunLoopRef loop = thread_loop_if_any();
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    observer_list_drop(list, &dropped);
    loop_unlock(loop);
    observer_lists_free(dropped);
}

/* Apart, so that observers cost no look at the trace each while none is on. */
static __attribute__((noinline, cold)) void call_all_traced(CFRunLoopRef loop, struct run *run, const struct observer_list *list,
                                                            CFRunLoopActivity activity)
{
    for (uint32_t i = 0; i < list->count; i++) {
        observer_call(loop, run, list->observers[i], activity, true);
    }
}

void observers_call(CFRunLoopRef loop, struct run *run, CFRunLoopActivity activity)
{
    struct observer_list *dropped = NULL;
    struct observer_list *list;
    uint32_t mark;
    int index = 0;

    while (observer_list_activities[index] != activity) {
        index++;
    }
    list = run->mode->observers[index];
    invariant_held(&loop->lock);
    invariant(list && list->uses > 0);
    list->uses++; /* from here on the array does not change, and its observers stay referenced */
    mark = cleanup_push(loop, end_left_walk, list);
    run->callout.function = observer_end_left_callout;
    loop_unlock(loop);
    if (trace_is_on()) {
        call_all_traced(loop, run, list, activity);
    } else {
        for (uint32_t i = 0; i < list->count; i++) {
            observer_call(loop, run, list->observers[i], activity, false);
        }
    }
    cleanup_pop(loop, mark);
    loop_lock(loop);
    observer_list_drop(list, &dropped);
    /* Only the mode's own use is left: the last walk does what removals could not do without memory. */
    if (list == run->mode->observers[index] && list->has_stale && list->uses == 1) {
        take_out_stale(run->mode, list);
    }
    if (dropped) {
        loop_unlock(loop);
        observer_lists_free(dropped);
        loop_lock(loop);
    }
    run_resume(loop, run);
}
