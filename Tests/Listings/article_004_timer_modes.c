/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Article 004, the end of section 2: a timer is in one loop at a time, and in as many modes of it as one likes; adding it again where it is
 * has no effect.
 * Rules: 16 115 116 141
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

static int firings;

static void RunLoopTimerCallBack(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    (void)info;
    firings++;
}

static void *useFirstLoop(void *object) {
    CFRunLoopTimerRef timer = (CFRunLoopTimerRef)object;
    CFRunLoopRef rl = CFRunLoopGetCurrent();
    CFRunLoopRef second = CFRunLoopGetMain();

    CFRunLoopAddTimer(rl, timer, kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(rl, timer, kCFRunLoopDefaultMode); /* again, without effect */
    CFRunLoopAddTimer(rl, timer, CFSTR("another mode"));
    CHECK(CFRunLoopContainsTimer(rl, timer, kCFRunLoopDefaultMode));
    CHECK(CFRunLoopContainsTimer(rl, timer, CFSTR("another mode")));
    CFRunLoopAddTimer(second, timer, kCFRunLoopDefaultMode); /* refused */
    CHECK(!CFRunLoopContainsTimer(second, timer, kCFRunLoopDefaultMode));

    CFRunLoopRunInMode(CFSTR("another mode"), 0, FALSE);
    CHECK(firings == 1);

    CFRunLoopRemoveTimer(rl, timer, kCFRunLoopDefaultMode);
    CFRunLoopRemoveTimer(rl, timer, CFSTR("another mode"));
    CHECK(CFRunLoopTimerIsValid(timer));
    CFRunLoopAddTimer(second, timer, kCFRunLoopDefaultMode); /* free to join */
    CHECK(CFRunLoopContainsTimer(second, timer, kCFRunLoopDefaultMode));
    return NULL;
}

int main(void) {
    listing_begin();
    CFRunLoopTimerRef timer =
        CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 1000, 0, 0, &RunLoopTimerCallBack, NULL);
    listing_on_thread(useFirstLoop, timer);
    CFRunLoopTimerInvalidate(timer);
    CHECK(!CFRunLoopContainsTimer(CFRunLoopGetMain(), timer, kCFRunLoopDefaultMode));
    CFRelease(timer);
    return listing_end();
}
