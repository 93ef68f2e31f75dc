/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing 3-11, "Creating and scheduling a timer using Core Foundation": the first fire date is 0.1, which is a tenth of a second after the
 * beginning of 2001 and so long past. The timer fires at once, and then every 0.3 seconds counted from its creation.
 * Rules: 17 22 55 111 112 114 118 123 139
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

enum { wanted_firings = 3 };

static struct {
    CFAbsoluteTime created;
    CFAbsoluteTime fired[wanted_firings];
    int firings;
} seen;

static void myCFTimerCallback(CFRunLoopTimerRef timer, void *info) {
    CHECK(info == NULL);
    CHECK(CFRunLoopTimerIsValid(timer));
    if (seen.firings == 0) CHECK(CFRunLoopTimerGetNextFireDate(timer) < seen.created);
    if (seen.firings < wanted_firings) seen.fired[seen.firings] = CFAbsoluteTimeGetCurrent();
    seen.firings++;
    if (seen.firings == wanted_firings) CFRunLoopStop(CFRunLoopGetCurrent());
}

static void *threadMain(void *object) {
    (void)object;
    seen.created = CFAbsoluteTimeGetCurrent();
    CFRunLoopRef runLoop = CFRunLoopGetCurrent();
    CFRunLoopTimerContext context = {0, NULL, NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(kCFAllocatorDefault, 0.1, 0.3, 0, 0, &myCFTimerCallback, &context);

    CFRunLoopAddTimer(runLoop, timer, kCFRunLoopCommonModes);

    CHECK(CFRunLoopContainsTimer(runLoop, timer, kCFRunLoopDefaultMode));
    CHECK(CFRunLoopContainsTimer(runLoop, timer, kCFRunLoopCommonModes));
    CHECK(CFRunLoopTimerGetInterval(timer) == 0.3);
    CHECK(CFRunLoopTimerDoesRepeat(timer));
    CFRunLoopRun();
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    return NULL;
}

int main(void) {
    listing_begin();
    listing_on_thread(threadMain, NULL);
    CHECK(seen.firings == wanted_firings);
    /* Not early, and on the grid of 0.3 s from the creation; half a microsecond for the arithmetic of dates. */
    for (int i = 0; i < wanted_firings; i++) CHECK(seen.fired[i] >= seen.created + 0.3 * i - 5e-7);
    CHECK(seen.fired[0] < seen.created + 0.25);
    return listing_end();
}
