/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the uses of a context's info; see context_info.h for who releases it. */
#include "Loop/Core/context_info.h"

bool context_info_finish(struct context_info *counted, void **ret_info)
{
    if (counted->is_released) {
        return false;
    }
    counted->is_released = true;
    *ret_info = counted->info;
    counted->info = NULL;
    return true;
}

/* Takes one use off the count. Returns true if it was the last of a retired info. */
static bool end_one_use(struct context_info *counted, void **ret_info)
{
    invariant(counted->users > 0);
    return --counted->users == 0 && counted->is_over && context_info_finish(counted, ret_info);
}

bool context_info_retire(struct context_info *counted, void **ret_info)
{
    counted->is_over = true;
    return counted->users == 0 && context_info_finish(counted, ret_info);
}

bool context_info_begin_use(struct context_info *counted, struct lock *lock, void **ret_info)
{
    bool is_kept;

    lock_take(lock);
    invariant(!counted->is_released || !counted->info);
    is_kept = !counted->is_over;
    counted->users += is_kept ? 1 : 0; /* counts like a callout on another thread */
    *ret_info = counted->info;
    lock_drop(lock);
    return is_kept;
}

bool context_info_end_use(struct context_info *counted, struct lock *lock, void **ret_info)
{
    bool is_last;

    lock_take(lock);
    is_last = end_one_use(counted, ret_info);
    lock_drop(lock);
    return is_last;
}

CFStringRef context_info_describe(struct context_info *counted, struct lock *lock, CFStringRef (*copy)(const void *info),
                                  void (*release)(const void *info))
{
    CFStringRef text = NULL;
    void *info;

    if (copy && context_info_begin_use(counted, lock, &info)) {
        text = copy(info);
        if (context_info_end_use(counted, lock, &info) && release) {
            release(info);
        }
    }
    return text;
}

/* Identifies the calling thread, which may be one of a dispatch queue and have no loop. */
static const void *this_thread(void)
{
    static __thread char mark __attribute__((tls_model("initial-exec")));

    return &mark;
}

void *callout_info_begin(struct callout_info *called)
{
    invariant(called->hold.users < UINT32_MAX);
    called->hold.users++;
    called->called_by = this_thread();
    return called->hold.info;
}

bool callout_info_end(struct callout_info *called, void **ret_info)
{
    /* A callout that goes on is another thread's, or an outer one of this thread. To forget it is safe: its end releases the info. */
    called->called_by = NULL;
    return end_one_use(&called->hold, ret_info);
}

bool callout_info_retire(struct callout_info *called, void **ret_info)
{
    /* The callout itself invalidates its object. Nobody else uses the info, so it can be released before the callout has returned. */
    if (called->hold.users == 1 && called->called_by == this_thread()) {
        called->hold.is_over = true;
        return context_info_finish(&called->hold, ret_info);
    }
    return context_info_retire(&called->hold, ret_info);
}
