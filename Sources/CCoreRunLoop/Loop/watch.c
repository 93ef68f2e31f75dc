/* SPDX-License-Identifier: Apache-2.0 */
/* Watches, and the sources on them. See watch.h. */
#include "Loop/watch_registration.h"

#include <stdlib.h>
#include <string.h>

#include "Loop/main_queue.h"
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

/* A large one has pages of memory only where descriptors are. */
static bool grow_table(struct watch_set *watches, uint32_t descriptor)
{
    uint32_t capacity = watches->capacity ? watches->capacity : 16;
    struct watch_entry *table;

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
    watches->table[descriptor].watch = watch;
    return watch;
}

void watch_destroy(struct watch_set *watches, struct watch *watch)
{
    list_remove(&watch->dirty_link);
    list_remove(&watch->ready_link);
    list_remove(&watch->posted_link);
    watches->table[watch->descriptor].watch = NULL;
    free(watch);
}

/* ---- what is wanted ---- */

/* The mode may be asleep: then the kernel is told now, and a sleeper that the kernel would not wake is told itself. */
static void changed(CFRunLoopRef loop, struct mode *mode)
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
        (mailbox_word(loop->mailbox) & wake_phase) == wake_futex) {
        mailbox_retime(loop->mailbox);
    }
}

static const uint32_t interest_mask = (uint32_t)descriptor_wanted | descriptor_changes | descriptor_unreported;

/*
 * What is wanted; since that alone is watched for from now on, nothing is put off any more (enum descriptor_interest). By one value of the
 * word: a kind that another loop's callout takes and puts off between two readings would be lost.
 */
static uint32_t settle_interest(CFRunLoopSourceRef source)
{
    const struct source_port_part *part = source_port_part(source);
    uint32_t word;

    if (source_kind(source) == source_port) {
        return kernel_readable;
    }
    word = atomic_load_explicit(part->interest, memory_order_relaxed);
    if (word & descriptor_put_off) {
        word = atomic_fetch_and_explicit(part->interest, ~(uint32_t)descriptor_put_off, memory_order_seq_cst);
    }
    return part->rests ? 0 : word & interest_mask;
}

void watch_recompute(CFRunLoopRef loop, struct mode *mode, struct watch *watch)
{
    uint32_t wanted = 0;

    list_for_each(link, &watch->members) {
        wanted |= settle_interest(watch_source_of(link));
    }
    watch->wanted = wanted;
    if (!wanted) {
        list_remove(&watch->ready_link);
    }
    if (!link_is_linked(&watch->dirty_link)) {
        list_append(&mode->watches->dirty, &watch->dirty_link);
    }
    changed(loop, mode);
}

/* ---- members ---- */

static void fetch_ahead(struct watch_entry *entry, CFRunLoopSourceRef source)
{
    const void *callers_info = source_port_part(source)->callers_info;

    entry->source = source;
    entry->info = source->context_info;
    entry->callers_info = callers_info ? callers_info : source->context_info;
}

bool watch_add_member(CFRunLoopRef loop, struct mode *mode, struct source_member *member)
{
    CFRunLoopSourceRef source = member->slot->source;
    int descriptor = source_port_part(source)->descriptor;
    struct watch *watch;

    if (descriptor < 0) {
        return true; /* 98: never fires by itself */
    }
    if (!mode->watches) {
        mode->watches = set_create();
    }
    watch = mode->watches ? watch_find(mode->watches, (uint32_t)descriptor) : NULL;
    if (watch) {
        watch->must_verify |= !watch->lingering || watch->lingering != source_port_part(source)->lingering;
        watch->lingering = 0;
    } else {
        watch = mode->watches ? watch_create(mode->watches, descriptor) : NULL;
    }
    if (!watch) {
        return false;
    }
    watch->is_set = source_port_part(source)->is_set;
    watch->ending = source_port_part(source)->ending;
    list_append(&watch->members, &member->link);
    fetch_ahead(&mode->watches->table[descriptor], source);
    barrier_full(); /* the slot names this loop by now: whoever changes the interest sees that, or watch_recompute sees the change */
    mode->watches->member_count++;
    mode->watches->has_sockets |= source_is_socket(source);
    mode->watches->has_others |= !source_is_socket(source);
    mode->watches->sorts |= source->order != 0 || (mode->watches->has_sockets && mode->watches->has_others);
    watch_recompute(loop, mode, watch);
    if (atomic_load_explicit(&source_port_part(source)->is_posted, memory_order_relaxed)) {
        if (watch_post(loop, member)) { /* while it was in no mode; the lock under which it joined orders this */
            mailbox_retime(loop->mailbox);
        }
    }
    return true;
}

static struct watch *watch_of_member(const struct source_member *member)
{
    return watch_find(member->mode->watches, (uint32_t)source_port_part(member->slot->source)->descriptor);
}

/* A source that comes and goes: if it is back before the next wait, the kernel need not be told. A closed descriptor leaves by itself. */
static void watch_linger(struct watch_set *watches, struct watch *watch, uint64_t mark)
{
    watch->lingering = mark;
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
    list_remove(&member->link);
    if (source_port_part(member->slot->source)->rests) {
        source_port_part(member->slot->source)->rests = false;
        member->mode->resting_count--;
        watches->member_count++;
    }
    watches->member_count--;
    if (!list_is_empty(&watch->members)) {
        watch_recompute(loop, member->mode, watch);
        return;
    }
    if (source_port_part(member->slot->source)->lingering && watch->standing == watch_installed && !watch->must_verify &&
        !mode_is_waited_on(loop, member->mode)) {
        watch_linger(watches, watch, source_port_part(member->slot->source)->lingering);
        return;
    }
    /* At once, because the program may close the descriptor next. */
    if (watch->standing == watch_installed) {
        watch_take_out(watches, watch);
    }
    watch_destroy(watches, watch);
}

void watch_end_lingering(struct mode *mode, int descriptor, uint64_t mark)
{
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)descriptor) : NULL;

    if (watch && watch->lingering == mark) {
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

void watch_set_resting(CFRunLoopRef loop, struct source_member *member, bool rests)
{
    struct source_port_part *part = source_port_part(member->slot->source);
    struct mode *mode = member->mode;

    if (part->rests == rests || !link_is_linked(&member->link)) {
        return;
    }
    part->rests = rests;
    mode->resting_count += rests ? 1 : UINT32_MAX;
    mode->watches->member_count += rests ? UINT32_MAX : 1;
    watch_recompute(loop, mode, watch_of_member(member));
}

static uint32_t interest_or_put_off(CFRunLoopSourceRef source)
{
    uint32_t word = atomic_load_explicit(source_port_part(source)->interest, memory_order_relaxed);

    return source_port_part(source)->rests ? 0 : (word | (word & descriptor_put_off) >> descriptor_put_off_shift) & interest_mask;
}

void watch_interest_raised(CFRunLoopRef loop, struct source_member *member)
{
    const struct watch *watch = link_is_linked(&member->link) ? watch_of_member(member) : NULL;

    /* What is put off counts as watched for: if another loop's callout has put off what this one has not been told of yet, all are. */
    if (watch && (watch->standing != watch_installed || (interest_or_put_off(member->slot->source) & ~watch->wanted))) {
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
        watch_of_member(member)->must_verify = true;
        watch_recompute(loop, member->mode, watch_of_member(member));
    }
}

/* ---- a wait for one source that rests ---- */

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
    return true; /* what is not wanted any more is ready at most once: the next wait takes it out */
}

/* The watch's only member, or NULL. */
static struct source_member *only_member(const struct watch *watch)
{
    struct link *first = watch->members.next;

    return first != &watch->members && first->next == &watch->members ? container_of(first, struct source_member, link) : NULL;
}

struct watch *watch_start_waking(struct mode *mode, CFRunLoopSourceRef source)
{
    struct source_port_part *part = source_port_part(source);
    struct watch *watch = mode->watches ? watch_find(mode->watches, (uint32_t)part->descriptor) : NULL;
    const struct source_member *member = watch ? only_member(watch) : NULL;

    if (!member || member->slot->source != source || !part->rests || watch->standing != watch_installed || watch->must_verify ||
        watch->installed != atomic_load_explicit(part->interest, memory_order_relaxed)) {
        return NULL;
    }
    part->rests = false;
    mode->resting_count--;
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

    source_port_part(only_member(watch)->slot->source)->rests = true;
    mode->resting_count++;
    watches->member_count--;
    watch->wanted = 0;
    list_append(&watches->dirty, &watch->dirty_link);
    if (is_taken) {
        watches->batch_begin = watches->batch_end;
    }
    return is_taken;
}

static bool add_main_queue(CFRunLoopRef loop, struct mode *mode, int descriptor)
{
    if (!mode->watches) {
        mode->watches = set_create();
    }
    return mode->watches && watch_prepare(loop, mode) == 0 && watch_put_main_queue(mode->watches, descriptor);
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
        mode->lacks_main_queue = false; /* in the child of a fork nobody serves it */
    }
    if (!watches) {
        return;
    }
    if (!close_old && watches->alarm >= 0 && !kernel.alarm_is_own(watches->alarm)) {
        watches->alarm = -1;
    }
    watch_close_alarm(watches); /* it is in the old set only */
    if (watches->set >= 0 && close_old) {
        (void)kernel.close(watches->set);
    }
    watches->set = -1;
    watches->has_event = false;
    watches->has_main_queue = watches->lost_main_queue = watches->has_main_queue && main_queue_is_available();
    watches->stale_token = watches->last_stale_token = watch_no_token;
    watches->batch_begin = watches->batch_end = 0;
    for (uint32_t i = 0; i < watches->capacity; i++) {
        struct watch *watch = watches->table[i].watch;

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
        free(watches->table[i].watch);
    }
    free(watches->table);
    free(watches);
    mode->watches = NULL;
}
