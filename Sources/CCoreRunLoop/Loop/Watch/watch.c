/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of watches, their members and the interest that these have. See watch.h. The loop's lock is held throughout. The kernel is told
 * by watch_registration.c, and reports come through watch_reports.c.
 */
#include "Loop/Watch/watch_registration.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/Core/main_queue.h"
#include "Support/barrier.h"

/* ---- the table ---- */

static struct watch_set *set_create(void)
{
    struct watch_set *watches = calloc(1, sizeof *watches);

    if (watches) {
        watches->set = watches->alarm = -1;
        watches->next_generation = 1;
        watches->stale_token = watches->last_stale_token = watch_no_token;
        link_init(&watches->dirty);
        link_init(&watches->always_ready);
        link_init(&watches->refused);
        link_init(&watches->posted);
    }
    return watches;
}

/* Makes room for a descriptor. calloc gives a large table memory only for the pages that are written. */
static bool grow_table(struct watch_set *watches, uint32_t descriptor)
{
    uint32_t capacity = watches->capacity ? watches->capacity : 16;
    struct watch **table;

    if (descriptor < watches->capacity) {
        return true;
    }
    while (capacity <= descriptor) {
        capacity *= 2;
    }
    table = calloc(capacity, sizeof *table);
    if (!table) {
        return false;
    }
    if (watches->capacity > 0) {
        memcpy(table, watches->table, watches->capacity * sizeof *table);
    }
    free(watches->table);
    watches->table = table;
    watches->capacity = capacity;
    return true;
}

static struct watch *watch_create(struct watch_set *watches, int descriptor)
{
    struct watch *watch = grow_table(watches, (uint32_t)descriptor) ? calloc(1, sizeof *watch) : NULL;

    if (!watch) {
        return NULL;
    }
    watch->descriptor = descriptor;
    watch->generation = watches->next_generation++;
    link_init(&watch->members);
    link_init(&watch->dirty_link);
    link_init(&watch->ready_link);
    link_init(&watch->posted_link);
    watches->table[descriptor] = watch;
    return watch;
}

void watch_destroy(struct watch_set *watches, struct watch *watch)
{
    invariant(list_is_empty(&watch->members));
    invariant(watches->table[watch->descriptor] == watch);
    list_remove(&watch->dirty_link);
    list_remove(&watch->ready_link);
    list_remove(&watch->posted_link);
    watches->table[watch->descriptor] = NULL;
    free(watch);
}

/* ---- interest ---- */

/* Tells the kernel now if the loop sleeps in the mode. Retimes the sleeper if the kernel would not wake it. */
REQUIRES(the_loop_lock) static void mode_note_change(CFRunLoopRef loop, struct mode *mode)
{
    struct watch_set *watches = mode->watches;

    if (!mode_is_waited_on(loop, mode)) {
        return;
    }
    if (watches->set >= 0 && watches->has_event) {
        watch_flush(loop, watches);
    }
    /* The batch is the sleeper's own, and empty. */
    if (!watches->has_event || !list_is_empty(&watches->always_ready) || watch_must_retry(mode) ||
        (waker_word(loop->waker) & wake_phase) == wake_futex) {
        waker_retime(loop->waker);
    }
}

static const uint32_t interest_mask = (uint32_t)descriptor_wanted | descriptor_changes | descriptor_unreported;

/*
 * Returns the interest of a source, and clears its deferred bits, because the loop watches for this interest alone from now on (enum
 * descriptor_interest). Both come from one value of the word. With two reads, a kind that another loop's callout defers in between would be
 * lost.
 */
static uint32_t settle_interest(CFRunLoopSourceRef source)
{
    const struct source_descriptor_part *descriptor_part = source_descriptor_part(source);
    uint32_t word;

    if (source_kind(source) == source_with_port) {
        return kernel_readable;
    }
    word = atomic_load_explicit(descriptor_part->interest, memory_order_relaxed);
    if (word & descriptor_rearm_deferred) {
        word = atomic_fetch_and_explicit(descriptor_part->interest, ~(uint32_t)descriptor_rearm_deferred, memory_order_seq_cst);
    }
    return descriptor_part->is_suspended ? 0 : word & interest_mask;
}

void watch_recompute(CFRunLoopRef loop, struct mode *mode, struct watch *watch)
{
    uint32_t wanted = 0;

    list_for_each(link, &watch->members) {
        wanted |= settle_interest(watch_source_of(link));
    }
    invariant_held(&loop->lock);
    invariant((wanted & ~interest_mask) == 0);
    watch->wanted = wanted;
    if (!wanted) {
        list_remove(&watch->ready_link);
    }
    if (!link_is_linked(&watch->dirty_link)) {
        list_append(&mode->watches->dirty, &watch->dirty_link);
    }
    mode_note_change(loop, mode);
}

/* ---- members ---- */

bool watch_add_member(CFRunLoopRef loop, struct mode *mode, struct source_member *member)
{
    CFRunLoopSourceRef source = member->binding->source;
    int descriptor = source_descriptor_part(source)->descriptor;
    struct watch *watch;

    if (descriptor < 0) {
        return true; /* getPort returned -1: the source never fires by itself (rule 98) */
    }
    if (!mode->watches) {
        mode->watches = set_create();
        mode->free_watches = watch_set_free;
    }
    watch = mode->watches ? watch_find(mode->watches, (uint32_t)descriptor) : NULL;
    if (watch) {
        watch->must_recheck |= !watch->kept_id || watch->kept_id != source_descriptor_part(source)->kept_id;
        watch->kept_id = 0;
    } else {
        watch = mode->watches ? watch_create(mode->watches, descriptor) : NULL;
    }
    if (!watch) {
        return false;
    }
    watch->is_set = source_descriptor_part(source)->is_set;
    watch->ending = source_descriptor_part(source)->ending;
    invariant(!link_is_linked(&member->link));
    list_append(&watch->members, &member->link);
    barrier_full(); /* the binding names this loop by now: whoever changes the interest sees that, or watch_recompute sees the change */
    mode->watches->member_count++;
    mode->watches->has_sockets |= source_is_polled_v0(source);
    mode->watches->has_others |= !source_is_polled_v0(source);
    mode->watches->sorts |= source->order != 0 || (mode->watches->has_sockets && mode->watches->has_others);
    watch_recompute(loop, mode, watch);
    if (atomic_load_explicit(&source_descriptor_part(source)->is_posted, memory_order_relaxed)) {
        if (watch_post(loop, member)) { /* posted while it was in no mode; the item lock, under which it joined, orders the two */
            waker_retime(loop->waker);
        }
    }
    return true;
}

static struct watch *watch_of_member(const struct source_member *member)
{
    return watch_find(member->mode->watches, (uint32_t)source_descriptor_part(member->binding->source)->descriptor);
}

/*
 * Keeps a watch without members in epoll. If its source is back before the next wait, the kernel need not be told. A descriptor that is
 * closed leaves epoll by itself.
 */
REQUIRES(the_loop_lock) static void watch_keep_installed(struct watch_set *watches, struct watch *watch, uint64_t kept_id)
{
    invariant(watch->standing == watch_installed && list_is_empty(&watch->members) && kept_id != 0);
    watch->kept_id = kept_id;
    watch->wanted = 0;
    list_remove(&watch->ready_link);
    if (!link_is_linked(&watch->dirty_link)) {
        list_append(&watches->dirty, &watch->dirty_link);
    }
}

void watch_remove_member(CFRunLoopRef loop, struct source_member *member)
{
    struct watch_set *watches = member->mode->watches;
    struct watch *watch;

    if (!link_is_linked(&member->link)) {
        return;
    }
    watch = watch_of_member(member);
    invariant(watch != NULL);
    list_remove(&member->link);
    if (source_descriptor_part(member->binding->source)->is_suspended) {
        source_descriptor_part(member->binding->source)->is_suspended = false;
        member->mode->suspended_count--;
        watches->member_count++;
    }
    invariant(watches->member_count > 0);
    watches->member_count--;
    if (!list_is_empty(&watch->members)) {
        watch_recompute(loop, member->mode, watch);
        return;
    }
    if (source_descriptor_part(member->binding->source)->kept_id && watch->standing == watch_installed && !watch->must_recheck &&
        !mode_is_waited_on(loop, member->mode)) {
        watch_keep_installed(watches, watch, source_descriptor_part(member->binding->source)->kept_id);
        return;
    }
    /* The kernel is told at once, because the program may close the descriptor next. */
    if (watch->standing == watch_installed) {
        watch_take_out(watches, watch);
    }
    watch_destroy(watches, watch);
}

void watch_remove_kept(struct mode *mode, int descriptor, uint64_t kept_id)
{
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)descriptor) : NULL;

    if (watch && watch->kept_id == kept_id) {
        if (watch->standing == watch_installed) {
            watch_take_out(mode->watches, watch);
        }
        watch_destroy(mode->watches, watch);
    }
}

void watch_interest_changed(CFRunLoopRef loop, struct source_member *member)
{
    if (link_is_linked(&member->link)) {
        watch_recompute(loop, member->mode, watch_of_member(member));
    }
}

void watch_set_suspended(CFRunLoopRef loop, struct source_member *member, bool suspended)
{
    struct source_descriptor_part *descriptor_part = source_descriptor_part(member->binding->source);
    struct mode *mode = member->mode;

    if (descriptor_part->is_suspended == suspended || !link_is_linked(&member->link)) {
        return;
    }
    invariant(suspended ? mode->watches->member_count > 0 : mode->suspended_count > 0);
    descriptor_part->is_suspended = suspended;
    mode->suspended_count += suspended ? 1 : UINT32_MAX;
    mode->watches->member_count += suspended ? UINT32_MAX : 1;
    watch_recompute(loop, mode, watch_of_member(member));
}

static uint32_t interest_or_deferred(CFRunLoopSourceRef source)
{
    uint32_t word = atomic_load_explicit(source_descriptor_part(source)->interest, memory_order_relaxed);

    return source_descriptor_part(source)->is_suspended
               ? 0
               : (word | (word & descriptor_rearm_deferred) >> descriptor_rearm_deferred_shift) & interest_mask;
}

void watch_interest_raised(CFRunLoopRef loop, struct source_member *member)
{
    const struct watch *watch = link_is_linked(&member->link) ? watch_of_member(member) : NULL;

    /* A deferred kind counts as wanted: another loop's callout may have deferred a kind that this loop does not watch for yet. */
    if (watch && (watch->standing != watch_installed || (interest_or_deferred(member->binding->source) & ~watch->wanted))) {
        watch_interest_changed(loop, member);
    }
}

bool watch_post(CFRunLoopRef loop, struct source_member *member)
{
    struct watch *watch;

    if (!link_is_linked(&member->link)) {
        return false;
    }
    watch = watch_of_member(member);
    if (!link_is_linked(&watch->posted_link)) {
        list_append(&member->mode->watches->posted, &watch->posted_link);
    }
    return mode_is_waited_on(loop, member->mode);
}

void watch_file_replaced(CFRunLoopRef loop, struct source_member *member)
{
    if (link_is_linked(&member->link)) {
        watch_of_member(member)->must_recheck = true;
        watch_recompute(loop, member->mode, watch_of_member(member));
    }
}

/* ---- a wait for one suspended source ---- */

bool watch_is_settled(const struct mode *mode)
{
    const struct watch_set *watches = mode->watches;

    if (!watches->has_event || watch_has_kept(mode) || watch_must_retry(mode)) {
        return false;
    }
    list_for_each(link, &watches->dirty) {
        if (container_of(link, struct watch, dirty_link)->wanted) {
            return false;
        }
    }
    return true; /* a watch that nobody wants can end one wait at most: the next one takes it out */
}

/* Returns the only member of a watch, or NULL if it has none or several. */
static struct source_member *only_member(const struct watch *watch)
{
    struct link *first = watch->members.next;

    return first != &watch->members && first->next == &watch->members ? container_of(first, struct source_member, link) : NULL;
}

struct watch *watch_start_waking(struct mode *mode, CFRunLoopSourceRef source)
{
    struct source_descriptor_part *descriptor_part = source_descriptor_part(source);
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)descriptor_part->descriptor) : NULL;
    const struct source_member *member = watch ? only_member(watch) : NULL;

    if (!member || member->binding->source != source || !descriptor_part->is_suspended || watch->standing != watch_installed ||
        watch->must_recheck || watch->installed != atomic_load_explicit(descriptor_part->interest, memory_order_relaxed)) {
        return NULL;
    }
    invariant(mode->suspended_count > 0);
    descriptor_part->is_suspended = false;
    mode->suspended_count--;
    mode->watches->member_count++;
    watch->wanted = watch->installed;
    list_remove(&watch->dirty_link);
    return watch;
}

bool watch_stop_waking(struct mode *mode, struct watch *watch, bool may_take)
{
    struct watch_set *watches = mode->watches;
    bool is_taken =
        may_take && watches->batch_end - watches->batch_begin == 1 && watches->batch[watches->batch_begin].token == watch_token_of(watch);

    invariant(only_member(watch) && watches->member_count > 0);
    source_descriptor_part(only_member(watch)->binding->source)->is_suspended = true;
    mode->suspended_count++;
    watches->member_count--;
    watch->wanted = 0;
    list_append(&watches->dirty, &watch->dirty_link);
    if (is_taken) {
        watches->batch_begin = watches->batch_end;
    }
    return is_taken;
}

REQUIRES(the_loop_lock) static bool has_prepared_set(CFRunLoopRef loop, struct mode *mode)
{
    if (!mode->watches) {
        mode->watches = set_create();
        mode->free_watches = watch_set_free;
    }
    return mode->watches && watch_prepare(loop, mode) == 0;
}

bool watch_for_resume(CFRunLoopRef loop, struct mode *mode)
{
    if (watch_has_resume(mode)) {
        return false;
    }
    if (loop->resume >= 0 && !kernel.alarm_is_own(loop->resume)) {
        watch_forget_lost(loop); /* the number may be another file's now, which must not get into the set */
    }
    if (!has_prepared_set(loop, mode)) {
        return false;
    }
    if (loop->resume < 0) {
        loop->resume = kernel.resume_open();
    }
    mode->watches->has_resume = loop->resume >= 0 && kernel.set_add_edge(mode->watches->set, loop->resume, watch_token_resume) == 0;
    return mode->watches->has_resume;
}

REQUIRES(the_loop_lock) static bool add_main_queue(CFRunLoopRef loop, struct mode *mode, int descriptor)
{
    return has_prepared_set(loop, mode) && watch_put_main_queue(mode->watches, descriptor);
}

void watch_main_queue(CFRunLoopRef loop, struct mode *mode, int descriptor, bool wanted)
{
    bool is_watched = mode->watches && mode->watches->has_main_queue;

    mode->lacks_main_queue = false;
    if (is_watched == wanted) {
        return;
    }
    if (!wanted) {
        (void)kernel.set_remove(mode->watches->set, descriptor);
        mode->watches->has_main_queue = mode->watches->lost_main_queue = false;
        return;
    }
    mode->lacks_main_queue = !add_main_queue(loop, mode, descriptor);
    if (!mode->lacks_main_queue) {
        mode->watches->has_main_queue = true;
    }
}

/* ---- starting over ---- */

void watch_rebuild(CFRunLoopRef loop, struct mode *mode, bool close_old)
{
    struct watch_set *watches = mode->watches;

    (void)loop;
    if (!main_queue_is_available()) {
        mode->lacks_main_queue = false; /* no thread serves the main queue in the child of a fork */
    }
    if (!watches) {
        return;
    }
    if (!close_old && watches->alarm >= 0 && !kernel.alarm_is_own(watches->alarm)) {
        watches->alarm = -1;
    }
    watch_close_alarm(watches); /* the alarm is in the old set only */
    if (watches->set >= 0 && close_old) {
        (void)kernel.close(watches->set);
    }
    watches->set = -1;
    watches->has_event = watches->has_resume = false;
    watches->has_main_queue = watches->lost_main_queue = watches->has_main_queue && main_queue_is_available();
    watches->stale_token = watches->last_stale_token = watch_no_token;
    watches->batch_begin = watches->batch_end = 0;
    for (uint32_t i = 0; i < watches->capacity; i++) {
        struct watch *watch = watches->table[i];

        if (!watch) {
            continue;
        }
        if (watch->standing == watch_installed) {
            watch->standing = watch_absent;
        }
        if (!link_is_linked(&watch->dirty_link)) {
            list_append(&watches->dirty, &watch->dirty_link);
        }
    }
}

void watch_set_free(struct mode *mode)
{
    struct watch_set *watches = mode->watches;

    if (!watches) {
        return;
    }
    watch_close_alarm(watches);
    if (watches->set >= 0) {
        (void)kernel.close(watches->set);
    }
    for (uint32_t i = 0; i < watches->capacity; i++) {
        free(watches->table[i]);
    }
    free(watches->table);
    free(watches);
    mode->watches = NULL;
}
