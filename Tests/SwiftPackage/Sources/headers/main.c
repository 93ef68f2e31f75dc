/* SPDX-License-Identifier: Apache-2.0 */
#include <CoreFoundation/CoreFoundation.h>

static void tick(CFRunLoopTimerRef timer, void *info) {
    int *ticks = info;
    if (++*ticks == 3)
        CFRunLoopTimerInvalidate(timer);
}

int main(void) {
    int ticks = 0;
    CFRunLoopTimerContext context = {0, &ticks, NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.001, 0, 0, tick, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    while (ticks < 3)
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    CFRelease(timer);
    printf("%d ticks\n", ticks);
}
