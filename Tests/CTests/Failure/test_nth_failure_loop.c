/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure in loops: sources, timers, observers, blocks, modes, threads, forks, hosting. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CRLTrace.h"
#include "CoreServices/CoreServices.h"
#include "Failure/nth_failure.h"
#include "Kernel/kernel.h"
#include "Kernel/Trace/kernel_trace.h"
#include "Loop/Trace/statistics.h"
#include "Loop/Trace/statistics_file.h"
#include "Loop/fake_companion.h"
#include "Loop/Run/quiet_wait.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Wake/coalesce.h"
#include "Loop/Run/hosting.h"
#include "Loop/Core/main_queue.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Object/object.h"

#define MODE CFSTR("a mode")
#define OTHER_MODE CFSTR("another mode")

static _Atomic int performed;
static _Atomic int released;
static _Atomic int retained;

static void perform(void *info)
{
    (void)info;
    performed++;
}

static const void *retain(const void *info)
{
    retained++;
    return info;
}

static void release(const void *info)
{
    (void)info;
    released++;
}

static void release_function_info(void *info)
{
    (void)info;
    released++;
}

static void begin(void)
{
    performed = 0;
    released = 0;
    retained = 0;
}

/* Each with an info of its own, as sources with equal infos are equal. */
static CFRunLoopSourceRef make_source(CFIndex order)
{
    static char infos[64];
    CFRunLoopSourceContext context = {.info = &infos[order], .retain = retain, .release = release, .perform = perform};

    return bag_keep(CFRunLoopSourceCreate(NULL, order, &context));
}

static bool add_source(CFRunLoopSourceRef source, CFStringRef mode)
{
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode);
    return CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, mode);
}

static CFRunLoopTimerRef make_timer(double from_now, double interval)
{
    CFRunLoopTimerContext context = {.retain = retain, .release = release};

    return bag_keep(CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + from_now, interval, 0, 0,
                                         (CFRunLoopTimerCallBack)(void (*)(void))NULL, &context));
}

static void fired(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    perform(info);
}

static CFRunLoopTimerRef make_firing_timer(double from_now, double interval)
{
    CFRunLoopTimerContext context = {.retain = retain, .release = release};

    return bag_keep(CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + from_now, interval, 0, 0, fired, &context));
}

static bool add_timer(CFRunLoopTimerRef timer, CFStringRef mode)
{
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, mode);
    return CFRunLoopContainsTimer(CFRunLoopGetCurrent(), timer, mode);
}

static _Atomic unsigned seen;

static void observed(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)info;
    seen |= (unsigned)activity;
}

static bool add_observer(CFRunLoopObserverRef observer, CFStringRef mode)
{
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, mode);
    return CFRunLoopContainsObserver(CFRunLoopGetCurrent(), observer, mode);
}

NTH_FAILURE(sources, "")
{
    enum { count = 24 };
    CFRunLoopSourceRef sources[count];

    begin();
    for (int i = 0; i < count; i++) {
        NEED(sources[i] = make_source(i));
        NEED(add_source(sources[i], MODE));
        if (i % 3 == 0) {
            NEED(add_source(sources[i], OTHER_MODE));
        }
    }
    for (int i = 0; i < count; i++) {
        CFRunLoopSourceSignal(sources[i]);
    }
    MUST(CFRunLoopRunInMode(MODE, 0, false) != kCFRunLoopRunFinished);
    (void)CFRunLoopRunInMode(MODE, 0, false); /* without memory for all of them one pass takes some */
    MUST(performed == count);
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), sources[0], MODE);
    CFRunLoopSourceSignal(sources[0]);
    MUST(CFRunLoopRunInMode(OTHER_MODE, 0, true) == kCFRunLoopRunHandledSource);
    MUST(performed == count + 1);
    return true;
}

NTH_FAILURE(floods, "79")
{
    CFRunLoopSourceRef source;

    begin();
    atomic_store(&coalesce_is_possible, true);
    NEED(source = make_source(0));
    NEED(add_source(source, MODE));
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i <= 2 * coalesce_threshold; i++) {
            CFRunLoopSourceSignal(source);
            CFRunLoopWakeUp(CFRunLoopGetCurrent());
        }
        MUST(CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource);
        MUST(CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunTimedOut); /* which ends the flood */
        MUST(performed == round);
    }
    return true;
}

NTH_FAILURE(timers, "")
{
    enum { count = 20 };
    CFRunLoopTimerRef repeating;
    CFRunLoopTimerRef late;

    begin();
    for (int i = 0; i < count; i++) {
        CFRunLoopTimerRef timer = make_firing_timer(0.0001 * (count - i), 0);

        NEED(timer);
        NEED(add_timer(timer, MODE));
    }
    NEED(repeating = make_firing_timer(0.001, 0.0005));
    NEED(add_timer(repeating, MODE));
    NEED(add_timer(repeating, OTHER_MODE));
    NEED(late = make_firing_timer(3600, 0));
    NEED(add_timer(late, MODE));
    MUST(CFRunLoopRunInMode(MODE, 0.005, false) == kCFRunLoopRunTimedOut);
    for (int i = 0; i < 3; i++) {
        (void)CFRunLoopRunInMode(MODE, 0.0005, false); /* without memory for all that are due one pass fires some */
    }
    MUST(performed > count);
    performed = 0;
    CFRunLoopTimerSetNextFireDate(late, CFAbsoluteTimeGetCurrent());
    CFRunLoopTimerInvalidate(repeating);
    MUST(CFRunLoopRunInMode(MODE, 0.001, false) != kCFRunLoopRunHandledSource);
    MUST(performed == 1);
    return true;
}

NTH_FAILURE(timers_that_are_all_due, "")
{
    enum { count = 40, passes = 4 };

    begin();
    for (int i = 0; i < count; i++) {
        CFRunLoopTimerRef timer = make_firing_timer(-1, 0);

        NEED(timer);
        NEED(add_timer(timer, MODE));
    }
    for (int i = 0; i < passes; i++) { /* without memory for all of them one pass fires some */
        (void)CFRunLoopRunInMode(MODE, 0, false);
    }
    MUST(performed == count);
    return true;
}

static void stop(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static bool sleep_for_an_hour(void)
{
    CFRunLoopTimerRef timer;
    CFRunLoopObserverRef observer;

    NEED(timer = make_firing_timer(3600, 0));
    NEED(add_timer(timer, MODE));
    NEED(observer = bag_keep(CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, stop, NULL)));
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, MODE);
    NEED(CFRunLoopContainsObserver(CFRunLoopGetCurrent(), observer, MODE));
    for (int i = 0; i < 2; i++) {
        MUST(CFRunLoopRunInMode(MODE, 1800, false) == kCFRunLoopRunStopped);
    }
    CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent());
    (void)CFRunLoopRunInMode(MODE, 0, false);
    MUST(performed == 1);
    return true;
}

static void *sleep_and_end(void *ret_is_complete)
{
    *(bool *)ret_is_complete = sleep_for_an_hour();
    return NULL;
}

/*
 * A loop that is about to sleep for an hour, and ends with its thread. Without a descriptor it would not notice that the system resumes;
 * all else is as ever.
 */
NTH_FAILURE(sleeps_that_notice_a_resumption, "1202")
{
    bool is_complete = false;
    pthread_t thread;

    begin();
    MUST(pthread_create(&thread, NULL, sleep_and_end, &is_complete) == 0);
    (void)pthread_join(thread, NULL);
    return is_complete;
}

/* Without memory for the list of those that are to be moved, some are at once. */
NTH_FAILURE(timers_that_are_given_earlier_dates, "")
{
    enum { count = 40 };
    CFRunLoopTimerRef timers[count];

    begin();
    for (int i = 0; i < count; i++) {
        NEED(timers[i] = make_firing_timer(3600 + i, 0));
        NEED(add_timer(timers[i], MODE));
    }
    for (int i = 0; i < count; i++) {
        CFRunLoopTimerSetNextFireDate(timers[i], CFAbsoluteTimeGetCurrent() + 1800 - i);
    }
    MUST(CFRunLoopGetNextTimerFireDate(CFRunLoopGetCurrent(), MODE) == CFRunLoopTimerGetNextFireDate(timers[count - 1]));
    return true;
}

NTH_FAILURE(timers_without_callbacks, "")
{
    CFRunLoopTimerRef timer;

    begin();
    NEED(timer = make_timer(0, 0));
    NEED(add_timer(timer, MODE));
    MUST(CFRunLoopRunInMode(MODE, 1, false) == kCFRunLoopRunFinished);
    MUST(!CFRunLoopTimerIsValid(timer));
    MUST(retained == released);
    return true;
}

NTH_FAILURE(observers, "")
{
    enum { count = 12 };
    CFRunLoopObserverContext context = {.retain = retain, .release = release};
    CFRunLoopSourceRef source;
    CFRunLoopObserverRef once;

    begin();
    seen = 0;
    for (int i = 0; i < count; i++) {
        CFRunLoopObserverRef observer =
            bag_keep(CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, count - i, observed, &context));

        NEED(observer);
        NEED(add_observer(observer, i % 2 ? MODE : kCFRunLoopCommonModes));
        NEED(add_observer(observer, MODE) || i % 2);
    }
    NEED(once = bag_keep(CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, false, 0, observed, &context)));
    NEED(add_observer(once, MODE));
    NEED(source = make_source(0));
    NEED(add_source(source, MODE));
    MUST(CFRunLoopRunInMode(MODE, 0.0005, false) == kCFRunLoopRunTimedOut);
    MUST(seen == (kCFRunLoopEntry | kCFRunLoopBeforeTimers | kCFRunLoopBeforeSources | kCFRunLoopBeforeWaiting | kCFRunLoopAfterWaiting |
                  kCFRunLoopExit));
    MUST(!CFRunLoopObserverIsValid(once));
    return true;
}

NTH_FAILURE(functions, "")
{
    const void *names[] = {MODE, OTHER_MODE};
    CFArrayRef modes;
    CFRunLoopSourceRef source;
    CFRunLoopTimerRef timer;
    CFRunLoopObserverRef observer;

    (void)CFRunLoopRunInMode(MODE, 0, false); /* what is left of a run that was refused something */
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    begin();
    NEED(modes = bag_keep(CFArrayCreate(NULL, names, 2, &kCFTypeArrayCallBacks)));
    NEED(source = make_source(0));
    NEED(add_source(source, MODE));
    NEED(add_source(source, kCFRunLoopDefaultMode));
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), MODE, perform, &performed, release_function_info);
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), modes, perform, &performed, release_function_info);
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), kCFRunLoopCommonModes, perform, &performed, release_function_info);
    (void)CFRunLoopRunInMode(MODE, 0, false);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    MUST(released == 3); /* without memory the function is released and not called */
    NEED(performed == 3);
    NEED(timer = bag_keep(CRLRunLoopTimerCreateWithFunction(NULL, 0, 0, 0, 0, fired, NULL, NULL)));
    NEED(observer = bag_keep(CRLRunLoopObserverCreateWithFunction(NULL, kCFRunLoopExit, true, 0, observed, NULL, release_function_info)));
    NEED(add_timer(timer, MODE));
    NEED(add_observer(observer, MODE));
    performed = 0;
    (void)CFRunLoopRunInMode(MODE, 0, false);
    MUST(performed == 1);
    return true;
}

NTH_FAILURE(common_modes, "")
{
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef second;
    CFRunLoopTimerRef timer;
    CFRunLoopObserverRef observer;
    CFArrayRef modes;

    begin();
    seen = 0;
    NEED(source = make_source(0));
    NEED(second = make_source(1));
    NEED(timer = make_firing_timer(-1, 0));
    NEED(observer = bag_keep(CFRunLoopObserverCreate(NULL, kCFRunLoopExit, true, 0, observed, NULL)));
    NEED(add_source(source, kCFRunLoopCommonModes));
    NEED(add_timer(timer, kCFRunLoopCommonModes));
    NEED(add_observer(observer, kCFRunLoopCommonModes));
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), MODE);
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), OTHER_MODE);
    NEED(add_source(second, kCFRunLoopCommonModes));
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE));
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), second, MODE));
    NEED(CFRunLoopContainsTimer(CFRunLoopGetCurrent(), timer, MODE));
    NEED(CFRunLoopContainsObserver(CFRunLoopGetCurrent(), observer, MODE));
    CFRunLoopSourceSignal(source);
    CFRunLoopSourceSignal(second);
    (void)CFRunLoopRunInMode(MODE, 0, false);
    MUST(performed == 3);
    MUST(seen == kCFRunLoopExit);
    NEED(modes = bag_keep(CFRunLoopCopyAllModes(CFRunLoopGetCurrent())));
    MUST(CFArrayGetCount(modes) >= 2);
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), second, kCFRunLoopCommonModes);
    MUST(!CFRunLoopContainsSource(CFRunLoopGetCurrent(), second, MODE));
    return true;
}

NTH_FAILURE(many_modes, "11 12")
{
    enum { count = 20 };
    CFStringRef names[count];

    begin();
    for (int i = 0; i < count; i++) {
        CFRunLoopSourceRef source;

        NEED(names[i] = bag_keep(CFStringCreateWithFormat(NULL, NULL, CFSTR("mode %d"), i)));
        NEED(source = make_source(i));
        NEED(add_source(source, names[i]));
        CFRunLoopSourceSignal(source);
    }
    for (int i = 0; i < count; i++) {
        MUST(CFRunLoopRunInMode(names[i], 0, true) == kCFRunLoopRunHandledSource);
    }
    MUST(performed == count);
    return true;
}

static void run_nested(void *info)
{
    CFRunLoopSourceRef inner = *(CFRunLoopSourceRef *)info;
    CFStringRef mode = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent());

    MUST(mode != NULL);
    if (mode) {
        CFRelease(mode);
    }
    CFRunLoopSourceSignal(inner);
    MUST(CFRunLoopRunInMode(OTHER_MODE, 1, true) == kCFRunLoopRunHandledSource);
    CFRunLoopStop(CFRunLoopGetCurrent());
}

NTH_FAILURE(nested_runs, "")
{
    static CFRunLoopSourceRef inner;
    CFRunLoopSourceContext context = {.info = &inner, .perform = run_nested};
    CFRunLoopSourceRef outer;

    begin();
    NEED(inner = make_source(0));
    NEED(outer = bag_keep(CFRunLoopSourceCreate(NULL, 0, &context)));
    NEED(add_source(inner, OTHER_MODE));
    NEED(add_source(outer, MODE));
    for (int i = 1; i <= 3; i++) {
        CFRunLoopSourceSignal(outer);
        MUST(CFRunLoopRunInMode(MODE, 1, false) == kCFRunLoopRunStopped);
        MUST(performed == i);
    }
    return true;
}

static int post_of;

static int get_port(void *info)
{
    return *(int *)info;
}

NTH_FAILURE(version_1_sources, "")
{
    CFRunLoopSourceContext1 context = {.version = 1, .info = &post_of, .getPort = get_port, .perform = perform};
    CFRunLoopSourceRef source;
    uint64_t one = 1;

    begin();
    post_of = bag_keep_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    NEED(source = bag_keep(CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context)));
    NEED(add_source(source, MODE));
    NEED(add_source(source, OTHER_MODE));
    for (int i = 1; i <= 3; i++) {
        MUST(write(post_of, &one, sizeof one) == sizeof one);
        MUST(run_until(&performed, i, i == 2 ? OTHER_MODE : MODE));
    }
    MUST(CFRunLoopRunInMode(MODE, 0, false) == kCFRunLoopRunTimedOut);
    MUST(performed == 3);
    return true;
}

static void performed_after_rest(void *info, CFRunLoopSourceRef source, uint32_t ready)
{
    (void)info;
    (void)source;
    (void)ready;
    performed++;
}

/* Waits for one source that end long before their limit, until an alarm stands in for the limit; after them the source is performed. */
NTH_FAILURE(quiet_waits_that_end_early, "214 228")
{
    const struct descriptor_source_context context = {.release = release, .perform = performed_after_rest};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef source;
    int ends[2];

    begin();
    MUST(pipe2(ends, O_CLOEXEC) == 0);
    (void)bag_keep_descriptor(ends[0]);
    (void)bag_keep_descriptor(ends[1]);
    MUST(write(ends[1], "x", 1) == 1);
    NEED(source = bag_keep(descriptor_source_create(NULL, 0, ends[0], &context)));
    descriptor_source_keep_in_epoll(source);
    descriptor_source_set_interest(source, kernel_readable);
    NEED(add_source(source, MODE));
    MUST(run_until(&performed, 1, MODE));
    MUST(descriptor_source_set_suspended(source, loop, MODE, true));
    for (int i = 0; i < 3; i++) {
        const int64_t now_ns = kernel.monotonic_ns();
        const struct quiet_wait request = {.source = source, .deadline_ns = now_ns + 20000, .now_ns = now_ns};

        (void)quiet_wait_run(loop, MODE, &request); /* a whole run would follow where one is refused */
    }
    MUST(descriptor_source_set_suspended(source, loop, MODE, false));
    MUST(run_until(&performed, 2, MODE));
    CFRunLoopSourceInvalidate(source);
    descriptor_source_remove_from_epoll(source, loop, MODE);
    return true;
}

/* A thread with a loop of its own, which another thread signals and which ends with everything still in it. */
struct worker {
    CFRunLoopRef loop; /* retained */
    CFRunLoopSourceRef source;
    bool is_ready;
    bool is_complete;
    pthread_barrier_t ready;
};

static bool prepare_work(void)
{
    CFRunLoopTimerContext context = {.retain = retain, .release = release};
    CFRunLoopSourceContext source_context = {.info = &released, .retain = retain, .release = release, .perform = perform};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1000, 1, 0, 0, fired, &context);
    CFRunLoopSourceRef left;
    bool is_good;

    NEED(timer);
    is_good = add_timer(timer, kCFRunLoopDefaultMode);
    CFRelease(timer);
    NEED(is_good);
    NEED(left = CFRunLoopSourceCreate(NULL, 1, &source_context));
    is_good = add_source(left, MODE);
    CFRelease(left);
    return is_good;
}

static void *work(void *info)
{
    struct worker *worker = info;

    worker->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
    worker->is_ready = prepare_work() && add_source(worker->source, kCFRunLoopDefaultMode);
    (void)pthread_barrier_wait(&worker->ready);
    worker->is_complete = worker->is_ready && run_until(&performed, 1, kCFRunLoopDefaultMode);
    return NULL;
}

NTH_FAILURE(threads, "")
{
    struct worker worker = {.source = NULL};
    pthread_t thread;

    begin();
    NEED(worker.source = make_source(0));
    (void)pthread_barrier_init(&worker.ready, NULL, 2);
    MUST(pthread_create(&thread, NULL, work, &worker) == 0);
    (void)pthread_barrier_wait(&worker.ready);
    CFRunLoopSourceSignal(worker.source);
    CFRunLoopWakeUp(worker.loop);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&worker.ready);
    CFRelease(worker.loop);
    MUST(!worker.is_ready || worker.is_complete);
    CFRunLoopSourceInvalidate(worker.source);
    MUST(retained - released <= 1); /* that of the source which is in the bag */
    return worker.is_ready;
}

static _Atomic int tasks_done;

static OSStatus run_task(void *info)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, fired, NULL);

    (void)info;
    if (timer) {
        CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, MODE);
        CFRelease(timer);
        (void)CFRunLoopRunInMode(MODE, 0, false);
    }
    tasks_done++;
    return noErr;
}

NTH_FAILURE(tasks, "")
{
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();
    long objects;

    (void)CFRunLoopGetCurrent(); /* wakers are kept for later: how many depends on how many loops there are at a time */
    objects = object_live_count();
    tasks_done = 0;
    NEED(MPCreateTask(run_task, NULL, 0, NULL, NULL, NULL, 0, NULL) == noErr);
    while ((tasks_done == 0 || object_live_count() > objects) && CFAbsoluteTimeGetCurrent() < deadline) {
        (void)sched_yield();
    }
    MUST(tasks_done == 1);
    MUST(object_live_count() == objects);
    return true;
}

NTH_FAILURE(forks, "")
{
    CFRunLoopSourceContext1 context = {.version = 1, .info = &post_of, .getPort = get_port, .perform = perform};
    CFRunLoopSourceRef source;
    CFRunLoopTimerRef timer;
    uint64_t one = 1;
    int status = 0;
    pid_t pid;

    begin();
    post_of = bag_keep_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    NEED(source = bag_keep(CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context)));
    NEED(timer = make_firing_timer(0.001, 0.001));
    NEED(add_source(source, MODE));
    NEED(add_timer(timer, MODE));
    (void)CFRunLoopRunInMode(MODE, 0, false);
    MUST((pid = fork()) >= 0);
    if (pid == 0) {
        bool is_good;

        performed = 0;
        (void)CFRunLoopRunInMode(MODE, 0.01, false);
        is_good = performed > 0;
        _exit(is_good ? 0 : 1);
    }
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(status == 0);
    performed = 0;
    CFRunLoopTimerInvalidate(timer);
    MUST(write(post_of, &one, sizeof one) == sizeof one);
    MUST(run_until(&performed, 1, MODE));
    return true;
}

NTH_FAILURE(hosting, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceContext1 context = {.version = 1, .info = &post_of, .getPort = get_port, .perform = perform};
    CFRunLoopSourceRef source;
    CFRunLoopTimerRef timer;
    struct pollfd one = {.events = POLLIN};
    uint64_t post = 1;

    begin();
    NEED((one.fd = CRLRunLoopGetDescriptor(loop)) >= 0);
    post_of = bag_keep_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    NEED(source = bag_keep(CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context)));
    NEED(timer = make_firing_timer(0.002, 0));
    NEED(add_source(source, MODE));
    NEED(add_timer(timer, MODE));
    MUST(write(post_of, &post, sizeof post) == sizeof post);
    for (int turn = 0; turn < 1000 && performed < 2; turn++) {
        int64_t timeout_ns;

        if (!CRLRunLoopPrepare(loop, MODE)) {
            CRLRunLoopLeave(loop);
            return false;
        }
        timeout_ns = CRLRunLoopGetTimeout(loop);
        (void)poll(&one, 1, timeout_ns < 0 ? 1000 : (int)((timeout_ns + 999999) / 1000000));
        if (CRLRunLoopDispatch(loop) != 0) {
            break;
        }
    }
    CRLRunLoopLeave(loop);
    MUST(performed == 2);
    return true;
}

/* As hosting, where the host waits for the descriptor alone. */
NTH_FAILURE(hosting_by_descriptor, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopTimerRef timer;
    struct pollfd one = {.events = POLLIN};

    begin();
    NEED((one.fd = CRLRunLoopGetDescriptor(loop)) >= 0);
    NEED(timer = make_firing_timer(0.002, 0.002));
    NEED(add_timer(timer, MODE));
    for (int turn = 0; turn < 100 && performed < 3; turn++) {
        if (!CRLRunLoopPrepare(loop, MODE)) {
            CRLRunLoopLeave(loop);
            return false;
        }
        MUST(poll(&one, 1, 1000) == 1);
        if (CRLRunLoopDispatch(loop) != 0) {
            break;
        }
    }
    CRLRunLoopLeave(loop);
    MUST(performed == 3);
    return true;
}

NTH_FAILURE(descriptions, "606")
{
    CFRunLoopSourceRef source;
    CFRunLoopTimerRef timer;
    CFRunLoopObserverRef observer;
    CFStringRef text;

    begin();
    NEED(source = make_source(0));
    NEED(timer = make_firing_timer(100, 100));
    NEED(observer = bag_keep(CFRunLoopObserverCreate(NULL, kCFRunLoopExit, true, 0, observed, NULL)));
    NEED(add_source(source, MODE));
    NEED(add_timer(timer, MODE));
    NEED(add_observer(observer, MODE));
    NEED(text = bag_keep(CFCopyDescription(source)));
    NEED(text = bag_keep(CFCopyDescription(timer)));
    NEED(text = bag_keep(CFCopyDescription(observer)));
    NEED(text = bag_keep(CFCopyDescription(CFRunLoopGetCurrent())));
    NEED(text = bag_keep(CFStringCreateWithFormat(NULL, NULL, CFSTR("%@ and %@"), source, timer)));
    return CFStringGetLength(text) > 0;
}

/* Something is ready already when the host would wait: it is dispatched at once, and a post is taken off the loop's eventfd. */
NTH_FAILURE(hosting_without_sleep, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef source;
    struct pollfd one = {.events = POLLIN};

    begin();
    NEED((one.fd = CRLRunLoopGetDescriptor(loop)) >= 0);
    NEED(source = make_source(0));
    NEED(add_source(source, MODE));
    for (int turn = 1; turn <= 3; turn++) {
        CFRunLoopSourceSignal(source);
        if (!CRLRunLoopPrepare(loop, MODE)) {
            CRLRunLoopLeave(loop);
            return false;
        }
        MUST(CRLRunLoopGetTimeout(loop) == 0);
        MUST(poll(&one, 1, 1000) == 1);
        (void)CRLRunLoopDispatch(loop);
        MUST(performed == turn);
    }
    CRLRunLoopLeave(loop);
    return true;
}

/* The post comes while the host waits for the descriptor alone. */
NTH_FAILURE(hosting_of_descriptors, "")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceContext1 context = {.version = 1, .info = &post_of, .getPort = get_port, .perform = perform};
    CFRunLoopSourceRef source;
    struct pollfd one = {.events = POLLIN};
    uint64_t post = 1;

    begin();
    NEED((one.fd = CRLRunLoopGetDescriptor(loop)) >= 0);
    post_of = bag_keep_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    NEED(source = bag_keep(CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context)));
    NEED(add_source(source, MODE));
    for (int wanted = 1; wanted <= 2; wanted++) {
        bool is_posted = false;

        for (int turn = 0; turn < 20 && performed < wanted; turn++) {
            if (!CRLRunLoopPrepare(loop, MODE)) {
                CRLRunLoopLeave(loop);
                return false;
            }
            if (!is_posted) {
                MUST(write(post_of, &post, sizeof post) == sizeof post);
                is_posted = true;
            }
            MUST(poll(&one, 1, 500) == 1);
            (void)CRLRunLoopDispatch(loop);
        }
        MUST(performed == wanted);
    }
    CRLRunLoopLeave(loop);
    return true;
}

/* Drives the host until `performed` is that: it asks for the descriptor each time, and looks now and then without being told. */
static bool host_until(CFRunLoopRef loop, int wanted)
{
    for (int turn = 0; turn < 100 && performed < wanted; turn++) {
        struct pollfd one = {.events = POLLIN};

        if (!CRLRunLoopPrepare(loop, MODE)) {
            return false;
        }
        one.fd = CRLRunLoopGetDescriptor(loop);
        (void)poll(&one, 1, 20);
        (void)CRLRunLoopDispatch(loop);
    }
    return performed == wanted;
}

/* The program has closed the host's descriptors, and another wait set has the number of the mode's. */
NTH_FAILURE(hosting_by_descriptors_that_go, "F16")
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceContext1 context = {.version = 1, .info = &post_of, .getPort = get_port, .perform = perform};
    CFRunLoopSourceRef source;
    uint64_t post = 1;
    int other_set;
    int taken;

    begin();
    NEED(CRLRunLoopGetDescriptor(loop) >= 0);
    post_of = bag_keep_descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    NEED(source = bag_keep(CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context)));
    NEED(add_source(source, MODE));
    MUST(write(post_of, &post, sizeof post) == sizeof post);
    NEED(host_until(loop, 1));
    NEED(loop->hosting->wait.descriptor >= 0 && (taken = mode_find(loop, MODE)->watches->set) >= 0);
    MUST(close(loop->hosting->wait.descriptor) == 0 && close(loop->hosting->wait.alarm) == 0);
    MUST((other_set = epoll_create1(EPOLL_CLOEXEC)) >= 0 && dup2(other_set, taken) == taken);
    (void)bag_keep_descriptor(other_set);
    (void)bag_keep_descriptor(taken);
    MUST(write(post_of, &post, sizeof post) == sizeof post);
    MUST(host_until(loop, 2));
    CRLRunLoopLeave(loop);
    return true;
}

/* A companion does the sleeps. Without memory or descriptors it has a turn in each pass, and the loop sleeps by itself. */
NTH_FAILURE(companions, "806")
{
    CFRunLoopTimerRef timer;
    CFRunLoopRunResult result;

    begin();
    NEED(timer = make_firing_timer(0.002, 0.002));
    NEED(add_timer(timer, MODE));
    fake_companion_begin(true);
    result = CFRunLoopRunInMode(MODE, 0.01, false);
    fake_companion_end();
    MUST(result == kCFRunLoopRunTimedOut);
    MUST(performed >= 1);
    return true;
}

/* ---- traces ---- */

static int reserve_nothing(int file, int64_t offset, size_t size)
{
    (void)file, (void)offset, (void)size;
    return -ENOSPC;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder) {
        (void)closedir(folder);
    }
    (void)rmdir(path);
}

static bool child_ends_well(pid_t pid)
{
    int status = 0;

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Runs the loop here and in a child while the trace is on. Returns false if the child did not end well. */
static bool run_traced(void)
{
    pid_t pid;

    (void)CFRunLoopRunInMode(MODE, 0.005, false);
    pid = fork();
    if (pid == 0) {
        (void)CFRunLoopRunInMode(MODE, 0.005, false);
        _exit(0);
    }
    return child_ends_well(pid);
}

NTH_FAILURE(traces, "512")
{
    char folder[] = P_tmpdir "/crl-nth-trace-XXXXXX";
    char path[sizeof folder + 2];
    CFRunLoopTimerRef timer;
    bool is_traced;
    bool is_good;

    begin();
    NEED(timer = make_firing_timer(0.001, 0.001));
    NEED(add_timer(timer, MODE));
    MUST(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/t", folder);
    kernel_trace.file_reserve = reserve_nothing;
    is_good = CRLTraceStart(path, 0) != 0;
    kernel_trace.file_reserve = kernel_trace_linux.file_reserve;
    is_traced = CRLTraceStart(path, 0) == 0;
    is_good = run_traced() && is_good;
    CRLTraceStop();
    remove_folder(folder);
    MUST(is_good);
    return is_traced;
}

/* ---- statistics ---- */

/* Has a child run the loop, and then a child of its own if `has_child`. Returns false if one of them did not end well. */
static bool run_counted(bool has_child)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)CFRunLoopRunInMode(MODE, 0.005, false);
        _exit(has_child && !run_counted(false));
    }
    return child_ends_well(pid);
}

/* In children, because a page stays open as long as its process lives. */
NTH_FAILURE(statistics, "524")
{
    char folder[] = P_tmpdir "/crl-nth-statistics-XXXXXX";
    char path[sizeof folder + sizeof STATISTICS_DIRECTORY];
    CFRunLoopTimerRef timer;
    bool is_good;

    begin();
    NEED(timer = make_firing_timer(0.001, 0.001));
    NEED(add_timer(timer, MODE));
    MUST(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/" STATISTICS_DIRECTORY, folder);
    MUST(setenv("XDG_RUNTIME_DIR", folder, 1) == 0 && setenv("CORERUNLOOP_STATISTICS", "1", 1) == 0);
    statistics_start_from_environment();
    kernel_trace.file_reserve = reserve_nothing;
    is_good = run_counted(false);
    kernel_trace.file_reserve = kernel_trace_linux.file_reserve;
    is_good = run_counted(true) && is_good;
    remove_folder(path);
    remove_folder(folder);
    MUST(is_good);
    return true;
}

/* ---- stalls ---- */

static _Atomic int infos_released;

static void release_info(void *info)
{
    (void)info;
    (void)atomic_fetch_add(&infos_released, 1);
}

static void hear_of_stall(const CRLStall *stall, void *info)
{
    (void)stall;
    (void)info;
}

/* On a thread whose loop ends, and what belongs to it with it. */
static void *watch_and_run(void *ret_is_watched)
{
    bool *is_watched = ret_is_watched;
    int watching = 0;

    for (int attempt = 0; attempt < 2; attempt++) { /* the second replaces the first */
        if (CRLRunLoopSetStallHandler(CFRunLoopGetCurrent(), 100, hear_of_stall, NULL, release_info)) {
            watching++;
        }
    }
    *is_watched = watching == 2;
    return NULL;
}

static bool watch_for_stalls(void)
{
    bool is_watched = false;
    pthread_t thread;

    begin();
    infos_released = 0;
    MUST(pthread_create(&thread, NULL, watch_and_run, &is_watched) == 0);
    (void)pthread_join(thread, NULL);
    MUST(infos_released == 2); /* once each, also if refused */
    return is_watched;
}

TEST_LIMIT(nth_failure_stalls, "704", 120)
{
    nth_failure_run_primed("stalls", watch_for_stalls, watch_for_stalls); /* the thread that tells is begun once */
}

/* ---- a source in the loops of two threads ---- */

struct other_loop {
    CFRunLoopRef loop; /* retained */
    CFRunLoopSourceRef source;
    bool is_added;
    _Atomic int *performed;
    pthread_barrier_t ready;
};

static void *run_other_loop(void *info)
{
    struct other_loop *other = info;

    other->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
    other->is_added = add_source(other->source, MODE);
    (void)pthread_barrier_wait(&other->ready);
    if (other->is_added) {
        MUST(run_until(other->performed, 1, MODE));
    }
    return NULL;
}

NTH_FAILURE(a_source_in_two_loops, "")
{
    struct other_loop other = {.performed = &performed};
    pthread_t thread;

    begin();
    NEED(other.source = make_source(0));
    NEED(add_source(other.source, MODE));
    (void)pthread_barrier_init(&other.ready, NULL, 2);
    MUST(pthread_create(&thread, NULL, run_other_loop, &other) == 0);
    (void)pthread_barrier_wait(&other.ready);
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), other.source, MODE);
    CFRunLoopSourceSignal(other.source);
    CFRunLoopWakeUp(other.loop);
    (void)pthread_join(thread, NULL);
    CFRelease(other.loop);
    (void)pthread_barrier_destroy(&other.ready);
    return other.is_added;
}

/* ---- the main dispatch queue ---- */

extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern char _dispatch_main_q[] __attribute__((weak));

/* A run inside the queue's work does not serve the queue. */
static void perform_and_stop(void *info)
{
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    perform(info);
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void *post_to_the_main_queue(void *loop)
{
    while (!CFRunLoopIsWaiting(loop)) {
        (void)sched_yield();
    }
    dispatch_async_f(_dispatch_main_q, NULL, perform_and_stop);
    return NULL;
}

/* Work comes to the queue while the loop sleeps, and before it runs. */
static bool serve_the_main_queue(void)
{
    CFRunLoopSourceRef source;
    pthread_t thread;

    begin();
    NEED(source = make_source(0));
    NEED(add_source(source, kCFRunLoopDefaultMode));
    MUST(pthread_create(&thread, NULL, post_to_the_main_queue, CFRunLoopGetCurrent()) == 0);
    MUST(CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), false) == kCFRunLoopRunStopped);
    (void)pthread_join(thread, NULL);
    MUST(performed == 1);
    dispatch_async_f(_dispatch_main_q, NULL, perform_and_stop);
    MUST(CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), false) == kCFRunLoopRunStopped);
    MUST(performed == 2);
    return true;
}

TEST_LIMIT(nth_failure_the_main_queue, "", 120)
{
    if (!dispatch_async_f) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor, which is made once, and here, before a run counts its descriptors */
    REQUIRE(main_queue_descriptor() >= 0);
    nth_failure_run("the_main_queue", serve_the_main_queue);
}
