/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait, and the order in which ready sources take turns. See watch.h. The wait runs on the loop's thread without a lock. Reports are
 * taken from the batch one by one, with the loop's lock.
 */
#include "Loop/Watch/watch.h"

#include <errno.h>

#include "Loop/Core/main_queue.h"

/* ---- the alarm ---- */

void watch_close_alarm(struct watch_set *watches)
{
    if (watches->alarm >= 0) {
        (void)kernel.close(watches->alarm);
    }
    watches->alarm = -1;
    watches->alarm_ns = 0;
}

/* Sets the alarm. Without a descriptor for one, the deadline of the wait alone has to do. */
static void set_alarm(struct watch_set *watches, int64_t deadline_ns)
{
    if (watches->alarm < 0) {
        watches->alarm = kernel.alarm_create();
        if (watches->alarm < 0 || kernel.set_add_edge(watches->set, watches->alarm, watch_token_alarm) < 0) {
            watch_close_alarm(watches);
            return;
        }
    }
    if (kernel.alarm_set(watches->alarm, deadline_ns) == 0) {
        watches->alarm_ns = deadline_ns;
    }
}

void watch_silence_alarm(struct watch_set *watches)
{
    if (watches->alarm_ns != 0) {
        (void)kernel.alarm_set(watches->alarm, kernel_never);
        watches->alarm_ns = 0;
    }
}

/* Takes the alarm out of the `count` reports, and returns how many are left. */
static int take_alarm(struct watch_set *watches, int count)
{
    int left = 0;

    for (int i = 0; i < count; i++) {
        if (watches->batch[i].token == watch_token_alarm) {
            watches->alarm_ns = 0;
        } else {
            watches->batch[left++] = watches->batch[i];
        }
    }
    return left;
}

void watch_wait(struct watch_set *watches, int64_t deadline_ns)
{
    int count;

    invariant(watches->batch_begin == watches->batch_end); /* no report may be lost */
    count = kernel.set_wait(watches->set, watches->batch, watch_batch_size, deadline_ns);

    if (watches->alarm_ns != 0 && count > 0) {
        count = take_alarm(watches, count);
    }
    if (count <= 0) {
        watches->wait_failed = count == -EBADF || count == -EINVAL;
    }
    watches->last_stale_token = watches->stale_token;
    watches->stale_token = watch_no_token;
    watches->batch_begin = 0;
    watches->batch_end = count > 0 ? (uint32_t)count : 0;
    watches->batch_is_fresh = count > 1;
    watches->posted_in_row = 0;
}

bool watch_take_resume(struct watch_set *watches)
{
    uint32_t left = watches->batch_begin;
    uint32_t end = watches->batch_end;

    for (uint32_t i = left; i < end; i++) {
        if (watches->batch[i].token != watch_token_resume) {
            watches->batch[left++] = watches->batch[i];
        }
    }
    watches->batch_end = left;
    return left < end;
}

void watch_wait_out(struct watch_set *watches, int64_t limit_ns)
{
    if (watches->alarm_ns == 0 || watches->alarm_ns > limit_ns) {
        set_alarm(watches, limit_ns);
    }
    watch_wait(watches, limit_ns);
}

/* ---- after a wait ---- */

/* Returns the watch that a report is for, or NULL if that watch is gone. */
static struct watch *watch_of_token(const struct watch_set *watches, uint64_t token)
{
    struct watch *watch = watch_find(watches, (uint32_t)token);

    return watch && watch->generation == (uint32_t)(token >> 32) ? watch : NULL;
}

/* Returns the source whose turn it may be, or NULL if the report is for no source. */
static CFRunLoopSourceRef source_of_report(const struct watch_set *watches, const struct kernel_event *event)
{
    const struct watch *watch = event->token > watch_token_resume ? watch_of_token(watches, event->token) : NULL;

    return watch && !list_is_empty(&watch->members) ? watch_source_of(watch->members.next) : NULL;
}

/* Returns true if `one` is served first: sockets before others, then by order. NULL counts as order 0. */
static bool source_is_before(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
{
    bool is_socket = one && source_is_polled_v0(one);

    return is_socket != (other && source_is_polled_v0(other)) ? is_socket : (one ? one->order : 0) < (other ? other->order : 0);
}

/* Sorts the batch by insertion: stable, and quick for a small batch that is mostly in order. */
static void sort_batch(struct watch_set *watches)
{
    for (uint32_t i = watches->batch_begin + 1; i < watches->batch_end; i++) {
        struct kernel_event event = watches->batch[i];
        CFRunLoopSourceRef source = source_of_report(watches, &event);
        uint32_t place = i;

        while (place > watches->batch_begin && source_is_before(source, source_of_report(watches, &watches->batch[place - 1]))) {
            watches->batch[place] = watches->batch[place - 1];
            place--;
        }
        watches->batch[place] = event;
    }
}

/* Finds the member whose turn it is among those that want a ready kind, and moves it behind the others. */
static inline __attribute__((always_inline)) bool turn_of(struct watch *watch, uint32_t ready, struct ready_source *ret_report)
{
    list_for_each(link, &watch->members) {
        CFRunLoopSourceRef source = watch_source_of(link);
        uint32_t interest = watch_interest_of(source);

        if (interest && (ready & (interest | kernel_failed))) {
            if (watch->members.prev != link) {
                list_remove(link);
                list_append(&watch->members, link);
            }
            ret_report->source = source;
            ret_report->ready = ready & (interest | kernel_failed | kernel_details);
            return true;
        }
    }
    return false;
}

/*
 * Finds a member that wants the report as a change, where no member wants the readiness itself. The interest is computed again in any case:
 * a re-arm that was deferred did not come, so the loop stops watching for that kind.
 */
REQUIRES(the_loop_lock)
static __attribute__((noinline)) bool take_change(CFRunLoopRef loop, struct mode *mode, struct watch *watch, uint32_t ready,
                                                  struct ready_source *ret_report)
{
    bool is_taken = false;

    list_for_each(link, &watch->members) {
        CFRunLoopSourceRef source = watch_source_of(link);
        uint32_t changes = watch_changes_of(source);

        if (changes && (ready & (changes | kernel_failed))) {
            list_remove(link);
            list_append(&watch->members, link);
            ret_report->source = source;
            ret_report->ready = ready & (changes | kernel_failed | kernel_details);
            is_taken = true;
            break;
        }
    }
    watch_recompute(loop, mode, watch);
    return is_taken;
}

/* Finds a member that wants the readiness, or else one that wants it as a change. */
REQUIRES(the_loop_lock)
static bool take_turn(CFRunLoopRef loop, struct mode *mode, struct watch *watch, uint32_t ready, struct ready_source *ret_report)
{
    return turn_of(watch, ready, ret_report) || take_change(loop, mode, watch, ready, ret_report);
}

/* Prefetches the watch of the next report, and the table's entry of the one after it, while this report's callback runs. */
static inline __attribute__((always_inline)) void prefetch_next_reports(const struct watch_set *watches)
{
    uint32_t next = watches->batch_begin;

    if (next + 1 < watches->batch_end && (uint32_t)watches->batch[next + 1].token < watches->capacity) {
        __builtin_prefetch(&watches->table[(uint32_t)watches->batch[next + 1].token]);
    }
    if (next < watches->batch_end) {
        __builtin_prefetch(watch_find(watches, (uint32_t)watches->batch[next].token));
    }
}

/*
 * Returns true if two waits in a row had the same stale report. A watch that has just gone is stale once. A report that comes again is for
 * a file that was closed under its number and is still open elsewhere. Epoll cannot remove it; only a new set is free of it.
 */
static bool must_rebuild(const struct watch_set *watches)
{
    return watches->stale_token != watch_no_token && watches->stale_token == watches->last_stale_token;
}

static void begin_batch(struct watch_set *watches)
{
    watches->batch_is_fresh = false;
    if (watches->sorts) {
        sort_batch(watches);
    }
}

bool watch_batch_begins_with_socket(struct watch_set *watches)
{
    CFRunLoopSourceRef source = NULL;

    if (watches->batch_is_fresh) {
        begin_batch(watches);
    }
    for (uint32_t i = watches->batch_begin; i < watches->batch_end && !source; i++) {
        source = source_of_report(watches, &watches->batch[i]);
    }
    return source && source_is_polled_v0(source);
}

/* Takes the next report of the batch that is for somebody. Always inline: most reports are taken here. */
REQUIRES(the_loop_lock)
static inline __attribute__((always_inline)) enum wake_cause next_of_batch(CFRunLoopRef loop, struct mode *mode,
                                                                           struct ready_source *ret_report)
{
    struct watch_set *watches = mode->watches;
    enum wake_cause cause = cause_none;

    if (watches->batch_is_fresh) {
        begin_batch(watches);
    }
    invariant_held(&loop->lock);
    invariant(watches->batch_begin <= watches->batch_end && watches->batch_end <= watch_batch_size);
    while (watches->batch_begin != watches->batch_end && cause == cause_none) {
        struct kernel_event event = watches->batch[watches->batch_begin++];
        struct watch *watch;

        prefetch_next_reports(watches);
        watch = watch_of_token(watches, event.token);
        if (watch && watch->standing == watch_installed) {
            if (turn_of(watch, event.ready, ret_report)) {
                ret_report->ready |= watch_still_installed;
                cause = cause_source;
            } else if (take_change(loop, mode, watch, event.ready, ret_report)) {
                cause = cause_source;
            }
        } else if (event.token == watch_token_main_queue) {
            cause = cause_main_queue;
        } else if (event.token > watch_token_resume && event.token < watches->stale_token) {
            watches->stale_token = event.token;
        }
    }
    if (watches->batch_begin == watches->batch_end && must_rebuild(watches)) {
        watch_rebuild(loop, mode, true);
    }
    return cause;
}

static bool wants_failure(const struct watch *watch)
{
    return !list_is_empty(&watch->members) && source_kind(watch_source_of(watch->members.next)) == source_with_descriptor;
}

REQUIRES(the_loop_lock) static bool next_always_ready(CFRunLoopRef loop, struct mode *mode, struct ready_source *ret_report)
{
    struct watch_set *watches = mode->watches;
    bool is_taken = false;

    while (!list_is_empty(&watches->always_ready) && !is_taken) {
        struct link *link = watches->always_ready.next;
        struct watch *watch = container_of(link, struct watch, ready_link);

        invariant(watch->standing == watch_always_ready || watch->standing == watch_gone);
        list_remove(link);
        if (watch->standing == watch_always_ready) {
            is_taken = take_turn(loop, mode, watch, watch_kinds_of(watch) & ~(uint32_t)kernel_priority, ret_report);
            if (is_taken) {
                list_append(&watches->always_ready, link);
            }
        } else if (wants_failure(watch)) {
            is_taken = take_turn(loop, mode, watch, kernel_failed, ret_report);
        }
    }
    return is_taken;
}

/* Returns a member that is posted and wanted, or NULL; and whether there is another one. */
static CFRunLoopSourceRef posted_member(const struct watch *watch, bool *ret_has_another)
{
    CFRunLoopSourceRef found = NULL;

    *ret_has_another = false;
    list_for_each(link, &watch->members) {
        CFRunLoopSourceRef source = watch_source_of(link);

        if (watch_interest_of(source) && atomic_load_explicit(&source_descriptor_part(source)->is_posted, memory_order_relaxed)) {
            *ret_has_another = found != NULL;
            found = found ? found : source;
        }
        if (*ret_has_another) {
            break;
        }
    }
    return found; /* NULL: another loop has taken the post */
}

bool watch_posts_socket(const struct mode *mode)
{
    bool has_another;
    CFRunLoopSourceRef source = NULL;

    if (mode->watches && !list_is_empty(&mode->watches->posted)) {
        source = posted_member(container_of(mode->watches->posted.next, struct watch, posted_link), &has_another);
    }
    return source && source_is_polled_v0(source);
}

static bool next_posted(struct watch_set *watches, struct ready_source *ret_report)
{
    while (!list_is_empty(&watches->posted)) {
        struct watch *watch = container_of(watches->posted.next, struct watch, posted_link);
        bool has_another;
        CFRunLoopSourceRef source = posted_member(watch, &has_another);

        list_remove(&watch->posted_link);
        if (has_another) {
            list_append(&watches->posted, &watch->posted_link);
        }
        if (source) {
            watches->posted_in_row++;
            ret_report->source = source;
            ret_report->ready = watch_posted;
            return true;
        }
    }
    return false;
}

/* Polls a descriptor that the kernel does not watch. Waiting in a wait set consumes its reports: things in it may stay ready. */
static uint32_t ready_of(const struct watch *watch)
{
    struct kernel_event event;
    uint32_t ready;

    if (watch->is_set) {
        return kernel.set_wait(watch->descriptor, &event, 1, 0) > 0 ? kernel_readable : 0;
    }
    ready = kernel.descriptor_ready(watch->descriptor, watch_kinds_of(watch));
    return watch_is_for_changes(watch) && (ready & (kernel_failed | kernel_error)) == kernel_failed ? 0 : ready;
}

REQUIRES(the_loop_lock) static bool next_refused(CFRunLoopRef loop, struct mode *mode, struct ready_source *ret_report)
{
    struct watch_set *watches = mode->watches;

    list_for_each_removable(link, &watches->refused) {
        struct watch *watch = container_of(link, struct watch, ready_link);
        uint32_t ready = ready_of(watch);

        invariant(watch->standing == watch_refused);

        if (ready && take_turn(loop, mode, watch, ready, ret_report)) {
            list_remove(link);
            list_append(&watches->refused, link);
            watches->retry_ns = watch_retry_first_ns;
            return true;
        }
    }
    return false;
}

int64_t watch_next_retry_ns(struct mode *mode)
{
    struct watch_set *watches = mode->watches;
    int64_t result = watches && watches->retry_ns > 0 ? watches->retry_ns : watch_retry_ns;

    if (watches) {
        watches->retry_ns = result < watch_retry_ns / 2 ? 2 * result : watch_retry_ns;
    }
    return result;
}

/* Takes a report: posts and watches that are always ready come first, then the batch, then refused watches. */
REQUIRES(the_loop_lock)
static __attribute__((noinline)) enum wake_cause next_of_others(CFRunLoopRef loop, struct mode *mode, struct ready_source *ret_report)
{
    struct watch_set *watches = mode->watches;
    enum wake_cause cause;

    if (next_posted(watches, ret_report) || next_always_ready(loop, mode, ret_report)) {
        return cause_source;
    }
    cause = next_of_batch(loop, mode, ret_report);
    if (cause == cause_none && next_refused(loop, mode, ret_report)) {
        return cause_source;
    }
    return cause == cause_none && mode->lacks_main_queue && main_queue_is_ready() ? cause_main_queue : cause;
}

enum wake_cause watch_next(CFRunLoopRef loop, struct mode *mode, struct ready_source *ret_report)
{
    struct watch_set *watches = mode->watches;
    enum wake_cause cause = cause_none;

    if (!watches) {
        return mode->lacks_main_queue && main_queue_is_ready() ? cause_main_queue : cause_none;
    }
    watches->prefers_kernel = !watches->prefers_kernel;
    if (watches->prefers_kernel || (list_is_empty(&watches->posted) && list_is_empty(&watches->always_ready))) {
        cause = next_of_batch(loop, mode, ret_report);
    }
    return cause == cause_none ? next_of_others(loop, mode, ret_report) : cause;
}

void watch_recheck(struct mode *mode, CFRunLoopSourceRef source)
{
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)source_descriptor_part(source)->descriptor) : NULL;

    if (watch) {
        watch->must_recheck = true;
        if (!link_is_linked(&watch->dirty_link)) {
            list_append(&mode->watches->dirty, &watch->dirty_link);
        }
    }
}
