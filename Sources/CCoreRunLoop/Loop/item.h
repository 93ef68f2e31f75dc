/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What timers and observers have in common: they belong to at most one loop, may be among its common items, and have a context of the same
 * form.
 */
#ifndef CRL_LOOP_ITEM_H
#define CRL_LOOP_ITEM_H

#include "Support/link_names.h"

#include "Loop/info_hold.h"
#include "Loop/loop.h"

/* The functions of a context that has any. C */
struct item_context {
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    CFStringRef (*copy_description)(const void *info);
    struct info_hold described; /* I; of the descriptions alone, and with the info for them */
};

/* Takes over a context: retains the info, keeps the functions. False if there is no memory; NULL `ret_context` is what a context without
 * functions leaves. */
bool item_context_adopt(const struct item_context *functions, void *info, struct item_context **ret_context, void **ret_info);
/* Gives the item's info back: at the end of a description that is under way, or now. Without locks, as the next. */
void item_context_release(const void *item, struct item_context *context, const void *info);
/* A text for descriptions, owned by the caller; NULL if there is no memory. `info` is what is told without the program, not looked at. */
CFStringRef item_context_describe(const void *item, struct item_context *context, const void *info);

/* An entry in a loop's list of common timers or observers, which every mode declared common later will get too (19). L */
struct common_item {
    struct link link;
    const void *item;
};

/* NULL if there is no memory. Takes no reference: the item is in the loop, which holds one. */
struct common_item *common_item_add(struct link *items, const void *item);
void common_item_remove(struct common_item *item);

static inline struct common_item *common_item_of(struct link *link)
{
    return container_of(link, struct common_item, link);
}

/*
 * Locks the loop that the item is in, or while it is in none the item. Returns the loop, which stays alive until it is unlocked, or NULL.
 * An item may leave its loop without its own lock as long as the loop's thread has not begun to end; see item_locks_pass.
 */
CFRunLoopRef item_lock_home(const void *item, const _Atomic(CFRunLoopRef) *its_loop);
void item_unlock_home(const void *item, CFRunLoopRef loop);

#endif
