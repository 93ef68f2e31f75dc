/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, section 2.2: a repeating timer moves its own next date from its callback, once. The interval stays as it was and is counted
 * from the new date. The run does not return when the timer fires, for timers are no sources. Times are a twentieth of the printed ones.
 * Rules: 51 109 114 118 126 139
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

enum { wanted_firings = 4 };

static int i = 1;
static CFAbsoluteTime created;
static CFAbsoluteTime moved_to;
static CFAbsoluteTime fired[wanted_firings];
static int firings;

static void RunLoopTimerCallBack(CFRunLoopTimerRef timer, void *info) {
    (void)info;
    if (firings < wanted_firings) fired[firings] = CFAbsoluteTimeGetCurrent();
    firings++;
    if (i == 1) {
        moved_to = CFAbsoluteTimeGetCurrent() + 0.25;
        CFRunLoopTimerSetNextFireDate(timer, moved_to); /* moves the next firing, and not the interval */
        i = i + 1;
    }
    CHECK(CFRunLoopTimerGetInterval(timer) == 0.1);
    if (firings == wanted_firings) CFRunLoopStop(CFRunLoopGetCurrent());
}

static void *createTimerWithContext(void *object) {
    (void)object;
    created = CFAbsoluteTimeGetCurrent();
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0.1, 0, 0, &RunLoopTimerCallBack, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE) == kCFRunLoopRunStopped);
    CFRelease(timer);
    return NULL;
}

int main(void) {
    listing_begin();
    listing_on_thread(createTimerWithContext, NULL);
    CHECK(firings == wanted_firings);
    CHECK(fired[0] >= created - 5e-7);
    CHECK(fired[1] >= moved_to - 5e-7); /* not after 0.1 s */
    CHECK(fired[2] >= moved_to + 0.1 - 5e-7);
    CHECK(fired[3] >= moved_to + 0.2 - 5e-7);
    return listing_end();
}
