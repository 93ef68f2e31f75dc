/* SPDX-License-Identifier: Apache-2.0 */
/* Weak references to sources; see weak_source.h. Any thread may call these. */
#include "Loop/Source/weak_source.h"

#include "Runtime/Object/object.h"
#include "Support/lock.h"
#include "Support/locked_read.h"

CFRunLoopSourceRef weak_source_retain(const struct weak_source *weak)
{
    return weak->source && object_try_retain(weak->source) ? weak->source : NULL;
}

/*
 * Returns a usable source with a reference: the existing one, or else `made`, which then becomes the owner's source. Returns NULL if there
 * is neither, or if `*owner_is_valid`, read under the lock, is false.
 */
static CFRunLoopSourceRef settle(const void *owner, struct weak_source *weak, CFRunLoopSourceRef made, const bool *owner_is_valid)
{
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef stale = NULL;

    lock_take(item_lock(owner));
    source = weak_source_retain(weak);
    if (source && !CFRunLoopSourceIsValid(source)) {
        stale = source; /* its reference is dropped after the lock: that may free the source, which takes the lock to forget it */
        source = NULL;
        weak->source = NULL;
    }
    if (!source && made && *owner_is_valid) {
        object_retain(made);
        weak->source = made;
        source = made;
    }
    lock_drop(item_lock(owner));
    if (stale) {
        object_release(stale); /* not under the lock: freeing the source takes it */
    }
    return source;
}

CFRunLoopSourceRef weak_source_get_or_make(const void *owner, struct weak_source *weak, const bool *owner_is_valid, weak_source_maker make,
                                           CFAllocatorRef allocator, CFIndex order)
{
    CFRunLoopSourceRef source = settle(owner, weak, NULL, owner_is_valid);
    CFRunLoopSourceRef made;

    if (source || !locked_read_bool(item_lock(owner), owner_is_valid)) {
        return source;
    }
    made = make(allocator, owner, order); /* without the lock, because it allocates */
    if (!made) {
        return NULL;
    }
    source = settle(owner, weak, made, owner_is_valid);
    if (source != made) {
        CFRunLoopSourceInvalidate(made); /* another thread was faster, or has invalidated the owner */
    }
    object_release(made);
    return source;
}

void weak_source_forget(const void *owner, struct weak_source *weak, CFRunLoopSourceRef source)
{
    lock_take(item_lock(owner));
    if (weak->source == source) { /* else the owner has another source by now */
        weak->source = NULL;
    }
    lock_drop(item_lock(owner));
}
