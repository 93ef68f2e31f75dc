/* SPDX-License-Identifier: Apache-2.0 */
/* Weak references to sources; see weak_source.h. */
#include "Loop/weak_source.h"

#include "Runtime/object.h"
#include "Support/lock.h"

CFRunLoopSourceRef weak_source_retain(const struct weak_source *weak)
{
    return weak->source && object_try_retain(weak->source) ? weak->source : NULL;
}

CFRunLoopSourceRef weak_source_settle(const void *owner, struct weak_source *weak, CFRunLoopSourceRef made, const bool *owner_is_valid)
{
    struct lock *lock = item_lock(owner);
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef stale = NULL;

    lock_take(lock);
    source = weak_source_retain(weak);
    if (source && !CFRunLoopSourceIsValid(source)) {
        stale = source;
        source = NULL;
        weak->source = NULL;
    }
    if (!source && made && *owner_is_valid) {
        object_retain(made);
        weak->source = made;
        source = made;
    }
    lock_drop(lock);
    if (stale) {
        object_release(stale);
    }
    return source;
}

void weak_source_forget(const void *owner, struct weak_source *weak, CFRunLoopSourceRef source)
{
    struct lock *lock = item_lock(owner);

    lock_take(lock);
    if (weak->source == source) {
        weak->source = NULL;
    }
    lock_drop(lock);
}
