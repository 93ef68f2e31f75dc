/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining and leaving modes, callouts, and invalidation of observers. Guards are in observer.h.
 *
 * Arrays that were replaced are chained to `dropped` and freed when no lock is held, because that may release the last reference to an
 * observer, and so run a function of the program.
 */
#include "Loop/Observer/observer.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/home_lock.h"
#include "Loop/Core/run.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Observer/observer_list.h"
#include "Loop/Trace/trace.h"
#include "Support/fault.h"

static bool is_valid(const struct __CFRunLoopObserver *observer)
{
    return (atomic_load_explicit(&observer->state, memory_order_relaxed) & observer_valid) != 0;
}

/* ---- construction ---- */

static void observer_finalize(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;

    /* RELEASES_LATE is still set if a thread ended in the callout, where nothing could give the info back. */
    if (atomic_load_explicit(&observer->state, memory_order_relaxed) & (observer_valid | observer_releases_late)) {
        context_release(observer, observer->context, observer_info(observer));
    }
    free(observer->context);
}

static const struct shown_bit activity_names[] = {
    {kCFRunLoopEntry, "Entry"},
    {kCFRunLoopBeforeTimers, "BeforeTimers"},
    {kCFRunLoopBeforeSources, "BeforeSources"},
    {kCFRunLoopBeforeWaiting, "BeforeWaiting"},
    {kCFRunLoopAfterWaiting, "AfterWaiting"},
    {kCFRunLoopExit, "Exit"},
    {0, NULL},
};

static CFStringRef observer_describe(CFTypeRef object)
{
    CFRunLoopObserverRef observer = (CFRunLoopObserverRef)(uintptr_t)object;
    CFStringRef context = context_describe(observer, observer->context, observer_info(observer));
    struct shown callout;
    struct shown activities;
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopObserver %p>{valid = %s, activities = %s, repeats = %s, order = %ld, callout = %s, context = %@}"),
        object, shown_bool(is_valid(observer)),
        observer->activities == kCFRunLoopAllActivities ? "all" : shown_bits(&activities, activity_names, observer->activities),
        shown_bool(observer->repeats), (long)observer->order, shown_callout(&callout, (void (*)(void))observer->callout), context);

    if (context) {
        CFRelease(context);
    }
    return text;
}

const struct object_class observer_class = {
    .type_id = object_type_run_loop_observer,
    .name = "CFRunLoopObserver",
    .finalize = observer_finalize,
    .copy_description = observer_describe,
};

CFRunLoopObserverRef observer_create(CFAllocatorRef allocator, CFOptionFlags watched, bool repeats, CFIndex order,
                                     CFRunLoopObserverCallBack callout, const CFRunLoopObserverContext *context)
{
    CFRunLoopObserverRef observer = object_create(allocator, &observer_class, sizeof *observer);
    void *info = NULL;

    if (!observer) {
        return NULL;
    }
    if (context &&
        !context_adopt(
            &(struct context){.retain = context->retain, .release = context->release, .copy_description = context->copyDescription},
            context->info, &observer->context, &info)) {
        object_release(observer);
        return NULL;
    }
    atomic_store_explicit(&observer->context_info, info, memory_order_relaxed);
    atomic_store_explicit(&observer->state, observer_valid, memory_order_relaxed);
    observer->callout = callout;
    observer->order = order;
    observer->activities = (uint32_t)watched;
    observer->repeats = repeats;
    return observer;
}

void observer_keep_info(CFRunLoopObserverRef observer)
{
    observer->keeps_info = true;
}

/*
 * ---- membership ----
 *
 * An observer in a loop is referenced by each array that holds it, and once for being a common item. It holds no reference on the loop
 * (I3).
 */

static CFRunLoopRef loop_of(CFRunLoopObserverRef observer)
{
    return atomic_load_explicit(&observer->loop, memory_order_relaxed);
}

REQUIRES(the_item_lock) static struct observer_member *member_in(CFRunLoopObserverRef observer, const struct mode *mode)
{
    for (struct observer_member *member = observer->members; member; member = member->next) {
        if (member->mode == mode) {
            return member;
        }
    }
    return NULL;
}

/* An observer belongs to one loop at most, and to none once it is invalid. */
REQUIRES(the_loop_lock, the_item_lock) static bool may_join(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{
    return loop_is_open(loop) && is_valid(observer) && (!loop_of(observer) || loop_of(observer) == loop);
}

/* Puts the observer into the mode. Returns false if there is no memory; nothing has changed then. */
REQUIRES(the_loop_lock, the_item_lock)
static bool member_attach(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = observer->first_member.mode ? malloc(sizeof *member) : &observer->first_member;

    invariant_held(&loop->lock);
    invariant(!member_in(observer, mode));
    invariant(!loop_of(observer) || loop_of(observer) == loop);
    if (!member) {
        return false;
    }
    if (!observer_lists_add(mode, observer, dropped)) {
        if (member != &observer->first_member) {
            free(member);
        }
        return false;
    }
    member->mode = mode;
    member->next = observer->members;
    observer->members = member;
    mode->is_declared = true;
    atomic_store_explicit(&observer->loop, loop, memory_order_relaxed);
    return true;
}

REQUIRES(the_loop_lock, the_item_lock)
static void member_detach(CFRunLoopObserverRef observer, struct observer_member *member, struct observer_list **dropped)
{
    struct observer_member **place = &observer->members;

    while (*place != member) {
        invariant(*place);
        place = &(*place)->next;
    }
    *place = member->next;
    observer_lists_remove(member->mode, observer, dropped);
    if (member == &observer->first_member) {
        member->mode = NULL;
    } else {
        free(member);
    }
}

REQUIRES(the_loop_lock, the_item_lock) static void leave_loop_if_unused(CFRunLoopObserverRef observer)
{
    if (!observer->members && !observer->common) {
        atomic_store_explicit(&observer->loop, NULL, memory_order_relaxed);
    }
}

/* Puts the observer into the mode, unless it is there or may not join. */
REQUIRES(the_loop_lock)
static void join_mode(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct mode *mode, struct observer_list **dropped)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    bool has_memory = true;

    lock_take(item_lock(observer));
    if (may_join(loop, observer) && !member_in(observer, mode)) {
        has_memory = member_attach(loop, observer, mode, dropped);
    }
    lock_drop(item_lock(observer));
    if (!has_memory) {
        fault_log_once(&logged, "CFRunLoopAddObserver: there is no memory; the observer was not added");
    }
}

/* Makes the observer a common item. Without memory it is none, and nothing is said: it joins today's common modes all the same. */
REQUIRES(the_loop_lock) static void join_common(CFRunLoopRef loop, CFRunLoopObserverRef observer)
{

    lock_take(item_lock(observer));
    if (may_join(loop, observer) && !observer->common) {
        observer->common = common_item_add(&loop->common_observers, observer);
        if (observer->common) {
            object_retain(observer);
            atomic_store_explicit(&observer->loop, loop, memory_order_relaxed);
        }
    }
    lock_drop(item_lock(observer));
}

void observer_add(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    if (mode_name_means_common(loop, mode_name)) {
        join_common(loop, observer);
        for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
            join_mode(loop, observer, mode, &dropped);
        }
    } else {
        struct mode *mode = loop_is_open(loop) ? mode_create_undeclared(loop, mode_name) : NULL;

        if (mode) {
            join_mode(loop, observer, mode, &dropped);
        }
    }
    loop_unlock(loop);
    observer_lists_free(dropped);
}

REQUIRES(the_loop_lock, the_item_lock)
static void leave_mode(CFRunLoopObserverRef observer, const struct mode *mode, struct observer_list **dropped)
{
    struct observer_member *member = member_in(observer, mode);

    if (member) {
        member_detach(observer, member, dropped);
    }
}

/* Returns true if it was a common item. The caller then owns the reference for that, and releases it without locks. */
REQUIRES(the_loop_lock, the_item_lock) static bool leave_common(CFRunLoopObserverRef observer)
{
    if (!observer->common) {
        return false;
    }
    common_item_remove(observer->common);
    observer->common = NULL;
    return true;
}

/* Takes it out of the common items and of every common mode. Returns as leave_common. */
REQUIRES(the_loop_lock, the_item_lock)
static bool leave_common_modes(CFRunLoopRef loop, CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    if (!leave_common(observer)) {
        return false; /* it is no common item, so nothing happens (rule 21) */
    }
    for (struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        leave_mode(observer, mode, dropped);
    }
    return true;
}

void observer_remove(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    struct observer_list *dropped = NULL;
    bool was_common = false;

    object_retain(observer);
    loop_lock(loop);
    lock_take(item_lock(observer));
    if (loop_of(observer) == loop) {
        if (mode_name_means_common(loop, mode_name)) {
            was_common = leave_common_modes(loop, observer, &dropped);
        } else {
            leave_mode(observer, mode_find(loop, mode_name), &dropped);
        }
        leave_loop_if_unused(observer);
    }
    lock_drop(item_lock(observer));
    loop_unlock(loop);
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}

bool observer_is_in(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFStringRef mode_name)
{
    bool is_member = false;

    loop_lock(loop);
    lock_take(item_lock(observer));
    if (loop_of(observer) == loop) {
        is_member =
            mode_name_means_common(loop, mode_name) ? observer->common != NULL : member_in(observer, mode_find(loop, mode_name)) != NULL;
    }
    lock_drop(item_lock(observer));
    loop_unlock(loop);
    return is_member;
}

void observers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    struct observer_list *dropped = NULL;

    loop_lock(loop);
    list_for_each(link, &loop->common_observers) {
        join_mode(loop, (CFRunLoopObserverRef)(uintptr_t)common_item_of(link)->item, mode, &dropped);
    }
    loop_unlock(loop);
    observer_lists_free(dropped);
}

/* Takes it out of all modes and of the common items. Returns as leave_common. */
REQUIRES(the_loop_lock, the_item_lock)
static bool leave_everything(CFRunLoopObserverRef observer, struct observer_list **dropped)
{
    while (observer->members) {
        member_detach(observer, observer->members, dropped);
    }
    return leave_common(observer);
}

/* Returns any observer of the array that is still in the loop. An array may hold some that have left (has_stale). NULL if there is none. */
REQUIRES(the_loop_lock) static CFRunLoopObserverRef any_member(CFRunLoopRef loop, const struct observer_list *list)
{
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (loop_of(list->observers[i]) == loop) {
            return list->observers[i];
        }
    }
    return NULL;
}

/* Returns any observer of the loop, or NULL. */
REQUIRES(the_loop_lock) static CFRunLoopObserverRef any_observer(CFRunLoopRef loop)
{
    if (!list_is_empty(&loop->common_observers)) {
        return (CFRunLoopObserverRef)(uintptr_t)common_item_of(loop->common_observers.next)->item;
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        for (int i = 0; i < activity_count; i++) {
            CFRunLoopObserverRef observer = any_member(loop, mode->observers[i]);

            if (observer) {
                return observer;
            }
        }
    }
    return NULL;
}

/* Drops the arrays of a loop that has no observer. They hold only observers that left while there was no memory for a new array. */
REQUIRES(the_loop_lock) static void drop_arrays(CFRunLoopRef loop, struct observer_list **dropped)
{
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        for (int i = 0; i < activity_count; i++) {
            observer_list_publish(mode, i, NULL, dropped);
        }
    }
}

void observers_remove_all(CFRunLoopRef loop)
{
    CFRunLoopObserverRef observer;

    do {
        struct observer_list *dropped = NULL;
        bool was_common = false;

        loop_lock(loop);
        observer = any_observer(loop);
        if (observer) {
            object_retain(observer);
            lock_take(item_lock(observer));
            was_common = leave_everything(observer, &dropped);
            leave_loop_if_unused(observer);
            lock_drop(item_lock(observer));
        } else {
            drop_arrays(loop, &dropped);
        }
        loop_unlock(loop);
        observer_lists_free(dropped);
        if (was_common) {
            object_release(observer);
        }
        if (observer) {
            object_release(observer);
        }
    } while (observer);
}

/*
 * Decides who releases the info, after VALID was cleared from the state `old`. Returns true if this thread does so now. Returns false if
 * the callout under way does so at its end; the state then says so.
 */
static bool releases_now(CFRunLoopObserverRef observer, uint32_t old)
{
    if (!observer->keeps_info && thread_loop_is_current(atomic_load_explicit(&observer->called_on, memory_order_relaxed))) {
        return true; /* the callout itself invalidates: its info is released at once (rule 153) */
    }
    old &= ~(uint32_t)observer_valid;
    invariant(!(old & observer_releases_late)); /* VALID is cleared once, and only then may this bit be set */
    /* Acquire: if the callout has ended meanwhile, this thread releases the info that the callout has used. */
    while (old & observer_in_callout) {
        if (atomic_compare_exchange_weak_explicit(&observer->state, &old, old | observer_releases_late, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

static void observer_release_info(CFRunLoopObserverRef observer)
{
    context_release(observer, observer->context, atomic_exchange_explicit(&observer->context_info, NULL, memory_order_relaxed));
}

/*
 * Takes the lock of the loop that the observer is in, if any, and the item's lock. Returns the loop for unlock_with_loop. clang cannot
 * follow a lock that depends on a value; the attributes say what callers may rely on: an observer in no loop has nothing that the loop's
 * lock guards.
 */
NOT_CHECKED ACQUIRES(the_loop_lock, the_item_lock) static CFRunLoopRef lock_with_loop(CFRunLoopObserverRef observer)
{
    CFRunLoopRef loop = home_lock_take(observer, &observer->loop);

    if (loop) {
        lock_take(item_lock(observer));
    }
    return loop;
}

NOT_CHECKED RELEASES(the_loop_lock, the_item_lock) static void unlock_with_loop(CFRunLoopObserverRef observer, CFRunLoopRef loop)
{
    if (loop) {
        lock_drop(item_lock(observer));
    }
    home_lock_drop(observer, loop);
}

void observer_invalidate(CFRunLoopObserverRef observer)
{
    struct observer_list *dropped = NULL;
    CFRunLoopRef loop;
    uint32_t old;
    bool was_common = false;

    object_retain(observer);
    loop = lock_with_loop(observer);
    old = atomic_fetch_and_explicit(&observer->state, ~(uint32_t)observer_valid, memory_order_acq_rel);
    if (old & observer_valid) {
        invariant_held(item_lock(observer));
        was_common = leave_everything(observer, &dropped);
        leave_loop_if_unused(observer);
        invariant(!loop_of(observer)); /* no loop will choose it again */
    }
    unlock_with_loop(observer, loop);
    if ((old & observer_valid) && releases_now(observer, old)) {
        observer_release_info(observer);
    }
    observer_lists_free(dropped);
    if (was_common) {
        object_release(observer);
    }
    object_release(observer);
}

/* ---- callouts; on the loop's thread, without locks ---- */

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
        CFRunLoopObserverRef observer = list->observers[i];
        bool is_member;

        lock_take(item_lock(observer));
        is_member = member_in(observer, mode) != NULL;
        lock_drop(item_lock(observer));
        if (!is_member) {
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
