/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on run loops: checks, and one call inward. */
#include "CoreFoundation/CFRunLoop.h"

#include "CRLRunLoop.h"
#include "Loop/Block/block.h"
#include "Loop/Observer/observer_membership.h"
#include "Loop/Run/emptiness.h"
#include "Loop/Run/pass.h"
#include "Loop/Source/source_membership.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Timer/timer_firing.h"
#include "Loop/Timer/timer_membership.h"
#include "Support/fault.h"

/* The value of each constant is its own name; Core/mode.c has the two that the library itself uses. */
const CFRunLoopMode NSConnectionReplyMode = CFSTR("NSConnectionReplyMode");
const CFRunLoopMode NSModalPanelRunLoopMode = CFSTR("NSModalPanelRunLoopMode");
const CFRunLoopMode NSEventTrackingRunLoopMode = CFSTR("NSEventTrackingRunLoopMode");

static void require_loop(CFRunLoopRef loop, const char *function)
{
    object_check(loop, &run_loop_class, function, "loop");
}

static bool is_mode_name(CFTypeRef mode)
{
    return mode && object_is_string(mode);
}

/* Returns true if the mode name can be used. Logs once that it is missing or of a wrong type; the call then does nothing. */
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
    return thread_registry_current();
}

CFRunLoopRef CFRunLoopGetMain(void)
{
    return thread_registry_main();
}

CFRunLoopMode CFRunLoopCopyCurrentMode(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopCopyCurrentMode");
    return mode_copy_current_name(loop);
}

CFArrayRef CFRunLoopCopyAllModes(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopCopyAllModes");
    return modes_copy_names(loop);
}

void CFRunLoopAddCommonMode(CFRunLoopRef loop, CFRunLoopMode name)
{
    struct mode *mode = NULL;

    require_loop(loop, "CFRunLoopAddCommonMode");
    if (!check_mode(name) || mode_name_is_common(name)) {
        return; /* the set of common modes is no mode (rule 23) */
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
    date = next ? timer_shown_date(next) : 0.0;
    loop_unlock(loop);
    return date;
}

/* A program that is new to run loops ends here at once, or never calls back, and nobody says why. */
static void tell_if_empty(CFRunLoopRef loop)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const struct mode *mode;
    bool is_empty;

    loop_lock(loop);
    mode = mode_find(loop, kCFRunLoopDefaultMode);
    is_empty = (!mode || mode_is_empty(loop, mode)) && waiter_is_empty(loop, kCFRunLoopDefaultMode);
    loop_unlock(loop);
    if (is_empty) {
        fault_log_once(&logged, "CFRunLoopRun: the main loop has no source, timer or block in its default mode, so the run ends at once");
    }
}

void CFRunLoopRun(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopRunResult result;

    if (loop->is_main) {
        tell_if_empty(loop);
    }
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
        return kCFRunLoopRunFinished; /* as for a mode that does not exist (rule 24) */
    }
    result = run_in_mode(thread_registry_current(), mode, seconds, returnAfterSourceHandled);
    /* No mode ever has the common modes' name, so a run of them finishes by itself. */
    if (result == kCFRunLoopRunFinished && mode_name_is_common(mode)) {
        fault_log_once(&logged_common, "CFRunLoopRunInMode: the common modes are a set and cannot be run");
    }
    return result;
}

Boolean CFRunLoopIsWaiting(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopIsWaiting");
    return waker_is_waiting(loop->waker) || atomic_load_explicit(&loop->waits_awake, memory_order_acquire);
}

/*
 * The path of a burst of wake-ups fits into one cache line, like that of CFRunLoopSourceSignal. This saves a twentieth of the two calls'
 * time.
 */
__attribute__((aligned(cache_line))) void CFRunLoopWakeUp(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopWakeUp");
    waker_wake(loop->waker);
}

void CFRunLoopStop(CFRunLoopRef loop)
{
    require_loop(loop, "CFRunLoopStop");
    waker_stop(loop->waker);
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
