/* SPDX-License-Identifier: Apache-2.0 */
/* See host_schedule.h. No lock is held over calls on loops. */
#include "Host/host_schedule.h"

#include "Host/question.h"

enum addition { addition_done, addition_known, addition_no_memory };

/* The mode's references are the host's if it is added. */
EXCLUDES(the_item_lock) static enum addition add_mode(CFHostRef host, struct scheduled_mode added)
{
    enum addition outcome = addition_known;

    host_lock(host);
    if (!scheduled_modes_contain(&host->modes, added.loop, added.mode)) {
        outcome = scheduled_modes_add(&host->modes, added) ? addition_done : addition_no_memory;
    }
    host_unlock(host);
    return outcome;
}

EXCLUDES(the_item_lock) static bool is_in_mode(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    bool answer;

    host_lock(host);
    answer = scheduled_modes_contain(&host->modes, loop, mode);
    host_unlock(host);
    return answer;
}

bool host_schedule_add(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    struct scheduled_mode added;
    enum addition outcome;

    invariant_not_held(item_lock(host)); /* loops take locks of their own */
    if (!scheduled_mode_init(&added, loop, mode)) {
        return false;
    }
    outcome = add_mode(host, added);
    if (outcome != addition_done) {
        scheduled_mode_release(added);
        return outcome == addition_known;
    }
    CFRunLoopAddSource(loop, host->source, mode);
    question_schedule(host, loop, mode);
    if (!is_in_mode(host, loop, mode)) { /* another thread has taken the host out meanwhile */
        CFRunLoopRemoveSource(loop, host->source, mode);
    }
    return true;
}

void host_schedule_remove(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    struct scheduled_mode removed;
    bool was_there;

    host_lock(host);
    was_there = scheduled_modes_remove(&host->modes, loop, mode, &removed);
    host_unlock(host);
    if (was_there) {
        CFRunLoopRemoveSource(loop, host->source, mode);
        question_unschedule(host, loop, mode);
        scheduled_mode_release(removed);
    }
}

void host_schedule_signal(CFHostRef host)
{
    CFRunLoopSourceSignal(host->source);
    scheduled_modes_wake(host, &host->modes);
}
