/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contexts of timers and observers: the program's info pointer and the functions that retain, release and describe it.
 *
 * The functions never change after creation. They are called without any lock. A description may run while another thread invalidates the
 * item: the description then releases the info when it has ended.
 */
#ifndef CRL_LOOP_CORE_CONTEXT_H
#define CRL_LOOP_CORE_CONTEXT_H

#include "Loop/link_names.h"

#include "Loop/Core/context_info.h"

/* Exists only for a context that has at least one function. */
struct context {
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    CFStringRef (*copy_description)(const void *info);
    struct context_info description_info GUARDED_BY(the_item_lock); /* counts the descriptions under way; callouts are not counted here */
};

/*
 * Retains the info and keeps the functions. Returns false if there is no memory. `*ret_context` is NULL if the context has no functions.
 * `*ret_info` is what `retain` returned.
 */
bool context_adopt(const struct context *functions, void *info, struct context **ret_context, void **ret_info);
/* Releases the item's info, at once or at the end of a description that is under way. The caller holds no lock. */
void context_release(const void *item, struct context *context, const void *info);
/*
 * Returns a text for descriptions, owned by the caller, or NULL if there is no memory. Without a description by the program the text is the
 * address `info`, which is not dereferenced. The caller holds no lock.
 */
CFStringRef context_describe(const void *item, struct context *context, const void *info);

#endif
