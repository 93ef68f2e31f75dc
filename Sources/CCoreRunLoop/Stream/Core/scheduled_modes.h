/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes of loops that a stream or a host is scheduled in.
 *
 * The item lock of the owner guards the list. No lock is held over calls on loops: a walk over the list takes the lock for each mode.
 */
#ifndef CRL_STREAM_SCHEDULED_MODES_H
#define CRL_STREAM_SCHEDULED_MODES_H

#include "Stream/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Support/lock.h"

struct scheduled_mode {
    CFRunLoopRef loop; /* a reference, as the mode */
    CFStringRef mode;
};

struct scheduled_modes {
    struct scheduled_mode *list GUARDED_BY(the_item_lock);
    uint32_t count GUARDED_BY(the_item_lock);
};

typedef void scheduled_mode_function(void *info, CFRunLoopRef loop, CFStringRef mode);

/* Takes a reference to the loop, and copies the mode. Returns false if there is no memory. */
bool scheduled_mode_init(struct scheduled_mode *one, CFRunLoopRef loop, CFStringRef mode);
void scheduled_mode_release(struct scheduled_mode one);

REQUIRES(the_item_lock) bool scheduled_modes_contain(const struct scheduled_modes *modes, CFRunLoopRef loop, CFStringRef mode);
/* Adds a mode that the list does not contain, and takes over its references. Returns false if there is no memory. */
REQUIRES(the_item_lock) bool scheduled_modes_add(struct scheduled_modes *modes, struct scheduled_mode added);
/* Takes a mode out. `*ret_removed` then has its references. Returns false if it was not there. */
REQUIRES(the_item_lock)
bool scheduled_modes_remove(struct scheduled_modes *modes, CFRunLoopRef loop, CFStringRef mode, struct scheduled_mode *ret_removed);
/*
 * Calls the function for each mode, without the lock. A mode that another thread adds or removes meanwhile may be left out: whoever adds
 * one does with it what the walk does.
 */
EXCLUDES(the_item_lock)
void scheduled_modes_each(const void *owner, const struct scheduled_modes *modes, scheduled_mode_function *function, void *info);
/* Wakes the loops. */
EXCLUDES(the_item_lock) void scheduled_modes_wake(const void *owner, const struct scheduled_modes *modes);
/* Releases the modes of a list that no other thread knows any more. */
void scheduled_modes_free(struct scheduled_modes *modes);

#endif
