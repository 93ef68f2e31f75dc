/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a loop in three steps. A look under the loop's lock notes what is in each mode, and retains it. Without the lock the notes are
 * sorted, and each item is asked for its description, which may call the program. So all items were in the loop at one moment, but an item
 * tells of the moment when it is asked.
 */
#include "Loop/Run/loop_dump.h"

#include <stdlib.h>

#include "Kernel/Trace/kernel_trace.h"
#include "Kernel/kernel.h"
#include "Loop/Block/block.h"
#include "Loop/Core/common_items.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Observer/observer.h"
#include "Loop/Observer/observer_list.h"
#include "Loop/Signal/source.h"
#include "Loop/Timer/timer_heap.h"

/* In the order of the text. */
enum note_kind { note_run, note_common_mode, note_mode, note_source, note_timer, note_observer };

struct note {
    CFTypeRef object; /* a reference to the item; of a run or mode the mode's name */
    uint32_t mode; /* the number of the mode, for its own note and for those of its items; 0 for what comes before all modes */
    enum note_kind kind;
    int64_t rank; /* within the kind: the order, or a timer's instant */
    uint32_t place; /* the note's number, which decides between equal ranks */
    bool is_common; /* the mode or the item is common */
    uint32_t blocks; /* of a mode: how many wait in its own queue */
};

struct look {
    struct note *notes; /* NULL: there was no memory */
    uint32_t count;
    uint32_t capacity;
    uint32_t mode; /* the number of the mode that is looked at */
    uint32_t common_items;
    uint32_t shared_blocks; /* queued for the common modes or for a list of modes */
    bool is_main;
    bool is_dead;
    bool is_waiting;
    char thread_name[kernel_thread_name_size]; /* empty: not known */
    int64_t sleep_limit_ns; /* kernel_never if the loop does not sleep, or has no limit */
};

/* ---- the look ---- */

REQUIRES(the_loop_lock) static uint32_t count_blocks(const struct block_queue *queue)
{
    uint32_t count = 0;

    for (const struct block *block = queue->head; block; block = block->next) {
        count++;
    }
    return count;
}

REQUIRES(the_loop_lock) static uint32_t count_links(const struct link *head)
{
    uint32_t count = 0;

    list_for_each(link, head) {
        count++;
    }
    return count;
}

/* Returns how many notes there can be: an observer stands in a list for each of its activities, and is noted once. */
REQUIRES(the_loop_lock) static uint32_t count_notes(CFRunLoopRef loop)
{
    uint32_t count = 0;

    for (const struct run *run = loop->innermost_run; run; run = run->outer) {
        count++;
    }
    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        count += 2 + mode->sources.count + mode->timer_count;
        for (int i = 0; i < activity_count; i++) {
            count += mode->observers[i] ? mode->observers[i]->count : 0;
        }
    }
    return count;
}

REQUIRES(the_loop_lock) static struct note *note(struct look *look, enum note_kind kind, CFTypeRef object, int64_t rank, bool is_common)
{
    struct note *made = &look->notes[look->count];

    invariant(look->count < look->capacity);
    *made = (struct note){
        .object = object, .mode = look->mode, .kind = kind, .rank = rank, .place = look->count, .is_common = is_common, .blocks = 0};
    object_retain(object);
    look->count++;
    return made;
}

REQUIRES(the_loop_lock) static void note_sources(CFRunLoopRef loop, const struct mode *mode, struct look *look)
{
    const struct source_set *set = &mode->sources;
    uint32_t bucket_count = set->buckets ? set->bucket_count : 1;

    for (uint32_t i = 0; i < bucket_count; i++) {
        for (const struct source_member *member = set->buckets ? set->buckets[i] : set->first; member; member = member->chain) {
            CFRunLoopSourceRef source = member->binding->source;

            if (source_kind(source) != source_with_descriptor || !source_descriptor_part(source)->is_suspended) {
                (void)note(look, note_source, source, source->order, source_has_joined(loop, source, NULL));
            }
        }
    }
}

REQUIRES(the_loop_lock) static void note_timer_of(struct look *look, CFRunLoopTimerRef timer)
{
    (void)note(look, note_timer, timer, timer->fire_ns, timer_extra(timer)->common != NULL);
}

/* A timer in callout is in no heap, unless it joined the mode during the callout. The loop's lock is its home lock if it is in the loop. */
REQUIRES(the_loop_lock) static void note_timers(CFRunLoopRef loop, const struct mode *mode, struct look *look)
{
    for (uint32_t i = 0; i < mode->timers.count; i++) {
        note_timer_of(look, timer_of_node(mode->timers.block->entries[i].node));
    }
    for (CFRunLoopTimerRef timer = loop->firing; timer; timer = timer_outer(timer)) {
        const struct timer_member *member = timer_loop(timer) == loop ? timer_member_in(timer, mode) : NULL;

        if (member && !heap_contains(&member->node)) {
            note_timer_of(look, timer);
        }
    }
}

/* A list may still hold an observer that has left (has_stale). */
REQUIRES(the_loop_lock) static void note_observer_of(struct look *look, CFRunLoopObserverRef observer, const struct mode *mode)
{
    const struct observer_member *member;
    bool is_common;

    lock_take(item_lock(observer));
    member = observer->members;
    while (member && member->mode != mode) {
        member = member->next;
    }
    is_common = observer->common != NULL;
    lock_drop(item_lock(observer));
    if (member) {
        (void)note(look, note_observer, observer, observer->order, is_common);
    }
}

REQUIRES(the_loop_lock) static void note_observers(const struct mode *mode, struct look *look)
{
    CFOptionFlags walked = 0;

    for (int i = 0; i < activity_count; i++) {
        const struct observer_list *list = mode->observers[i];

        for (uint32_t k = 0; list && k < list->count; k++) {
            if (!(list->observers[k]->activities & walked)) {
                note_observer_of(look, list->observers[k], mode);
            }
        }
        walked |= observer_list_activities[i];
    }
}

REQUIRES(the_loop_lock) static void note_all(CFRunLoopRef loop, struct look *look)
{
    for (const struct run *run = loop->innermost_run; run; run = run->outer) {
        (void)note(look, note_run, run->mode->name, 0, false);
    }
    for (const struct mode *mode = loop->common_modes; mode; mode = mode->next_common) {
        (void)note(look, note_common_mode, mode->name, 0, true);
    }
    for (const struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->is_declared) {
            look->mode++;
            note(look, note_mode, mode->name, 0, mode->is_common)->blocks = count_blocks(&mode->blocks);
            note_sources(loop, mode, look);
            note_timers(loop, mode, look);
            note_observers(mode, look);
        }
    }
}

/* A thread cannot end while somebody holds its loop's lock, unless the loop is dead. */
REQUIRES(the_loop_lock) static void note_thread(CFRunLoopRef loop, struct look *look)
{
    pthread_t thread = atomic_load_explicit(&loop->thread, memory_order_relaxed);

    if (!loop->is_dead && thread != 0) {
        kernel_trace.name_of_thread(thread, look->thread_name);
    }
}

EXCLUDES(the_loop_lock, the_item_lock) static struct look take_look(CFRunLoopRef loop)
{
    struct look look = {.notes = NULL};

    loop_lock(loop);
    look.capacity = count_notes(loop);
    look.notes = malloc(look.capacity * sizeof *look.notes); /* never 0: a loop has its default mode */
    look.is_main = loop->is_main;
    look.is_dead = loop->is_dead;
    note_thread(loop, &look);
    look.is_waiting = waker_is_waiting(loop->waker);
    look.sleep_limit_ns = loop->waiting ? loop->sleep_limit_ns : kernel_never;
    look.common_items = loop->common_sources.count + count_links(&loop->common_timers) + count_links(&loop->common_observers);
    look.shared_blocks = count_blocks(&loop->common_blocks) + count_blocks(&loop->listed_blocks);
    if (look.notes) {
        note_all(loop, &look);
    }
    loop_unlock(loop);
    return look;
}

/* ---- the text ---- */

static int compare(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

static int compare_notes(const void *one, const void *other)
{
    const struct note *first = one;
    const struct note *second = other;
    int result = compare(first->mode, second->mode);

    result = result ? result : compare(first->kind, second->kind);
    result = result ? result : compare(first->rank, second->rank);
    return result ? result : compare(first->place, second->place);
}

/* Appends the names in the notes of a kind, with a word between two of them. */
static void append_names(CFMutableStringRef text, const struct look *look, enum note_kind kind, CFStringRef between)
{
    bool is_first = true;

    for (uint32_t i = 0; i < look->count; i++) {
        if (look->notes[i].kind == kind) {
            CFStringAppendFormat(text, NULL, CFSTR("%@%@"), is_first ? CFSTR("") : between, look->notes[i].object);
            is_first = false;
        }
    }
    if (is_first) {
        CFStringAppend(text, CFSTR("(none)"));
    }
}

static void append_state(CFMutableStringRef text, CFRunLoopRef loop, const struct look *look)
{
    const char *which = look->is_dead ? " (ended)" : thread_loop_if_any() == loop ? " (this one)" : "";
    struct shown shown;

    CFStringAppendFormat(text, NULL, CFSTR("<CFRunLoop %p>{thread = %s%s, current mode = "), loop, look->is_main ? "main" : "secondary",
                         which);
    append_names(text, look, note_run, CFSTR(" inside "));
    CFStringAppendFormat(text, NULL, CFSTR(", waiting = %s"), shown_bool(look->is_waiting));
    if (look->sleep_limit_ns != kernel_never) {
        CFStringAppendFormat(text, NULL, CFSTR(" (wakes %s)"), shown_instant(&shown, look->sleep_limit_ns, kernel.monotonic_ns()));
    }
    if (look->thread_name[0] != '\0') {
        CFStringAppendFormat(text, NULL, CFSTR(", thread name = %s"), shown_text(&shown, look->thread_name));
    }
    CFStringAppend(text, CFSTR(", common modes = "));
    append_names(text, look, note_common_mode, CFSTR(", "));
    CFStringAppendFormat(text, NULL, CFSTR(", common items = %u"), look->common_items);
    if (look->shared_blocks > 0) {
        CFStringAppendFormat(text, NULL, CFSTR(", blocks for several modes = %u"), look->shared_blocks);
    }
}

static void append_mode(CFMutableStringRef text, const struct note *mode, bool is_empty)
{
    CFStringAppendFormat(text, NULL, CFSTR("\n    mode %@%s"), mode->object, mode->is_common ? ", common" : "");
    if (mode->blocks > 0) {
        CFStringAppendFormat(text, NULL, CFSTR(", blocks = %u"), mode->blocks);
    }
    CFStringAppend(text, is_empty ? CFSTR(": no items") : CFSTR(":"));
}

/* Calls the program, if the item's context has a description. That may have several lines, which become one. */
static void append_item(CFMutableStringRef text, const struct note *item)
{
    CFStringRef description = CFCopyDescription(item->object);
    CFIndex start;

    CFStringAppend(text, CFSTR("\n        "));
    start = CFStringGetLength(text);
    CFStringAppendFormat(text, NULL, CFSTR("%@%s"), description ? description : CFSTR("(no memory)"),
                         item->is_common ? ", common item" : "");
    (void)CFStringFindAndReplace(text, CFSTR("\n"), CFSTR(" "), CFRangeMake(start, CFStringGetLength(text) - start), 0);
    object_release_if_any(description);
}

static void append_modes(CFMutableStringRef text, const struct look *look)
{
    for (uint32_t i = 0; i < look->count; i++) {
        if (look->notes[i].kind == note_mode) {
            append_mode(text, &look->notes[i], i + 1 == look->count || look->notes[i + 1].kind == note_mode);
        } else if (look->notes[i].kind > note_mode) {
            append_item(text, &look->notes[i]);
        }
    }
    CFStringAppend(text, CFSTR("\n}"));
}

CFStringRef loop_copy_dump(CFRunLoopRef loop)
{
    struct look look = take_look(loop);
    CFMutableStringRef text = look.notes ? CFStringCreateMutable(kCFAllocatorSystemDefault, 0) : NULL;

    if (look.notes) {
        qsort(look.notes, look.count, sizeof *look.notes, compare_notes);
    }
    if (text) {
        append_state(text, loop, &look);
        append_modes(text, &look);
    }
    for (uint32_t i = 0; i < look.count; i++) {
        object_release(look.notes[i].object); /* perhaps the last reference, if the item has left meanwhile */
    }
    free(look.notes);
    return text;
}
