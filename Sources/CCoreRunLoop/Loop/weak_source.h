/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop source of an object of a layer above: made at the first wish, holding a reference on the object, and known to the object
 * only weakly, so that the two do not keep each other alive. The object's item lock (I) guards the weak reference.
 */
#ifndef CRL_LOOP_WEAK_SOURCE_H
#define CRL_LOOP_WEAK_SOURCE_H

#include "Support/link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CFRunLoop.h"

struct weak_source {
    CFRunLoopSourceRef source; /* I */
};

/* The source with a reference, or NULL if there is none or it is being freed. I. */
CFRunLoopSourceRef weak_source_retain(const struct weak_source *weak);

/*
 * The source that can be used, with a reference: the one there is, or else `made`. NULL if there is neither, or where `*owner_is_valid`,
 * read under the lock, says that the object is over. Takes the lock.
 */
CFRunLoopSourceRef weak_source_settle(const void *owner, struct weak_source *weak, CFRunLoopSourceRef made, const bool *owner_is_valid);

/* The source is being freed. Takes the lock. */
void weak_source_forget(const void *owner, struct weak_source *weak, CFRunLoopSourceRef source);

#endif
