/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of common timers and observers. The loop's lock is held in every function here. */
#include "Loop/Core/common_items.h"

#include <stdlib.h>

struct common_item *common_item_add(struct link *items, const void *item)
{
    struct common_item *entry = malloc(sizeof *entry);

    if (entry) {
        entry->item = item;
        list_append(items, &entry->link);
    }
    return entry;
}

void common_item_remove(struct common_item *entry)
{
    invariant(!list_is_empty(&entry->link)); /* the entry is in a list */
    list_remove(&entry->link);
    free(entry);
}
