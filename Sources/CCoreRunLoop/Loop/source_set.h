/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of a mode, found by identity or by equality (rules 93, 94). The loop's lock guards a set.
 */
#ifndef CRL_LOOP_SOURCE_SET_H
#define CRL_LOOP_SOURCE_SET_H

#include "Support/link_names.h"

#include "Loop/source.h"

void source_set_insert(struct source_set *set, struct source_member *member);
void source_set_remove(struct source_set *set, struct source_member *member);
void source_set_free(struct source_set *set);

/*
 * The member of `set`, the sources of `mode` (NULL: the common items), that is, or equals, `source`; NULL if none. Lets go of the loop's
 * lock while a user's `equal` runs: whatever else the caller had read under the lock must be read again.
 */
struct source_member *source_set_find(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source,
                                      CFHashCode hash);

CFHashCode source_hash(CFTypeRef source);
Boolean source_equal(CFTypeRef one, CFTypeRef other);

#endif
