/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop source of an object of a layer above, such as a socket. The object makes the source when the program first asks for it.
 *
 * The source holds a reference on the object. The object knows the source only weakly, so that the two do not keep each other alive. The
 * object's item lock guards the weak reference.
 */
#ifndef CRL_LOOP_WEAK_SOURCE_H
#define CRL_LOOP_WEAK_SOURCE_H

#include "Loop/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Support/lock.h"

struct weak_source {
    CFRunLoopSourceRef source GUARDED_BY(the_item_lock);
};

/* Returns the source with a reference, or NULL if there is none or it is being freed. */
REQUIRES(the_item_lock) CFRunLoopSourceRef weak_source_retain(const struct weak_source *weak);

/* Makes a source for the owner. The result holds a reference on the owner. NULL: no memory, or the owner has just become invalid. */
typedef CFRunLoopSourceRef (*weak_source_maker)(CFAllocatorRef allocator, const void *owner, CFIndex order);

/* Returns the owner's source with a reference, and makes it if there is none. NULL: the owner is invalid, or there is no memory. */
EXCLUDES(the_item_lock)
CFRunLoopSourceRef weak_source_get_or_make(const void *owner, struct weak_source *weak, const bool *owner_is_valid, weak_source_maker make,
                                           CFAllocatorRef allocator, CFIndex order);

/* The source calls this while it is being freed. */
EXCLUDES(the_item_lock) void weak_source_forget(const void *owner, struct weak_source *weak, CFRunLoopSourceRef source);

#endif
