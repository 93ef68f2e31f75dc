/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, common items, and the order of the two locks. */
#include "Loop/item.h"

#include <stdlib.h>

#include "Loop/thread_loop.h"

bool item_context_adopt(const struct item_context *functions, void *info, struct item_context **ret_context, void **ret_info)
{
    *ret_context = NULL;
    if (functions->retain || functions->release || functions->copy_description) {
        *ret_context = malloc(sizeof **ret_context);
        if (!*ret_context) {
            return false;
        }
        **ret_context = *functions;
    }
    *ret_info = functions->retain ? (void *)(uintptr_t)functions->retain(info) : info;
    if (*ret_context) {
        (*ret_context)->described = (struct info_hold){.info = *ret_info};
    }
    return true;
}

/* No description has it, or will. */
static bool is_free(const void *item, struct item_context *context)
{
    struct lock *lock = item_lock(item);
    bool is_free_now;
    void *info;

    if (!context->copy_description) {
        return true;
    }
    lock_take(lock);
    is_free_now = info_hold_give_up(&context->described, &info);
    lock_drop(lock);
    return is_free_now;
}

void item_context_release(const void *item, struct item_context *context, const void *info)
{
    if (context && is_free(item, context) && context->release) {
        context->release(info);
    }
}

/* What the program says of it, or NULL. */
static CFStringRef copy_description(const void *item, struct item_context *context)
{
    struct lock *lock = item_lock(item);
    CFStringRef text;
    void *info;

    if (!context || !context->copy_description || !info_hold_begin_use(&context->described, lock, &info)) {
        return NULL;
    }
    text = context->copy_description(info);
    if (info_hold_end_use(&context->described, lock, &info) && context->release) {
        context->release(info);
    }
    return text;
}

CFStringRef item_context_describe(const void *item, struct item_context *context, const void *info)
{
    CFStringRef text = copy_description(item, context);

    return text ? text : CFStringCreateWithFormat(NULL, NULL, CFSTR("%p"), info);
}

struct common_item *common_item_add(struct link *items, const void *item)
{
    struct common_item *entry = malloc(sizeof *entry);

    if (entry) {
        entry->item = item;
        list_append(items, &entry->link);
    }
    return entry;
}

void common_item_remove(struct common_item *item)
{
    list_remove(&item->link);
    free(item);
}

static void keep(CFRunLoopRef loop)
{
    if (!thread_loop_is_current(loop)) {
        object_retain(loop);
    }
}

static void let_go(CFRunLoopRef loop)
{
    if (!thread_loop_is_current(loop)) {
        object_release(loop);
    }
}

/* Where the item is in this thread's own loop, which needs no reference, nothing but its lock is touched. */
static bool lock_own_loop(const _Atomic(CFRunLoopRef) *its_loop, CFRunLoopRef own)
{
    if (!own || !thread_loop_is_current(own)) {
        return false;
    }
    loop_lock(own);
    if (atomic_load_explicit(its_loop, memory_order_relaxed) == own) {
        return true;
    }
    loop_unlock(own);
    return false;
}

CFRunLoopRef item_lock_home(const void *item, const _Atomic(CFRunLoopRef) *its_loop)
{
    CFRunLoopRef own = atomic_load_explicit(its_loop, memory_order_relaxed);
    struct lock *lock;

    if (lock_own_loop(its_loop, own)) {
        return own;
    }
    lock = item_lock(item);
    for (;;) {
        CFRunLoopRef loop;

        lock_take(lock);
        /* Acquire: what was done to an item before it left its loop. */
        loop = atomic_load_explicit(its_loop, memory_order_acquire);
        if (!loop) {
            return NULL;
        }
        /* A loop that ends lets go of its items, and of their locks after that, before its memory can go; this thread's own cannot. */
        keep(loop);
        lock_drop(lock);
        loop_lock(loop);
        if (atomic_load_explicit(its_loop, memory_order_relaxed) == loop) {
            return loop;
        }
        loop_unlock(loop);
        let_go(loop);
    }
}

void item_unlock_home(const void *item, CFRunLoopRef loop)
{
    if (!loop) {
        lock_drop(item_lock(item));
        return;
    }
    loop_unlock(loop);
    let_go(loop);
}
