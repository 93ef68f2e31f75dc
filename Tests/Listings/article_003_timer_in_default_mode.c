/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 003's variant of listing 3-11: the same timer, with its first date in 2001, in the default mode instead of the common modes. It
 * fires only while the default mode runs: a run of another mode leaves it due, and the default mode then makes one firing of what was
 * missed.
 * Rules: 15 22 111 112 118 142
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

static int firings;

static void timercallback(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
    firings++;
}

static void doNothing(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
}

static void *threadMain(void *object) {
    (void)object;
    CFRunLoopRef runLoop = CFRunLoopGetCurrent();
    CFRunLoopTimerContext context = {0, NULL, NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(kCFAllocatorDefault, 0.1, 0.3, 0, 0, timercallback, &context);
    CFRunLoopAddTimer(runLoop, timer, kCFRunLoopDefaultMode);
    CHECK(CFRunLoopContainsTimer(runLoop, timer, kCFRunLoopDefaultMode));
    CHECK(!CFRunLoopContainsTimer(runLoop, timer, kCFRunLoopCommonModes));

    /* Another mode, kept alive by a timer of its own, for longer than an interval. */
    CFRunLoopTimerRef other = CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent() + 1000, 0, 0, 0, doNothing, NULL);
    CFRunLoopAddTimer(runLoop, other, CFSTR("another mode"));
    CHECK(CFRunLoopRunInMode(CFSTR("another mode"), 0.35, FALSE) == kCFRunLoopRunTimedOut);
    CHECK(firings == 0);

    /* The default mode: what is due fires at once, and once. */
    CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, FALSE) == kCFRunLoopRunTimedOut);
    CHECK(firings == 1);
    /* The next date is on the grid of 0.3 s from the creation. */
    CHECK(CFRunLoopTimerGetNextFireDate(timer) > CFAbsoluteTimeGetCurrent());
    CHECK(CFRunLoopTimerGetNextFireDate(timer) <= CFAbsoluteTimeGetCurrent() + 0.3);
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.35, FALSE);
    CHECK(firings >= 2);

    CFRunLoopTimerInvalidate(other);
    CFRelease(other);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    return NULL;
}

int main(void) {
    listing_begin();
    listing_on_thread(threadMain, NULL);
    return listing_end();
}
