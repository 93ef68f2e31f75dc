/* SPDX-License-Identifier: Apache-2.0 */
/* See scheduled_modes.h. */
#include "Stream/Core/scheduled_modes.h"

#include <stdlib.h>

#include "Runtime/Object/object.h"
#include "Support/invariant.h"

bool scheduled_mode_init(struct scheduled_mode *one, CFRunLoopRef loop, CFStringRef mode)
{
    one->mode = CFStringCreateCopy(NULL, mode);
    one->loop = loop;
    if (one->mode) {
        object_retain(loop);
    }
    return one->mode;
}

void scheduled_mode_release(struct scheduled_mode one)
{
    CFRelease(one.loop);
    CFRelease(one.mode);
}

/* Returns the index of the mode, or the count of modes. */
REQUIRES(the_item_lock) static uint32_t find(const struct scheduled_modes *modes, CFRunLoopRef loop, CFStringRef mode)
{
    uint32_t i = 0;

    while (i < modes->count && (modes->list[i].loop != loop || !CFEqual(modes->list[i].mode, mode))) {
        i++;
    }
    return i;
}

bool scheduled_modes_contain(const struct scheduled_modes *modes, CFRunLoopRef loop, CFStringRef mode)
{
    return find(modes, loop, mode) < modes->count;
}

bool scheduled_modes_add(struct scheduled_modes *modes, struct scheduled_mode added)
{
    struct scheduled_mode *grown;

    invariant(added.loop && added.mode && !scheduled_modes_contain(modes, added.loop, added.mode));
    grown = realloc(modes->list, (modes->count + 1) * sizeof *grown);
    if (grown) {
        modes->list = grown;
        grown[modes->count++] = added;
    }
    return grown;
}

bool scheduled_modes_remove(struct scheduled_modes *modes, CFRunLoopRef loop, CFStringRef mode, struct scheduled_mode *ret_removed)
{
    uint32_t index = find(modes, loop, mode);

    if (index == modes->count) {
        return false;
    }
    *ret_removed = modes->list[index];
    modes->list[index] = modes->list[--modes->count];
    return true;
}

/* Copies the mode of that index, with references. Returns false if there are fewer. */
EXCLUDES(the_item_lock)
static bool copy_mode(const void *owner, const struct scheduled_modes *modes, uint32_t index, struct scheduled_mode *ret_mode)
{
    bool is_there;

    lock_take(item_lock(owner));
    is_there = index < modes->count;
    if (is_there) {
        *ret_mode = modes->list[index];
        object_retain(ret_mode->loop);
        object_retain(ret_mode->mode);
    }
    lock_drop(item_lock(owner));
    return is_there;
}

/* From the last one down: a mode that is removed meanwhile leaves its index to the last one, which has been seen. */
void scheduled_modes_each(const void *owner, const struct scheduled_modes *modes, scheduled_mode_function *function, void *info)
{
    struct scheduled_mode one;
    uint32_t count;

    lock_take(item_lock(owner));
    count = modes->count;
    lock_drop(item_lock(owner));
    while (count-- > 0) {
        if (copy_mode(owner, modes, count, &one)) {
            invariant_not_held(item_lock(owner));
            function(info, one.loop, one.mode);
            scheduled_mode_release(one);
        }
    }
}

static void wake(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)info;
    (void)mode;
    CFRunLoopWakeUp(loop);
}

void scheduled_modes_wake(const void *owner, const struct scheduled_modes *modes)
{
    scheduled_modes_each(owner, modes, wake, NULL);
}

/* No other thread knows the list (NOT_CHECKED). */
NOT_CHECKED void scheduled_modes_free(struct scheduled_modes *modes)
{
    while (modes->count > 0) {
        scheduled_mode_release(modes->list[--modes->count]);
    }
    free(modes->list);
}
