/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 1.2, note 1: a source may be added to a loop that is already running, here from another thread while the loop
 * sleeps. `schedule` is called on the thread that adds, `perform` on the loop's thread. Adding and signalling wake nobody: the explicit
 * wake-up does.
 * Rules: 5 9 61 75 76 77 86 88
 */
#include <CoreFoundation/CoreFoundation.h>
#include <semaphore.h>

#include "listing.h"

static struct {
    sem_t performed;
    _Atomic(CFRunLoopRef) runLoop;
    pthread_t schedule_thread;
    pthread_t perform_thread;
    pthread_t cancel_thread;
} shared;

static void schedule(void *info, CFRunLoopRef rl, CFRunLoopMode mode) {
    (void)info;
    (void)mode;
    CHECK(rl == atomic_load(&shared.runLoop));
    shared.schedule_thread = pthread_self();
}

static void cancel(void *info, CFRunLoopRef rl, CFRunLoopMode mode) {
    (void)info;
    (void)mode;
    CHECK(rl == atomic_load(&shared.runLoop));
    shared.cancel_thread = pthread_self();
}

static void perform(void *info) {
    (void)info;
    shared.perform_thread = pthread_self();
    sem_post(&shared.performed);
}

static void doNothing(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
}

static void *threadMain(void *object) {
    (void)object;
    CFRunLoopTimerRef keepAlive = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1000, 0, 0, 0, doNothing, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keepAlive, kCFRunLoopDefaultMode);
    atomic_store(&shared.runLoop, CFRunLoopGetCurrent());
    CFRunLoopRun();
    CFRunLoopTimerInvalidate(keepAlive);
    CFRelease(keepAlive);
    return NULL;
}

int main(void) {
    CFRunLoopRef rl;
    listing_begin();
    sem_init(&shared.performed, 0, 0);
    pthread_t thread = listing_detach(threadMain, NULL);
    while ((rl = atomic_load(&shared.runLoop)) == NULL || !CFRunLoopIsWaiting(rl)) sched_yield();

    CFRunLoopSourceContext context = {0, NULL, NULL, NULL, NULL, NULL, NULL, &schedule, &cancel, &perform};
    CFRunLoopSourceRef sourceRef = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context);
    CFRunLoopAddSource(rl, sourceRef, kCFRunLoopDefaultMode);
    CHECK(pthread_equal(shared.schedule_thread, pthread_self()));
    CFRunLoopSourceSignal(sourceRef);
    CHECK(CFRunLoopIsWaiting(rl)); /* still asleep */
    CFRunLoopWakeUp(rl);
    sem_wait(&shared.performed);
    CHECK(pthread_equal(shared.perform_thread, thread));

    CFRunLoopSourceInvalidate(sourceRef);
    CHECK(pthread_equal(shared.cancel_thread, pthread_self()));
    CFRelease(sourceRef);
    CFRunLoopStop(rl);
    pthread_join(thread, NULL);
    return listing_end();
}
