/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes of a loop: finding one by its name, making one when something is added under a new name (rule 11), and listing the common ones.
 *
 * The loop's lock is held in every function that takes a loop, except modes_free, whose loop nobody else knows any more. A mode is never
 * removed while its loop lives, so a pointer to one stays valid without the lock.
 */
#include <stdlib.h>

#include "Loop/Core/loop.h"
#include "Support/fault.h"

/* The value of each constant is its own name. Modes are told apart by their text (rule 12). */
const CFRunLoopMode kCFRunLoopDefaultMode = CFSTR("kCFRunLoopDefaultMode");
const CFRunLoopMode kCFRunLoopCommonModes = CFSTR("kCFRunLoopCommonModes");

bool mode_name_equals_common(CFStringRef name)
{
    return name == kCFRunLoopCommonModes || CFEqual(name, kCFRunLoopCommonModes);
}

/* The first modes of a loop are compared one after the other. A loop with more of them also has a hash table by name. */
enum { few_modes = 8 };

/* Compares addresses only, among the first modes. NULL therefore means little: another string may have the same text. */
REQUIRES(the_loop_lock) static struct mode *find_identical(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = loop->modes;

    for (int i = 1; mode && mode->name != name; i++) {
        mode = i < few_modes ? mode->next : NULL;
    }
    return mode;
}

REQUIRES(the_loop_lock) bool mode_name_means_common(CFRunLoopRef loop, CFStringRef name)
{
    return !find_identical(loop, name) && mode_name_is_common(name);
}

REQUIRES(the_loop_lock) static struct mode *find_equal(CFRunLoopRef loop, CFStringRef name)
{
    CFHashCode hash = CFHash(name);

    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->name_hash == hash && CFEqual(mode->name, name)) {
            return mode;
        }
    }
    return NULL;
}

static bool mode_names_are_equal(const void *name, const void *other, const void *context)
{
    (void)context;
    return name == other || CFEqual(name, other);
}

REQUIRES(the_loop_lock) static struct mode *find_by_hash(CFRunLoopRef loop, CFStringRef name)
{
    const struct hash_slot *slot = hash_table_find(&loop->modes_by_name, CFHash(name), name, mode_names_are_equal, NULL);

    return slot ? (struct mode *)(uintptr_t)slot->value : NULL;
}

/* Finds the mode of that name, declared or not. Addresses come first: comparing texts costs more than all the rest of a call. */
REQUIRES(the_loop_lock) static struct mode *find_any(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *identical = find_identical(loop, name);

    if (identical) {
        return identical;
    }
    return loop->modes_by_name.slots ? find_by_hash(loop, name) : find_equal(loop, name);
}

REQUIRES(the_loop_lock) struct mode *mode_find(CFRunLoopRef loop, CFStringRef name)
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
    mode->name = CFStringCreateCopy(kCFAllocatorSystemDefault, name); /* a copy, because the caller's string may be mutable */
    if (!mode->name) {
        free(mode);
        return NULL;
    }
    mode->name_hash = CFHash(name);
    link_init(&mode->pending);
    block_queue_init(&mode->blocks);
    return mode;
}

REQUIRES(the_loop_lock) static void table_insert(CFRunLoopRef loop, const struct mode *mode)
{
    hash_table_insert(&loop->modes_by_name, mode->name_hash, mode->name, mode);
}

/*
 * Makes room for one more mode in the table, if the loop will have more than a few. The first time it also enters the modes that are there.
 * Returns false if there is no memory.
 */
REQUIRES(the_loop_lock) static bool table_reserve(CFRunLoopRef loop)
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
        table_insert(loop, mode);
    }
    return true;
}

REQUIRES(the_loop_lock) static void modes_append(CFRunLoopRef loop, struct mode *mode)
{
    invariant(!*loop->modes_end && !mode->next);
    *loop->modes_end = mode;
    loop->modes_end = &mode->next;
    loop->mode_count++;
    if (loop->modes_by_name.slots) {
        table_insert(loop, mode);
    }
}

REQUIRES(the_loop_lock) struct mode *mode_create_undeclared(CFRunLoopRef loop, CFStringRef name)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct mode *mode = find_any(loop, name);

    if (mode) {
        return mode;
    }
    mode = table_reserve(loop) ? mode_create(name) : NULL;
    if (!mode) {
        fault_log_once(&logged, "CFRunLoop: there is no memory for another mode");
        return NULL;
    }
    modes_append(loop, mode);
    return mode;
}

REQUIRES(the_loop_lock) bool mode_resolve(CFRunLoopRef loop, CFStringRef name, struct mode **ret_mode)
{
    invariant_held(&loop->lock);
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

REQUIRES(the_loop_lock) struct mode *mode_declare(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = mode_create_undeclared(loop, name);

    if (mode) {
        mode->is_declared = true;
    }
    return mode;
}

bool mode_common_are_several(CFRunLoopRef loop)
{
    bool are_several;

    loop_lock(loop);
    are_several = loop->common_modes && loop->common_modes->next_common;
    loop_unlock(loop);
    return are_several;
}

REQUIRES(the_loop_lock) void mode_make_common(CFRunLoopRef loop, struct mode *mode)
{
    invariant(!mode->is_common && !*loop->common_modes_end); /* a mode is common for good, and stands in the list once */
    mode->is_common = true;
    *loop->common_modes_end = mode;
    loop->common_modes_end = &mode->next_common;
}

CFMutableArrayRef modes_copy_names(CFRunLoopRef loop)
{
    CFMutableArrayRef names = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    CFIndex count = 0;

    loop_lock(loop);
    for (const struct mode *mode = loop->modes; mode && names; mode = mode->next) {
        if (mode->is_declared) {
            CFArrayAppendValue(names, mode->name);
            count++;
        }
    }
    loop_unlock(loop);
    if (names && CFArrayGetCount(names) < count) { /* there was no memory for all of them */
        CFRelease(names);
        names = NULL;
    }
    return names;
}

CFStringRef mode_copy_current_name(CFRunLoopRef loop)
{
    CFStringRef name = NULL;

    loop_lock(loop);
    if (loop->innermost_run) {
        name = loop->innermost_run->mode->name;
        object_retain(name);
    }
    loop_unlock(loop);
    return name;
}

/* The loop is being freed and nobody else knows it, so no lock is needed. */
NOT_CHECKED static void mode_free(struct mode *mode)
{
    if (mode->watches) {
        mode->free_watches(mode);
    }
    free(mode->sources.buckets);
    heap_free(&mode->timers);
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
