/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on run loops: checks, and one call inward. */
#include "CoreFoundation/CFRunLoop.h"

#include "CRLRunLoop.h"
#include "Loop/block.h"
#include "Loop/observer.h"
#include "Loop/pass.h"
#include "Loop/source_membership.h"
#include "Loop/thread_loop.h"
#include "Loop/timer_firing.h"
#include "Loop/timer_membership.h"
#include "Support/fault.h"

/* Constants by their own names (rule 12: what counts is the text). */
#define MODE_CONSTANT(name) const CFRunLoopMode name = CFSTR(#name)
MODE_CONSTANT(kCFRunLoopDefaultMode);
MODE_CONSTANT(kCFRunLoopCommonModes);
MODE_CONSTANT(NSConnectionReplyMode);
MODE_CONSTANT(NSModalPanelRunLoopMode);
MODE_CONSTANT(NSEventTrackingRunLoopMode);

static void require_loop(CFRunLoopRef loop, const char *function)
{
    object_check(loop, &run_loop_class, function, "loop");
}

static bool is_mode_name(CFTypeRef mode)
{
    return mode && object_is_string(mode);
}

/* A mode name that can be used; a missing or wrong one is logged once and the call does nothing. */
static bool check_mode(CFRunLoopMode mode)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    if (is_mode_name(mode)) {
        return true;
    }
    fault_log_once(&logged, "CFRunLoop: a mode is NULL or not a string; the call does nothing");
    return false;
}

CFTypeID CFRunLoopGetTypeID(void)
{
    return object_type_run_loop;
}

CFRunLoopRef CFRunLoopGetCurrent(void)
{
    thread_loop_notice_fork();
    return thread_loop_current();
}

CFRunLoopRef CFRunLoopGetMain(void)
{
    thread_loop_notice_fork();
    return thread_loop_main();
}

CFRunLoopMode CFRunLoopCopyCurrentMode(CFRunLoopRef loop)
{
    CFRunLoopMode mode = NULL;

    require_loop(loop, "CFRunLoopCopyCurrentMode");
    loop_lock(loop);
    if (loop->activation) {
        mode = loop->activation->mode->name;
        object_retain(mode);
    }
    loop_unlock(loop);
    return mode;
}

CFArrayRef CFRunLoopCopyAllModes(CFRunLoopRef loop)
{
    CFMutableArrayRef names = CFArrayCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeArrayCallBacks);
    CFIndex count = 0;

    require_loop(loop, "CFRunLoopCopyAllModes");
    loop_lock(loop);
    for (const struct mode *mode = loop->modes; mode && names; mode = mode->next) {
        if (mode->is_declared) {
            CFArrayAppendValue(names, mode->name);
            count++;
        }
    }
    loop_unlock(loop);
    if (names && CFArrayGetCount(names) < count) { /* there was no memory for all of them */
        CFRelease(names);
        names = NULL;
    }
    return names;
}

void CFRunLoopAddCommonMode(CFRunLoopRef loop, CFRunLoopMode name)
{
    struct mode *mode = NULL;

    require_loop(loop, "CFRunLoopAddCommonMode");
    if (!check_mode(name) || mode_name_is_common(name)) {
        return; /* 23 */
    }
    loop_lock(loop);
    if (loop_is_open(loop)) {
        mode = mode_create_undeclared(loop, name);
    }
    if (mode && mode->is_common) {
        mode = NULL;
    }
    if (mode) {
        mode_make_common(loop, mode);
    }
    loop_unlock(loop);
    if (mode) {
        sources_join_common_mode(loop, mode);
        observers_join_common_mode(loop, mode);
        timers_join_common_mode(loop, mode);
    }
}

CFAbsoluteTime CFRunLoopGetNextTimerFireDate(CFRunLoopRef loop, CFRunLoopMode name)
{
    const struct __CFRunLoopTimer *next;
    struct mode *mode;
    CFAbsoluteTime date;

    require_loop(loop, "CFRunLoopGetNextTimerFireDate");
    if (!check_mode(name)) {
        return 0.0;
    }
    loop_lock(loop);
    mode = mode_find(loop, name);
    next = mode ? timers_next(loop, mode) : NULL;
    date = next ? next->date : 0.0;
    loop_unlock(loop);
    return date;
}

void CFRunLoopRun(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopRunResult result;

    do {
        result = run_in_mode(loop, kCFRunLoopDefaultMode, 1e10, false);
    } while (result != kCFRunLoopRunStopped && result != kCFRunLoopRunFinished);
}

CFRunLoopRunResult CFRunLoopRunInMode(CFRunLoopMode mode, CFTimeInterval seconds, Boolean returnAfterSourceHandled)
{
    static atomic_flag logged_none = ATOMIC_FLAG_INIT;
    static atomic_flag logged_common = ATOMIC_FLAG_INIT;
    CFRunLoopRunResult result;

    if (!is_mode_name(mode)) {
        fault_log_once(&logged_none, "CFRunLoopRunInMode: the mode is NULL or not a string; nothing is run");
        return kCFRunLoopRunFinished; /* 24 */
    }
    thread_loop_notice_fork();
    result = run_in_mode(thread_loop_current(), mode, seconds, returnAfterSourceHandled);
    /* No mode ever has the common modes' name, so a run of them finishes by itself. */
    if (result == kCFRunLoopRunFinished && mode_name_is_common(mode)) {
        fault_log_once(&logged_common, "CFRunLoopRunInMode: the common modes are a set and cannot be run");
    }
    return result;
}

Boolean CFRunLoopIsWaiting(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopIsWaiting");
    return mailbox_is_waiting(loop->mailbox) || atomic_load_explicit(&loop->waits_awake, memory_order_acquire);
}

/* What a flood runs of it is in one line of the cache, as it is of CFRunLoopSourceSignal: a twentieth of the two calls' time. */
__attribute__((aligned(cache_line))) void CFRunLoopWakeUp(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopWakeUp");
    mailbox_wake(loop->mailbox);
}

void CFRunLoopStop(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopStop");
    mailbox_stop(loop->mailbox);
}

void CRLRunLoopPerformFunction(CFRunLoopRef loop, CFTypeRef mode, void (*function)(void *info), void *info, void (*release)(void *info))
{
    require_loop(loop, "CRLRunLoopPerformFunction");
    if (mode && function) {
        block_enqueue(loop, mode, function, info, release);
    } else if (release) {
        release(info);
    }
}

void CFRunLoopAddSource(CFRunLoopRef loop, CFRunLoopSourceRef source, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopAddSource");
    object_check(source, &source_class, "CFRunLoopAddSource", "source");
    if (check_mode(mode)) {
        source_add(loop, source, mode);
    }
}

void CFRunLoopRemoveSource(CFRunLoopRef loop, CFRunLoopSourceRef source, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopRemoveSource");
    object_check(source, &source_class, "CFRunLoopRemoveSource", "source");
    if (check_mode(mode)) {
        source_remove(loop, source, mode);
    }
}

Boolean CFRunLoopContainsSource(CFRunLoopRef loop, CFRunLoopSourceRef source, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopContainsSource");
    object_check(source, &source_class, "CFRunLoopContainsSource", "source");
    return check_mode(mode) && source_is_in(loop, source, mode);
}

void CFRunLoopAddObserver(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopAddObserver");
    object_check(observer, &observer_class, "CFRunLoopAddObserver", "observer");
    if (check_mode(mode)) {
        observer_add(loop, observer, mode);
    }
}

void CFRunLoopRemoveObserver(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopRemoveObserver");
    object_check(observer, &observer_class, "CFRunLoopRemoveObserver", "observer");
    if (check_mode(mode)) {
        observer_remove(loop, observer, mode);
    }
}

Boolean CFRunLoopContainsObserver(CFRunLoopRef loop, CFRunLoopObserverRef observer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopContainsObserver");
    object_check(observer, &observer_class, "CFRunLoopContainsObserver", "observer");
    return check_mode(mode) && observer_is_in(loop, observer, mode);
}

void CFRunLoopAddTimer(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopAddTimer");
    object_check(timer, &timer_class, "CFRunLoopAddTimer", "timer");
    if (check_mode(mode)) {
        timer_add(loop, timer, mode);
    }
}

void CFRunLoopRemoveTimer(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopRemoveTimer");
    object_check(timer, &timer_class, "CFRunLoopRemoveTimer", "timer");
    if (check_mode(mode)) {
        timer_remove(loop, timer, mode);
    }
}

Boolean CFRunLoopContainsTimer(CFRunLoopRef loop, CFRunLoopTimerRef timer, CFRunLoopMode mode)
{
    require_loop(loop, "CFRunLoopContainsTimer");
    object_check(timer, &timer_class, "CFRunLoopContainsTimer", "timer");
    return check_mode(mode) && timer_is_in(loop, timer, mode);
}
