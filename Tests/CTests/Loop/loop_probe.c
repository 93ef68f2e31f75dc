/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of the probes. A context's info is the probe itself; counters are atomic because cancel, retain and release may be called
 * on any thread. Nothing here sleeps: waiting is polling of a condition with sched_yield.
 */
#include "Loop/loop_probe.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

void probe_note(const char *format, ...)
{
    char token[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(token, sizeof token, format, arguments);
    va_end(arguments);
    probe_log(token);
}

static void note_mode(const char *name, const char *sign, CFStringRef mode)
{
    char text[128] = "?";
    CFStringGetCString(mode, text, sizeof text, kCFStringEncodingUTF8);
    probe_note("%s%s%s", name, sign, text);
}

static void called(struct probe *probe, const char *token)
{
    probe->calls++;
    if (!(probe->logging & probe_is_silent)) {
        probe_log(token);
    }
    if (probe->action) {
        probe->action(probe);
    }
}

static const void *info_retain(const void *info)
{
    struct probe *probe = (struct probe *)(uintptr_t)info;
    probe->retains++;
    if (probe->logging & probe_logs_context) {
        probe_note("retain(%s)", probe->name);
    }
    return info;
}

static void info_release(const void *info)
{
    struct probe *probe = (struct probe *)(uintptr_t)info;
    probe->releases++;
    if (probe->logging & probe_logs_context) {
        probe_note("release(%s)", probe->name);
    }
}

static void source_schedule(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)loop;
    struct probe *probe = info;
    probe->schedules++;
    if (probe->logging & probe_logs_membership) {
        note_mode(probe->name, "+", mode);
    }
}

static void source_cancel(void *info, CFRunLoopRef loop, CFStringRef mode)
{
    (void)loop;
    struct probe *probe = info;
    probe->cancels++;
    if (probe->logging & probe_logs_membership) {
        note_mode(probe->name, "-", mode);
    }
}

static void source_perform(void *info)
{
    struct probe *probe = info;
    called(probe, probe->name);
}

static int source_get_port(void *info)
{
    return ((struct probe *)info)->descriptor;
}

static void timer_fired(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    struct probe *probe = info;
    called(probe, probe->name);
}

static void observer_called(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    struct probe *probe = info;
    probe->activity = activity;
    called(probe, probe->name);
}

static bool has_context_calls(const struct probe *probe)
{
    return !(probe->logging & probe_has_no_context_calls);
}

CFRunLoopSourceRef probe_source(struct probe *probe, CFIndex order)
{
    CFRunLoopSourceContext context = {
        .version = 0, .info = probe, .schedule = source_schedule, .cancel = source_cancel, .perform = source_perform};
    if (has_context_calls(probe)) {
        context.retain = info_retain;
        context.release = info_release;
    }
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, order, &context);
    probe->item = source;
    return source;
}

CFRunLoopSourceRef probe_port_source(struct probe *probe, CFIndex order, int descriptor)
{
    CFRunLoopSourceContext1 context = {.version = 1, .info = probe, .getPort = source_get_port, .perform = source_perform};
    if (has_context_calls(probe)) {
        context.retain = info_retain;
        context.release = info_release;
    }
    probe->descriptor = descriptor;
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, order, (CFRunLoopSourceContext *)(void *)&context);
    probe->item = source;
    return source;
}

CFRunLoopTimerRef probe_timer_at(struct probe *probe, CFAbsoluteTime fire_date, CFTimeInterval interval)
{
    CFRunLoopTimerContext context = {.version = 0, .info = probe};
    if (has_context_calls(probe)) {
        context.retain = info_retain;
        context.release = info_release;
    }
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, fire_date, interval, 0, 0, timer_fired, &context);
    probe->item = timer;
    return timer;
}

CFRunLoopTimerRef probe_timer(struct probe *probe, CFTimeInterval from_now, CFTimeInterval interval)
{
    return probe_timer_at(probe, CFAbsoluteTimeGetCurrent() + from_now, interval);
}

CFRunLoopObserverRef probe_observer(struct probe *probe, CFOptionFlags activities, bool repeats, CFIndex order)
{
    CFRunLoopObserverContext context = {.version = 0, .info = probe};
    if (has_context_calls(probe)) {
        context.retain = info_retain;
        context.release = info_release;
    }
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, activities, repeats, order, observer_called, &context);
    probe->item = observer;
    return observer;
}

CFRunLoopSourceRef probe_source_add(struct probe *probe, CFIndex order, CFRunLoopRef loop, CFStringRef mode)
{
    CFRunLoopSourceRef source = probe_source(probe, order);
    CFRunLoopAddSource(loop, source, mode);
    CFRelease(source);
    return source;
}

CFRunLoopSourceRef probe_port_source_add(struct probe *probe, CFIndex order, int descriptor, CFRunLoopRef loop, CFStringRef mode)
{
    CFRunLoopSourceRef source = probe_port_source(probe, order, descriptor);
    CFRunLoopAddSource(loop, source, mode);
    CFRelease(source);
    return source;
}

CFRunLoopTimerRef probe_timer_add(struct probe *probe, CFTimeInterval from_now, CFTimeInterval interval, CFRunLoopRef loop,
                                  CFStringRef mode)
{
    CFRunLoopTimerRef timer = probe_timer(probe, from_now, interval);
    CFRunLoopAddTimer(loop, timer, mode);
    CFRelease(timer);
    return timer;
}

CFRunLoopObserverRef probe_observer_add(struct probe *probe, CFOptionFlags activities, CFIndex order, CFRunLoopRef loop, CFStringRef mode)
{
    CFRunLoopObserverRef observer = probe_observer(probe, activities, true, order);
    CFRunLoopAddObserver(loop, observer, mode);
    CFRelease(observer);
    return observer;
}

static void activity_logged(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)info;
    probe_log(probe_activity_name(activity));
}

CFRunLoopObserverRef probe_activities_add(CFRunLoopRef loop, CFStringRef mode)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, INT32_MAX, activity_logged, NULL);
    CFRunLoopAddObserver(loop, observer, mode);
    CFRelease(observer);
    return observer;
}

const char *probe_activity_name(CFRunLoopActivity activity)
{
    switch (activity) {
    case kCFRunLoopEntry:
        return "E";
    case kCFRunLoopBeforeTimers:
        return "BT";
    case kCFRunLoopBeforeSources:
        return "BS";
    case kCFRunLoopBeforeWaiting:
        return "BW";
    case kCFRunLoopAfterWaiting:
        return "AW";
    case kCFRunLoopExit:
        return "X";
    default:
        return "several-activities";
    }
}

const char *probe_result_name(CFRunLoopRunResult result)
{
    switch (result) {
    case kCFRunLoopRunFinished:
        return "F";
    case kCFRunLoopRunStopped:
        return "S";
    case kCFRunLoopRunTimedOut:
        return "TO";
    case kCFRunLoopRunHandledSource:
        return "HS";
    default:
        return "another-result";
    }
}

CFRunLoopRunResult probe_run(CFStringRef mode, CFTimeInterval seconds, bool return_after_source)
{
    CFRunLoopRunResult result = CFRunLoopRunInMode(mode, seconds, return_after_source);
    probe_log(probe_result_name(result));
    return result;
}

jmp_buf probe_way_out;

struct left_run {
    CFStringRef mode;
    bool is_left;
};

static void catches_what_leaves_the_mode(struct probe *probe)
{
    struct left_run *run = probe->context;

    if (setjmp(probe_way_out) == 0) {
        CFRunLoopRunInMode(run->mode, 10, false);
    } else {
        run->is_left = true;
    }
}

bool probe_run_is_left(CFStringRef mode)
{
    struct left_run run = {.mode = mode};
    struct probe catcher = {.action = catches_what_leaves_the_mode, .context = &run, .logging = probe_is_silent};

    CFRunLoopSourceSignal(probe_source_add(&catcher, 0, CFRunLoopGetCurrent(), CFSTR("catching")));
    CFRunLoopRunInMode(CFSTR("catching"), 0, true);
    probe_invalidate(&catcher);
    return run.is_left;
}

void probe_note_string(const char *label, CFStringRef string)
{
    char text[128] = "NULL";
    if (string) {
        CFStringGetCString(string, text, sizeof text, kCFStringEncodingUTF8);
    }
    probe_note("%s=%s", label, text);
}

void probe_note_bool(const char *label, bool value)
{
    probe_note("%s=%s", label, value ? "yes" : "no");
}

void probe_note_current_mode(const char *label, CFRunLoopRef loop)
{
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    probe_note_string(label, mode);
    if (mode) {
        CFRelease(mode);
    }
}

bool probe_mode_exists(CFRunLoopRef loop, CFStringRef mode)
{
    CFArrayRef modes = CFRunLoopCopyAllModes(loop);
    bool found = false;
    for (CFIndex i = 0; i < CFArrayGetCount(modes); i++) {
        found = found || CFEqual(CFArrayGetValueAtIndex(modes, i), mode);
    }
    CFRelease(modes);
    return found;
}

void probe_stage(CFStringRef mode)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_activities_add(CFRunLoopGetCurrent(), mode);
    probe_source_add(&idle, 0, CFRunLoopGetCurrent(), mode);
}

void probe_invalidate(struct probe *probe)
{
    CFTypeID type = CFGetTypeID(probe->item);
    if (type == CFRunLoopSourceGetTypeID()) {
        CFRunLoopSourceInvalidate(probe_source_of(probe));
    } else if (type == CFRunLoopTimerGetTypeID()) {
        CFRunLoopTimerInvalidate(probe_timer_of(probe));
    } else {
        CFRunLoopObserverInvalidate(probe_observer_of(probe));
    }
}

void probe_remove(struct probe *probe, CFRunLoopRef loop, CFStringRef mode)
{
    CFTypeID type = CFGetTypeID(probe->item);
    if (type == CFRunLoopSourceGetTypeID()) {
        CFRunLoopRemoveSource(loop, probe_source_of(probe), mode);
    } else if (type == CFRunLoopTimerGetTypeID()) {
        CFRunLoopRemoveTimer(loop, probe_timer_of(probe), mode);
    } else {
        CFRunLoopRemoveObserver(loop, probe_observer_of(probe), mode);
    }
}

bool probe_is_valid(struct probe *probe)
{
    CFTypeID type = CFGetTypeID(probe->item);
    return type == CFRunLoopSourceGetTypeID()  ? CFRunLoopSourceIsValid(probe_source_of(probe))
           : type == CFRunLoopTimerGetTypeID() ? CFRunLoopTimerIsValid(probe_timer_of(probe))
                                               : CFRunLoopObserverIsValid(probe_observer_of(probe));
}

void probe_stops_loop(struct probe *probe)
{
    (void)probe;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

void probe_wakes_loop(struct probe *probe)
{
    (void)probe;
    CFRunLoopWakeUp(CFRunLoopGetCurrent());
}

void probe_signals_itself(struct probe *probe)
{
    CFRunLoopSourceSignal(probe_source_of(probe));
}

void probe_signals_itself_once(struct probe *probe)
{
    if (probe->calls == 1) {
        probe_signals_itself(probe);
    }
}

void probe_signals_its_context(struct probe *probe)
{
    probe_signals_itself(probe->context);
}

void probe_invalidates_itself(struct probe *probe)
{
    probe_invalidate(probe);
}

void probe_invalidates_its_context(struct probe *probe)
{
    probe_invalidate(probe->context);
}

void probe_removes_itself(struct probe *probe)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);
    probe_remove(probe, loop, mode);
    CFRelease(mode);
}

void probe_removes_its_context(struct probe *probe)
{
    probe_removes_itself(probe->context);
}

void probe_notes_validity(struct probe *probe)
{
    probe_note_bool("valid", probe_is_valid(probe));
}

void probe_notes_activity(struct probe *probe)
{
    probe_note("%s:%s", probe->name, probe_activity_name(probe->activity));
}

void probe_runs_nested(struct probe *probe)
{
    (void)probe;
    CFStringRef mode = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent());
    probe_log("{");
    probe_run(mode, 0, false);
    probe_log("}");
    CFRelease(mode);
}

static void *thread_main(void *argument)
{
    struct probe_thread *thread = argument;
    if (thread->loop) {
        probe_await_sleep(thread->loop);
    }
    thread->function(thread->context);
    return NULL;
}

static void thread_create(struct probe_thread *thread)
{
    if (pthread_create(&thread->thread, NULL, thread_main, thread) != 0) {
        perror("pthread_create");
        abort();
    }
}

void probe_thread_start(struct probe_thread *thread, void (*function)(void *context), void *context)
{
    *thread = (struct probe_thread){.function = function, .context = context};
    thread_create(thread);
}

void probe_thread_when_waiting(struct probe_thread *thread, CFRunLoopRef loop, void (*function)(void *context), void *context)
{
    *thread = (struct probe_thread){.function = function, .context = context, .loop = loop};
    thread_create(thread);
}

void probe_thread_join(struct probe_thread *thread)
{
    pthread_join(thread->thread, NULL);
}

void probe_on_thread(void (*function)(void *context), void *context)
{
    struct probe_thread thread;
    probe_thread_start(&thread, function, context);
    probe_thread_join(&thread);
}

void probe_await_sleep(CFRunLoopRef loop)
{
    while (!CFRunLoopIsWaiting(loop)) {
        sched_yield();
    }
}

void probe_await_count(const _Atomic int *counter, int at_least)
{
    while (*counter < at_least) {
        sched_yield();
    }
}

double probe_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int probe_event(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void probe_event_post(int event)
{
    uint64_t one = 1;
    while (write(event, &one, sizeof one) < 0) {
        sched_yield();
    }
}
