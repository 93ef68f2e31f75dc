/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing 3-1, "Creating a run loop observer": a thread whose loop has an observer of all activities and a repeating timer runs ten times.
 * The intervals are a twentieth of the printed ones. NSTimer becomes CFRunLoopTimer, and runUntilDate: becomes CFRunLoopRunInMode. The
 * observer checks that what it sees is in the order that the guide describes.
 * Rules: 30 31 37c 38 118 147 158
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

struct object {
    CFRunLoopActivity last; /* 0 before the first */
    int entries;
    int exits;
    int firings;
};

/* What may come after `activity`: the sequence of a loop with nothing but a timer. */
static CFOptionFlags successors(CFRunLoopActivity activity) {
    switch (activity) {
        case kCFRunLoopEntry: return kCFRunLoopBeforeTimers;
        case kCFRunLoopBeforeTimers: return kCFRunLoopBeforeSources;
        case kCFRunLoopBeforeSources: return kCFRunLoopBeforeWaiting;
        case kCFRunLoopBeforeWaiting: return kCFRunLoopAfterWaiting;
        case kCFRunLoopAfterWaiting: return kCFRunLoopBeforeTimers | kCFRunLoopExit;
        default: return kCFRunLoopEntry;
    }
}

static void myRunLoopObserver(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info) {
    struct object *self = info;
    (void)observer;
    CHECK((successors(self->last) & activity) == activity);
    CHECK((activity & (activity - 1)) == 0);
    if (activity == kCFRunLoopEntry) self->entries++;
    if (activity == kCFRunLoopExit) self->exits++;
    self->last = activity;
}

static void doFireTimer(CFRunLoopTimerRef timer, void *info) {
    struct object *self = info;
    (void)timer;
    CHECK(self->last == kCFRunLoopAfterWaiting);
    self->firings++;
}

static void *threadMain(void *object) {
    struct object *self = object;
    CFRunLoopRef myRunLoop = CFRunLoopGetCurrent();

    /* Create a run loop observer and attach it to the run loop. */
    CFRunLoopObserverContext context = {0, self, NULL, NULL, NULL};
    CFRunLoopObserverRef observer =
        CFRunLoopObserverCreate(kCFAllocatorDefault, kCFRunLoopAllActivities, TRUE, 0, &myRunLoopObserver, &context);
    CHECK(observer != NULL);
    if (observer) CFRunLoopAddObserver(myRunLoop, observer, kCFRunLoopDefaultMode);

    /* Create and schedule the timer. */
    CFRunLoopTimerContext timerContext = {0, self, NULL, NULL, NULL};
    CFAbsoluteTime start = CFAbsoluteTimeGetCurrent();
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(kCFAllocatorDefault, start + 0.005, 0.005, 0, 0, &doFireTimer, &timerContext);
    CFRunLoopAddTimer(myRunLoop, timer, kCFRunLoopDefaultMode);

    CFIndex loopCount = 10;
    do {
        /* Run the run loop 10 times to let the timer fire. */
        CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, FALSE) == kCFRunLoopRunTimedOut);
        CHECK(self->last == kCFRunLoopExit);
        loopCount--;
    } while (loopCount);

    /* Never early: no more firings than periods that have passed. */
    CHECK(self->firings <= (int)((CFAbsoluteTimeGetCurrent() - start) / 0.005) + 1);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    return NULL;
}

int main(void) {
    struct object self = {0};
    listing_begin();
    listing_on_thread(threadMain, &self);
    CHECK(self.entries == 10);
    CHECK(self.exits == 10);
    CHECK(self.firings >= 10);
    return listing_end();
}
