/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 1.2, note 3, the experiment: a thread's loop waits for a source that is never signalled; another thread makes it
 * perform addSourceToThread, which adds a timer. Whether the timer fires depends on how the loop is run:
 *   1. once, returning after one source: the performed request is that source, the run returns, the thread ends, the timer never fires;
 *      with a delay of 0 it fires in the same pass, before the run returns;
 *   2. CFRunLoopRun: it fires;
 *   3. for a time, without returning after a source: it fires;
 *   4. returning after one source, again and again, as -[NSRunLoop run] does: it fires.
 * The article's delay of four seconds is 50 ms here.
 * Rules: 30 37f 37q 48 51 54 61
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"
#include "performer.h"

enum way { runOnce, runUntilStopped, runForATime, runRepeatedly };

struct experiment {
    enum way way;
    double delay;
    struct performer performer;
    atomic_bool is_ready;
    int performed;
    int fired;
    SInt32 result; /* of the last run, where it has one */
    int runs;
};

static void perform(void *info) {
    struct experiment *self = info;
    self->performed++;
}

static void logForCFRunLoopForFunWithMode(CFRunLoopTimerRef timer, void *info) {
    struct experiment *self = info;
    (void)timer;
    self->fired++;
    if (self->way == runUntilStopped || self->way == runRepeatedly) CFRunLoopStop(CFRunLoopGetCurrent());
}

static void addSourceToThread(void *object) {
    struct experiment *self = object;
    CFRunLoopTimerContext context = {0, self, NULL, NULL, NULL};
    CFRunLoopTimerRef runTimer =
        CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + self->delay, 0, 0, 0, logForCFRunLoopForFunWithMode, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), runTimer, kCFRunLoopDefaultMode);
    CFRelease(runTimer);
}

static void *test(void *object) {
    struct experiment *self = object;
    CFRunLoopSourceContext context = {0, self, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &perform};
    CFRunLoopSourceRef sourceRef = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), sourceRef, kCFRunLoopDefaultMode);
    performer_install(&self->performer);
    atomic_store(&self->is_ready, true);

    switch (self->way) {
        case runOnce:
            self->result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE);
            self->runs++;
            break;
        case runUntilStopped:
            CFRunLoopRun();
            self->runs++;
            break;
        case runForATime:
            self->result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.3, FALSE);
            self->runs++;
            break;
        case runRepeatedly:
            do {
                self->result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE);
                self->runs++;
            } while (self->result == kCFRunLoopRunHandledSource);
            break;
    }

    performer_remove(&self->performer);
    CFRunLoopSourceInvalidate(sourceRef);
    CFRelease(sourceRef);
    return NULL;
}

static void testAddSource(struct experiment *self) {
    pthread_t thread = listing_detach(test, self);
    while (!atomic_load(&self->is_ready) || !CFRunLoopIsWaiting(self->performer.runLoop)) sched_yield();
    performer_perform(&self->performer, addSourceToThread, self, false); /* prepareToAdd */
    pthread_join(thread, NULL);
    CHECK(self->performed == 0);
}

int main(void) {
    listing_begin();

    struct experiment once = {.way = runOnce, .delay = 0.05};
    testAddSource(&once);
    CHECK(once.result == kCFRunLoopRunHandledSource);
    CHECK(once.fired == 0);

    struct experiment onceAtOnce = {.way = runOnce, .delay = 0};
    testAddSource(&onceAtOnce);
    CHECK(onceAtOnce.result == kCFRunLoopRunHandledSource);
    CHECK(onceAtOnce.fired == 1);

    struct experiment untilStopped = {.way = runUntilStopped, .delay = 0.05};
    testAddSource(&untilStopped);
    CHECK(untilStopped.fired == 1);

    struct experiment forATime = {.way = runForATime, .delay = 0.05};
    testAddSource(&forATime);
    CHECK(forATime.result == kCFRunLoopRunTimedOut);
    CHECK(forATime.fired == 1);

    struct experiment repeatedly = {.way = runRepeatedly, .delay = 0.05};
    testAddSource(&repeatedly);
    CHECK(repeatedly.result == kCFRunLoopRunStopped);
    CHECK(repeatedly.runs == 2);
    CHECK(repeatedly.fired == 1);
    return listing_end();
}
