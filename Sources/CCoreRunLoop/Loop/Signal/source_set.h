/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of a mode, or of a loop's common items, found by identity or by equality (rules 93 and 94).
 */
#ifndef CRL_LOOP_SOURCE_SET_H
#define CRL_LOOP_SOURCE_SET_H

#include "Loop/link_names.h"

#include "Loop/Signal/source.h"

REQUIRES(the_loop_lock) void source_set_insert(struct source_set *set, struct source_member *member);
REQUIRES(the_loop_lock) void source_set_remove(struct source_set *set, struct source_member *member);

/*
 * Returns the member of `set` whose source is, or equals, `source`; NULL if there is none. `set` has the sources of `mode`, or the common
 * items for a NULL mode. Drops the loop's lock while the program's `equal` runs: the caller must read again everything it read before.
 */
REQUIRES(the_loop_lock)
struct source_member *source_set_find(CFRunLoopRef loop, struct source_set *set, struct mode *mode, CFRunLoopSourceRef source,
                                      CFHashCode hash);

#endif
