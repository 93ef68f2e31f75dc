/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for watches, and whose turn it is among those that are ready. See watch.h. */
#include "Loop/watch.h"

#include <errno.h>

#include "Loop/main_queue.h"

/* ---- the alarm ---- */

void watch_close_alarm(struct watch_set *watches)
{
    if (watches->alarm >= 0) {
        (void)kernel.close(watches->alarm);
    }
    watches->alarm = -1;
    watches->alarm_ns = 0;
    watches->early_ends = 0;
}

/* Without the means for one, the limits go on being told. */
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

void watch_note_early_end(struct watch_set *watches, int64_t now_ns, int64_t limit_ns)
{
    if (limit_ns == kernel_never || limit_ns - now_ns < watch_alarm_least_ns || watch_has_alarm_before(watches, limit_ns)) {
        return;
    }
    if (++watches->early_ends >= watch_alarm_after) {
        watches->early_ends = 0;
        set_alarm(watches, limit_ns);
    }
}

void watch_silence_alarm(struct watch_set *watches)
{
    if (watches->alarm_ns != 0) {
        (void)kernel.alarm_set(watches->alarm, kernel_never);
        watches->alarm_ns = 0;
    }
}

/* Takes the alarm out of the reports, of which there are `count`; how many are left. */
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
    int count = kernel.set_wait(watches->set, watches->batch, watch_batch_size, deadline_ns);

    if (watches->alarm_ns != 0 && count > 0) {
        count = take_alarm(watches, count);
    }
    if (count <= 0) {
        watches->early_ends = 0;
        watches->wait_failed = count == -EBADF || count == -EINVAL;
    }
    watches->last_stale_token = watches->stale_token;
    watches->stale_token = watch_no_token;
    watches->batch_begin = 0;
    watches->batch_end = count > 0 ? (uint32_t)count : 0;
    watches->batch_is_fresh = count > 1;
    watches->posted_in_row = 0;
}

void watch_wait_out(struct watch_set *watches, int64_t limit_ns)
{
    if (!watch_has_alarm_before(watches, limit_ns)) {
        set_alarm(watches, limit_ns);
    }
    watch_wait(watches, limit_ns);
}

/* ---- after a wait ---- */

static struct watch *watch_of_token(const struct watch_set *watches, uint64_t token)
{
    struct watch *watch = watch_find(watches, (uint32_t)token);

    return watch && watch->generation == (uint32_t)(token >> 32) ? watch : NULL;
}

/* The source whose turn it may be, or NULL: the report is no source's. */
static CFRunLoopSourceRef source_of_report(const struct watch_set *watches, const struct kernel_event *event)
{
    const struct watch *watch = event->token > watch_token_alarm ? watch_of_token(watches, event->token) : NULL;

    return watch && !list_is_empty(&watch->members) ? watch_source_of(watch->members.next) : NULL;
}

/* Sockets, which are of version 0, come before all others. */
static bool comes_before(CFRunLoopSourceRef one, CFRunLoopSourceRef other)
{
    bool is_socket = one && source_is_socket(one);

    return is_socket != (other && source_is_socket(other)) ? is_socket : (one ? one->order : 0) < (other ? other->order : 0);
}

/* Stable; the batch is small and mostly in order already. */
static void sort_batch(struct watch_set *watches)
{
    for (uint32_t i = watches->batch_begin + 1; i < watches->batch_end; i++) {
        struct kernel_event event = watches->batch[i];
        CFRunLoopSourceRef source = source_of_report(watches, &event);
        uint32_t place = i;

        while (place > watches->batch_begin && comes_before(source, source_of_report(watches, &watches->batch[place - 1]))) {
            watches->batch[place] = watches->batch[place - 1];
            place--;
        }
        watches->batch[place] = event;
    }
}

/* The member whose turn it is among those that want what is ready. */
static inline __attribute__((always_inline)) bool turn_of(struct watch *watch, uint32_t ready, struct watch_report *ret_report)
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

/* What nobody wants as it is may be a change to somebody. Interest was put off, too, perhaps, and from now on nobody is waited for. */
static __attribute__((noinline)) bool take_change(CFRunLoopRef loop, struct mode *mode, struct watch *watch, uint32_t ready,
                                                  struct watch_report *ret_report)
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

/* The same; and if nobody wants it as it is, as a change. */
static bool take_turn(CFRunLoopRef loop, struct mode *mode, struct watch *watch, uint32_t ready, struct watch_report *ret_report)
{
    return turn_of(watch, ready, ret_report) || take_change(loop, mode, watch, ready, ret_report);
}

/*
 * Has the processor fetch what a report needs, whatever `token` is. Always inline, because gcc takes out calls of a function that only
 * fetches ahead.
 */
static inline __attribute__((always_inline)) void fetch_all(const struct watch_set *watches, uint64_t token)
{
    const struct watch_entry *entry = (uint32_t)token < watches->capacity ? &watches->table[(uint32_t)token] : NULL;
    const char *source;

    if (!entry || !entry->watch) {
        return;
    }
    source = entry->source;
    __builtin_prefetch(entry->watch);
    __builtin_prefetch(source);
    __builtin_prefetch(source + cache_line);
    __builtin_prefetch(source + 2 * cache_line);
    __builtin_prefetch(source + sizeof(struct __CFRunLoopSource) + cache_line / 2); /* the part, behind about four callbacks */
    __builtin_prefetch(entry->info);
    __builtin_prefetch((const char *)entry->info + cache_line);
    __builtin_prefetch(entry->callers_info);
}

/* For the reports to come, while the callback of this one runs. */
static inline __attribute__((always_inline)) void look_ahead(const struct watch_set *watches)
{
    uint32_t next = watches->batch_begin;

    if (next + 2 < watches->batch_end && (uint32_t)watches->batch[next + 2].token < watches->capacity) {
        __builtin_prefetch(&watches->table[(uint32_t)watches->batch[next + 2].token]);
    }
    if (next < watches->batch_end) {
        fetch_all(watches, watches->batch[next].token);
    }
}

/*
 * The same stale report in two waits: no neighbour that has just gone, but a file that was closed under its number and lives on elsewhere.
 * It cannot be taken out of the set; only a new set is rid of it.
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
    return source && source_is_socket(source);
}

/* Inline where most reports are taken. */
static inline __attribute__((always_inline)) enum wake_cause next_of_batch(CFRunLoopRef loop, struct mode *mode,
                                                                           struct watch_report *ret_report)
{
    struct watch_set *watches = mode->watches;
    enum wake_cause cause = cause_none;

    if (watches->batch_is_fresh) {
        begin_batch(watches);
    }
    while (watches->batch_begin != watches->batch_end && cause == cause_none) {
        struct kernel_event event = watches->batch[watches->batch_begin++];
        struct watch *watch;

        if (watches->batch_begin == 1) {
            fetch_all(watches, event.token); /* for the others that has been done while the callback before ran */
        }
        look_ahead(watches);
        watch = watch_of_token(watches, event.token);
        if (watch && watch->standing == watch_installed) {
            if (turn_of(watch, event.ready, ret_report)) {
                ret_report->ready |= watch_stands;
                cause = cause_port;
            } else if (take_change(loop, mode, watch, event.ready, ret_report)) {
                cause = cause_port;
            }
        } else if (event.token == watch_token_main_queue) {
            cause = cause_main_queue;
        } else if (event.token != watch_token_event && event.token < watches->stale_token) {
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
    return !list_is_empty(&watch->members) && source_kind(watch_source_of(watch->members.next)) == source_descriptor;
}

static bool next_always_ready(CFRunLoopRef loop, struct mode *mode, struct watch_report *ret_report)
{
    struct watch_set *watches = mode->watches;
    bool is_taken = false;

    while (!list_is_empty(&watches->always_ready) && !is_taken) {
        struct link *link = watches->always_ready.next;
        struct watch *watch = container_of(link, struct watch, ready_link);

        list_remove(link);
        if (watch->standing == watch_always_ready) {
            is_taken = take_turn(loop, mode, watch, watch_kinds_of(watch), ret_report);
            if (is_taken) {
                list_append(&watches->always_ready, link);
            }
        } else if (wants_failure(watch)) {
            is_taken = take_turn(loop, mode, watch, kernel_failed, ret_report);
        }
    }
    return is_taken;
}

static CFRunLoopSourceRef posted_member(const struct watch *watch)
{
    list_for_each(link, &watch->members) {
        CFRunLoopSourceRef source = watch_source_of(link);

        if (watch_interest_of(source) && atomic_load_explicit(&source_port_part(source)->is_posted, memory_order_relaxed)) {
            return source;
        }
    }
    return NULL; /* another loop was faster */
}

static bool next_posted(struct watch_set *watches, struct watch_report *ret_report)
{
    while (!list_is_empty(&watches->posted)) {
        struct watch *watch = container_of(watches->posted.next, struct watch, posted_link);
        CFRunLoopSourceRef source = posted_member(watch);

        list_remove(&watch->posted_link);
        if (source) {
            watches->posted_in_row++;
            ret_report->source = source;
            ret_report->ready = watch_posted;
            return true;
        }
    }
    return false;
}

/* Without the kernel's watch. What is reported of a wait set is taken out of it: some of that stays ready for ever. */
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

static bool next_refused(CFRunLoopRef loop, struct mode *mode, struct watch_report *ret_report)
{
    struct watch_set *watches = mode->watches;

    list_for_each_removable(link, &watches->refused) {
        struct watch *watch = container_of(link, struct watch, ready_link);
        uint32_t ready = ready_of(watch);

        if (ready && take_turn(loop, mode, watch, ready, ret_report)) {
            list_remove(link);
            list_append(&watches->refused, link);
            return true;
        }
    }
    return false;
}

/* What the kernel has not reported comes first, then what it has. */
static __attribute__((noinline)) enum wake_cause next_of_others(CFRunLoopRef loop, struct mode *mode, struct watch_report *ret_report)
{
    struct watch_set *watches = mode->watches;
    enum wake_cause cause;

    if (next_posted(watches, ret_report) || next_always_ready(loop, mode, ret_report)) {
        return cause_port;
    }
    cause = next_of_batch(loop, mode, ret_report);
    if (cause == cause_none && next_refused(loop, mode, ret_report)) {
        return cause_port;
    }
    return cause == cause_none && mode->lacks_main_queue && main_queue_is_ready() ? cause_main_queue : cause;
}

enum wake_cause watch_next(CFRunLoopRef loop, struct mode *mode, struct watch_report *ret_report)
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

void watch_doubt(struct mode *mode, CFRunLoopSourceRef source)
{
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)source_port_part(source)->descriptor) : NULL;

    if (watch) {
        watch->must_verify = true;
        if (!link_is_linked(&watch->dirty_link)) {
            list_append(&mode->watches->dirty, &watch->dirty_link);
        }
    }
}
