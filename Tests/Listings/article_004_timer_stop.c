/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 2.2: CFRunLoopStop in a timer's callback ends the repetition. It ends the run, not the timer: the timer stays valid
 * and in the loop, and the next run goes on with it.
 * Rules: 37l 55
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

static int firings;

static void RunLoopTimerCallBack(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
    firings++;
    CFRunLoopStop(CFRunLoopGetCurrent()); /* ends the repetition */
}

static void *createTimerWithContext(void *object) {
    (void)object;
    CFRunLoopTimerRef timer =
        CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0.02, 0, 0, &RunLoopTimerCallBack, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE) == kCFRunLoopRunStopped);
    CHECK(firings == 1);
    CHECK(CFRunLoopTimerIsValid(timer));
    CHECK(CFRunLoopContainsTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode));
    CFRunLoopRun();
    CHECK(firings == 2);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    return NULL;
}

int main(void) {
    listing_begin();
    listing_on_thread(createTimerWithContext, NULL);
    return listing_end();
}
