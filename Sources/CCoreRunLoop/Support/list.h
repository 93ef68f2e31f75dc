/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive doubly linked lists: a circle through a head. A link that is in no list points at itself, so that removing twice is harmless.
 * Whoever owns the list guards it.
 */
#ifndef CRL_SUPPORT_LIST_H
#define CRL_SUPPORT_LIST_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *next;
    struct link *prev;
};

/* The structure of type `type` whose member `field` is at `pointer`. */
#define container_of(pointer, type, field) ((type *)(void *)((char *)(pointer) - offsetof(type, field)))

static inline void link_init(struct link *link)
{
    link->next = link;
    link->prev = link;
}

static inline bool link_is_linked(const struct link *link)
{
    return link->next != link;
}

static inline bool list_is_empty(const struct link *head)
{
    return head->next == head;
}

static inline void list_insert_after(struct link *position, struct link *link)
{
    link->prev = position;
    link->next = position->next;
    position->next->prev = link;
    position->next = link;
}

static inline void list_append(struct link *head, struct link *link)
{
    list_insert_after(head->prev, link);
}

static inline void list_remove(struct link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link_init(link);
}

/* Moves the whole of `from` behind the last of `head`; `from` is empty afterwards. */
static inline void list_append_all(struct link *head, struct link *from)
{
    if (list_is_empty(from)) {
        return;
    }
    from->next->prev = head->prev;
    from->prev->next = head;
    head->prev->next = from->next;
    head->prev = from->prev;
    link_init(from);
}

#define list_for_each(link, head) for (struct link *link = (head)->next; link != (head); link = link->next)

/* As list_for_each, for bodies that remove `link` from the list. */
#define list_for_each_removable(link, head) \
    for (struct link *link = (head)->next, *link##_next = link->next; link != (head); link = link##_next, link##_next = link->next)

#endif
