/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose loops are known, for gdb: the main loop is in the callout `perform` of a source, and a thread named "worker" sleeps in
 * its loop. Then the function `stop_here` is called, and once more by the timer `hang` in the mode "firing". With an argument, a timer
 * calls `tick` every 5 ms instead, until standard input ends.
 * Rules: 520 521 522 523 525 526 607 608
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

void hang(CFRunLoopTimerRef fired, void *info)
{
    (void)fired;
    (void)info;
    stop_here();
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

static void stop_at_end(CFFileDescriptorRef input, CFOptionFlags types, void *info)
{
    (void)input;
    (void)types;
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static int tick_until_end(void)
{
    CFRunLoopTimerRef ticking = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.005, 0, 0, tick, NULL);
    CFFileDescriptorRef input = CFFileDescriptorCreate(NULL, 0, false, stop_at_end, NULL);

    CFFileDescriptorEnableCallBacks(input, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFFileDescriptorCreateRunLoopSource(NULL, input, 0), kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), ticking, kCFRunLoopDefaultMode);
    CFRunLoopRun();
    return 0;
}

int main(int count, char **words)
{
    CFRunLoopSourceContext context = {.perform = perform};
    CFRunLoopTimerRef hanging;
    pthread_t thread;

    (void)words;
    if (count > 1) {
        return tick_until_end();
    }
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
    hanging = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 7, hang, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), hanging, CFSTR("other"));
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), hanging, CFSTR("firing"));
    CFRunLoopRunInMode(CFSTR("firing"), 0, true);
    return 0;
}
