/* SPDX-License-Identifier: Apache-2.0 */
/* The mechanics of timers; states and guards are in timer.h. Timers never touch the kernel: the pass asks for the limit and passes it to
 * its wait. */
#include "Loop/timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/instant.h"
#include "Loop/thread_loop.h"
#include "Support/fault.h"

/* A due timer in the snapshot of a pass. */
struct timer_entry {
    CFRunLoopTimerRef timer; /* with a reference */
    int64_t key;
    uint64_t sequence; /* of the date that is due */
};

/* What one pass has found due; on its stack. Every timer stays in its heaps until its turn, so that a nested run meets it there. */
struct timer_batch {
    struct timer_entry *entries;
    uint32_t count;
    uint32_t capacity;
    struct timer_entry first_entries[8];
};

/* ---- construction ---- */

static void finalize(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;

    if (timer->is_valid) {
        item_context_release(timer->context, timer->context_info);
    }
    free(timer->context);
}

static CFStringRef describe(CFTypeRef object)
{
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)(uintptr_t)object;
    CFStringRef context = item_context_describe(timer->context, timer->context_info);
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFRunLoopTimer %p>{valid = %s, interval = %g, next fire date = %f, order = %ld, callout = %p, context = %@}"),
        object, timer->is_valid ? "Yes" : "No", timer->interval, timer_date(timer), (long)timer->order, (void *)(uintptr_t)timer->callout,
        context);

    if (context) {
        CFRelease(context);
    }
    return text;
}

const struct object_class timer_class = {
    .type_id = object_type_run_loop_timer,
    .name = "CFRunLoopTimer",
    .finalize = finalize,
    .copy_description = describe,
};

static CFTimeInterval checked_interval(CFTimeInterval interval)
{
    static atomic_flag logged_nan = ATOMIC_FLAG_INIT;
    static atomic_flag logged_tiny = ATOMIC_FLAG_INIT;

    if (isnan(interval)) {
        fault_log_once(&logged_nan, "CFRunLoopTimerCreate: the interval is not a number; the timer fires once");
        return 0.0;
    }
    if (interval <= 0.0) {
        return 0.0;
    }
    if (interval < 1e-9) {
        fault_log_once(&logged_tiny, "CFRunLoopTimerCreate: the interval is below a nanosecond; it becomes one nanosecond");
        return 1e-9;
    }
    return interval;
}

static void set_date_fields(CFRunLoopTimerRef timer, CFAbsoluteTime date)
{
    timer->fire_ns = instant_of_date(date, kernel.monotonic_ns());
    timer->date = date > INSTANT_LATEST_DATE ? INSTANT_LATEST_DATE : date;
}

CFRunLoopTimerRef timer_create(CFAllocatorRef allocator, CFAbsoluteTime date, CFTimeInterval interval, CFIndex order,
                               CFRunLoopTimerCallBack callout, const CFRunLoopTimerContext *context)
{
    CFRunLoopTimerRef timer = object_create(allocator, &timer_class, sizeof *timer);

    if (!timer) {
        return NULL;
    }
    if (context && !item_context_adopt(&(struct item_context){context->retain, context->release, context->copyDescription}, context->info,
                                       &timer->context, &timer->context_info)) {
        object_release(timer);
        return NULL;
    }
    timer->is_valid = true;
    timer->callout = callout;
    timer->interval = checked_interval(interval);
    timer->order = order;
    set_date_fields(timer, date);
    return timer;
}

/* ---- membership; L and I ---- */

static CFRunLoopRef loop_of(CFRunLoopTimerRef timer)
{
    return atomic_load_explicit(&timer->loop, memory_order_relaxed);
}

static struct timer_member *member_in(CFRunLoopTimerRef timer, const struct mode *mode)
{
    for (struct timer_member *member = timer->members; member; member = member->next) {
        if (member->mode == mode) {
            return member;
        }
    }
    return NULL;
}

/* A sleeper that would wake later than this mode now allows is told. L. */
static void notice_earlier(CFRunLoopRef loop, const struct mode *mode)
{
    if (mode_is_waited_on(loop, mode) && timers_limit(mode) < loop->armed_ns) {
        mailbox_retime(loop->mailbox);
    }
}

static struct timer_member *member_create(CFRunLoopTimerRef timer)
{
    struct timer_member *member = timer->first_member.timer ? calloc(1, sizeof *member) : &timer->first_member;

    if (member) {
        heap_node_init(&member->node);
    }
    return member;
}

static void member_destroy(CFRunLoopTimerRef timer, struct timer_member *member)
{
    if (member == &timer->first_member) {
        member->timer = NULL;
    } else {
        free(member);
    }
}

static void enter_loop(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!loop_of(timer)) {
        object_retain(timer);
        atomic_store_explicit(&timer->loop, loop, memory_order_relaxed);
    }
}

/* True if the loop's reference is to be dropped, once the locks are. */
static bool leave_loop_if_unused(CFRunLoopTimerRef timer)
{
    if (timer->members || timer->common || !loop_of(timer)) {
        return false;
    }
    atomic_store_explicit(&timer->loop, NULL, memory_order_relaxed);
    return true;
}

static void attach(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode, struct timer_member *member)
{
    member->timer = timer;
    member->mode = mode;
    member->node.sequence = timer->members ? timer->members->node.sequence : loop->next_sequence++;
    member->next = timer->members;
    timer->members = member;
    mode->timer_count++;
    mode->tolerant_count += timer->tolerance > 0;
    enter_loop(loop, timer);
    if (!timer->firing_on) {
        heap_push(&mode->timers, &member->node, timer->fire_ns);
        notice_earlier(loop, mode);
    }
}

static void detach(CFRunLoopTimerRef timer, struct timer_member *member)
{
    struct timer_member **place = &timer->members;

    while (*place != member) {
        place = &(*place)->next;
    }
    *place = member->next;
    if (heap_contains(&member->node)) {
        heap_remove(&member->mode->timers, &member->node);
    }
    member->mode->timer_count--;
    member->mode->tolerant_count -= timer->tolerance > 0;
    member_destroy(timer, member);
}

static void log_no_memory(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    fault_log_once(&logged, "CFRunLoopAddTimer: there is no memory; the timer was not added");
}

/* ---- adding and removing ---- */

static bool may_join(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    return !loop->is_dead && timer->is_valid && (!loop_of(timer) || loop_of(timer) == loop);
}

static void join_mode(CFRunLoopRef loop, CFRunLoopTimerRef timer, struct mode *mode)
{
    struct lock *lock = item_lock(timer);
    bool no_memory = false;

    lock_take(lock);
    if (may_join(loop, timer) && !member_in(timer, mode)) {
        struct timer_member *member = heap_reserve(&mode->timers, mode->timer_count + 1) ? member_create(timer) : NULL;

        no_memory = !member;
        if (member) {
            mode->is_declared = true;
            attach(loop, timer, mode, member);
        }
    }
    lock_drop(lock);
    if (no_memory) {
        log_no_memory();
    }
}

static void join_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    struct lock *lock = item_lock(timer);

    lock_take(lock);
    if (may_join(loop, timer) && !timer->common) {
        timer->common = common_item_add(&loop->common_timers, timer);
        if (timer->common) {
            enter_loop(loop, timer);
        }
    }
    lock_drop(lock);
}

void timer_add(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    loop_lock(loop);
    if (mode_name_is_common(mode_name)) {
        join_common(loop, timer);
        for (struct mode *mode = loop->modes; mode; mode = mode->next) {
            if (mode->is_common) {
                join_mode(loop, timer, mode);
            }
        }
    } else {
        struct mode *mode = loop->is_dead ? NULL : mode_declare(loop, mode_name);

        if (mode) {
            join_mode(loop, timer, mode);
        }
    }
    loop_unlock(loop);
}

/* Takes the timer out of `mode`. L and I. */
static void leave_mode(CFRunLoopTimerRef timer, const struct mode *mode)
{
    struct timer_member *member = member_in(timer, mode);

    if (member) {
        detach(timer, member);
    }
}

static void leave_common(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    if (!timer->common) {
        return; /* 21 */
    }
    common_item_remove(timer->common);
    timer->common = NULL;
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->is_common) {
            leave_mode(timer, mode);
        }
    }
}

void timer_remove(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    struct lock *lock = item_lock(timer);
    bool has_left = false;

    loop_lock(loop);
    lock_take(lock);
    if (loop_of(timer) == loop) {
        if (mode_name_is_common(mode_name)) {
            leave_common(loop, timer);
        } else {
            leave_mode(timer, mode_find(loop, mode_name));
        }
        has_left = leave_loop_if_unused(timer);
    }
    lock_drop(lock);
    loop_unlock(loop);
    if (has_left) {
        object_release(timer);
    }
}

bool timer_is_in(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFStringRef mode_name)
{
    struct lock *lock = item_lock(timer);
    bool is_member = false;

    loop_lock(loop);
    lock_take(lock);
    if (loop_of(timer) == loop) {
        is_member = mode_name_is_common(mode_name) ? timer->common != NULL : member_in(timer, mode_find(loop, mode_name)) != NULL;
    }
    lock_drop(lock);
    loop_unlock(loop);
    return is_member;
}

void timers_join_common_mode(CFRunLoopRef loop, struct mode *mode)
{
    loop_lock(loop);
    list_for_each(link, &loop->common_timers) {
        join_mode(loop, (CFRunLoopTimerRef)(uintptr_t)common_item_of(link)->item, mode);
    }
    loop_unlock(loop);
}

/* Takes it out of everything. True if the loop's reference is to be dropped. L and I. */
static bool leave_everything(CFRunLoopTimerRef timer)
{
    while (timer->members) {
        detach(timer, timer->members);
    }
    if (timer->common) {
        common_item_remove(timer->common);
        timer->common = NULL;
    }
    return leave_loop_if_unused(timer);
}

/* Any timer of the loop, L. */
static CFRunLoopTimerRef any_timer(CFRunLoopRef loop)
{
    if (!list_is_empty(&loop->common_timers)) {
        return (CFRunLoopTimerRef)(uintptr_t)common_item_of(loop->common_timers.next)->item;
    }
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer->firing_outer) {
        if (loop_of(timer) == loop) {
            return timer; /* the thread ends in its callout */
        }
    }
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->timers.count > 0) {
            uint32_t last = mode->timers.count - 1; /* the cheapest to take out of a heap */

            return container_of(mode->timers.entries[last].node, struct timer_member, node)->timer;
        }
    }
    return NULL;
}

void timers_remove_all(CFRunLoopRef loop)
{
    for (;;) {
        CFRunLoopTimerRef timer;
        bool has_left = false;

        loop_lock(loop);
        timer = any_timer(loop);
        if (timer) {
            lock_take(item_lock(timer));
            has_left = leave_everything(timer);
            lock_drop(item_lock(timer));
        }
        loop_unlock(loop);
        if (!timer) {
            return;
        }
        if (has_left) {
            object_release(timer);
        }
    }
}

/* ---- dates ---- */

/* Puts a new date into every heap, and the timer too if it was in callout. L and I. */
static void reschedule(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    uint64_t sequence = loop->next_sequence++;

    for (struct timer_member *member = timer->members; member; member = member->next) {
        bool was_in_heap = heap_contains(&member->node);

        member->node.sequence = sequence;
        if (was_in_heap) {
            heap_change_key(&member->mode->timers, &member->node, timer->fire_ns);
        } else {
            heap_push(&member->mode->timers, &member->node, timer->fire_ns);
        }
        notice_earlier(loop, member->mode);
    }
}

void timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date)
{
    CFRunLoopRef loop = item_lock_with_loop(timer, &timer->loop);

    if (timer->is_valid) {
        set_date_fields(timer, date);
        if (timer->firing_on) {
            timer->is_redated = true; /* takes effect when the callout has returned (126) */
        } else if (loop) {
            reschedule(loop, timer);
        }
    }
    item_unlock_with_loop(timer, loop);
}

CFAbsoluteTime timer_date(CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = item_lock_with_loop(timer, &timer->loop);
    CFAbsoluteTime date = timer->is_valid ? timer->date : 0.0;

    item_unlock_with_loop(timer, loop);
    return date;
}

void timer_set_tolerance(CFRunLoopTimerRef timer, CFTimeInterval tolerance)
{
    CFRunLoopRef loop;
    double limit = timer->interval > 0 ? timer->interval / 2 : INSTANT_LONGEST_SECONDS;
    double clamped = tolerance > 0 ? fmin(tolerance, limit) : 0.0; /* NaN too */

    loop = item_lock_with_loop(timer, &timer->loop);
    for (struct timer_member *member = timer->members; member; member = member->next) {
        member->mode->tolerant_count += clamped > 0;
        member->mode->tolerant_count -= timer->tolerance > 0;
    }
    timer->tolerance = clamped;
    for (struct timer_member *member = timer->members; member; member = member->next) {
        notice_earlier(loop, member->mode);
    }
    item_unlock_with_loop(timer, loop);
}

static CFRunLoopTimerRef timer_of_entry(const struct heap_entry *entry)
{
    return container_of(entry->node, struct timer_member, node)->timer;
}

static int64_t limit_of_entry(const struct heap_entry *entry)
{
    CFRunLoopTimerRef timer = timer_of_entry(entry);

    return timer->tolerance > 0 ? instant_add(entry->key, instant_interval_ns(timer->tolerance)) : entry->key;
}

int64_t timers_limit(const struct mode *mode)
{
    enum { most_nodes = 32 };
    const struct heap *heap = &mode->timers;
    uint32_t open[most_nodes * heap_arity + 1];
    uint32_t open_count = 0;
    int64_t best = kernel_never;

    if (heap->count == 0) {
        return kernel_never;
    }
    if (mode->tolerant_count == 0) {
        return heap->entries[0].key;
    }
    /* The earliest of (date + tolerance). A node later than the best limit so far cannot lower it, nor can what stands below it. */
    open[open_count++] = 0;
    for (uint32_t visited = 0; open_count > 0; visited++) {
        uint32_t index = open[--open_count];
        const struct heap_entry *entry = &heap->entries[index];
        uint64_t child = (uint64_t)index * heap_arity + 1;

        if (entry->key >= best) {
            continue;
        }
        if (visited >= most_nodes) {
            best = entry->key; /* unexplored: its bare date is a safe bound for all below it */
            continue;
        }
        best = limit_of_entry(entry) < best ? limit_of_entry(entry) : best;
        for (uint32_t i = 0; i < heap_arity && child + i < heap->count; i++) {
            open[open_count++] = (uint32_t)child + i;
        }
    }
    return best;
}

/* ---- firing ---- */

static bool batch_append(struct timer_batch *batch, const struct heap_entry *due)
{
    CFRunLoopTimerRef timer = timer_of_entry(due);

    if (batch->count == batch->capacity) {
        struct timer_entry *grown = malloc((size_t)batch->capacity * 2 * sizeof *grown);

        if (!grown) {
            return false; /* the rest stays due */
        }
        memcpy(grown, batch->entries, batch->count * sizeof *grown);
        if (batch->entries != batch->first_entries) {
            free(batch->entries);
        }
        batch->entries = grown;
        batch->capacity *= 2;
    }
    object_retain(timer);
    batch->entries[batch->count++] = (struct timer_entry){timer, due->key, due->node->sequence};
    return true;
}

/* All that is due below and at `index`: what is not due has nothing due below it. */
static bool batch_collect(struct timer_batch *batch, const struct heap *heap, uint64_t index, int64_t now_ns)
{
    uint64_t child = index * heap_arity + 1;

    if (index >= heap->count || heap->entries[index].key > now_ns) {
        return true;
    }
    if (!batch_append(batch, &heap->entries[index])) {
        return false;
    }
    for (uint64_t i = 0; i < heap_arity; i++) {
        if (!batch_collect(batch, heap, child + i, now_ns)) {
            return false;
        }
    }
    return true;
}

static int compare_entries(const void *one, const void *other)
{
    const struct timer_entry *first = one;
    const struct timer_entry *second = other;

    if (first->key != second->key) {
        return first->key < second->key ? -1 : 1;
    }
    return first->sequence < second->sequence ? -1 : first->sequence > second->sequence;
}

/* The entry still stands for a date to be fired, in this loop and mode (132). L and I. */
static bool may_fire(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry)
{
    CFRunLoopTimerRef timer = entry->timer;
    const struct timer_member *member = timer->is_valid && loop_of(timer) == loop && !timer->firing_on ? member_in(timer, mode) : NULL;

    return member && member->node.sequence == entry->sequence;
}

static bool begin_firing(CFRunLoopRef loop, const struct mode *mode, const struct timer_entry *entry)
{
    CFRunLoopTimerRef timer = entry->timer;
    struct lock *lock = item_lock(timer);
    bool fires;

    lock_take(lock);
    fires = may_fire(loop, mode, entry);
    if (fires) {
        for (struct timer_member *member = timer->members; member; member = member->next) {
            heap_remove(&member->mode->timers, &member->node);
        }
        timer->firing_on = loop;
        timer->firing_outer = loop->firing;
        timer->is_redated = false;
        loop->firing = timer;
    }
    lock_drop(lock);
    return fires;
}

/* The first date of the series that is strictly later than now (118), by division (120). */
static void advance_date(CFRunLoopTimerRef timer)
{
    int64_t interval_ns = instant_interval_ns(timer->interval);
    int64_t now_ns = kernel.monotonic_ns();
    int64_t periods = now_ns > timer->fire_ns ? (now_ns - timer->fire_ns) / interval_ns + 1 : 1;

    timer->fire_ns = periods > INT64_MAX / interval_ns ? kernel_never : instant_add(timer->fire_ns, periods * interval_ns);
    timer->date = date_of_instant(timer->fire_ns, now_ns);
}

/* Takes the timer from the loop's callouts. Returns the loop that it is in, locked with it: not always the one it fired on, for the callout
 * may have moved it. */
static CFRunLoopRef lock_after_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = item_lock_with_loop(timer, &timer->loop);

    if (loop != fired_on) {
        item_unlock_with_loop(timer, loop);
        loop_lock(fired_on);
        fired_on->firing = timer->firing_outer;
        loop_unlock(fired_on);
        return item_lock_with_loop(timer, &timer->loop);
    }
    fired_on->firing = timer->firing_outer;
    return loop;
}

/* What is left to do once the locks are dropped. */
struct farewell {
    bool releases_info;
    bool has_left_loop;
    void *info;
};

/* Makes the timer invalid; its info is released by the caller, or by the callout that is under way on another thread. L and I. */
static struct farewell invalidate(CFRunLoopTimerRef timer)
{
    struct farewell farewell = {.info = timer->context_info};

    timer->is_valid = false;
    farewell.has_left_loop = leave_everything(timer);
    /* On another thread the callout may still be about to retain the info: it releases it when it has ended. */
    timer->releases_late = timer->firing_on && !thread_loop_is_current(timer->firing_on);
    farewell.releases_info = !timer->releases_late;
    if (farewell.releases_info) {
        timer->context_info = NULL;
    }
    return farewell;
}

static void bid_farewell(CFRunLoopTimerRef timer, const struct farewell *farewell)
{
    if (farewell->releases_info) {
        item_context_release(timer->context, farewell->info);
    }
    if (farewell->has_left_loop) {
        object_release(timer);
    }
}

void timer_invalidate(CFRunLoopTimerRef timer)
{
    struct farewell farewell = {.releases_info = false};
    CFRunLoopRef loop;

    object_retain(timer);
    loop = item_lock_with_loop(timer, &timer->loop);
    if (timer->is_valid) {
        farewell = invalidate(timer);
    }
    item_unlock_with_loop(timer, loop);
    bid_farewell(timer, &farewell);
    object_release(timer);
}

/* Its next date, or its end if it fires once (118, 124). L and I. */
static struct farewell settle_after_firing(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    struct farewell farewell = {.releases_info = timer->releases_late, .info = timer->context_info};

    timer->firing_on = NULL;
    timer->releases_late = false;
    if (farewell.releases_info) {
        timer->context_info = NULL;
    }
    if (!timer->is_valid) {
        return farewell;
    }
    if (timer->interval == 0) {
        return invalidate(timer);
    }
    if (!timer->is_redated) {
        advance_date(timer);
    }
    if (loop) {
        reschedule(loop, timer);
    }
    return farewell;
}

static void end_firing(CFRunLoopRef fired_on, CFRunLoopTimerRef timer)
{
    CFRunLoopRef loop = lock_after_firing(fired_on, timer);
    struct farewell farewell = settle_after_firing(loop, timer);

    item_unlock_with_loop(timer, loop);
    bid_farewell(timer, &farewell);
}

/* One callout, bracketed by the context's retain and release (135). No lock is held. */
static void call_out(CFRunLoopRef loop, CFRunLoopTimerRef timer)
{
    const struct item_context *context = timer->context;
    void *info =
        timer->context_info; /* still ours: an invalidation from now on leaves its release to end_firing, or is made by this thread */

    if (context && context->retain) {
        info = (void *)(uintptr_t)context->retain(info);
    }
    if (timer->callout) {
        timer->callout(timer, info);
    }
    end_firing(loop, timer);
    if (context && context->retain && context->release) {
        context->release(info);
    }
}

void timers_fire(CFRunLoopRef loop, struct mode *mode, int64_t now_ns)
{
    struct timer_batch batch = {.capacity = sizeof batch.first_entries / sizeof batch.first_entries[0]};

    batch.entries = batch.first_entries;
    (void)batch_collect(&batch, &mode->timers, 0, now_ns);
    if (batch.count > 1) {
        qsort(batch.entries, batch.count, sizeof batch.entries[0], compare_entries);
    }
    for (uint32_t i = 0; i < batch.count; i++) {
        const struct timer_entry *entry = &batch.entries[i];
        bool fires = begin_firing(loop, mode, entry);

        loop_unlock(loop);
        if (fires) {
            call_out(loop, entry->timer);
        }
        object_release(entry->timer);
        loop_lock(loop);
    }
    if (batch.entries != batch.first_entries) {
        free(batch.entries);
    }
}

CFAbsoluteTime timers_next_date(CFRunLoopRef loop, const struct mode *mode)
{
    CFAbsoluteTime earliest = mode->timers.count > 0 ? timer_of_entry(&mode->timers.entries[0])->date : 0.0;

    /* A timer in callout counts with the date that has come (123). */
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer->firing_outer) {
        struct lock *lock = item_lock(timer);

        lock_take(lock);
        if (timer->is_valid && loop_of(timer) == loop && member_in(timer, mode) && (earliest == 0.0 || timer->date < earliest)) {
            earliest = timer->date;
        }
        lock_drop(lock);
    }
    return earliest;
}
