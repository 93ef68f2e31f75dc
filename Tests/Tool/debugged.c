/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose loops are known, for gdb: the main loop is in the callout `perform` of a source, and a thread named "worker" sleeps in
 * its loop. Then the function `stop_here` is called.
 */
#define _GNU_SOURCE
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static _Atomic(CFRunLoopRef) worker;
CFRunLoopSourceRef source;
CFRunLoopTimerRef timer;
CFRunLoopObserverRef observer;
CFStringRef text;

__attribute__((noinline)) void stop_here(void)
{
    __asm__ volatile("" ::: "memory");
}

void tick(CFRunLoopTimerRef fired, void *info)
{
    (void)fired;
    (void)info;
}

void watch(CFRunLoopObserverRef called, CFRunLoopActivity activity, void *info)
{
    (void)called;
    (void)activity;
    (void)info;
}

void perform(void *info)
{
    (void)info;
    CFRunLoopSourceSignal(source);
    stop_here();
}

static void *work(void *info)
{
    CFRunLoopTimerRef late = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100000, 5, 0, 0, tick, NULL);

    (void)info;
    CFRunLoopTimerSetTolerance(late, 2);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), late, CFSTR("caf\u00e9"));
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), late, CFSTR("second"));
    atomic_store(&worker, CFRunLoopGetCurrent());
    CFRunLoopRunInMode(CFSTR("caf\u00e9"), 1e6, false);
    return NULL;
}

int main(void)
{
    CFRunLoopSourceContext context = {.perform = perform};
    pthread_t thread;

    if (pthread_create(&thread, NULL, work, NULL) != 0) {
        return 1;
    }
    (void)pthread_setname_np(thread, "worker");
    text = CFStringCreateWithCString(NULL, "some text", kCFStringEncodingUTF8);
    source = CFRunLoopSourceCreate(NULL, 3, &context);
    timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100000, 0, 0, 0, tick, NULL);
    observer = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry | kCFRunLoopExit, true, -2, watch, NULL);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopCommonModes);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    while (!atomic_load(&worker) || !CFRunLoopIsWaiting(atomic_load(&worker))) {
        (void)sched_yield();
    }
    CFRunLoopSourceSignal(source);
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    return 0;
}
