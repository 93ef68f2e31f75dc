/* SPDX-License-Identifier: Apache-2.0 */
/* A list of work; see work.h. Whoever has the list guards it. */
#include "Support/invariant.h"
#include "Work/work.h"

void work_list_append(struct work_list *list, CRLWorkRef work)
{
    invariant(!work->next && !work->previous && list->first != work);
    work->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = work;
    list->last = work;
}

void work_list_remove(struct work_list *list, CRLWorkRef work)
{
    *(work->previous ? &work->previous->next : &list->first) = work->next;
    *(work->next ? &work->next->previous : &list->last) = work->previous;
    work->next = work->previous = NULL;
}
