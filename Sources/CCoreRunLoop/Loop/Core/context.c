/* SPDX-License-Identifier: Apache-2.0 */
/* Adopts, releases and describes the contexts of timers and observers. The program's functions are called without locks. */
#include "Loop/Core/context.h"

#include <stdlib.h>

#include "CoreFoundation/CFString.h"

/* The context is new and no other thread knows it, so no lock is taken. */
NOT_CHECKED bool context_adopt(const struct context *functions, void *info, struct context **ret_context, void **ret_info)
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
        (*ret_context)->description_info = (struct context_info){.info = *ret_info};
    }
    return true;
}

/* Returns true if no description uses the info. Otherwise the last description releases it. No description begins after this. */
static bool retire_from_descriptions(const void *item, struct context *context)
{
    bool is_unused;
    void *info;

    if (!context->copy_description) {
        return true;
    }
    lock_take(item_lock(item));
    is_unused = context_info_retire(&context->description_info, &info);
    lock_drop(item_lock(item));
    return is_unused;
}

void context_release(const void *item, struct context *context, const void *info)
{
    if (context && retire_from_descriptions(item, context) && context->release) {
        context->release(info);
    }
}

/* context_info_describe takes the item's lock itself, which clang cannot see from an argument. */
NOT_CHECKED static CFStringRef copy_own_description(const void *item, struct context *context)
{
    return context_info_describe(&context->description_info, item_lock(item), context->copy_description, context->release);
}

CFStringRef context_describe(const void *item, struct context *context, const void *info)
{
    CFStringRef text = context ? copy_own_description(item, context) : NULL;

    return text ? text : CFStringCreateWithFormat(NULL, NULL, CFSTR("%p"), info);
}
