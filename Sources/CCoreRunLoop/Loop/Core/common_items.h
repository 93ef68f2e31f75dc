/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common items: the timers and observers that were added to kCFRunLoopCommonModes. A loop has one list for each kind. Every mode that is
 * declared common later gets all items of the lists (rule 19), so an item stays in its list even if it has left a single common mode.
 *
 * The loop's lock guards the lists. Sources have a set of their own, see Loop/Signal/source_set.h.
 */
#ifndef CRL_LOOP_CORE_COMMON_ITEMS_H
#define CRL_LOOP_CORE_COMMON_ITEMS_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/* An entry in a loop's list of common timers or common observers. */
struct common_item {
    struct link link;
    const void *item;
};

/* Returns NULL if there is no memory. Takes no reference: the item is in the loop, and the caller counts the reference for that. */
REQUIRES(the_loop_lock) struct common_item *common_item_add(struct link *items, const void *item);
REQUIRES(the_loop_lock) void common_item_remove(struct common_item *entry);

static inline struct common_item *common_item_of(struct link *link)
{
    return container_of(link, struct common_item, link);
}

#endif
