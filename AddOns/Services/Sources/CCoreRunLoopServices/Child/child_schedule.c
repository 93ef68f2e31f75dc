/* SPDX-License-Identifier: Apache-2.0 */
/* Children in loops: see child.h. The process's descriptor is watched by a CFFileDescriptor, and a timer brings SIGKILL. */
#include <signal.h>

#include "Child/child.h"
#include "Support/invariant.h"

/* ---- taking down ---- */

/* Takes what is there out of the child. */
REQUIRES(the_service_lock) static struct child_watch take_watch(CRLChildRef child)
{
    struct child_watch taken = child->watch;

    child->watch = (struct child_watch){NULL, NULL, NULL, NULL, NULL};
    return taken;
}

static void release(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

static void end_timer(CFRunLoopTimerRef timer)
{
    if (timer) {
        CFRunLoopTimerInvalidate(timer);
        CFRelease(timer);
    }
}

static void end_watch(struct child_watch watch)
{
    end_timer(watch.timer);
    if (watch.descriptor) {
        CFFileDescriptorInvalidate(watch.descriptor);
        CFRelease(watch.descriptor);
    }
    release(watch.source);
    release(watch.modes);
    release(watch.loop);
}

/* ---- the end ---- */

/* Returns false if it was told before. Nothing is left to do after the callback, which need not return (pthread_exit). */
static bool begin_telling(CRLChildRef child)
{
    struct child_watch taken;
    bool is_first;

    service_lock_take(&child_lock);
    taken = take_watch(child);
    is_first = !child->is_told;
    child->is_told = true;
    service_lock_drop(&child_lock);
    end_watch(taken);
    return is_first;
}

static void perform(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    CRLChildRef child = info;
    CRLChildEnd end;

    (void)types;
    if (!child_process_look(&child->process, &end)) {
        CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack); /* an early report */
        return;
    }
    (void)CFAutorelease(CFRetain(child)); /* until the pass is over, or the thread */
    if (begin_telling(child) && child->callout) {
        child->callout(child, &end, child->context.info);
    }
}

/* ---- SIGKILL ---- */

static void kill_late(CFRunLoopTimerRef timer, void *info)
{
    CRLChildRef child = info;
    bool whole_group;

    service_lock_take(&child_lock);
    whole_group = child->kills_group;
    service_lock_drop(&child_lock);
    (void)timer;
    (void)child_process_signal(&child->process, SIGKILL, whole_group);
}

/* Returns false if there is no memory. A timer that has fired is in no mode. */
REQUIRES(the_service_lock) static bool add_timer(const struct child_watch *watch, CFRunLoopMode mode)
{
    CFRunLoopAddTimer(watch->loop, watch->timer, mode);
    return CFRunLoopContainsTimer(watch->loop, watch->timer, mode) || !CFRunLoopTimerIsValid(watch->timer);
}

struct armed {
    const struct child_watch *watch;
    bool everywhere;
};

REQUIRES(the_service_lock) static void add_to_mode(const void *mode, void *info)
{
    struct armed *armed = info;

    armed->everywhere &= add_timer(armed->watch, mode);
}

/* Makes the timer if it is wanted and possible. Returns false if there is no memory. */
REQUIRES(the_service_lock) static bool arm(CRLChildRef child)
{
    struct child_watch *watch = &child->watch;
    struct armed armed = {watch, true};

    if (!watch->loop || watch->timer || child->kill_at == 0) {
        return true;
    }
    watch->timer = CRLRunLoopTimerCreateWithFunction(NULL, child->kill_at, 0, 0, 0, kill_late, (void *)(uintptr_t)CFRetain(child),
                                                     (void (*)(void *))CFRelease);
    if (!watch->timer) {
        CFRelease(child); /* the caller has another reference */
        return false;
    }
    CFSetApplyFunction(watch->modes, add_to_mode, &armed);
    return armed.everywhere;
}

void child_schedule_kill(CRLChildRef child, CFAbsoluteTime at, bool whole_group)
{
    CFRunLoopTimerRef former = NULL;
    bool is_armed;

    service_lock_take(&child_lock);
    child->kills_group |= whole_group;
    if (child->kill_at == 0 || at < child->kill_at) {
        child->kill_at = at;
        former = child->watch.timer;
        child->watch.timer = NULL;
    }
    is_armed = arm(child);
    whole_group = child->kills_group;
    service_lock_drop(&child_lock);
    end_timer(former);
    if (!is_armed) {
        (void)child_process_signal(&child->process, SIGKILL, whole_group);
    }
}

/* ---- modes ---- */

/* Watches the process's end, in no mode yet. Returns false if there is no memory. */
REQUIRES(the_service_lock) static bool make_watch(CRLChildRef child, CFRunLoopRef loop)
{
    CFFileDescriptorContext context = {0, child, (void *(*)(void *))CFRetain, (void (*)(void *))CFRelease, NULL};
    struct child_watch *watch = &child->watch;

    watch->descriptor = CFFileDescriptorCreate(NULL, child->process.end, false, perform, &context);
    watch->source = watch->descriptor ? CFFileDescriptorCreateRunLoopSource(NULL, watch->descriptor, 0) : NULL;
    watch->modes = watch->source ? CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks) : NULL;
    if (!watch->modes) {
        return false;
    }
    watch->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    CFFileDescriptorEnableCallBacks(watch->descriptor, kCFFileDescriptorReadCallBack);
    return arm(child);
}

REQUIRES(the_service_lock) static void remove_from_loop(const struct child_watch *watch, CFRunLoopMode mode)
{
    CFRunLoopRemoveSource(watch->loop, watch->source, mode);
    if (watch->timer) {
        CFRunLoopRemoveTimer(watch->loop, watch->timer, mode);
    }
}

/* Returns false if there is no memory, and then nothing is in the mode. */
REQUIRES(the_service_lock) static bool add_to_loop(const struct child_watch *watch, CFRunLoopMode mode)
{
    bool is_added;

    CFRunLoopAddSource(watch->loop, watch->source, mode);
    is_added = CFRunLoopContainsSource(watch->loop, watch->source, mode);
    is_added &= !watch->timer || add_timer(watch, mode);
    if (!is_added) {
        remove_from_loop(watch, mode);
    }
    return is_added;
}

REQUIRES(the_service_lock) static bool add_mode(CRLChildRef child, CFRunLoopRef loop, CFRunLoopMode mode)
{
    if (!child->watch.loop && !make_watch(child, loop)) {
        return false;
    }
    if (child->watch.loop != loop) {
        return false;
    }
    CFSetSetValue(child->watch.modes, mode);
    if (CFSetContainsValue(child->watch.modes, mode) && add_to_loop(&child->watch, mode)) {
        return true;
    }
    CFSetRemoveValue(child->watch.modes, mode);
    return false;
}

Boolean CRLChildScheduleWithRunLoop(CRLChildRef child, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct child_watch taken = {NULL, NULL, NULL, NULL, NULL};
    bool keeps;
    bool result;

    child_require(child, "CRLChildScheduleWithRunLoop");
    service_lock_take(&child_lock);
    result = child->is_told || add_mode(child, loop, mode);
    keeps = child->watch.modes && CFSetGetCount(child->watch.modes) > 0;
    invariant(!keeps || child->watch.loop);
    if (!result && !keeps) {
        taken = take_watch(child);
    }
    service_lock_drop(&child_lock);
    end_watch(taken);
    return result;
}

void CRLChildUnscheduleFromRunLoop(CRLChildRef child, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct child_watch taken = {NULL, NULL, NULL, NULL, NULL};

    child_require(child, "CRLChildUnscheduleFromRunLoop");
    service_lock_take(&child_lock);
    if (child->watch.loop && child->watch.loop == loop) {
        remove_from_loop(&child->watch, mode);
        CFSetRemoveValue(child->watch.modes, mode);
        taken = CFSetGetCount(child->watch.modes) == 0 ? take_watch(child) : taken;
    }
    service_lock_drop(&child_lock);
    end_watch(taken);
}
