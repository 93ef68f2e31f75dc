/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 2.2: the same timer with a handler. Compiled with blocks it is the article's CFRunLoopTimerCreateWithHandler,
 * without them (gcc) CRLRunLoopTimerCreateWithFunction. CFRunLoopRun returns because the handler stops it.
 * Rules: 54 55 126 138
 */
#include <CoreFoundation/CoreFoundation.h>
#if !defined(__BLOCKS__)
#include <CRLRunLoop.h>
#endif

#include "listing.h"

enum { wanted_firings = 3 };

static int i = 1;
static CFAbsoluteTime moved_to;
static CFAbsoluteTime fired[wanted_firings];
static int firings;

static void handleTimer(CFRunLoopTimerRef blockTimer) {
    if (firings < wanted_firings) fired[firings] = CFAbsoluteTimeGetCurrent();
    firings++;
    if (i == 1) {
        moved_to = CFAbsoluteTimeGetCurrent() + 0.15;
        CFRunLoopTimerSetNextFireDate(blockTimer, moved_to);
        i++;
    }
    if (firings == wanted_firings) CFRunLoopStop(CFRunLoopGetCurrent());
}

#if !defined(__BLOCKS__)
static int released;

static void timerFunction(CFRunLoopTimerRef timer, void *info) {
    CHECK(info == &released);
    handleTimer(timer);
}

static void releaseInfo(void *info) {
    CHECK(info == &released);
    released++;
}
#endif

static void *createTimerWithHandle(void *object) {
    (void)object;
#if defined(__BLOCKS__)
    CFRunLoopTimerRef timer =
        CFRunLoopTimerCreateWithHandler(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0.1, 0, 0, ^(CFRunLoopTimerRef blockTimer) {
            handleTimer(blockTimer);
        });
#else
    CFRunLoopTimerRef timer = CRLRunLoopTimerCreateWithFunction(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0.1, 0, 0, timerFunction,
                                                                &released, releaseInfo);
#endif
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRunLoopRun();
    CHECK(CFRunLoopTimerIsValid(timer)); /* stopping the loop leaves the timer as it is */
    CFRunLoopTimerInvalidate(timer);
#if !defined(__BLOCKS__)
    CHECK(released == 1);
#endif
    CFRelease(timer);
    return NULL;
}

int main(void) {
    listing_begin();
    listing_on_thread(createTimerWithHandle, NULL);
    CHECK(firings == wanted_firings);
    CHECK(fired[1] >= moved_to - 5e-7);
    CHECK(fired[2] >= moved_to + 0.1 - 5e-7);
    return listing_end();
}
