/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of a loop: found by name, made when something is added under the name (rule 11), never removed while the loop lives. */
#include <stdlib.h>

#include "Loop/block.h"
#include "Loop/loop.h"
#include "Loop/main_queue.h"
#include "Loop/observer.h"
#include "Loop/source_set.h"
#include "Loop/watch.h"
#include "Support/fault.h"

bool mode_name_equals_common(CFStringRef name)
{
    return name == kCFRunLoopCommonModes || CFEqual(name, kCFRunLoopCommonModes);
}

/* So many are looked at one after the other; where there are more, those behind them are found by the hash of their name. */
enum { few_modes = 8 };

/* Among the few; NULL also says that the name may be another string of the same text. */
static struct mode *find_identical(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = loop->modes;

    for (int i = 1; mode && mode->name != name; i++) {
        mode = i < few_modes ? mode->next : NULL;
    }
    return mode;
}

bool mode_name_means_common(CFRunLoopRef loop, CFStringRef name)
{
    return !find_identical(loop, name) && mode_name_is_common(name);
}

static struct mode *find_equal(CFRunLoopRef loop, CFStringRef name)
{
    CFHashCode hash = CFHash(name);

    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->name_hash == hash && CFEqual(mode->name, name)) {
            return mode;
        }
    }
    return NULL;
}

static bool names_are_equal(const void *name, const void *other, const void *context)
{
    (void)context;
    return name == other || CFEqual(name, other);
}

static struct mode *find_by_hash(CFRunLoopRef loop, CFStringRef name)
{
    const struct hash_slot *slot = hash_table_find(&loop->modes_by_name, CFHash(name), name, names_are_equal, NULL);

    return slot ? (struct mode *)(uintptr_t)slot->value : NULL;
}

static struct mode *find_any(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *identical = find_identical(loop, name);

    if (identical) {
        return identical;
    }
    return loop->modes_by_name.slots ? find_by_hash(loop, name) : find_equal(loop, name);
}

struct mode *mode_find(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = find_any(loop, name);

    return mode && mode->is_declared ? mode : NULL;
}

static struct mode *mode_create(CFStringRef name)
{
    struct mode *mode = calloc(1, sizeof *mode);

    if (!mode) {
        return NULL;
    }
    mode->name = CFStringCreateCopy(kCFAllocatorSystemDefault, name); /* of our own: the caller's may be mutable */
    if (!mode->name) {
        free(mode);
        return NULL;
    }
    mode->name_hash = CFHash(name);
    link_init(&mode->pending);
    block_queue_init(&mode->blocks);
    return mode;
}

static void enter_by_name(CFRunLoopRef loop, const struct mode *mode)
{
    hash_table_insert(&loop->modes_by_name, mode->name_hash, mode->name, mode);
}

/* Room for one more by its name, if there are more than few then. False if there is no memory. */
static bool reserve_by_name(CFRunLoopRef loop)
{
    struct hash_table *table = &loop->modes_by_name;
    size_t capacity = hash_table_capacity_for(loop->mode_count + 1u);
    struct hash_slot *slots;
    bool is_first = !table->slots;

    if (loop->mode_count < few_modes || table->capacity >= capacity) {
        return true;
    }
    slots = calloc(capacity, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(hash_table_adopt(table, slots, capacity));
    for (struct mode *mode = loop->modes; mode && is_first; mode = mode->next) {
        enter_by_name(loop, mode);
    }
    return true;
}

static void append(CFRunLoopRef loop, struct mode *mode)
{
    *loop->modes_end = mode;
    loop->modes_end = &mode->next;
    loop->mode_count++;
    if (loop->modes_by_name.slots) {
        enter_by_name(loop, mode);
    }
}

struct mode *mode_create_undeclared(CFRunLoopRef loop, CFStringRef name)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct mode *mode = find_any(loop, name);

    if (mode) {
        return mode;
    }
    mode = reserve_by_name(loop) ? mode_create(name) : NULL;
    if (!mode) {
        fault_log_once(&logged, "CFRunLoop: there is no memory for another mode");
        return NULL;
    }
    append(loop, mode);
    return mode;
}

bool mode_resolve(CFRunLoopRef loop, CFStringRef name, struct mode **ret_mode)
{
    *ret_mode = find_identical(loop, name);
    if (*ret_mode) {
        return false;
    }
    if (mode_name_is_common(name)) {
        return true;
    }
    *ret_mode = mode_create_undeclared(loop, name);
    return false;
}

struct mode *mode_declare(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = mode_create_undeclared(loop, name);

    if (mode) {
        mode->is_declared = true;
    }
    return mode;
}

void mode_make_common(CFRunLoopRef loop, struct mode *mode)
{
    mode->is_common = true;
    *loop->common_modes_end = mode;
    loop->common_modes_end = &mode->next_common;
}

bool mode_is_empty(CFRunLoopRef loop, const struct mode *mode)
{
    bool has_sources = mode->sources.count > mode->resting_count;

    return !has_sources && mode->timer_count == 0 && !blocks_are_queued(loop, mode) && !main_queue_serves(loop, mode);
}

static void mode_free(struct mode *mode)
{
    watch_set_free(mode);
    source_set_free(&mode->sources);
    heap_free(&mode->timers);
    free(mode->advanced);
    CFRelease(mode->name);
    free(mode);
}

void modes_free(CFRunLoopRef loop)
{
    struct mode *mode = loop->modes;

    while (mode) {
        struct mode *next = mode->next;

        mode_free(mode);
        mode = next;
    }
    loop->modes = NULL;
    free(loop->modes_by_name.slots);
}
