/* SPDX-License-Identifier: Apache-2.0 */
/* The info of contexts, while the program uses it; see info_hold.h. */
#include "Loop/info_hold.h"

#include "Loop/thread_loop.h"

bool info_hold_finish(struct info_hold *hold, void **ret_info)
{
    if (hold->is_released) {
        return false;
    }
    hold->is_released = true;
    *ret_info = hold->info;
    hold->info = NULL;
    return true;
}

/* One user less. */
static bool end(struct info_hold *hold, void **ret_info)
{
    return --hold->users == 0 && hold->is_over && info_hold_finish(hold, ret_info);
}

bool info_hold_give_up(struct info_hold *hold, void **ret_info)
{
    hold->is_over = true;
    return hold->users == 0 && info_hold_finish(hold, ret_info);
}

bool info_hold_begin_use(struct info_hold *hold, struct lock *lock, void **ret_info)
{
    bool is_kept;

    lock_take(lock);
    is_kept = !hold->is_over;
    hold->users += is_kept ? 1 : 0; /* as a callout of another thread */
    *ret_info = hold->info;
    lock_drop(lock);
    return is_kept;
}

bool info_hold_end_use(struct info_hold *hold, struct lock *lock, void **ret_info)
{
    bool releases;

    lock_take(lock);
    releases = end(hold, ret_info);
    lock_drop(lock);
    return releases;
}

CFStringRef info_hold_describe(struct info_hold *hold, struct lock *lock, CFStringRef (*copy)(const void *info),
                               void (*release)(const void *info))
{
    CFStringRef text = NULL;
    void *info;

    if (copy && info_hold_begin_use(hold, lock, &info)) {
        text = copy(info);
        if (info_hold_end_use(hold, lock, &info) && release) {
            release(info);
        }
    }
    return text;
}

void *called_info_begin(struct called_info *called)
{
    called->hold.users++;
    called->called_on = thread_loop_current();
    return called->hold.info;
}

bool called_info_end(struct called_info *called, void **ret_info)
{
    called->called_on = NULL; /* one that goes on is not this thread's, or ends later all the same */
    return end(&called->hold, ret_info);
}

bool called_info_give_up(struct called_info *called, void **ret_info)
{
    if (called->hold.users == 1 && thread_loop_is_current(called->called_on)) {
        called->hold.is_over = true;
        return info_hold_finish(&called->hold, ret_info);
    }
    return info_hold_give_up(&called->hold, ret_info);
}
