/* SPDX-License-Identifier: Apache-2.0 */
/* A program against the installed library, in C and in C++: a timer fires and stops the loop. */
#include <CoreFoundation/CoreFoundation.h>

static void stop(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

int main(void)
{
    int fired = 0;
    CFRunLoopTimerContext context = {0, &fired, NULL, NULL, NULL};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(kCFAllocatorDefault, CFAbsoluteTimeGetCurrent() + 0.01, 0, 0, 0, stop, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    SInt32 result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false);
    CFRelease(timer);
    return fired == 1 && (result == kCFRunLoopRunStopped || result == kCFRunLoopRunFinished) ? 0 : 1;
}
